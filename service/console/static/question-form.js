// A form for a question, about a dataset or about clusters: its price binds, and says what noise does to a count.

import { h, replace } from "./dom.js";
import { checkbox, decimal, field, form, guard, input, isEpsilon, numberOf, radios, submit } from "./forms.js";
import { COUNT } from "./format.js";
import { offers } from "./offers.js";
import { explain } from "./widgets.js";

const MOST_IN_TABLE = 3;
const WITHOUT_COLUMNS = ["explain", "summary"];

// Grants name kinds; the owner of a dataset may ask every one.
export const mayAsk = (facts, kind) => !facts.kinds || facts.kinds.includes(kind);

// Columns that lie between a lowest and a highest value.
export function boundedColumns(facts) {
  const { table, columns, bounds } = facts;
  if (table) return table.filter(({ kind, role }) => ["number", "date", "datetime"].includes(kind) && ["cluster", "keep"].includes(role));
  return bounds.box ? columns.map((name, i) => ({ name, kind: "number", low: bounds.box.low[i], high: bounds.box.high[i] })) : [];
}

const levelsOf = (text) => text.split(/[\s;]+|,\s+/).filter(Boolean).map(numberOf);

// Levels are separated by spaces: in some countries a comma is a decimal sign.
function areLevels(text) {
  const levels = levelsOf(text);
  return levels.length && levels.every((each) => each >= 0 && each <= 1) ? "" : "Enter numbers between 0 and 1, separated by spaces.";
}

// `offered`: kinds and their names; `about()`: what else a request says.
export function questionForm(facts, offered, about) {
  const kept = new Set((facts.table ?? []).filter(({ role }) => role === "keep").map(({ name }) => name));
  const ordered = new Set(boundedColumns(facts).map(({ name }) => name));
  const fits = (name, kind) => kind !== "quantiles" || !facts.table || ordered.has(name);
  const usable = facts.columns.filter((name) => fits(name, offered[0][0]));
  const ticked = usable.some((name) => kept.has(name)) ? kept : new Set(usable.slice(0, MOST_IN_TABLE));
  const boxes = facts.columns.map((name, i) => checkbox(`column-${i}`, name, { checked: ticked.has(name), hint: kept.has(name) ? "not clustered on" : undefined }));
  const inputs = boxes.map((box) => box.querySelector("input"));
  // The first column on offer carries what is wrong with the choice.
  const carries = (each) => each === inputs.find(({ disabled }) => !disabled);
  const wrong = inputs.map((each) => guard(each, () => (carries(each) ? wrongChoice() : ""), each.getAttribute("aria-describedby")));
  const columns = h("fieldset", { class: "field" }, h("legend", {}, "Columns"), h("div", { class: "row" }, boxes), wrong);
  const shares = input("levels", { value: "0.01 0.5 0.99" });
  const levels = h("div", { hidden: true }, field("Levels", shares, { check: areLevels, hint: "Shares of records below: 0.5 is the median." }));
  const send = submit("Ask");
  const forecast = h("p", { class: "muted", role: "status" });
  const element = form(
    {},
    [
      radios("kind", "Question", offered, offered[0][0]),
      columns,
      levels,
      field("Epsilon", input("epsilon", { inputmode: "decimal", value: "0.1" }), { check: isEpsilon, hint: "Charged to the dataset's budget, as a clustering is." }),
      forecast,
      send,
    ],
    async () => {
      location.hash = `#/jobs/${(await price.submit()).id}`;
    },
    () => price.stands(),
  );
  const kind = () => new FormData(element).get("kind");
  const wrongChoice = () => {
    const count = inputs.filter(({ checked, disabled }) => checked && !disabled).length;
    if (!count) return "Choose at least one column.";
    return kind() === "table" && count > MOST_IN_TABLE ? `Choose at most ${MOST_IN_TABLE} columns for a table.` : "";
  };
  const chosen = (given) => {
    const named = facts.columns.filter((_, i) => given.has(`column-${i}`));
    return named.length ? { columns: named } : {};
  };
  const options = (given) => {
    if (kind() === "explain") return { options: { picks: Math.max(1, Math.min(3, facts.columns.length - 1)) } };
    return kind() === "quantiles" ? { options: { levels: levelsOf(given.get("levels")) } } : {};
  };
  const request = () => {
    const given = new FormData(element);
    return { dataset: facts.name, kind: kind(), epsilon: decimal(given.get("epsilon")), ...chosen(given), ...options(given), ...about() };
  };
  const price = offers(element, send, "Ask", {
    request,
    mistaken: () => replace(forecast, "Correct the marked field to see the price."),
    working: () => replace(forecast),
    priced: (plan) => replace(forecast, `${plan.fits ? "" : "This costs more than is left. "}Counts below about ${COUNT.format(plan.forecast.visible_count)} records are noise.`),
    failed: (error) => replace(forecast, explain(error)),
  });
  const changed = () => {
    columns.hidden = WITHOUT_COLUMNS.includes(kind());
    // Only what is seen is asked about: a box that is out of sight is disabled, and no part of the request.
    for (const [i, name] of facts.columns.entries()) boxes[i].hidden = inputs[i].disabled = columns.hidden || !fits(name, kind());
    levels.hidden = shares.disabled = kind() !== "quantiles"; // else a mistake in it would be out of sight
    if (price.isNew()) price.ask();
  };
  element.addEventListener("input", changed);
  element.addEventListener("change", changed);
  changed();
  return { element, changed };
}
