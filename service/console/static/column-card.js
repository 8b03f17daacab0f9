// The form of one column of a table: what it holds, its bounds or levels, what it is for, what a gap means.

import { isWeight, KINDS, kindWords, ROLES } from "./columns.js";
import { boundsFields } from "./column-bounds.js";
import { levelsField } from "./column-levels.js";
import { freshId, h, replace } from "./dom.js";
import { field, input, numberOf, select } from "./forms.js";
import { tag } from "./widgets.js";

const DECLARED = ["number", "boolean", "category", "date", "datetime"];
const ENDED = ["number", "date", "datetime"];
const USES = { cluster: "Clustering", keep: "Later questions only", id: "Telling people apart", ignore: "Nothing: leave it out" };
const GAPS = { refuse: "Refuse the file", drop: "Leave the row out", fill: "Use a fixed value", level: "Make it a level of its own", keep: "Keep it as missing" };

// `given` is a proposal or a declared column; `others` lists the cards of the same table.
export function columnCard(serial, given, { others, remove }) {
  const of = (label) => ({ name: `${label} ${serial}`, "aria-label": `${label} of column ${serial}` });
  const name = input("column", { value: given.name ?? "", maxlength: "128", ...of("Name") });
  const role = select("role", Object.entries(USES), of("Use"));
  const kind = select("kind", DECLARED.map((key) => [key, KINDS[key]]), of("Kind"));
  const missing = select("missing", [], of("Missing value"));
  const weight = input("weight", { inputmode: "decimal", value: String(given.weight ?? 1), ...of("Weight") });
  const fill = fillField(of, given.fill);
  const bounds = boundsFields(of, given, name);
  const levels = levelsField(of, given, { missing });
  role.value = given.role ?? "cluster";
  kind.value = given.kind === "text" ? "category" : (given.kind ?? "number");

  const stored = () => role.value === "cluster" || role.value === "keep";
  const detail = h("div", { class: "stack" });
  const title = h("summary", {});
  const body = h("div", { class: "stack", role: "group", "aria-label": `Column ${serial}` });
  const element = h("details", { class: "column", props: { open: true } }, title, body);

  const isNew = (text) => (!text ? "Enter the column's name." : others().some((each) => each !== card && each.name() === text.toLowerCase()) ? "Another column has this name." : "");
  const isUse = () => {
    const uses = others().map((each) => each.role());
    if (role.value === "id" && uses.filter((each) => each === "id").length > 1) return "Only one column can tell people apart.";
    return uses.includes("cluster") ? "" : "At least one column must be used for clustering.";
  };

  const drawGaps = (wanted) => {
    const choices = role.value === "id" ? ["refuse", "drop"] : ["refuse", "drop", "fill", kind.value === "category" && "level", role.value === "keep" && "keep"].filter(Boolean);
    const before = wanted || missing.value || given.missing || (role.value === "keep" ? "keep" : "refuse");
    replace(missing, choices.map((key) => h("option", { value: key }, GAPS[key])));
    missing.value = choices.includes(before) ? before : choices[0];
  };
  const gap = field("If a value is missing", missing, { hint: given.seen?.gaps ? `${given.seen.gaps} of the first ${given.seen.lines} lines have a gap here.` : "Decided before a row is read." });
  const heavy = field("Weight", weight, { hint: "How much it counts in distances.", check: isWeight });
  const draw = (gaps) => {
    const active = document.activeElement;
    drawGaps(gaps);
    kindField.hidden = !stored();
    const ended = stored() && ENDED.includes(kind.value) ? bounds.draw(kind.value) : { ends: [], more: [] };
    const leveled = stored() && kind.value === "category";
    const filled = stored() && missing.value === "fill" && fill.draw(kind.value, { bounds, levels });
    replace(
      detail,
      leveled && levels.fromRows,
      role.value !== "ignore" && h("div", { class: "columns narrow" }, ended.ends, leveled && levels.own, gap, filled, role.value === "cluster" && heavy),
      ended.more,
    );
    if (detail.contains(active)) active.focus();
    tell();
  };
  const tell = () => {
    const now = card.read();
    const facts = !stored() ? null : ENDED.includes(now.kind) ? bounds : now.kind === "category" ? levels : null;
    card.settled = !facts || (facts.complete() && !facts.unconfirmed());
    const wanting = facts && (facts.unconfirmed() ? "to confirm" : !facts.complete() && "to complete");
    const words = !stored() ? ROLES[role.value] : !facts || facts.complete() ? kindWords(now) : KINDS[now.kind];
    replace(title, h("strong", {}, name.value.trim() || `Column ${serial}`), h("span", { class: "muted" }, words), wanting && tag(wanting, "warn"));
  };
  const kindField = field("It holds", kind);
  replace(
    body,
    h("div", { class: "columns" }, field("Name", name, { check: isNew }), field("Use it for", role, { check: isUse }), kindField),
    detail,
    h("div", { class: "row end" }, h("button", { type: "button", class: "small quiet", "aria-label": `Remove column ${serial}`, on: { click: remove } }, "Remove this column")),
  );
  role.addEventListener("change", () => draw(role.value === "keep" ? "keep" : ""));
  for (const control of [kind, missing]) control.addEventListener("change", () => draw());
  // What was declared before and is not touched is sent as it was, whatever the form cannot show of it.
  let touched = !given.kind || Boolean(given.seen);
  const change = () => {
    touched = true;
    fill.refresh(kind.value, levels);
    tell();
  };
  for (const event of ["input", "change"]) element.addEventListener(event, change);

  const card = {
    element,
    name: () => name.value.trim().toLowerCase(),
    role: () => role.value,
    focus: () => name.focus(),
    read() {
      if (!touched) return given;
      const column = { name: name.value.trim(), role: role.value, kind: stored() ? kind.value : "text" };
      if (role.value === "ignore") return column;
      column.missing = missing.value;
      if (!stored()) return column;
      if (role.value === "cluster") column.weight = numberOf(weight.value);
      if (missing.value === "fill") column.fill = fill.read(kind.value);
      if (ENDED.includes(kind.value)) Object.assign(column, bounds.read(kind.value));
      if (kind.value === "category") Object.assign(column, levels.read());
      const confirmed = ENDED.includes(kind.value) ? bounds.fromRowsConfirmed() : kind.value === "category" ? levels.fromRowsConfirmed() : [];
      if (confirmed.length) column.confirmed_from_rows = confirmed;
      return column;
    },
  };
  element.id = freshId("column");
  draw();
  return card;
}

