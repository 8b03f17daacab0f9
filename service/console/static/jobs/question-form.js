// A form for a question, about a dataset or about clusters: its price binds, and says what noise does to a
// count.

import { h, replace } from "../dom.js";
import { checkbox, decimal, field, form, guard, input, isEpsilon, radios, submit } from "../forms.js";
import { withPowers } from "../format.js";
import { rangeInWords } from "../datasets/periods.js";
import { offers } from "./offers.js";
import { optionFields, readOptions } from "./options.js";
import { requestMore } from "./wanted.js";
import { button, explain } from "../widgets.js";

// Columns that lie between a lowest and a highest value.
export function boundedColumns(facts) {
  const { table, columns, bounds } = facts;
  if (table)
    return table.filter(
      ({ kind, role }) => ["number", "date", "datetime"].includes(kind) && ["cluster", "keep"].includes(role),
    );
  return bounds.box
    ? columns.map((name, i) => ({ name, kind: "number", low: bounds.box.low[i], high: bounds.box.high[i] }))
    : [];
}

// Boxes for the columns that a question may be about; `ticked` keeps choices from one question to the next.
function columnBoxes({ columns, most_columns: most }, ticked) {
  const offered = columns.filter(({ refused }) => refused === null);
  const boxes = offered.map(({ name, suggested, kept }, i) =>
    checkbox(`column-${i}`, name, {
      checked: ticked.get(name) ?? suggested,
      hint: kept ? "not clustered on" : undefined,
    }),
  );
  const inputs = boxes.map((box) => box.querySelector("input"));
  const remember = (each, i) =>
    each.addEventListener("change", () => ticked.set(offered[i].name, each.checked));
  inputs.forEach(remember);
  const wrong = () => {
    const count = inputs.filter(({ checked }) => checked).length;
    if (!count) return "Choose at least one column.";
    return count > most ? `Choose at most ${most} columns.` : "";
  };
  // The first box carries what is wrong with the choice.
  const mistakes = inputs.map((each, i) =>
    guard(each, () => (i ? "" : wrong()), each.getAttribute("aria-describedby")),
  );
  const element = h(
    "fieldset",
    { class: "field" },
    h("legend", {}, "Columns"),
    h("div", { class: "row" }, boxes),
    mistakes,
  );
  return { element, chosen: () => offered.filter((_, i) => inputs[i].checked).map(({ name }) => name) };
}

// `kinds`: those that the service offers on this dataset; `about()`: what else a request says; `periods`: fields
// that choose them, where a question reads other periods than those of a clustering.
export function questionForm(dataset, kinds, about, periods = null) {
  const details = h("div", { class: "stack" });
  const send = submit("Ask");
  const forecast = h("p", { class: "muted", role: "status" });
  let asked = null;
  let boxes = null;
  const ticked = new Map();
  const element = form(
    { "data-asks": "no" },
    [
      radios(
        "kind",
        "Question",
        kinds.map(({ name, label }) => [name, label]),
        kinds[0].name,
      ),
      periods?.element,
      details,
      field("Epsilon", input("epsilon", { inputmode: "decimal", value: "0.1" }), {
        check: isEpsilon,
        hint: "Charged to the dataset's budget, as a clustering is.",
      }),
      forecast,
      send,
    ],
    async () => {
      location.hash = `#/jobs/${(await price.submit()).id}`;
    },
    () => price.holds(),
  );
  const request = () => {
    const options = readOptions(element);
    return {
      dataset,
      kind: asked.name,
      epsilon: decimal(new FormData(element).get("epsilon")),
      ...(boxes ? { columns: boxes.chosen() } : {}),
      ...(Object.keys(options).length ? { options } : {}),
      ...about(),
      ...periods?.read(),
    };
  };
  const price = offers(element, send, "Ask", {
    request,
    mistaken: () => replace(forecast, "Correct the marked field to see the price."),
    working: () => replace(forecast),
    priced: ({ shortfall, accuracy }) =>
      replace(
        forecast,
        shortfall ? withPowers(shortfall.sentence) : accuracy.verdict.sentence,
        shortfall?.largest_range && [" ", narrower(shortfall.largest_range)],
        shortfall?.request && [" ", requestMore(dataset, { amount: shortfall.request, plan: request() })],
      ),
    failed: (error) => replace(forecast, explain(error)),
  });
  const narrower = (range) =>
    button(
      `Read ${rangeInWords(range)} only`,
      () => {
        periods.choose(range);
        changed();
      },
      "small",
    );
  const draw = () => {
    const kind = kinds.find(({ name }) => name === new FormData(element).get("kind"));
    if (kind === asked) return;
    asked = kind;
    boxes = kind.columns.length ? columnBoxes(kind, ticked) : null;
    const { lists, others } = optionFields(kind.options);
    const folded = h("details", {}, h("summary", {}, "Options"), h("div", { class: "columns" }, others));
    replace(details, boxes?.element, lists, others.length > 0 && folded);
  };
  const changed = () => {
    draw();
    if (price.isNew()) price.ask();
  };
  element.addEventListener("input", changed);
  element.addEventListener("change", changed);
  changed();
  return { element, changed };
}
