// Populations: people who may be in several datasets, with one total for all of these.

import { get, pages, patch, post } from "../api.js";
import { h, toast } from "../dom.js";
import { budgetFields, decimal, field, form, input, isName, select, submit } from "../forms.js";
import { amount, delta, moment, plural } from "../format.js";
import { button, dialog, facts, gauge, growing, state, table } from "../widgets.js";

const NAMES = /[\s,]+/;
const namesOf = (text) => String(text).split(NAMES).filter(Boolean);

export async function populations({ me }) {
  const list = growing(
    pages("/v1/populations", 24),
    (items) =>
      items.length
        ? h(
            "ul",
            { class: "cards plain" },
            items.map((each) => h("li", {}, card(each))),
          )
        : h(
            "div",
            { class: "card hollow stack" },
            h("h2", {}, "No populations yet"),
            h(
              "p",
              { class: "muted" },
              "If the same people are in several datasets, a population limits what one of them loses in all.",
            ),
          ),
    { words: (each) => `${each.name} ${each.description}`, find: "Find a population" },
  );
  await list.more();
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "head" },
      h(
        "div",
        { class: "stack tight" },
        h("p", { class: "crumb" }, h("a", { href: "#/datasets" }, "Datasets")),
        h("h1", {}, "Populations"),
        h("p", { class: "muted" }, "People who are in several datasets, and what is left for them in all."),
      ),
      me.role === "curator" && button("New population", create, "primary"),
    ),
    list.place,
  );
  return { title: "Populations", content };
}

const size = (found) => found.datasets.length + (found.others?.datasets ?? 0);

function card(found) {
  return h(
    "article",
    { class: "card link stack" },
    h("h2", {}, h("a", { href: `#/populations/${found.name}` }, found.name)),
    h("p", { class: "muted" }, found.description || "No description."),
    h("p", { class: "small muted" }, `${plural(size(found), "dataset")} · owned by ${found.owner}`),
    gauge(found.budget, { label: "Population" }),
  );
}

function create() {
  dialog("New population", (close) =>
    form(
      {},
      [
        field("Name", input("name"), { check: isName("Enter a name, for example patients.") }),
        field("Description", input("description"), { hint: "Who these people are." }),
        field(
          "Accountant",
          select("accountant", [
            ["zcdp", "zCDP"],
            ["sum", "Plain sum"],
          ]),
          { hint: "zCDP lets many small jobs share the total better." },
        ),
        budgetFields({
          hintEpsilon: "The most that one person may lose in all its datasets together.",
          hintDelta: "For example 1e-6.",
        }),
        field("Other curators", input("curators"), { hint: "Names of those who may let datasets join." }),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Create"),
        ),
      ],
      async (data) => {
        const made = await post("/v1/populations", {
          name: data.get("name"),
          description: data.get("description"),
          accountant: data.get("accountant"),
          budget: { epsilon: decimal(data.get("epsilon")), delta: decimal(data.get("delta")) },
          curators: namesOf(data.get("curators")),
        });
        close();
        toast(`${made.name} is created.`);
        location.hash = `#/populations/${made.name}`;
      },
    ),
  );
}

export async function population({ me, reload }, name) {
  const found = await get(`/v1/populations/${name}`);
  const owner = me.name === found.owner;
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "stack tight" },
      h("p", { class: "crumb" }, h("a", { href: "#/populations" }, "Populations")),
      h("h1", {}, name),
      h("p", { class: "muted" }, found.description || "No description."),
    ),
    h(
      "div",
      { class: "halves" },
      h(
        "section",
        { class: "card stack" },
        h(
          "div",
          { class: "row apart" },
          h("h2", {}, "What one person may lose"),
          owner && button("Raise", () => raise(found, reload), "small"),
        ),
        gauge(found.budget, { label: "Population" }),
        h(
          "p",
          { class: "small muted" },
          `In all its datasets together. ${delta(found.budget.remaining.delta)} of ` +
            `${delta(found.budget.total.delta)} remaining.`,
        ),
      ),
      h(
        "section",
        { class: "card stack" },
        h(
          "div",
          { class: "row apart" },
          h("h2", {}, "About"),
          owner && button("Edit", () => edit(found, reload), "small"),
        ),
        facts([
          ["Owner", found.owner],
          ["Other curators", found.curators.join(", ") || "none"],
          ["Accountant", found.accountant],
          ["Created", moment(found.created_at)],
        ]),
      ),
    ),
    h("section", { class: "card stack" }, h("h2", {}, "Datasets"), members(found, me)),
  );
  return { title: name, content };
}

function members(found, me) {
  const linked = (each) =>
    me.role === "auditor" || each.owner === me.name
      ? h("a", { href: `#/datasets/${each.name}` }, each.name)
      : each.name;
  const rows = found.datasets.map((each) => [
    linked(each),
    each.owner,
    state(each.state),
    moment(each.joined_at),
    amount(each.spent),
    amount(each.reserved),
  ]);
  if (found.others) {
    const others = `${plural(found.others.datasets, "dataset")} of other curators`;
    rows.push([others, "", "", "", amount(found.others.spent), amount(found.others.reserved)]);
  }
  return table(
    [
      { name: "Dataset" },
      { name: "Owner" },
      { name: "State" },
      { name: "Joined" },
      { name: "Spent", right: true },
      { name: "Reserved", right: true },
    ],
    rows,
    { empty: "None yet. Open a sealed dataset and let it join.", label: "Datasets of the population" },
  );
}

function raise(found, reload) {
  const present = found.budget.declared;
  dialog(`Raise the total of ${found.name}`, (close) =>
    form(
      {},
      [
        h("p", { class: "muted" }, "It can only be raised. It is a promise to the people in these datasets."),
        budgetFields({ epsilon: present.epsilon, delta: present.delta }),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Raise"),
        ),
      ],
      async (data) => {
        await post(`/v1/populations/${found.name}/budget`, {
          epsilon: decimal(data.get("epsilon")),
          delta: decimal(data.get("delta")),
        });
        close();
        toast("The total was raised.");
        await reload();
      },
    ),
  );
}

function edit(found, reload) {
  dialog(`Edit ${found.name}`, (close) =>
    form(
      {},
      [
        field("Description", input("description", { value: found.description })),
        field("Other curators", input("curators", { value: found.curators.join(", ") }), {
          hint: "Names of those who may let datasets join. Datasets that have joined stay.",
        }),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Save"),
        ),
      ],
      async (data) => {
        await patch(`/v1/populations/${found.name}`, {
          description: data.get("description"),
          curators: namesOf(data.get("curators")),
        });
        close();
        toast("Saved.");
        await reload();
      },
    ),
  );
}
