// Two jobs side by side: what was asked, what it cost, and which centres lie close to each other.

import { all, get } from "../api.js";
import { short } from "../results/charts.js";
import { tellingColumns } from "../results/centres.js";
import { h } from "../dom.js";
import { field, select } from "../forms.js";
import { drawn } from "../results/findings.js";
import { coordinateWords } from "../results/geometry.js";
import { amount, COUNT, delta, moment, percent, plural } from "../format.js";
import { dialog, notice, table } from "../widgets.js";

const UNITS = 32767; // the radius of the bounds in the units in which the service measures distances
const MOST_COLUMNS = 6;

export async function compare(_context, left, right) {
  const asked = await get(`/v1/jobs/${left}`);
  return asked.request.kind ? answers(left, right) : results(left, right);
}

// Two answers about the same clusters: of two periods, or of two places.
async function answers(left, right) {
  const found = await get(`/v1/jobs/${left}/differences?second=${right}`);
  const named = ({ job, dataset }, place) => [
    `${place}: `,
    h("a", { href: `#/jobs/${job}` }, `${dataset}, job ${job.slice(0, 8)}`),
    ". ",
  ];
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "stack tight" },
      h("p", { class: "crumb" }, h("a", { href: "#/jobs" }, "Jobs")),
      h("h1", {}, "Two answers side by side"),
    ),
    h("p", {}, named(found.first, "First"), named(found.second, "Second")),
    drawn(found.view),
  );
  return { title: "Two answers side by side", content };
}

async function results(left, right) {
  const jobs = await Promise.all(
    [left, right].map(async (id) => {
      const [job, result, axes] = await Promise.all([
        get(`/v1/jobs/${id}`),
        get(`/v1/jobs/${id}/result`),
        get(`/v1/jobs/${id}/axes`),
      ]);
      return { job, result, axes };
    }),
  );
  const [one, other] = jobs;
  const comparable =
    one.job.dataset === other.job.dataset &&
    String(one.result.columns) === String(other.result.columns) &&
    one.axes.units.length > 0 &&
    one.result.centres[0].length > 0;
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "stack tight" },
      h("p", { class: "crumb" }, h("a", { href: "#/jobs" }, "Jobs")),
      h("h1", {}, "Two jobs side by side"),
    ),
    h("section", { class: "card stack" }, h("h2", {}, "What was asked"), requests(jobs)),
    comparable
      ? h(
          "section",
          { class: "card stack" },
          h("h2", {}, "Which centres lie close to each other"),
          pairs(one, other),
        )
      : notice("warn", h("p", {}, "These jobs have no common columns, so their centres cannot be compared.")),
  );
  return { title: "Two jobs side by side", content };
}

function requests(jobs) {
  const line = (name, of) => [name, ...jobs.map(of)];
  const rows = [
    line("Job", ({ job }) => h("a", { href: `#/jobs/${job.id}` }, h("code", {}, job.id.slice(0, 8)))),
    line("Dataset", ({ job }) => job.dataset),
    line("Cost", ({ job }) =>
      job.rehearsal ? "free: a rehearsal" : `${amount(job.cost)}, ${delta(job.cost.delta)}`,
    ),
    line(
      "Centres",
      ({ job, result }) =>
        `${job.asked_for}, k-${job.request.objective ?? "means"}` +
        (result.range ? `; compared at the suggested k, ${result.range.suggested}` : ""),
    ),
    line("Algorithm", ({ job }) => job.algorithm),
    line("Submitted", ({ job }) => `${moment(job.queued_at)} by ${job.analyst}`),
  ];
  const headings = [{ unseen: "What" }, { name: "First" }, { name: "Second" }];
  return table(headings, rows, { label: "What was asked", fold: false });
}

// Pairs of centres, closest first; each centre is in one pair at most.
export function matched(left, right, lengths) {
  const distance = (a, b) => Math.hypot(...a.map((x, j) => (x - b[j]) / lengths[j]));
  const candidates = left
    .flatMap((a, i) => right.map((b, k) => [distance(a, b), i, k]))
    .sort((a, b) => a[0] - b[0]);
  const used = [new Set(), new Set()];
  return candidates.filter(([, i, k]) => {
    if (used[0].has(i) || used[1].has(k)) return false;
    used[0].add(i);
    used[1].add(k);
    return true;
  });
}

function pairs(one, other) {
  const { centres, sizes } = one.result;
  const columns = one.result.columns ?? centres[0].map((_, j) => `x${j}`);
  const lengths = one.axes.units;
  const words = coordinateWords(one.axes);
  const everywhere = lengths.map((length) => length * UNITS);
  const shown = tellingColumns(
    [...centres, ...other.result.centres],
    lengths.map(() => 0),
    everywhere,
    MOST_COLUMNS,
  );
  const records = (list, i) => (list ? COUNT.format(Math.round(list[i])) : "–");
  const found = matched(centres, other.result.centres, lengths);
  const rows = found.map(([distance, i, k]) => [
    String(i + 1),
    String(k + 1),
    percent(distance / UNITS),
    `${records(sizes, i)} → ${records(other.result.sizes, k)}`,
    ...shown.map((j) => `${words[j](centres[i][j])} → ${words[j](other.result.centres[k][j])}`),
  ]);
  const headings = [
    { name: "First" },
    { name: "Second" },
    { name: "Distance", right: true },
    { name: "Noisy size", right: true },
    ...shown.map((j) => ({ name: short(columns[j], 24), right: true })),
  ];
  const alone = Math.abs(centres.length - other.result.centres.length);
  return [
    h(
      "p",
      { class: "small muted" },
      "Distances are a share of the radius of the bounds, measured as the service does. " +
        (alone ? `${plural(alone, "centre has", "centres have")} no partner. ` : "") +
        "Both results contain noise: centres differ even if the same job is run twice.",
    ),
    table(headings, rows, { label: "Pairs of centres", fold: false }),
  ];
}

// Lets people choose what to compare a job with.
export async function chooseOther(job) {
  const { kind } = job.request;
  const about = (each) => JSON.stringify((each.request.clusterings ?? []).map((one) => [one.job, one.k]));
  // Answers may be of any dataset, as long as they are about the same clusters.
  const others = (await all(kind ? "/v1/jobs" : `/v1/jobs?dataset=${job.dataset}`)).filter(
    (each) =>
      each.state === "succeeded" &&
      each.request.kind === kind &&
      about(each) === about(job) &&
      each.id !== job.id,
  );
  dialog("Compare with another job", (close) => {
    const cancel = h("button", { type: "button", on: { click: close } }, "Cancel");
    if (!others.length)
      return [
        h(
          "p",
          {},
          kind
            ? "There is no other profile by the same clusters yet: ask for one of another dataset."
            : `There is no other result on ${job.dataset} yet.`,
        ),
        h("div", { class: "row end" }, cancel),
      ];
    const choice = select(
      "other",
      others.map((each) => [
        each.id,
        `${each.id.slice(0, 8)}: ${each.asked_for}, ${kind ? each.dataset : each.algorithm}, ` +
          `${each.rehearsal ? "rehearsal" : amount(each.cost)}, ${moment(each.queued_at)}`,
      ]),
    );
    const go = () => {
      close();
      location.hash = `#/compare/${job.id}/${choice.value}`;
    };
    return [
      field("Job", choice),
      h(
        "div",
        { class: "row end" },
        cancel,
        h("button", { type: "button", class: "primary", on: { click: go } }, "Compare"),
      ),
    ];
  });
}
