// Words for numbers along the axes that the service states for a result.

import { number, percent } from "../format.js";

const DAY = 86_400_000;

// Milliseconds of a moment; without a time zone it is in UTC.
export function moment(text) {
  const given = String(text).replace(" ", "T");
  return Date.parse(/T.*(Z|[+-]\d\d:?\d\d)$/.test(given) || !given.includes("T") ? given : `${given}Z`);
}

const LABELS = {
  number: (x) => number(x, 3),
  log: (x, offset) => number(Math.exp(x) - offset, 3),
  share: (x) => percent(x),
  date: (x) => momentWords(new Date(Math.round(x) * DAY), "date"),
  datetime: (x) => momentWords(new Date(x * 1000), "datetime"),
};

// For each coordinate of a centre how its numbers are written.
export function coordinateWords({ units, scales, offsets }) {
  return units.map((_, j) => (x) => LABELS[scales?.[j] ?? "number"](x, offsets?.[j] ?? 0));
}

export function momentWords(date, kind) {
  const day = date.toLocaleDateString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    timeZone: "UTC",
  });
  return kind === "date"
    ? day
    : `${day} ${date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" })}`;
}
