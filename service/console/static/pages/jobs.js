// The list of jobs: an analyst's own, or all on a curator's datasets.

import { all, get, pages } from "../api.js";
import { filters, setFilter } from "../address.js";
import { h, replace } from "../dom.js";
import { field, input, select } from "../forms.js";
import { amount, moment, plural } from "../format.js";
import { explain, growing, state, table, tag } from "../widgets.js";

const STATES = ["queued", "running", "succeeded", "failed", "cancelled"];

export function jobTable(items, { curator, dataset = true, filtered = false }) {
  const headings = [
    { name: "Job" },
    dataset && { name: "Dataset" },
    curator && { name: "Analyst" },
    { name: "State" },
    { name: "Cost", right: true },
    { name: "Submitted" },
  ].filter(Boolean);
  const rows = items.map((job) =>
    [
      [
        h("a", { href: `#/jobs/${job.id}` }, job.name || `${job.asked_for}, ${job.algorithm}`),
        // Jobs that ask for the same are told apart by their ids.
        !job.name && h("span", { class: "small muted" }, ` ${job.id.slice(0, 8)}`),
      ],
      dataset && job.dataset,
      curator && job.analyst,
      state(job.state),
      job.rehearsal ? tag("rehearsal, free") : amount(job.cost),
      h("span", { class: "nowrap" }, moment(job.queued_at)),
    ]
      .map((cell) => cell || null)
      .filter((cell) => cell !== null),
  );
  return table(headings, rows, {
    label: "Jobs",
    empty: filtered
      ? "No jobs like that."
      : curator
        ? "No jobs yet."
        : "No jobs yet: open a dataset and plan one.",
  });
}

// What a job is found by.
export const jobWords = (job) =>
  [
    job.id,
    job.name,
    job.note,
    job.dataset,
    job.analyst,
    job.algorithm,
    job.state,
    job.rehearsal ? "rehearsal" : "",
    job.asked_for,
  ].join(" ");

const LISTED = {
  curator: "Every job on your datasets, newest first.",
  analyst: "Everything you have submitted, newest first.",
  auditor: "Every job, newest first.",
};

// Controls for the filters of the API, by their names there; their values are in the address.
async function jobFilters(me) {
  const [datasets, { items: kinds }] = await Promise.all([all("/v1/datasets"), get("/v1/kinds")]);
  const choice = (label, name, any, options) => [label, select(name, [["", any], ...options])];
  const controls = [
    choice(
      "State",
      "state",
      "any",
      STATES.map((each) => [each, each]),
    ),
    choice(
      "Dataset",
      "dataset",
      "all",
      datasets.map(({ name }) => [name, name]),
    ),
    choice("Kind", "kind", "any", [
      ["cluster", "Clustering"],
      ...kinds.map(({ name, title }) => [name, title]),
    ]),
    me.role !== "analyst" && ["Analyst", input("analyst", { maxlength: "64", placeholder: "everybody" })],
    ["From", input("since", { type: "date" })],
    ["To", input("until", { type: "date" })],
  ].filter(Boolean);
  for (const [, control] of controls) control.value = filters().get(control.name) ?? "";
  const summary = h("summary", {});
  const chosen = () => controls.map(([, control]) => control).filter((control) => control.value.trim());
  const tell = () => {
    const count = chosen().length;
    summary.textContent = count ? `Filters: ${plural(count, "chosen", "chosen")}` : "Filters";
  };
  const element = h(
    "details",
    { id: "filters", props: { open: chosen().length > 0 } },
    summary,
    h(
      "div",
      { class: "columns narrow" },
      controls.map(([label, control]) => field(label, control)),
    ),
  );
  tell();
  return {
    element,
    follow(act) {
      element.addEventListener("change", ({ target }) => {
        setFilter(/** @type {any} */ (target).name, /** @type {any} */ (target).value.trim());
        tell();
        act();
      });
    },
    query: () =>
      chosen()
        .map(({ name, value }) => `&${name}=${encodeURIComponent(asSent(name, value.trim()))}`)
        .join(""),
  };
}

// Days begin where the reader is; the last day is part of the time that is shown.
function asSent(name, value) {
  if (name !== "since" && name !== "until") return value;
  const [year, month, day] = value.split("-").map(Number);
  return new Date(year, month - 1, day + (name === "until" ? 1 : 0)).toISOString();
}

export async function jobs({ me }) {
  const chosen = await jobFilters(me);
  const place = h("div", {});
  const show = async () => {
    const query = chosen.query();
    const list = growing(
      pages(`/v1/jobs${query.replace("&", "?")}`, 30),
      (items) => jobTable(items, { curator: me.role !== "analyst", filtered: query !== "" }),
      { words: jobWords, find: "Find a job" },
    );
    try {
      await list.more();
      if (query === chosen.query()) replace(place, list.place);
    } catch (error) {
      replace(place, explain(error));
    }
  };
  chosen.follow(show);
  await show();
  const content = h(
    "div",
    { class: "stack loose" },
    h("div", { class: "stack tight" }, h("h1", {}, "Jobs"), h("p", { class: "muted" }, LISTED[me.role])),
    h("div", { class: "card stack" }, chosen.element, place),
  );
  return { title: "Jobs", content };
}
