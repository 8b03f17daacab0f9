// Which columns of a table a job clusters on, how much each counts, and what they are scaled by.

import { isWeight, kindWords } from "../datasets/columns.js";
import { freshId, h } from "../dom.js";
import { checkbox, guard, input, numberOf } from "../forms.js";
import { number } from "../format.js";

export function tableChoices(found) {
  const usable = (found.table ?? []).filter((each) => each.role === "cluster");
  const lines = usable.map((column) => choice(column, () => lines.some(({ box }) => box.checked)));
  const scaling = checkbox("private-scaling", "Private scaling", {
    hint:
      "5% of epsilon measures the range that each column really fills, and scales it by that. " +
      "It pays off where bounds are known to be loose and there are many records; elsewhere it " +
      "costs accuracy.",
  });
  const fair = checkbox("fair-weights", "Fair weights", {
    hint:
      "Weighs columns by their kinds in place of the weights above, so that none rules: a difference in a " +
      "category counts as much as a typical difference of two numbers.",
  });
  const isFair = () => fair.querySelector("input").checked;
  const chosen = () => lines.filter(({ box }) => box.checked);
  return {
    element:
      found.table &&
      h(
        "fieldset",
        { class: "stack tight" },
        h("legend", {}, "Columns to cluster on"),
        h(
          "div",
          {},
          h(
            "div",
            { class: "weighted titles", "aria-hidden": "true" },
            h("span", {}, "Column"),
            h("span", {}, "Weight"),
          ),
          lines.map(({ element }) => element),
        ),
        fair,
        scaling,
      ),
    read() {
      const weights = Object.fromEntries(
        chosen()
          .filter(({ column, weight }) => numberOf(weight.value) !== column.weight)
          .map(({ column, weight }) => [column.name, numberOf(weight.value)]),
      );
      return {
        ...(chosen().length < lines.length && { columns: chosen().map(({ column }) => column.name) }),
        ...(isFair() ? { weights: "fair" } : Object.keys(weights).length && { weights }),
        ...(found.table && scaling.querySelector("input").checked && { scaling: "private" }),
      };
    },
  };
}

// What a request says about the columns of a table, as facts.
export function chosenFacts({ columns, weights, scaling }) {
  return [
    columns && ["Columns", columns.join(", ")],
    weights && [
      "Weights",
      typeof weights === "string"
        ? weights
        : Object.entries(weights)
            .map(([name, weight]) => `${name} ${number(weight)}`)
            .join(", "),
    ],
    scaling === "private" && ["Scaling", "private: by ranges measured with part of epsilon"],
  ];
}

function choice(column, anyChosen) {
  const id = freshId("choice");
  const box = h("input", { type: "checkbox", name: "clustered", id, props: { checked: true } });
  const weight = input("weight", {
    inputmode: "decimal",
    value: String(column.weight),
    "aria-label": `Weight of ${column.name}`,
  });
  // On `input`, so that the form, which asks for a price then, finds the weight of a column that is left out
  // disabled.
  box.addEventListener("input", () => {
    weight.disabled = !box.checked;
    if (weight.disabled) weight.tell("");
  });
  const words = h(
    "div",
    {},
    h("label", { for: id }, column.name),
    h("span", { class: "hint", id: `${id}-hint` }, kindWords(column)),
  );
  const none = guard(box, () => (anyChosen() ? "" : "Choose at least one column."), `${id}-hint`);
  return {
    column,
    box,
    weight,
    element: h(
      "div",
      { class: "weighted" },
      h("div", { class: "choice" }, box, words),
      h("div", { class: "stack tight" }, weight, guard(weight, isWeight)),
      none,
    ),
  };
}
