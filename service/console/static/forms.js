// Forms: controls with labels, and mistakes that are marked at their field in the reader's words.

import { Problem } from "./api.js";
import { announce, freshId, h, replace } from "./dom.js";
import { COUNT, sentence } from "./format.js";
import { forget } from "./kept.js";
import { explain } from "./widgets.js";

/** @typedef {import("./dom.js").Control} Control */

/**
 * A control with its label.
 * @param {string} label
 * @param {any} control
 * @param {{hint?: any, check?: (text: string) => string, id?: string}} [options] `check` gets the text of the
 *   control and returns what is wrong with it, in a sentence, or nothing
 */
export function field(label, control, { hint, check, id = freshId("field") } = {}) {
  control.id = id;
  const note = hint ? h("span", { class: "hint", id: `${id}-hint` }, hint) : null;
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    control,
    note,
    guard(control, check, note?.id),
  );
}

/**
 * The place of a control's message, empty as long as nothing is wrong.
 * @param {any} control
 * @param {(text: string) => string} [check]
 * @param {string | null} [describedBy]
 */
export function guard(control, check = (_text) => "", describedBy = null) {
  control.id ||= freshId("field");
  const wrong = h("span", { class: "wrong", id: `${control.id}-wrong`, hidden: true });
  control.setAttribute("aria-describedby", [describedBy, wrong.id].filter(Boolean).join(" "));
  control.check = () =>
    check(control.type === "file" ? (control.files.length ? "chosen" : "") : control.value.trim());
  control.tell = (words) => {
    wrong.textContent = words;
    wrong.hidden = !words;
    if (words) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  };
  // A mark goes as soon as the mistake is corrected.
  control.addEventListener(
    "input",
    () => control.hasAttribute("aria-invalid") && control.tell(control.check()),
  );
  return wrong;
}

/**
 * @param {string} name
 * @param {import("./dom.js").Attributes} [attributes]
 * @returns {HTMLInputElement & import("./dom.js").Guarded}
 */
export function input(name, attributes = {}) {
  return h("input", { name, autocomplete: "off", spellcheck: "false", ...attributes });
}

export function select(name, choices, attributes = {}) {
  const options = choices.map(([key, words]) => h("option", { value: key }, words));
  return h("select", { name, ...attributes }, options);
}

/**
 * @param {string} name
 * @param {any} label
 * @param {{hint?: any, checked?: boolean}} [options]
 */
export function checkbox(name, label, { hint, checked = false } = {}) {
  const id = freshId("check");
  const box = h("input", {
    type: "checkbox",
    name,
    id,
    props: { checked },
    "aria-describedby": hint ? `${id}-hint` : null,
  });
  const words = h(
    "div",
    {},
    h("label", { for: id }, label),
    hint && h("span", { class: "hint", id: `${id}-hint` }, hint),
  );
  return h("div", { class: "choice" }, box, words);
}

export function radios(name, legend, choices, chosen) {
  const options = choices.map(([key, words]) =>
    h(
      "label",
      {},
      h("input", { type: "radio", name, value: key, props: { checked: key === chosen } }),
      words,
    ),
  );
  return h(
    "fieldset",
    { class: "field" },
    h("legend", {}, legend),
    h("div", { class: "row" }, h("div", { class: "switch" }, options)),
  );
}

export function submit(words, kind = "primary") {
  return h("button", { type: "submit", class: kind }, words);
}

/** @param {{epsilon?: string, delta?: string, hintEpsilon?: any, hintDelta?: any}} [options] */
export function budgetFields({ epsilon = "", delta = "", hintEpsilon, hintDelta } = {}) {
  const numeric = { inputmode: "decimal" };
  return h(
    "div",
    { class: "columns" },
    field("Epsilon (ε)", input("epsilon", { ...numeric, value: epsilon }), {
      hint: hintEpsilon,
      check: isEpsilon,
    }),
    field("Delta (δ)", input("delta", { ...numeric, value: delta }), {
      hint: hintDelta,
      check: (text) =>
        text ? isDelta(text) : "Enter a delta, for example 1e-6; 0 means pure differential privacy.",
    }),
  );
}

/**
 * Marks every mistake of a form; returns the first control that has one.
 * @param {HTMLFormElement} element
 */
export function findMistake(element) {
  let first = null;
  for (const each of element.elements) {
    const control = /** @type {Control} */ (each);
    if (!control.check || control.disabled) continue;
    const words = control.check();
    control.tell(words);
    if (!words) continue;
    if (first) continue; // folds of other mistakes stay closed: there may be hundreds
    first = control;
    for (let fold = control.closest("details"); fold; fold = fold.parentElement.closest("details"))
      fold.open = true;
  }
  return first;
}

