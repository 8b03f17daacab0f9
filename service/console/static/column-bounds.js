// The bounds of a column. Those that come from rows are marked, and each must be confirmed as public.

import { freshId, h, replace } from "./dom.js";
import { checkbox, field, guard, input, isNumber, numberOf, optional, select } from "./forms.js";
import { number } from "./format.js";
import { usualBounds } from "./proposals.js";

const WORDS = {
  number: { low: ["Low", "lowest value"], high: ["High", "highest value"], attributes: { inputmode: "decimal" } },
  date: { low: ["Earliest", "earliest date"], high: ["Latest", "latest date"], attributes: { type: "date" } },
  datetime: { low: ["Earliest", "earliest time"], high: ["Latest", "latest time"], attributes: { type: "datetime-local", step: "1" } },
};
const ORDERS = [["", "as in its first lines"], ["ymd", "2026-01-31"], ["dmy", "31.01.2026 or 31/01/2026"], ["mdy", "01/31/2026"]];

export function boundsFields(of, given, name) {
  const ends = {};
  const whole = flag(of, "whole", "Whole numbers", "Counts, such as admissions.", Boolean(given.whole));
  const log = flag(of, "log", "Log scale", "For costs, durations and other values with a heavy tail: ratios count, not differences.", Boolean(given.log));
  const offset = input("offset", { inputmode: "decimal", placeholder: "0", value: given.offset ? String(given.offset) : "", ...of("Offset") });
  const shift = field("Added before the logarithm", offset, { hint: "Only where zeros occur, for example 1.", check: optional((text) => isNumber("")(text) || (numberOf(text) >= 0 ? "" : "Enter 0 or more.")) });
  const order = select("order", ORDERS, of("Order"));
  order.value = given.order ?? "";
  const isOrder = (text) => (text || !given.ambiguous ? "" : "Choose one: in the first lines day and month cannot be told apart.");
  const ofMoments = h("div", { class: "columns" }, field("Dates in the file are written", order, { hint: "Order of day, month and year.", check: isOrder }));
  const offers = h("div", { class: "row" });
  const ofNumbers = h("div", { class: "columns" }, whole.element, log.element, shift);
  let drawn = null;

  const value = (end) => (drawn !== "number" ? ends[end].control.value : isSet(end) ? numberOf(ends[end].control.value) : NaN);
  const isSet = (end) => ends[end].control.value.trim() !== "";
  const outside = (text) => {
    if (drawn !== "number") return "";
    const wrong = isNumber("Enter a number.")(text);
    return wrong || (whole.checked() && !Number.isInteger(numberOf(text)) ? "Bounds of whole numbers must be whole." : "");
  };
  const isLow = (text) => {
    if (!text) return `Enter the ${WORDS[drawn].low[1]} that makes sense.`;
    return outside(text) || (drawn === "number" && log.checked() && numberOf(text) + (numberOf(offset.value) || 0) <= 0 ? "On a log scale the lowest value must be above zero. Enter one, or add an offset." : "");
  };
  const isHigh = (text) => {
    if (!text) return `Enter the ${WORDS[drawn].high[1]} that makes sense.`;
    const wrong = outside(text);
    if (wrong || !isSet("low") || outside(ends.low.control.value.trim())) return wrong;
    return value("high") > value("low") ? "" : drawn === "number" ? "High must be above low." : "The latest must be after the earliest.";
  };

  const make = () => {
    for (const [end, check] of [["low", isLow], ["high", isHigh]]) {
      const [label] = WORDS[drawn][end];
      const start = given.kind === drawn && given[end] !== undefined ? String(given[end]).replace(/Z$/, "") : "";
      const control = input(end, { ...WORDS[drawn].attributes, value: start, ...of(label) });
      const doubt = h("div", {});
      control.addEventListener("input", () => replace(doubt)); // typed by hand, it no longer comes from rows
      control.addEventListener("change", offer);
      ends[end] = { control, doubt, element: h("div", { class: "stack tight" }, field(label, control, { check }), doubt) };
    }
  };
  const use = ({ low, high }, fromRows) => {
    for (const [end, text] of [["low", low], ["high", high]]) {
      ends[end].control.value = text;
      ends[end].control.tell("");
      replace(ends[end].doubt, fromRows && doubtAbout(of, WORDS[drawn][end][0], text));
    }
    offer();
    ends.low.control.dispatchEvent(new Event("change", { bubbles: true }));
    ends.low.control.focus();
  };
  const offer = () => {
    const open = !isSet("low") && !isSet("high");
    const usual = drawn === "number" ? usualBounds(name.value) : null;
    const seen = given.kind === drawn && given.seen?.low !== undefined ? rounded(drawn, given.seen) : null;
    const quick = (words, bounds, fromRows) => h("button", { type: "button", class: "small", on: { click: () => use(bounds, fromRows) } }, words);
    replace(
      offers,
      open && usual && quick(`Use ${usual.low} to ${usual.high}, usual for ${usual.words}`, usual, false),
      open && seen && quick(`Use ${shown(drawn, seen.low)} to ${shown(drawn, seen.high)}, rounded from the rows`, seen, true),
    );
  };
  const showOffset = () => (shift.hidden = offset.disabled = !log.checked());
  log.box.addEventListener("change", showOffset);
  showOffset();
  name.addEventListener("change", () => drawn && offer());

  return {
    draw(now) {
      if (drawn !== now) {
        drawn = now;
        make();
      }
      offer();
      return { ends: [ends.low.element, ends.high.element], more: [offers, now === "number" ? ofNumbers : ofMoments] };
    },
    complete: () => isSet("low") && isSet("high"),
    fromRowsConfirmed: () => Object.keys(ends).filter((end) => ends[end].doubt.querySelector("input:checked")),
    unconfirmed: () => Object.values(ends).some(({ doubt }) => doubt.querySelector("input:not(:checked)")),
    // What is wrong with a value that should lie between the bounds.
    holds(now, text) {
      if (!text) return "Enter the value that stands for a missing one.";
      const wrong = now === "number" ? isNumber("")(text) : "";
      if (wrong || !isSet("low") || !isSet("high")) return wrong;
      const found = now === "number" ? numberOf(text) : text;
      return found >= value("low") && found <= value("high") ? "" : `Enter a value from ${shown(now, ends.low.control.value)} to ${shown(now, ends.high.control.value)}.`;
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

function doubtAbout(of, label, text) {
  const id = freshId("confirm");
  const box = h("input", { type: "checkbox", id, "aria-label": `${label} ${text} is public: ${of(label)["aria-label"]}` });
  const wrong = guard(box, () => (box.checked ? "" : "Confirm this bound, or enter another one."));
  return h("div", { class: "stack tight" }, h("div", { class: "choice from-rows" }, box, h("label", { for: id }, "From the rows. It is public, and I could have known it without them.")), wrong);
}

// Round bounds around the values that were seen.
export function rounded(kind, { low, high }) {
  if (kind !== "number") {
    const [from, to] = [`${low.slice(0, 4)}-01-01`, `${high.slice(0, 4)}-12-31`];
    return kind === "date" ? { low: from, high: to } : { low: `${from}T00:00`, high: `${to}T23:59` };
  }
  const step = 10 ** Math.floor(Math.log10(high - low || Math.abs(high) || 1));
  const top = Math.ceil(high / step) * step;
  const neat = (x) => String(Number(x.toPrecision(12)));
  return { low: neat(Math.floor(low / step) * step), high: neat(top > low ? top : top + step) };
}
