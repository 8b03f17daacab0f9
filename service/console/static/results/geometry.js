// The geometry of a job on a table: coordinates of its columns and how long they are, from public facts
// alone.

import { number, percent } from "../format.js";

const UNITS = 32767;
const DAY = 86_400_000;

const codes = (column) => column.levels.length + (column.missing === "level" ? 1 : 0);
const longest = (column) => (column.kind === "category" ? (codes(column) - 1) / (2 * codes(column)) : 1 / 4);

// The ends of a column where distances are even: numbers, their logarithms, days or seconds.
export function line(column, [low, high] = [column.low, column.high]) {
  if (column.kind === "boolean") return [0, 1];
  if (column.kind === "number")
    return column.log
      ? [Math.log(low + (column.offset ?? 0)), Math.log(high + (column.offset ?? 0))]
      : [low, high];
  const unit = column.kind === "date" ? DAY : 1000;
  return [low, high].map((text) => Math.floor(moment(text) / unit));
}

// Milliseconds of a moment; without a time zone it is in UTC.
export function moment(text) {
  const given = String(text).replace(" ", "T");
  return Date.parse(/T.*(Z|[+-]\d\d:?\d\d)$/.test(given) || !given.includes("T") ? given : `${given}Z`);
}

// The clustered columns in order, with their weights.
export function clustered(domain) {
  const { columns, weights } = domain.clustered;
  const declared = new Map(domain.columns.map((each) => [each.name, each]));
  return columns.map((name) => ({ column: declared.get(name), weight: weights[name] }));
}

// What one encoded unit is in each coordinate, about; `ranges` are those that private scaling released.
export function tableLengths(domain, ranges = {}) {
  const parts = clustered(domain);
  const radius = Math.sqrt(
    parts.reduce((sum, { column, weight }) => sum + weight * weight * longest(column), 0),
  );
  return parts.flatMap(({ column, weight }) => {
    const reach = (weight * UNITS) / radius;
    if (column.kind === "category") return Array(codes(column)).fill(Math.SQRT2 / reach);
    const [low, high] = line(column, ranges[column.name]);
    return [(high - low) / reach];
  });
}

// A made-up record as coordinates of centres: a share of one for its level, logarithms, days, seconds.
export function coordinatesOf(domain) {
  const parts = clustered(domain).map(({ column }) => {
    if (column.kind === "category") {
      const levels = [...column.levels, ...(column.missing === "level" ? ["missing"] : [])];
      return (value) => levels.map((level) => Number(level === value));
    }
    return (value) => [column.kind === "boolean" ? Number(value) : line(column, [value, value])[0]];
  });
  return (record) => parts.flatMap((part, i) => part(record[i]));
}

// The words for a number in each coordinate of a centre.
export function coordinateWords(domain) {
  return clustered(domain).flatMap(({ column }) => {
    if (column.kind === "category") return Array(codes(column)).fill(percent);
    if (column.kind === "boolean") return [percent];
    if (column.kind === "number")
      return [column.log ? (x) => number(Math.exp(x) - (column.offset ?? 0), 3) : (x) => number(x, 3)];
    return [
      (x) => momentWords(new Date(column.kind === "date" ? Math.round(x) * DAY : x * 1000), column.kind),
    ];
  });
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
