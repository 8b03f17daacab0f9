// Facts that came from rows: a form marks them, and they count only once the curator confirms them as public.

import { announce, freshId, h, replace } from "../dom.js";
import { guard } from "../forms.js";

const EXPLANATION =
  "These facts become public with the dataset, and everybody with a grant sees where they come from.";
const OF_EVERY_KIND = ["kind", "role", "missing"];

/**
 * The facts of a proposal that came from rows and are still as proposed.
 * @param {object} proposed a proposal of the service with its `from_rows`
 * @param {object} now what the form says instead
 * @returns {string[]}
 */
export function stillFromRows(proposed, now) {
  const applies = (fact) => OF_EVERY_KIND.includes(fact) || now.kind === proposed.kind;
  return (proposed.from_rows ?? []).filter((fact) => applies(fact) && isKept(proposed[fact], now[fact]));
}

// Of a list, what is left of it still comes from rows. A flag that is off may be left out.
function isKept(before, after) {
  if (Array.isArray(before)) return before.some((each) => after?.includes(each));
  return before === after || (before === false && after === undefined);
}

/**
 * Mark a control whose value came from rows, or remove the mark.
 * @param {HTMLElement} control inside a field or a choice
 * @param {boolean} isFromRows
 */
export function mark(control, isFromRows) {
  const place = control.closest(".field, .choice");
  if (!place || place.classList.contains("from-rows") === isFromRows) return;
  place.classList.toggle("from-rows", isFromRows);
  const described = (control.getAttribute("aria-describedby") ?? "").split(" ").filter(Boolean);
  const before = place.querySelector(".origin");
  before?.remove();
  const others = described.filter((id) => id !== before?.id);
  if (isFromRows) {
    const note = h("span", { class: "origin", id: freshId("origin") }, "from the rows");
    (place.matches(".choice") ? place.querySelector("label") : control).after(note);
    others.unshift(note.id);
  }
  control.setAttribute("aria-describedby", others.join(" "));
}

/**
 * One checkbox that confirms everything a list shows. It is hidden while nothing came from rows, and must be
 * ticked again when the list gets a line that was not there.
 * @param {string} title
 * @param {string} change what else than confirming can be done
 * @param {() => [string, string[]][]} list names, each with its facts in words; a name may be empty
 * @returns {{element: HTMLElement, draw: () => void}}
 */
export function confirmation(title, change, list) {
  const id = freshId("confirm");
  const box = h("input", { type: "checkbox", id, name: "confirm-from-rows", "data-kept": "no" });
  const label = h("label", { for: id }, "I know these facts without the rows, or they may be public");
  const wanted = `Confirm that these facts may be public, or ${change}.`;
  const wrong = guard(box, () => (box.checked ? "" : wanted));
  const lines = h("ul", { class: "plain facts-from-rows" });
  const element = h(
    "div",
    { class: "from-rows stack tight", role: "group", "aria-label": title },
    h("h3", {}, title),
    h("p", { class: "small muted" }, EXPLANATION),
    lines,
    h("div", { class: "choice" }, box, h("div", {}, label)),
    wrong,
  );
  let shown = new Set();
  const draw = () => {
    const found = list().filter(([, facts]) => facts.length);
    const now = new Set(found.flatMap(([name, facts]) => facts.map((words) => `${name}: ${words}`)));
    const isNew = [...now].some((each) => !shown.has(each));
    if (isNew && box.checked) {
      box.checked = false;
      announce("The list of facts from the rows has changed: confirm it again.");
    }
    shown = now;
    element.hidden = box.disabled = now.size === 0;
    const line = ([name, facts]) => h("li", {}, name && [h("strong", {}, name), ": "], facts.join("; "));
    replace(lines, found.map(line));
  };
  draw();
  return { element, draw };
}
