// What a question released, drawn from the view that the service sends: sentences, tables and bars.

import { download } from "../api.js";
import { h } from "../dom.js";
import { COUNT, number, percent } from "../format.js";
import { button, table } from "../widgets.js";
import { useAsBounds } from "../datasets/working-bounds.js";

// A count as a share of a total, with a bar as long.
function bar(value, total) {
  const share = total > 0 ? value / total : 0;
  const title = total === 1 ? percent(share) : `about ${COUNT.format(value)} records`;
  return h(
    "span",
    { class: "share", title },
    h("span", { vars: { share: `${100 * share}%` } }),
    h("span", {}, percent(share)),
  );
}

// A cell of a table: text, a number in its column's format, or an estimate with its 95% interval.
function cell(value, format) {
  if (value === null) return "";
  if (typeof value === "string") return value;
  if (typeof value === "object") return `${number(value.value)} ± ${number(value.margin, 2)}`;
  return format === "count" ? COUNT.format(value) : number(value);
}

// How each part of the vocabulary is drawn.
const PARTS = {
  sentence: ({ text }) => h("p", {}, text),
  table: ({ title, headings, rows }) => {
    const columns = headings.map(({ name, format }) => ({ name, right: format !== "text" }));
    const cells = rows.map((row) => row.map((each, i) => cell(each, headings[i].format)));
    return h(
      "section",
      { class: "card stack" },
      h("h2", {}, title),
      table(columns, cells, { label: title, fold: headings.length < 4 }),
    );
  },
  bars: ({ title, bins, series }) => {
    const columns = [{ name: "Value" }, ...series.map(({ name }) => ({ name }))];
    const rows = bins.map((bin, i) => [bin, ...series.map(({ values, total }) => bar(values[i], total))]);
    return h(
      "section",
      { class: "card stack" },
      h("h2", {}, title),
      table(columns, rows, { label: `Histogram of ${title}`, fold: false }),
    );
  },
};

export function findingsView(job, result, curator) {
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
        file("CSV", "text/csv", "csv"),
        file("JSON", "application/json", "json"),
      ),
    ),
    result.view.map((part) => PARTS[part.type](part)),
  ];
}
