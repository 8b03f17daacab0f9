// The levels of a category, one on each line.

import { h, replace } from "../dom.js";
import { field, select } from "../forms.js";

const MOST_LEVELS = 256;
const MOST_LINES = 8;
const MISSING_LEVEL = "missing"; // what the service calls the level of missing values
const TOO_FEW = "A category has at least two levels. Type them, one on each line.";
const IS_TAKEN = `“${MISSING_LEVEL}” is the level of missing values. Give yours another name.`;

/**
 * The fields of a category.
 * @param {(label: string) => object} of attributes of a control with this label
 * @param {object} given a proposal or a declared column
 * @param {{missing: HTMLSelectElement}} card the control for missing values
 */
export function levelsField(of, given, { missing }) {
  const value = (given.levels ?? []).join("\n");
  const rows = Math.min(MOST_LINES, Math.max(3, given.levels?.length ?? 0));
  const attributes = { name: "levels", rows: String(rows), spellcheck: "false", props: { value } };
  /** @type {HTMLTextAreaElement & import("../dom.js").Guarded} */
  const typed = h("textarea", { ...attributes, ...of("Levels") });
  const other = select("other", [], of("Other values"));

  const levels = () =>
    typed.value
      .split("\n")
      .map((each) => each.trim())
      .filter(Boolean);
  const check = () => {
    const found = levels();
    const twice = found.find((each, i) => found.indexOf(each) !== i);
    if (twice) return `“${twice}” is listed twice.`;
    const isOwn = missing.value === "level";
    if (isOwn && found.includes(MISSING_LEVEL)) return IS_TAKEN;
    if (found.length + (isOwn ? 1 : 0) < 2) return TOO_FEW;
    if (found.length <= MOST_LEVELS) return "";
    return `A category has at most ${MOST_LEVELS} levels; these are ${found.length}.`;
  };
  const draw = () => {
    const before = other.value || given.other || "";
    const choices = levels().map((each) => h("option", { value: each }, `the level ${each}`));
    replace(other, h("option", { value: "" }, "a bad value"), choices);
    other.value = levels().includes(before) ? before : "";
    if (typed.hasAttribute("aria-invalid")) typed.tell(check());
  };
  typed.addEventListener("input", draw);
  const fields = [
    field("Levels", typed, { hint: "One on each line. Everybody with a grant sees them.", check }),
    field("Any other value is", other, { hint: "For values that are not among the levels." }),
  ];
  draw();
  return {
    fields,
    controls: { levels: typed },
    complete: () => levels().length > 0,
    read: () => ({ levels: levels(), ...(other.value && { other: other.value }) }),
  };
}
