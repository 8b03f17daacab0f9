// The population of a dataset: whose rows these are, what is left for them, and how a dataset joins one.

import { all, post } from "../api.js";
import { h, toast } from "../dom.js";
import { checkbox, field, form, select, submit } from "../forms.js";
import { amount, delta } from "../format.js";
import { button, dialog } from "../widgets.js";

// What is left for a dataset's people, for everybody who sees the dataset; its owner may let it join.
export function populationCard(found, { me, reload }) {
  const population = found.population;
  const owner = me.role === "curator";
  if (!population) return owner && found.state !== "draft" ? joinCard(found, reload) : null;
  return h(
    "section",
    { class: "card stack" },
    h("h2", {}, "The same people in other datasets"),
    h(
      "p",
      { id: "population-left" },
      "These people are in the population ",
      me.role === "analyst"
        ? h("strong", {}, population.name)
        : h("a", { href: `#/populations/${population.name}` }, population.name),
      `, which has ${amount(population.remaining)} and ${delta(population.remaining.delta)} left of ` +
        `${amount(population.total)} for all its datasets. Every job must fit that, too.`,
    ),
    population.one_row_per_person &&
      h(
        "p",
        { class: "small muted" },
        "Its owner declared that nobody has two rows" +
          `${found.unit ? " in one of its periods" : " in this dataset"}.`,
      ),
  );
}

function joinCard(found, reload) {
  return h(
    "section",
    { class: "card stack" },
    h("h2", {}, "The same people in other datasets"),
    h(
      "p",
      { class: "muted" },
      "If these people are in several datasets, a population limits what one of them loses in all of these.",
    ),
    h(
      "div",
      { class: "row" },
      button("Join a population", () => join(found, reload)),
      h("a", { href: "#/populations" }, "Populations"),
    ),
  );
}

async function join(found, reload) {
  const list = await all("/v1/populations");
  dialog(`Let ${found.name} join a population`, (close) =>
    list.length
      ? form(
          {},
          [
            field(
              "Population",
              select(
                "population",
                list.map((each) => [each.name, `${each.name}, ${amount(each.budget.remaining)} left`]),
              ),
            ),
            !found.id_column &&
              checkbox(
                "one_row",
                `Nobody has two rows in ${found.unit ? "one of its periods" : "this dataset"}`,
                {
                  hint: "The dataset has no id column, so it joins only if you declare this. It is recorded.",
                },
              ),
            h(
              "p",
              { class: "small muted" },
              "What its jobs have cost one person so far counts. A dataset never leaves a population.",
            ),
            h(
              "div",
              { class: "row end" },
              h("button", { type: "button", on: { click: close } }, "Cancel"),
              submit("Join for good"),
            ),
          ],
          async (data) => {
            await post(`/v1/populations/${data.get("population")}/datasets`, {
              dataset: found.name,
              one_row_per_person: data.has("one_row"),
            });
            close();
            toast(`${found.name} has joined ${data.get("population")}.`);
            await reload();
          },
        )
      : h(
          "div",
          { class: "stack" },
          h("p", {}, "There is no population that you may use."),
          h("div", { class: "row end" }, h("a", { class: "button", href: "#/populations" }, "Create one")),
        ),
  );
}
