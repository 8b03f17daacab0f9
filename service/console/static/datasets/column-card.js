// The form of one column of a table: what it holds, its bounds or levels, what it is for, what a gap means.

import { factWords, isWeight, KINDS, kindWords, ROLES } from "./columns.js";
import { boundsFields } from "./column-bounds.js";
import { levelsField } from "./column-levels.js";
import { freshId, h, replace } from "../dom.js";
import { field, input, numberOf, select } from "../forms.js";
import { mark, stillFromRows } from "./from-rows.js";
import { tag } from "../widgets.js";

const DECLARED = ["number", "boolean", "category", "date", "datetime"];
const ENDED = ["number", "date", "datetime"];
const USES = {
  cluster: "Clustering",
  keep: "Later questions only",
  id: "Telling people apart",
  ignore: "Nothing: leave it out",
};
const GAPS = {
  refuse: "Refuse the file",
  drop: "Leave the row out",
  fill: "Use a fixed value",
  level: "Make it a level of its own",
  keep: "Keep it as missing",
};

/**
 * The card of a column.
 * @param {number} serial its number in the labels
 * @param {object} given a proposal of the service, with `from_rows`, or a declared column
 * @param {{others: () => object[], remove: () => void}} table lists the cards of the same table, and
 *   removes this one
 */
export function columnCard(serial, given, { others, remove }) {
  const of = (label) => ({ name: `${label} ${serial}`, "aria-label": `${label} of column ${serial}` });
  const name = input("column", { value: given.name ?? "", maxlength: "128", ...of("Name") });
  const role = select("role", Object.entries(USES), of("Use"));
  const kind = select(
    "kind",
    DECLARED.map((key) => [key, KINDS[key]]),
    of("Kind"),
  );
  const missing = select("missing", [], of("Missing value"));
  const weight = input("weight", {
    inputmode: "decimal",
    value: String(given.weight ?? ""),
    ...of("Weight"),
  });
  const fill = fillField(of, given.fill);
  const bounds = boundsFields(of, given);
  const levels = levelsField(of, given, { missing });
  role.value = given.role ?? "cluster";
  kind.value = given.kind === "text" ? "category" : (given.kind ?? "number");

  const stored = () => role.value === "cluster" || role.value === "keep";
  const detail = h("div", { class: "stack" });
  const title = h("summary", {});
  const body = h("div", { class: "stack", role: "group", "aria-label": `Column ${serial}` });
  const element = h("details", { class: "column", props: { open: true } }, title, body);

  const isNew = (text) =>
    !text
      ? "Enter the column's name."
      : others().some((each) => each !== card && each.name() === text.toLowerCase())
        ? "Another column has this name."
        : "";
  const isUse = () => {
    const uses = others().map((each) => each.role());
    if (role.value === "id" && uses.filter((each) => each === "id").length > 1)
      return "Only one column can tell people apart.";
    return uses.includes("cluster") ? "" : "At least one column must be used for clustering.";
  };

  const drawGaps = (wanted) => {
    const choices =
      role.value === "id"
        ? ["refuse", "drop"]
        : [
            "refuse",
            "drop",
            "fill",
            kind.value === "category" && "level",
            role.value === "keep" && "keep",
          ].filter(Boolean);
    const before = wanted || missing.value || given.missing || (role.value === "keep" ? "keep" : "refuse");
    replace(
      missing,
      choices.map((key) => h("option", { value: key }, GAPS[key])),
    );
    missing.value = choices.includes(before) ? before : choices[0];
  };
  const gap = field("If a value is missing", missing, { hint: "Decided before a row is read." });
  const heavy = field("Weight", weight, {
    hint: "How much it counts in distances; empty: as much as a number.",
    check: (text) => (text ? isWeight(text) : ""),
  });
  const draw = (gaps) => {
    const active = document.activeElement;
    drawGaps(gaps);
    kindField.hidden = !stored();
    const ended = isEnded() ? bounds.draw(kind.value) : { ends: [], more: null };
    const leveled = isLeveled();
    const filled = stored() && missing.value === "fill" && fill.draw(kind.value, { bounds, levels });
    replace(
      detail,
      role.value !== "ignore" &&
        h(
          "div",
          { class: "columns narrow" },
          ended.ends,
          leveled && levels.fields,
          gap,
          filled,
          role.value === "cluster" && heavy,
        ),
      ended.more,
    );
    if (active instanceof HTMLElement && detail.contains(active)) active.focus();
    tell();
  };
  const isEnded = () => stored() && ENDED.includes(kind.value);
  const isLeveled = () => stored() && kind.value === "category";
  const isComplete = () => (isEnded() ? bounds : isLeveled() ? levels : { complete: () => true }).complete();
  const fromRows = () =>
    stillFromRows(given, card.now()).filter((fact) => fact !== "levels" || !levels.isPasted());
  const markControls = () => {
    const controls = {
      kind,
      role,
      missing,
      ...(isEnded() && bounds.controls),
      ...(isLeveled() && levels.controls),
    };
    const facts = fromRows();
    for (const [fact, control] of Object.entries(controls)) mark(control, facts.includes(fact));
    return facts;
  };
  const tell = () => {
    const now = card.now();
    card.settled = isComplete();
    const words = !stored() ? ROLES[role.value] : isComplete() ? kindWords(now) : KINDS[now.kind];
    const facts = markControls();
    const tags = [!isComplete() && tag("to complete", "warn"), facts.length > 0 && tag("from the rows")];
    replace(
      title,
      h("strong", {}, name.value.trim() || `Column ${serial}`),
      h("span", { class: "muted" }, words),
      tags,
    );
  };
  const kindField = field("It holds", kind);
  replace(
    body,
    h(
      "div",
      { class: "columns" },
      field("Name", name, { check: isNew }),
      field("Use it for", role, { check: isUse }),
      kindField,
    ),
    detail,
    h(
      "div",
      { class: "row end" },
      h(
        "button",
        {
          type: "button",
          class: "small quiet",
          "aria-label": `Remove column ${serial}`,
          on: { click: remove },
        },
        "Remove this column",
      ),
    ),
  );
  role.addEventListener("change", () => draw(role.value === "keep" ? "keep" : ""));
  kind.addEventListener("change", () => {
    weight.value = ""; // it was that of another kind
  });
  for (const control of [kind, missing]) control.addEventListener("change", () => draw());
  // What was declared before and is not touched is sent as it was, whatever the form cannot show of it.
  let touched = !given.kind || Boolean(given.from_rows);
  const change = () => {
    touched = true;
    fill.refresh(kind.value, levels);
    tell();
  };
  for (const event of ["input", "change"]) element.addEventListener(event, change);

  const card = {
    element,
    title: () => name.value.trim() || `column ${serial}`,
    name: () => name.value.trim().toLowerCase(),
    role: () => role.value,
    focus: () => name.focus(),
    now() {
      const column = { name: name.value.trim(), role: role.value, kind: stored() ? kind.value : "text" };
      if (role.value === "ignore") return column;
      column.missing = missing.value;
      if (!stored()) return column;
      if (role.value === "cluster" && weight.value.trim()) column.weight = numberOf(weight.value);
      if (missing.value === "fill") column.fill = fill.read(kind.value);
      if (isEnded()) Object.assign(column, bounds.read(kind.value));
      if (isLeveled()) Object.assign(column, levels.read());
      return column;
    },
    // The facts that came from rows, in words.
    fromRows: () => fromRows().map((fact) => factWords(fact, card.now())),
    read() {
      if (!touched) return given;
      const facts = fromRows();
      return { ...card.now(), ...(facts.length && { confirmed_from_rows: facts }) };
    },
  };
  element.id = freshId("column");
  draw();
  return card;
}

