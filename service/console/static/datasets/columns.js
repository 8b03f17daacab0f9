// Columns of a table in words, as their curator declared them.

import { h } from "../dom.js";
import { isNumber, numberOf } from "../forms.js";
import { number, plural } from "../format.js";
import { table } from "../widgets.js";

export const KINDS = {
  number: "number",
  boolean: "yes or no",
  category: "category",
  date: "date",
  datetime: "date and time",
  text: "text",
};
export const ROLES = {
  cluster: "clustering",
  keep: "later questions",
  id: "telling people apart",
  ignore: "left out",
};
const GAPS = {
  refuse: "refuses the file",
  drop: "its row is left out",
  level: "a level of its own",
  keep: "stays missing",
};
export const ORDERS = { ymd: "year, month, day", dmy: "day, month, year", mdy: "month, day, year" };
const FEW_LEVELS = 8;
const [LEAST_WEIGHT, MOST_WEIGHT] = [0.001, 1000];
// Years are not grouped, and neither are moments.
const bound = (column, value) =>
  column.kind === "number" ? number(value, 7) : String(value).replace("T", " ");

export function kindWords(column) {
  const { kind, low, high, whole, log, offset, levels = [], other } = column;
  if (kind === "category") {
    const others = other ? `; anything else counts as ${other}` : "";
    return `one of ${plural(levels.length, "level")}: ${levelList(levels)}${others}`;
  }
  if (low === undefined || low === null) return KINDS[kind] ?? kind;
  const range =
    `${whole ? "whole number" : KINDS[kind]} from ${bound(column, low)} to ` + `${bound(column, high)}`;
  return log ? `${range}, on a log scale${offset ? ` after adding ${number(offset)}` : ""}` : range;
}

function levelList(levels) {
  const more = levels.length - FEW_LEVELS;
  return `${levels.slice(0, FEW_LEVELS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/**
 * A fact of a column in words, whole: this is what a curator declares public.
 * @param {string} fact
 * @param {object} column
 * @returns {string}
 */
export function factWords(fact, column) {
  const words = {
    kind: () => `kind ${KINDS[column.kind]}`,
    role: () => `use ${ROLES[column.role]}`,
    levels: () => `levels ${column.levels.join(", ")}`,
    low: () => `lowest value ${bound(column, column.low)}`,
    high: () => `highest value ${bound(column, column.high)}`,
    log: () => (column.log ? "log scale" : "no log scale"),
    whole: () => (column.whole ? "whole numbers" : "not only whole numbers"),
    missing: () => `a missing value: ${missingWords(column)}`,
    order: () => `dates as ${ORDERS[column.order]}`,
  };
  return words[fact]();
}

export function missingWords({ missing, fill }) {
  return missing === "fill"
    ? `counts as ${fill === true ? "yes" : fill === false ? "no" : fill}`
    : (GAPS[missing] ?? missing);
}

const FACTS = {
  kind: "kind",
  role: "use",
  levels: "levels",
  low: "lowest value",
  high: "highest value",
  whole: "whole numbers",
  log: "log scale",
  missing: "what a missing value means",
  fill: "fixed value",
  order: "order of dates",
};
export const factNames = (facts) => facts.map((each) => FACTS[each] ?? each).join(", ");

const origin = (facts) =>
  h("div", { class: "small muted" }, `${factNames(facts)} from the rows, confirmed as public`);

export function columnTable(columns) {
  const headings = [
    { name: "Column" },
    { name: "Holds" },
    { name: "Used for" },
    { name: "Weight", right: true },
    { name: "A missing value" },
  ];
  const rows = columns.map((each) => [
    h("code", { class: "column-name" }, each.name),
    h("div", {}, kindWords(each), each.confirmed_from_rows && origin(each.confirmed_from_rows)),
    ROLES[each.role] ?? each.role,
    each.role !== "cluster" ? "–" : each.weight ? number(each.weight) : "by its kind",
    each.role === "ignore" ? "–" : missingWords(each),
  ]);
  return table(headings, rows, { label: "Columns" });
}

export const isWeight = (text) =>
  isNumber("Enter a weight; 1 is usual.")(text) ||
  (numberOf(text) >= LEAST_WEIGHT && numberOf(text) <= MOST_WEIGHT
    ? ""
    : `Enter a weight from ${LEAST_WEIGHT} to ${MOST_WEIGHT}.`);