// The value that stands for a missing one: typed, or chosen where there are few.
function fillField(of, given) {
  let control = null;
  const typed = { number: { inputmode: "decimal" }, date: { type: "date" }, datetime: { type: "datetime-local", step: "1" } };
  const start = given === undefined || given === null ? "" : String(given);
  const choices = (levels) => levels.read().levels.map((each) => [each, each]);
  return {
    // Levels may have been added since.
    refresh(kind, levels) {
      if (kind !== "category" || control?.tagName !== "SELECT" || control === document.activeElement) return;
      const before = control.value;
      replace(control, choices(levels).map(([key, words]) => h("option", { value: key }, words)));
      if (before) control.value = before;
    },
    draw(kind, { bounds, levels }) {
      const before = control?.value ?? start;
      const label = of("Fill value");
      if (kind === "boolean") control = select("fill", [["false", "no"], ["true", "yes"]], label);
      else if (kind === "category") control = select("fill", choices(levels), label);
      else control = input("fill", { ...typed[kind], ...label });
      if (before) control.value = before;
      const check = (text) => (kind === "boolean" ? "" : kind === "category" ? (text ? "" : "Enter the levels first.") : bounds.holds(kind, text));
      return field("Fixed value", control, { hint: "Public, and known without the rows.", check });
    },
    read(kind) {
      const text = control?.value.trim() ?? "";
      if (kind === "number") return numberOf(text);
      return kind === "boolean" ? text === "true" : text;
    },
  };
}
