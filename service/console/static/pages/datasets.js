// The list of datasets: what they hold, and what is left of their budgets.

import { pages } from "../api.js";
import { h } from "../dom.js";
import { COUNT, plural } from "../format.js";
import { gauge, growing, state } from "../widgets.js";
import { waiting } from "../jobs/outcomes.js";

const LISTED = {
  curator: "Datasets that you own.",
  analyst: "Datasets that you may use.",
  auditor: "All datasets.",
};

export async function datasets(context) {
  const { me } = context;
  const curator = me.role === "curator";
  const list = growing(
    pages("/v1/datasets", 24),
    (items) =>
      items.length
        ? h(
            "ul",
            { class: "cards plain" },
            items.map((each) => h("li", {}, card(each, me.role))),
          )
        : welcome(curator),
    { words: (each) => `${each.name} ${each.description} ${each.owner}`, find: "Find a dataset" },
  );
  const [waits] = await Promise.all([waiting(context), list.more()]);
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "head" },
      h(
        "div",
        { class: "stack tight" },
        h("h1", {}, "Datasets"),
        h("p", { class: "muted" }, LISTED[me.role]),
      ),
      me.role !== "analyst" &&
        h(
          "div",
          { class: "row" },
          h("a", { class: "button", href: "#/populations" }, "Populations"),
          curator && h("a", { class: "button primary", href: "#/datasets/new" }, "New dataset"),
        ),
    ),
    waits,
    list.place,
  );
  return { title: "Datasets", content };
}

function card(each, role) {
  return h(
    "article",
    { class: "card link stack" },
    h(
      "div",
      { class: "row apart" },
      h("h2", {}, h("a", { href: `#/datasets/${each.name}` }, each.name)),
      state(each.state),
    ),
    h("p", { class: "muted" }, each.description || "No description."),
    h("p", { class: "small muted" }, shape(each)),
    gauge(each.cap ?? each.budget, { label: each.cap ? "Your cap" : "Budget" }),
    role === "analyst" &&
      each.state === "sealed" &&
      h(
        "div",
        { class: "above" },
        h("a", { class: "button primary", href: `#/datasets/${each.name}/job` }, "Plan a job"),
      ),
  );
}

export function shape(each) {
  const rows = `about ${COUNT.format(each.size)} records`;
  if (each.kind === "ids") return `${rows} naming one of ${COUNT.format(each.dimension)} sites`;
  return (
    `${rows} · ${plural(each.dimension, "column")}${each.kind === "sparse" ? ", sparse" : ""} ` +
    `· protects each ${each.privacy_unit}`
  );
}

function welcome(curator) {
  return h(
    "div",
    { class: "card hollow stack" },
    h("h2", {}, curator ? "No datasets yet" : "Nothing is granted to you yet"),
    h(
      "p",
      { class: "muted" },
      curator
        ? "Describe one: its columns, bounds known without looking at rows, and a budget. Then " +
            "upload the rows."
        : "Ask a curator for a grant; the dataset then appears here.",
    ),
    curator &&
      h("div", {}, h("a", { class: "button primary", href: "#/datasets/new" }, "Create the first dataset")),
  );
}
