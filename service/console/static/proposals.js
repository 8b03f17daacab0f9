// What the first lines of a table suggest about its columns. Whatever comes from rows stands under `seen`, apart
// from what is proposed: it becomes a public fact only when the curator says that it is one.

import { readNumber } from "./delimited.js";

const MOST_LEVELS = 256;
const MISSING = ["", "nan", "null", "none", "na", "n/a", "<na>", "nat"];
const YES_OR_NO = ["true", "false", "yes", "no", "t", "f", "y", "n"];
const MOMENT = /^(\d{1,4})\s?[./-]\s?(\d{1,2})\s?[./-]\s?(\d{1,4})(?:[T ]+(\d{1,2}:\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;
const ORDERS = ["ymd", "dmy", "mdy"];
const ID = /(^|[\s_-])(id|ids|uuid|key|mrn|ssn)$|^(patient|person|customer|subject|member|case|record)[\s_-]?(no|nr|number|id)?$/i;

// Bounds that follow from what a column means, by words in its name; none of them is taken from rows.
const TEMPLATES = [
  ["an age", /\b(age|alter)\b/i, "0", "120"],
  ["a body mass index", /\bbmi\b/i, "10", "80"],
  ["a share in percent", /percent|\bpct\b|%/i, "0", "100"],
  ["an hour of the day", /\bhour\b/i, "0", "24"],
  ["a latitude", /\blat(itude)?\b/i, "-90", "90"],
  ["a longitude", /\b(lon|lng|longitude)\b/i, "-180", "180"],
];

export function usualBounds(name) {
  const [words, , low, high] = TEMPLATES.find(([, pattern]) => pattern.test(name.replaceAll("_", " "))) ?? [];
  return words ? { words, low, high } : null;
}

// One proposal for each column of `readStart`'s answer.
export function proposals({ names, records, first, decimal }) {
  return first.map((_, j) => proposal(names?.[j] ?? "", records.map((each) => each[j]), decimal));
}

export function proposal(name, values, decimal = ".") {
  const there = values.filter((each) => !MISSING.includes(each.toLowerCase()));
  const gaps = values.length - there.length;
  const found = kindOf(name, there, decimal);
  const role = found.role ?? "cluster";
  return { name, role, missing: whenMissing(found.kind, role, gaps), ...found, seen: { gaps, lines: values.length, ...found.seen } };
}

function whenMissing(kind, role, gaps) {
  if (role !== "cluster" || !gaps) return "refuse";
  return kind === "category" ? "level" : "drop";
}

function kindOf(name, values, decimal) {
  const distinct = [...new Set(values)];
  const every = (test) => distinct.length > 0 && distinct.every(test);
  if (ID.test(name) && distinct.length > values.length / 2) return { kind: "text", role: "id" };
  if (every((each) => YES_OR_NO.includes(each.toLowerCase()))) return { kind: "boolean" };
  if (every((each) => MOMENT.test(each))) return ofMoments(distinct) ?? { kind: "text", role: "ignore" };
  const numbers = distinct.map((each) => readNumber(each, decimal));
  if (distinct.length > 0 && !numbers.some(Number.isNaN)) return ofNumbers(numbers);
  if (distinct.length > 0 && distinct.length <= MOST_LEVELS && (distinct.length <= 12 || distinct.length < values.length / 4)) return { kind: "category", seen: { levels: distinct.sort() } };
  return { kind: "text", role: "ignore" };
}

function ofNumbers(numbers) {
  if (numbers.length === 2 && numbers.includes(0) && numbers.includes(1)) return { kind: "boolean" };
  const seen = ends(numbers.sort((a, b) => a - b));
  return { kind: "number", whole: numbers.every(Number.isInteger), seen };
}

// Dates or times, and the order of day, month and year where only one fits all of them.
function ofMoments(texts) {
  const orders = ORDERS.filter((order) => texts.every((each) => isoOf(each, order)));
  if (!orders.length) return null;
  const timed = texts.some((each) => MOMENT.exec(each)[4]);
  const found = texts.map((each) => isoOf(each, orders[0])).sort();
  const ambiguous = orders.length > 1 && !texts.every((each) => each.includes(".")); // points stand in dates with the day first
  return { kind: timed ? "datetime" : "date", order: orders[0] === "ymd" || ambiguous ? undefined : orders[0], ambiguous, seen: ends(found) };
}

// A moment in the notation of ISO 8601, to the minute; nothing where its numbers are no date in this order.
function isoOf(text, order) {
  const [, ...parts] = MOMENT.exec(text);
  const [year, month, day] = ["y", "m", "d"].map((each) => parts[order.indexOf(each)]);
  const iso = `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  const date = new Date(`${iso}T00:00Z`);
  if (year.length !== 4 || Number.isNaN(date.getTime()) || date.getUTCDate() !== Number(day)) return "";
  return parts[3] ? `${iso}T${parts[3].padStart(5, "0")}` : iso;
}

const ends = (sorted) => ({ low: sorted[0], high: sorted[sorted.length - 1] });
