// What a question released: histograms beside each other, tables and quantiles. Nothing comes from rows.

import { download } from "./api.js";
import { h } from "./dom.js";
import { COUNT, number, percent } from "./format.js";
import { button, table } from "./widgets.js";
import { useAsBounds } from "./working-bounds.js";

const right = (name) => ({ name, right: true });
const text = (value) => (typeof value === "number" ? number(value) : value === null ? "" : String(value));

// The names of a column's bins: levels, or the values from which to which a bin reaches.
export function binNames({ levels, edges = [], missing }) {
  const named = levels ?? edges.slice(1).map((edge, i) => `${text(edges[i])} to ${text(edge)}`);
  return missing ? [...named, "missing"] : named;
}

// A count as a share of its cluster, with a bar as long.
function bar(count, total) {
  const share = total > 0 ? count / total : 0;
  return h("span", { class: "share", title: `about ${COUNT.format(count)} records` }, h("span", { vars: { share: `${100 * share}%` } }), h("span", {}, percent(share)));
}

// One table for a column: a row for each bin, and a column of bars for each cluster.
function histograms(column, counts, totals, headings) {
  const rows = binNames(column).map((name, bin) => [name, ...counts.map((each, i) => bar(each[bin], totals[i]))]);
  return h("section", { class: "card stack" }, h("h2", {}, column.column), table([{ name: "Value" }, ...headings.map((name) => ({ name }))], rows, { label: `Histogram of ${column.column}`, fold: false }));
}

const sum = (values) => values.reduce((total, each) => total + each, 0);
const sizes = (counted) => counted.map((size, i) => `Cluster ${i + 1} (${COUNT.format(size)})`);

const VIEWS = {
  profile: ({ columns, sizes: counted }) => columns.map((column) => histograms(column, column.counts, counted, sizes(counted))),
  explain: ({ clusters }) =>
    clusters.map(({ size, columns }, i) => [
      h("h2", {}, `Cluster ${i + 1}: about ${COUNT.format(size)} records`),
      columns.map((column) => histograms(column, [column.counts, column.overall], [size, 1], ["This cluster", "All records"])),
    ]),
  table: ({ columns, counts }) => {
    const names = columns.map(binNames);
    const cells = (part, place) => (place === columns.length ? [[COUNT.format(part)]] : part.flatMap((each, i) => cells(each, place + 1).map((rest) => [names[place][i], ...rest])));
    return h("section", { class: "card" }, table([...columns.map(({ column }) => ({ name: column })), right("Records")], cells(counts, 0), { label: "Table of counts" }));
  },
  quantiles: ({ levels, columns }) => h("section", { class: "card" }, table([{ name: "Column" }, ...levels.map((level) => right(percent(level)))], columns.map(({ column, values }) => [column, ...values.map(text)]), { label: "Quantiles" })),
  compare: ({ counts, sizes: counted, agreement }) => [
    agreement !== null && h("p", {}, `Agreement (adjusted Rand index): ${number(agreement, 2)}. 1 means that both divide the records alike.`),
    h("section", { class: "card" }, table([{ name: "" , unseen: "Cluster" }, ...counted[1].map((_, i) => right(`Second, ${i + 1}`))], counts.map((row, i) => [`First, ${i + 1}`, ...row.map((each) => COUNT.format(each))]), { label: "Overlap of clusters", fold: false })),
  ],
  summary: ({ count, columns, coordinates, spreads, correlations }) => [
    h("p", {}, `About ${COUNT.format(count)} records.`),
    h("section", { class: "card" }, table([{ name: "Column" }, right("Mean")], columns.map((each) => [each.column, each.shares ? Object.entries(each.shares).map(([level, share]) => `${level} ${percent(share)}`).join(", ") : text(each.value)]), { label: "Means" })),
    h("section", { class: "card" }, h("h2", {}, "Correlations"), table([{ name: "Column" }, right("Spread"), ...coordinates.map(right)], coordinates.map((name, i) => [name, number(spreads[i], 3), ...correlations[i].map((each) => number(each, 2))]), { label: "Correlations", fold: false })),
  ],
};

export function findingsView(job, result, curator) {
  const stem = `${job.dataset}-${result.kind}-${job.id.slice(0, 8)}`;
  const file = (words, accept, ending) => button(words, () => download(`/v1/jobs/${job.id}/result`, accept, `${stem}.${ending}`), "small");
  const about = result.clusterings.map(({ job: id, k }) => h("a", { href: `#/jobs/${id}` }, `${k} clusters of job ${id.slice(0, 8)}`));
  return [
    h(
      "section",
      { class: "card row apart" },
      h("p", {}, about.length > 0 && ["About ", about.flatMap((each, i) => (i ? [" and ", each] : [each])), ". "], `Counts are noisy: ±${COUNT.format(2 * result.findings.noise.count)} records in 95 of 100 runs.`),
      h("div", { class: "row" }, curator && useAsBounds(job, result), file("CSV", "text/csv", "csv"), file("JSON", "application/json", "json")),
    ),
    VIEWS[result.kind](result.findings),
  ];
}
