// The bounds of a column of numbers, dates or times.

import { h } from "../dom.js";
import { checkbox, field, input, isNumber, numberOf, optional, select } from "../forms.js";
import { number } from "../format.js";

const WORDS = {
  number: {
    low: ["Low", "lowest value"],
    high: ["High", "highest value"],
    attributes: { inputmode: "decimal" },
  },
  date: {
    low: ["Earliest", "earliest date"],
    high: ["Latest", "latest date"],
    attributes: { type: "date" },
  },
  datetime: {
    low: ["Earliest", "earliest time"],
    high: ["Latest", "latest time"],
    attributes: { type: "datetime-local", step: "1" },
  },
};
const HEAVY_TAIL = "For costs, durations and other values with a heavy tail: ratios count, not differences.";
const ORDERS = [
  ["", "with the year first: 2026-01-31"],
  ["ymd", "year, month, day: 2026-01-31"],
  ["dmy", "day, month, year: 31.01.2026 or 31/01/2026"],
  ["mdy", "month, day, year: 01/31/2026"],
];

/**
 * The fields of a column with bounds.
 * @param {(label: string) => object} of attributes of a control with this label
 * @param {object} given a proposal or a declared column
 */
export function boundsFields(of, given) {
  const ends = {};
  const whole = flag(of, "whole", "Whole numbers", "Counts, such as admissions.", Boolean(given.whole));
  const log = flag(of, "log", "Log scale", HEAVY_TAIL, Boolean(given.log));
  const added = given.offset ? String(given.offset) : "";
  const offset = input("offset", { inputmode: "decimal", placeholder: "0", value: added, ...of("Offset") });
  const isOffset = (text) => isNumber("")(text) || (numberOf(text) >= 0 ? "" : "Enter 0 or more.");
  const shift = field("Added before the logarithm", offset, {
    hint: "Only where zeros occur, for example 1.",
    check: optional(isOffset),
  });
  const order = select("order", ORDERS, of("Order"));
  order.value = given.order ?? "";
  const ofMoments = h("div", { class: "columns" }, field("Dates in the file are written", order));
  const ofNumbers = h("div", { class: "columns" }, whole.element, log.element, shift);
  let drawn = null;

  const value = (end) => {
    const text = ends[end].control.value;
    if (drawn !== "number") return text;
    return isSet(end) ? numberOf(text) : NaN;
  };
  const isSet = (end) => ends[end].control.value.trim() !== "";
  const outside = (text) => {
    if (drawn !== "number") return "";
    const wrong = isNumber("Enter a number.")(text);
    const isBroken = whole.checked() && !Number.isInteger(numberOf(text));
    return wrong || (isBroken ? "Bounds of whole numbers must be whole." : "");
  };
  const isLog = () => drawn === "number" && log.checked();
  const isBelowLog = (text) => isLog() && numberOf(text) + (numberOf(offset.value) || 0) <= 0;
  const isLow = (text) => {
    if (!text) return `Enter the ${WORDS[drawn].low[1]} that makes sense.`;
    const tooLow = "On a log scale the lowest value must be above zero. Enter one, or add an offset.";
    return outside(text) || (isBelowLog(text) ? tooLow : "");
  };
  const isHigh = (text) => {
    if (!text) return `Enter the ${WORDS[drawn].high[1]} that makes sense.`;
    const wrong = outside(text);
    if (wrong || !isSet("low") || outside(ends.low.control.value.trim())) return wrong;
    if (value("high") > value("low")) return "";
    return drawn === "number" ? "High must be above low." : "The latest must be after the earliest.";
  };

  const make = () => {
    for (const [end, check] of Object.entries({ low: isLow, high: isHigh })) {
      const [label] = WORDS[drawn][end];
      const start = given.kind === drawn ? (given[end] ?? "") : "";
      const value = String(start).replace(/Z$/, "");
      const control = input(end, { ...WORDS[drawn].attributes, value, ...of(label) });
      ends[end] = { control, element: field(label, control, { check }) };
    }
  };
  const showOffset = () => {
    shift.hidden = !log.checked();
    offset.disabled = shift.hidden;
  };
  log.box.addEventListener("change", showOffset);
  showOffset();

  return {
    draw(now) {
      if (drawn !== now) {
        drawn = now;
        make();
      }
      return { ends: [ends.low.element, ends.high.element], more: now === "number" ? ofNumbers : ofMoments };
    },
    get controls() {
      return { low: ends.low.control, high: ends.high.control, whole: whole.box, log: log.box, order };
    },
    complete: () => isSet("low") && isSet("high"),
    // What is wrong with a value that should lie between the bounds.
    holds(now, text) {
      if (!text) return "Enter the value that replaces a missing one.";
      const wrong = now === "number" ? isNumber("")(text) : "";
      if (wrong || !isSet("low") || !isSet("high")) return wrong;
      const found = now === "number" ? numberOf(text) : text;
      if (found >= value("low") && found <= value("high")) return "";
      const [low, high] = [ends.low, ends.high].map(({ control }) => shown(now, control.value));
      return `Enter a value from ${low} to ${high}.`;
    },
    read(now) {
      const read = { low: value("low"), high: value("high") };
      if (now !== "number") return { ...read, ...(order.value && { order: order.value }) };
      if (whole.checked()) read.whole = true;
      if (log.checked()) read.log = true;
      if (log.checked() && numberOf(offset.value)) read.offset = numberOf(offset.value);
      return read;
    },
  };
}

const shown = (kind, text) => (kind === "number" ? number(numberOf(text), 7) : text.replace("T", " "));

function flag(of, name, label, hint, checked) {
  const element = checkbox(name, label, { hint, checked });
  const box = element.querySelector("input");
  box.setAttribute("aria-label", of(label)["aria-label"]);
  return { element, box, checked: () => box.checked };
}
