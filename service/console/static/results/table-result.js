// Centres of a table in the curator's kinds: means, geometric means, dates, rates, and shares of levels.

import { hue } from "./charts.js";
import { h } from "../dom.js";
import { estimateWords, number, percent, sizeWords } from "../format.js";
import { moment, momentWords } from "./geometry.js";
import { facts, table } from "../widgets.js";

const FEW_LEVELS = 6;
const FEW_CENTRES = 24;
/** @type {[string, number][]} */
const SECONDS = [
  ["days", 86_400],
  ["hours", 3600],
  ["minutes", 60],
  ["seconds", 1],
];

// Values and ends of their intervals for files, a table, and a picture of each centre.
export function tableParts(result, axes) {
  const values = (end) =>
    result.profiles.map((profile) =>
      profile.flatMap((entry) =>
        entry.shares ? Object.values(entry[`shares${end}`] ?? {}) : [entry[`value${end}`]],
      ),
    );
  return {
    values: values(""),
    ends: hasIntervals(result) ? { centre_low: values("_low"), centre_high: values("_high") } : {},
    table: centreTable(result),
    profiles: h(
      "section",
      { class: "card stack" },
      h("h2", {}, "What each centre is like"),
      h(
        "p",
        { class: "small muted" },
        "Numbers and dates lie between their bounds. " +
          (result.level
            ? "In brackets: 95% intervals of the records nearest to the centre."
            : hasIntervals(result)
              ? "In brackets: 95% intervals for the noise alone, which are approximate."
              : "± and × give the noise in 95 of 100 runs."),
      ),
      result.details?.ranges && released(result.details.ranges),
      h(
        "div",
        { class: "profiles" },
        result.profiles.slice(0, FEW_CENTRES).map((profile, i) => centre(profile, i, result, axes)),
      ),
      result.profiles.length > FEW_CENTRES &&
        h(
          "p",
          { class: "small muted" },
          `The first ${FEW_CENTRES}; the table below has all ${result.profiles.length}.`,
        ),
    ),
  };
}

// Results of earlier versions with a single k state their noise, and no intervals.
const hasIntervals = ({ profiles: [[first]] }) => "value_low" in first || "shares_low" in first;

function released(ranges) {
  const words = Object.entries(ranges).map(([name, [low, high]]) => [
    name,
    `${valueWords(low)} to ${valueWords(high)}`,
  ]);
  return h("details", {}, h("summary", {}, "Ranges that private scaling released"), facts(words));
}

function centre(profile, i, { centres, sizes, hues, level, intervals }, axes) {
  const places = placesOf(profile, centres[i], axes);
  const size =
    sizes && h("span", { class: "muted" }, `${sizeWords(sizes[i], level ?? intervals, i)} records`);
  return h(
    "figure",
    { class: `stack tight ${hue(hues?.[i] ?? i)} flat` },
    h("figcaption", { class: "row" }, h("h3", {}, h("span", { class: "swatch" }), `Centre ${i + 1}`), size),
    h(
      "dl",
      { class: "kinds" },
      profile.map((entry, j) => [
        h("dt", {}, entry.column, h("small", { class: "muted" }, entry.measure)),
        h("dd", {}, drawn(entry, places[j])),
      ]),
    ),
  );
}

function drawn(entry, place) {
  if (entry.shares) {
    const [first, rest] = leading(entry.shares);
    return [
      first.map(([level, share]) => bar(share, shareWords(entry, level, share))),
      rest > 0 && h("span", { class: "small muted" }, `${percent(rest)} other levels`),
    ];
  }
  return (entry.measure === "rate" ? bar : rail)(
    entry.measure === "rate" ? entry.value : place,
    entryWords(entry),
  );
}

const SHARES = { words: percent, least: 0 };
const inBrackets = ({ value, interval }, what = "") =>
  `${value}${what && ` ${what}`}${interval && ` (${interval})`}`;

// The interval of one level; missing from results of earlier versions.
const levelEnds = (entry, level) => [entry.shares_low?.[level], entry.shares_high?.[level]];

