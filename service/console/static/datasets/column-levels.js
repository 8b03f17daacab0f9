// The levels of a category, one on each line.

import { h, replace } from "../dom.js";
import { field, select } from "../forms.js";

const MOST_LEVELS = 256;
const MOST_LINES = 8;
const MISSING_LEVEL = "missing"; // what the service calls the level of missing values
const TOO_FEW = "A category has at least two levels. Type them, one on each line.";
const HINT =
  "One on each line. Select all and paste an official list to replace those from the file. Everybody with a grant " +
  "sees them.";
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
  let pasted = null; // an official list that replaced everything
  typed.addEventListener("paste", (event) => {
    const found = listed(event.clipboardData.getData("text/plain"));
    if (found.length < 2) return;
    event.preventDefault();
    const isAll = typed.selectionStart === 0 && typed.selectionEnd === typed.value.length;
    typed.setRangeText(found.join("\n"), typed.selectionStart, typed.selectionEnd, "end");
    pasted = isAll ? typed.value : null;
    typed.dispatchEvent(new Event("input", { bubbles: true }));
  });
  typed.addEventListener("input", draw);
  const fields = [
    field("Levels", typed, { hint: HINT, check }),
    field("Any other value is", other, { hint: "For values that are not among the levels." }),
  ];
  draw();
  return {
    fields,
    controls: { levels: typed },
    complete: () => levels().length > 0,
    isPasted: () => typed.value === pasted,
    read: () => ({ levels: levels(), ...(other.value && { other: other.value }) }),
  };
}

// The levels of a list as it is copied: a column of a spreadsheet, of which the first column counts, or one line with
// signs between.
function listed(text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  const parts = lines.length > 1 ? lines.map((line) => line.split("\t")[0]) : text.split(/[\t;|]|,\s*/);
  return [...new Set(parts.map((each) => each.trim()).filter(Boolean))];
}
