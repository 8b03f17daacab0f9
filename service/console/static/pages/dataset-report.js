// A page to print for data protection: what a dataset promises, what was spent of it by whom, and where each of its
// public facts comes from.

import { all, get } from "../api.js";
import { factNames, kindWords, missingWords, ROLES } from "../datasets/columns.js";
import { readingWords } from "../datasets/reading.js";
import { h } from "../dom.js";
import {
  amount,
  COUNT,
  currency,
  delta,
  epsilonInWords,
  moment,
  number,
  plural,
  sentence,
  value,
} from "../format.js";
import { button, facts, table } from "../widgets.js";

// Facts that were corrected after a look at the rows are listed on a line of their own.
const declared = (found) => `declared by the curator${found.revised.length ? "" : ", before a row was read"}`;

export async function datasetReport(_context, name) {
  const [found, grants, charges] = await Promise.all([
    get(`/v1/datasets/${name}`),
    all(`/v1/datasets/${name}/grants`),
    all(`/v1/datasets/${name}/ledger?kind=charge`),
  ]);
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "head" },
      h(
        "div",
        { class: "stack tight" },
        h(
          "p",
          { class: "crumb" },
          h("a", { href: "#/datasets" }, "Datasets"),
          " / ",
          h("a", { href: `#/datasets/${name}` }, name),
        ),
        h("h1", {}, `Report on ${name}`),
        h("p", { class: "muted" }, `For data protection. State of ${moment(new Date().toISOString())}.`),
      ),
      button("Print", () => window.print()),
    ),
    section("What is promised", promise(found)),
    section("What was spent", spent(found, grants, charges)),
    section("Where the public facts come from", origins(found)),
  );
  return { title: `Report on ${name}`, content };
}

const section = (title, parts) => h("section", { class: "card stack" }, h("h2", {}, title), parts);

function promise(found) {
  const { epsilon, delta: least } = found.budget.declared;
  return [
    facts([
      [
        "Who is protected",
        found.privacy_unit === "person"
          ? `each person, with at most ${plural(found.rows_per_person, "row")}`
          : "each single row; a person with several rows is protected less",
      ],
      [
        "Total of all results together",
        `ε ${number(epsilon)} and ${delta(least)}, by the accountant ${found.accountant}`,
      ],
      ["In words", epsilonInWords(epsilon, least, found.privacy_unit)],
      ["Owner", found.owner],
      ["State", `${found.state}, created ${moment(found.created_at)}`],
      [
        "Results appear",
        found.release_ticks
          ? "at planned times, so that run times reveal nothing"
          : "as soon as they are ready",
      ],
    ]),
    found.warnings.length > 0 && h("h3", {}, "Warnings"),
    found.warnings.length > 0 &&
      h(
        "ul",
        {},
        found.warnings.map((each) => h("li", {}, sentence(each))),
      ),
  ];
}

// The owner's own jobs have no grant: their charges are those in the ledger under the owner's name.
function spent(found, grants, charges) {
  const of = (analyst) => charges.filter((each) => each.analyst === analyst);
  const line = (analyst, used, cap) => [analyst, COUNT.format(of(analyst).length), used, cap];
  const rows = grants.map(({ analyst, cap, revoked_at: revoked }) =>
    line(
      analyst,
      `${amount(cap.spent)}, ${delta(cap.spent.delta)}`,
      revoked ? "withdrawn" : `${amount(cap.total)}, ${delta(cap.total.delta)}`,
    ),
  );
  const own = of(found.owner);
  if (own.length) {
    const sum = (part) => own.reduce((total, each) => total + Number(each.amount[part]), 0);
    const used = { [currency(own[0].amount)]: sum(currency(own[0].amount)) };
    rows.push(line(found.owner, `${amount(used)}, ${delta(sum("delta"))}`, "none: limited by the total"));
  }
  const { spent: used, reserved, remaining, total } = found.budget;
  rows.push([
    h("strong", {}, "All together"),
    COUNT.format(charges.length),
    h("strong", {}, `${amount(used)}, ${delta(used.delta)}`),
    `${amount(total)}, ${delta(total.delta)}`,
  ]);
  const headings = [
    { name: "Who" },
    { name: "Jobs charged", right: true },
    { name: "Spent" },
    { name: "Limit" },
  ];
  const left = `${amount(remaining)} and ${delta(remaining.delta)} remain`;
  return [
    table(headings, rows, { label: "Spent by analyst" }),
    h(
      "p",
      { class: "muted" },
      value(reserved) > 0 ? `${left}; ${amount(reserved)} is reserved.` : `${left}.`,
    ),
  ];
}

function origins(found) {
  const byCurator = declared(found);
  const origin = (confirmed) =>
    confirmed?.length
      ? `from the rows, confirmed as public: ${factNames(confirmed)}; the rest ${byCurator}`
      : byCurator;
  const says = (column) =>
    column.role === "cluster" || column.role === "keep"
      ? `${kindWords(column)}; a missing value: ${missingWords(column)}`
      : ROLES[column.role];
  const lines = (found.table ?? []).map((column) => [
    h("code", { class: "column-name" }, column.name),
    says(column),
    origin(column.confirmed_from_rows),
  ]);
  if (!found.table) lines.push(["Columns and bounds", plural(found.dimension, "column"), byCurator]);
  lines.push([
    "Number of records",
    `about ${COUNT.format(found.size)}`,
    found.revised.includes("size") ? "changed after a look at the rows" : byCurator,
  ]);
  if (found.reading.encoding)
    lines.push(["How text is read", readingWords(found.reading), origin(found.reading.confirmed_from_rows)]);
  for (const { column, low, high, origin: from } of found.working_bounds?.columns ?? [])
    lines.push([`Working bounds of ${column}`, `${low} to ${high}`, from]);
  if (found.revised.length)
    lines.push([
      "Changed after a look at the rows",
      found.revised.join(", "),
      "the curator, who had seen a report",
    ]);
  const headings = [{ name: "Fact" }, { name: "What it says" }, { name: "Where from" }];
  return table(headings, lines, { label: "Origin of public facts" });
}