const shareWords = (entry, level, share) =>
  inBrackets(estimateWords(share, levelEnds(entry, level), SHARES), level);

// The value of a column that has no levels, with its interval or its noise.
function entryWords(entry) {
  const { measure, value, value_low: low, value_high: high } = entry;
  if (measure === "rate" && low !== undefined)
    return inBrackets(estimateWords(value, [low, high], SHARES), "yes");
  if (low === undefined)
    return `${measure === "rate" ? `${percent(value)} yes` : valueWords(value)}${noiseWords(entry)}`;
  if (typeof value === "number") return inBrackets(estimateWords(value, [low, high]));
  return `${valueWords(value)} (${valueWords(low)} to ${valueWords(high)})`;
}

// The most frequent levels, and what all others have together.
function leading(shares) {
  const sorted = Object.entries(shares).sort((a, b) => b[1] - a[1]);
  const rest = sorted.slice(FEW_LEVELS).reduce((sum, [, share]) => sum + share, 0);
  return [sorted.slice(0, FEW_LEVELS), rest];
}

const width = (share) => ({ share: `${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%` });

function bar(share, words) {
  return h(
    "div",
    { class: "level" },
    h("span", { class: "track", vars: width(share) }),
    h("span", {}, words),
  );
}

function rail(share, words) {
  return h(
    "div",
    { class: "level" },
    h("span", { class: "track point", vars: width(share) }),
    h("span", {}, words),
  );
}

// Where a centre lies between the ends of the first axis of each column, from 0 to 1.
function placesOf(profile, centre, { low, high }) {
  let at = 0;
  return profile.map((entry) => {
    const j = at;
    at += entry.shares ? Object.keys(entry.shares).length : 1;
    return (centre[j] - low[j]) / (high[j] - low[j]);
  });
}

function valueWords(value) {
  if (typeof value === "number") return number(value);
  return momentWords(new Date(moment(value)), value.includes("T") ? "datetime" : "date");
}

// Twice the standard deviation in the unit that people would use.
function noiseWords({ kind, measure, noise, noise_factor: factor }) {
  if (factor) return ` × or ÷ ${number(factor * factor, 3)}`;
  if (noise === null || noise === undefined) return "";
  if (measure === "rate") return ` ± ${number(200 * noise, 2)} points`;
  if (kind === "number") return ` ± ${number(2 * noise, 2)}`;
  const seconds = 2 * noise * (kind === "date" ? 86_400 : 1);
  const [unit, length] =
    kind === "date" ? SECONDS[0] : (SECONDS.find(([, each]) => seconds >= each) ?? SECONDS[3]);
  return ` ± ${number(seconds / length, 2)} ${unit}`;
}

function cell(entry) {
  if (entry.shares)
    return leading(entry.shares)[0]
      .slice(0, 3)
      .map(([level, share]) => h("div", { class: "nowrap" }, shareWords(entry, level, share)));
  return h("span", { class: "nowrap" }, entryWords(entry));
}

function centreTable({ profiles, sizes, hues, level, intervals }) {
  const known = level ?? intervals;
  const headings = [
    { name: "Centre" },
    ...(sizes ? [{ name: "Noisy size", right: true }] : []),
    ...profiles[0].map((entry) => ({
      name: entry.measure.startsWith("geometric") ? `${entry.column} (${entry.measure})` : entry.column,
      right: !entry.shares,
    })),
  ];
  const rows = profiles.map((profile, i) => [
    h("span", { class: `nowrap ${hue(hues?.[i] ?? i)}` }, h("span", { class: "swatch" }), String(i + 1)),
    ...(sizes ? [sizeWords(sizes[i], known, i)] : []),
    ...profile.map(cell),
  ]);
  const made = table(headings, rows, { label: "Centres", fold: false });
  made.querySelector("table").id = "centres";
  return h(
    "div",
    { class: "stack" },
    made,
    profiles[0].some((entry) => entry.shares) &&
      h(
        "p",
        { class: "small muted" },
        "For each category, the three largest shares are shown. Downloaded files have all of them.",
      ),
  );
}
