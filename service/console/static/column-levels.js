// The levels of a category. Those that were seen in rows are offered one by one, and count once they are ticked.

import { announce, freshId, h, replace } from "./dom.js";
import { field, select } from "./forms.js";
import { plural } from "./format.js";

const MOST_LEVELS = 256;
const MISSING_LEVEL = "missing"; // what the service calls the level of missing values

export function levelsField(of, given, { missing }) {
  const typed = h("textarea", { name: "levels", rows: "3", spellcheck: "false", props: { value: (given.levels ?? []).join("\n") }, ...of("Levels") });
  const seen = (given.seen?.levels ?? []).map((level) => {
    const id = freshId("level");
    const box = h("input", { type: "checkbox", id, value: level });
    return { level, box, element: h("div", { class: "choice" }, box, h("label", { for: id }, level)) };
  });
  const other = select("other", [], of("Other values"));
  const tally = h("p", { class: "small muted" });

  const levels = () => [...typed.value.split("\n").map((each) => each.trim()).filter(Boolean), ...seen.filter(({ box }) => box.checked).map(({ level }) => level)];
  const check = () => {
    const found = levels();
    const twice = found.find((each, i) => found.indexOf(each) !== i);
    if (twice) return `“${twice}” is listed twice.`;
    if (missing.value === "level" && found.includes(MISSING_LEVEL)) return `“${MISSING_LEVEL}” is the level of missing values. Give yours another name.`;
    if (found.length + (missing.value === "level" ? 1 : 0) < 2) return seen.length ? "A category has at least two levels. Tick those that are public, or type them." : "A category has at least two levels. Type them, one on each line.";
    return found.length > MOST_LEVELS ? `A category has at most ${MOST_LEVELS} levels; these are ${found.length}.` : "";
  };
  const draw = () => {
    const before = other.value || given.other || "";
    replace(other, h("option", { value: "" }, "a bad value"), levels().map((each) => h("option", { value: each }, `the level ${each}`)));
    other.value = levels().includes(before) ? before : "";
    const open = seen.filter(({ box }) => !box.checked).length;
    replace(tally, open ? `${plural(open, "level")} not confirmed: such values will be unknown.` : "All of them are confirmed.");
    if (typed.hasAttribute("aria-invalid")) typed.tell(check());
  };
  typed.addEventListener("input", draw);
  for (const { box } of seen) {
    box.addEventListener("change", () => {
      draw();
      announce(tally.textContent);
    });
  }
  const fromRows = seen.length > 0 && h("fieldset", { class: "from-rows stack tight" }, h("legend", {}, "From the rows: tick each level that is public, known without them"), h("div", { class: "level-list" }, seen.map(({ element }) => element)), tally);
  const own = [
    field(seen.length ? "Other levels" : "Levels", typed, { hint: "One on each line. Everybody with a grant sees them.", check }),
    field("Any other value is", other, { hint: "For values that are not among the levels." }),
  ];
  draw();
  return {
    fromRows,
    own,
    complete: () => levels().length > 0,
    unconfirmed: () => seen.some(({ box }) => !box.checked),
    read() {
      return { levels: levels(), ...(other.value && { other: other.value }) };
    },
    fromRowsConfirmed: () => (seen.some(({ box }) => box.checked) ? ["levels"] : []),
  };
}
