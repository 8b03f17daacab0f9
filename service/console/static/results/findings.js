// What a question released, drawn from the view that the service sends: sentences, tables and bars.

import { download } from "../api.js";
import { h } from "../dom.js";
import { button, table } from "../widgets.js";
import { tableFiles } from "./result.js";
import { useAsBounds } from "../datasets/working-bounds.js";

// A share with a bar as long, a line over its interval, and the count that it represents.
function bar({ share, count }) {
  const part = (value) => `${100 * Math.min(1, Math.max(0, value))}%`;
  return h(
    "span",
    { class: "share" },
    h("span", { vars: { share: part(share.value), low: part(share.low), high: part(share.high) } }),
    h("span", {}, share.text, count && h("small", { class: "muted" }, `${count.text} records`)),
  );
}

// A cell of a table: text, or a number with its interval as the service words it.
function cell(value) {
  return value !== null && typeof value === "object" ? value.text : value;
}

// How each part of the vocabulary is drawn.
const PARTS = {
  sentence: ({ text }) => h("p", {}, text),
  table: ({ title, headings, rows }) => {
    const columns = headings.map(({ name, format }) => ({ name, right: format !== "text" }));
    const cells = rows.map((row) => row.map(cell));
    return h(
      "section",
      { class: "card stack" },
      h("h2", {}, title),
      table(columns, cells, { label: title, fold: headings.length < 4 }),
    );
  },
  bars: ({ title, bins, series }) => {
    const columns = [{ name: "Value" }, ...series.map(({ name }) => ({ name }))];
    const rows = bins.map((bin, i) => [bin, ...series.map(({ bars }) => bar(bars[i]))]);
    return h(
      "section",
      { class: "card stack" },
      h("h2", {}, title),
      table(columns, rows, { label: `Histogram of ${title}`, fold: false }),
    );
  },
};

// Every table and histogram of an answer, one below the other; a number is followed by the ends of its interval.
function listed(view) {
  const number = (each) =>
    each !== null && typeof each === "object" ? [each.value, each.low, each.high] : [each];
  const ends = (name) => [name, `${name}, low`, `${name}, high`];
  const tables = {
    sentence: () => [],
    table: ({ title, headings, rows }) => [
      [title],
      headings.flatMap(({ name, format }) => (format === "text" ? [name] : ends(name))),
      ...rows.map((row) => row.flatMap((each, i) => padded(number(each), headings[i].format))),
      [],
    ],
    bars: ({ title, bins, series }) => [
      [title],
      ["Value", ...series.flatMap(({ name }) => ends(name))],
      ...bins.map((bin, i) => [bin, ...series.flatMap(({ bars }) => number(bars[i].share))]),
      [],
    ],
  };
  return view.flatMap((part) => tables[part.type](part));
}

const padded = (numbers, format) =>
  format === "text" || numbers.length > 1 ? numbers : [...numbers, null, null];

export const drawn = (view) => view.map((part) => PARTS[part.type](part));

export function findingsView(job, result, receipt, curator) {
  const stem = `${job.dataset}-${result.kind}-${job.id.slice(0, 8)}`;
  const file = (words, accept, ending) =>
    button(words, () => download(`/v1/jobs/${job.id}/result`, accept, `${stem}.${ending}`), "small");
  const about = result.clusterings.map(({ job: id, k }) =>
    h("a", { href: `#/jobs/${id}` }, `${k} clusters of job ${id.slice(0, 8)}`),
  );
  return [
    h(
      "section",
      { class: "card row apart" },
      about.length > 0 &&
        h(
          "p",
          {},
          "About ",
          about.flatMap((each, i) => (i ? [" and ", each] : [each])),
          ".",
        ),
      h(
        "div",
        { class: "row" },
        curator && useAsBounds(job, result),
        ...tableFiles(
          `${job.asked_for} of ${job.dataset}`,
          stem,
          () => listed(result.view),
          receipt.citation,
        ),
        file("CSV", "text/csv", "csv"),
        file("JSON", "application/json", "json"),
      ),
    ),
    drawn(result.view),
  ];
}