// A form that asks the service: marks mistakes, shows what else went wrong at its end, never sends twice at
// once. After an answer its button works again if `ready` says so. What was typed is kept until `act` has sent it;
// `act` returns false if it was not sent after all.
export function form(attributes, children, act, ready = () => true) {
  const place = h("div", {});
  const made = h("form", { class: "stack", novalidate: true, ...attributes }, children, place);
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    /** @type {HTMLButtonElement} */
    const button = made.querySelector("button[type=submit]");
    if (button.disabled) return;
    replace(place);
    const mistake = findMistake(made);
    if (mistake) {
      announce(mistake.check());
      mistake.focus();
      return;
    }
    button.disabled = true;
    try {
      if ((await act(new FormData(made), made)) !== false) forget(made);
    } catch (error) {
      const marked = refusedFields(made, error);
      replace(
        place,
        marked
          ? h(
              "div",
              { class: "notice bad", role: "alert" },
              h("p", {}, "Correct the marked fields, then try again."),
            )
          : explain(error, error.offer),
      );
      /** @type {HTMLElement | null} */ (made.querySelector("[aria-invalid]"))?.focus();
    } finally {
      button.disabled = !ready();
    }
  });
  return made;
}

// Shows messages about single fields next to them; true if every message has a field.
export function refusedFields(element, error) {
  const faults = error instanceof Problem ? (error.body.errors ?? []) : [];
  const named = (where) =>
    [...element.elements].find(
      (control) =>
        control.tell &&
        [where, where.split(".").pop(), `option-${where.split(".").pop()}`].includes(control.name),
    );
  const placed = faults.map((fault) => [named(String(fault.where)), fault.problem]);
  for (const [control, words] of placed) control?.tell(sentence(words));
  return placed.length > 0 && placed.every(([control]) => control);
}

// --- numbers as people write them ------------------------------------------------------------------------

const NUMBER = /^[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?$/;
const TWO_MEANINGS = /^[+-]?[1-9]\d{0,2}(,\d{3})+$/;

// With a point, as programs write it: a comma is understood.
const pointed = (text) => String(text).trim().replace(",", ".");

export function numberOf(text) {
  return Number(pointed(text));
}

// Exact decimals travel as strings; JavaScript's numbers never touch them, but 1e-6 is written out.
export function decimal(text) {
  const plain = pointed(text).replace(/^\+/, "");
  const match = /^([0-9]*)(?:[.]([0-9]*))?[eE]([+-]?)([0-9]+)$/.exec(plain);
  if (!match) return plain.replace(/^[.]/, "0.").replace(/[.]$/, "");
  const [, whole, fraction = "", sign, exponent] = match;
  const digits = whole + fraction;
  const point = whole.length + (sign === "-" ? -1 : 1) * Number(exponent);
  if (point <= 0) return `0.${"0".repeat(-point)}${digits}`;
  return point >= digits.length
    ? digits + "0".repeat(point - digits.length)
    : `${digits.slice(0, point)}.${digits.slice(point)}`;
}

// --- what can be wrong with a text ------------------------------------------------------------------------

export const filled = (missing) => (text) => (text ? "" : missing);

export function isNumber(missing) {
  return (text) => {
    if (!text) return missing;
    if (TWO_MEANINGS.test(text)) {
      const whole = text.replaceAll(",", "");
      return text.indexOf(",") === text.lastIndexOf(",")
        ? `“${text}” has two meanings: write ${whole} or ${pointed(text)}.`
        : `Write ${whole}, without commas.`;
    }
    return NUMBER.test(text) && Number.isFinite(numberOf(text)) ? "" : `“${text}” is not a number.`;
  };
}

export function isAbove(low, missing) {
  return (text) => isNumber(missing)(text) || (numberOf(text) > low ? "" : `Enter a number above ${low}.`);
}

export function isWhole(missing, { least = 1, most = Infinity } = {}) {
  return (text) => {
    if (!text) return missing;
    if (!/^\d+$/.test(text)) return `“${text}” is not a whole number. Write it in digits only.`;
    if (Number(text) < least) return missing;
    return Number(text) > most ? `Enter at most ${COUNT.format(most)}.` : "";
  };
}

export const optional = (check) => (text) => (text ? check(text) : "");

export const isEpsilon = isAbove(0, "Enter an epsilon, for example 0.5.");

export const isDelta = (text) =>
  isNumber("")(text) ||
  (numberOf(text) >= 0 && numberOf(text) < 1 ? "" : "Delta must be at least 0 and below 1.");

export function isName(missing) {
  return (text) => {
    if (!text) return missing;
    return /^[a-z0-9][a-z0-9._-]{0,63}$/.test(text)
      ? ""
      : "Use at most 64 lower-case letters, digits, dots, dashes and underscores, with a " +
          "letter or digit first.";
  };
}
