// The list of jobs: an analyst's own, or all on a curator's datasets.

import { pages } from "../api.js";
import { h } from "../dom.js";
import { amount, moment } from "../format.js";
import { growing, state, table, tag } from "../widgets.js";

export function jobTable(items, { curator, dataset = true }) {
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
    empty: curator ? "No jobs yet." : "No jobs yet: open a dataset and plan one.",
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

export async function jobs({ me }) {
  const list = growing(
    pages("/v1/jobs", 30),
    (items) => jobTable(items, { curator: me.role !== "analyst" }),
    {
      words: jobWords,
      find: "Find a job",
    },
  );
  await list.more();
  const content = h(
    "div",
    { class: "stack loose" },
    h("div", { class: "stack tight" }, h("h1", {}, "Jobs"), h("p", { class: "muted" }, LISTED[me.role])),
    h("div", { class: "card" }, list.place),
  );
  return { title: "Jobs", content };
}