// The value that replaces a missing one: typed, or chosen where there are few.
function fillField(of, given) {
  let control = null;
  const typed = {
    number: { inputmode: "decimal" },
    date: { type: "date" },
    datetime: { type: "datetime-local", step: "1" },
  };
  const start = given === undefined || given === null ? "" : String(given);
  const choices = (levels) => levels.read().levels.map((each) => [each, each]);
  return {
    // Levels may have been added since.
    refresh(kind, levels) {
      if (kind !== "category" || control?.tagName !== "SELECT" || control === document.activeElement) return;
      const before = control.value;
      replace(
        control,
        choices(levels).map(([key, words]) => h("option", { value: key }, words)),
      );
      if (before) control.value = before;
    },
    draw(kind, { bounds, levels }) {
      const before = control?.value ?? start;
      const label = of("Fill value");
      if (kind === "boolean")
        control = select(
          "fill",
          [
            ["false", "no"],
            ["true", "yes"],
          ],
          label,
        );
      else if (kind === "category") control = select("fill", choices(levels), label);
      else control = input("fill", { ...typed[kind], ...label });
      if (before) control.value = before;
      const check = (text) =>
        kind === "boolean"
          ? ""
          : kind === "category"
            ? text
              ? ""
              : "Enter the levels first."
            : bounds.holds(kind, text);
      return field("Fixed value", control, { hint: "Public, and known without the rows.", check });
    },
    read(kind) {
      const text = control?.value.trim() ?? "";
      if (kind === "number") return numberOf(text);
      return kind === "boolean" ? text === "true" : text;
    },
  };
}
