// What a job released: plots, a table and downloads. All of it was paid for; nothing comes from rows.

import { download, save } from "../api.js";
import { centreRows, centreTable, columnChooser, FEW_COLUMNS, tellingColumns } from "./centres.js";
import { heatMap, hue, mapOfCentres, profile, sizeBars } from "./charts.js";
import { h, replace } from "../dom.js";
import { COUNT, percent, plural } from "../format.js";
import { noise } from "./noise.js";
import { resultAsCurl, resultAsPython } from "../jobs/snippets.js";
import { tableParts } from "./table-result.js";
import { pasteable, tablePage, workbook } from "./tables.js";
import { button, copyButton, table } from "../widgets.js";

const FEW_CENTRES = 12;
const FEW_CHOICES = 6;

export const columnsOf = ({ columns, centres }) => columns ?? centres[0].map((_, j) => `x${j}`);

// Which columns to show: at first those in which the centres differ most.
export function columnChoice(result, { axes }) {
  const columns = columnsOf(result);
  return columnChooser(columns, tellingColumns(result.centres, ...edges(axes, result.centres)));
}

// The parts of a page about one result. Those about another k of the same job share the choice of columns.
export function resultView(job, result, receipt, choice = columnChoice(result, receipt)) {
  const columns = columnsOf(result);
  const added = noise(receipt.axes, result);
  const shape = {
    hues: result.centres.map((_, i) => i),
    ...result,
    columns,
    domain: receipt.domain,
    known: result.level ?? result.intervals ?? {},
    ...added,
  };
  const drawable = result.centres[0].length > 0 && added.lengths;
  const [low, high] = edges(receipt.axes, result.centres);
  const centres = centreTable(columns, shape);
  const kinds = result.profiles ? tableParts(result, receipt.axes) : null;
  const profiles = drawable ? profileCard({ ...shape, low, high }) : null;
  choice.follow((chosen) => {
    centres.show(chosen);
    profiles?.show(chosen);
  });
  const inKinds = kinds ? { centres: kinds.values, known: { ...shape.known, ...kinds.ends } } : {};
  const rows = () => centreRows(columns, { ...shape, ...inKinds }, added.size);
  return [
    drawable &&
      h(
        "div",
        { class: "plots" },
        result.level ? surenessCard(shape) : mapCard(shape),
        result.sizes && sizeCard(shape),
      ),
    !kinds && columns.length > FEW_CHOICES && h("section", { class: "card" }, choice.element),
    kinds?.profiles ?? profiles?.element,
    h(
      "section",
      { class: "card stack" },
      h("div", { class: "row apart" }, h("h2", {}, "Centres"), files(job, result, rows, receipt.citation)),
      kinds?.table ?? centres.element,
    ),
  ];
}

// A table as a spreadsheet with every digit, and as a page with rounded numbers; both say what to cite.
export function tableFiles(title, stem, rows, citation) {
  const cited = citation ?? "A rehearsal on made-up rows: not to be cited.";
  const toExcel = () => save(workbook({ Table: rows(), "How to cite": [[cited]] }), `${stem}.xlsx`);
  const toPage = () => save(tablePage(title, rows(), cited), `${stem}.html`);
  return [button("Excel", toExcel, "small"), button("Word", toPage, "small")];
}

function files(job, result, rows, citation) {
  const k = (result.range || result.merged) && result.centres.length;
  const stem = `${job.dataset}-${job.id.slice(0, 8)}${k ? `-k${k}` : ""}`;
  const file = (words, accept, ending) =>
    button(
      words,
      () => download(`/v1/jobs/${job.id}/result${k ? `?k=${k}` : ""}`, accept, `${stem}.${ending}`),
      "small",
    );
  return h(
    "div",
    { class: "row" },
    copyButton(() => pasteable(rows()), "Copy table"),
    ...tableFiles(`Centres of ${job.dataset}`, stem, rows, citation),
    file("CSV", "text/csv", "csv"),
    file("JSON", "application/json", "json"),
    file("NPY", "application/x-npy", "npy"),
    copyButton(() => resultAsPython(job, k), "Copy as Python"),
    copyButton(() => resultAsCurl(job, k), "Copy as curl"),
  );
}

function mapCard(shape) {
  const { picture, label } = mapOfCentres(shape);
  const areas = shape.sizes
    ? "Larger dots have more records; a dot does not show how far its cluster reaches. "
    : "";
  const whose = shape.clipped ? "" : ", for clusters as wide as the bounds; compact ones get less";
  const rings = shape.places
    ? `Dashed rings: the last round's noise in 95 of 100 runs${whose}; where none is seen, it ` +
      "is smaller than the dot."
    : "";
  return h(
    "section",
    { class: "card stack" },
    h("h2", {}, "Where the centres lie"),
    picture,
    h("p", { class: "small muted" }, `${label} ${areas}${rings}`),
  );
}

// How tight each cluster is, how far from the next, and whether it is there at all.
function surenessCard({ level, hues }) {
  const whole = Math.sqrt(level.loss.value / Math.max(1e-12, 1 - level.explained)); // spread of all records
  const rows = level.spreads.map((spread, i) => [
    h("span", { class: `nowrap ${hue(hues[i])}` }, h("span", { class: "swatch" }), String(i + 1)),
    percent(spread / whole),
    level.k > 1 ? `${(level.apart[i] / Math.max(spread, 1e-12)).toFixed(1)} spreads` : "–",
    level.real[i] ? "yes" : "noise alone could have made it",
  ]);
  const headings = [
    { name: "Cluster" },
    { name: "Spread", right: true },
    { name: "Next centre", right: true },
    { name: "More than noise" },
  ];
  return h(
    "section",
    { class: "card stack", id: "sureness" },
    h("h2", {}, "How clear each cluster is"),
    table(headings, rows, { label: "How clear each cluster is", fold: false }),
    h(
      "p",
      { class: "small muted" },
      "Spread: the typical distance of a cluster's records to its centre, compared with that " +
        "of all records to their mean. Next centre: its distance, in spreads of this cluster; " +
        "below about 2 the two overlap.",
    ),
  );
}

function sizeCard({ sizes, hues, level, known, size: deviation }) {
  const around = sizes.map((n) => [n - 2 * deviation, n + 2 * deviation]);
  const ends = known.size_low
    ? sizes.map((_, i) => [known.size_low[i], known.size_high[i]])
    : deviation
      ? around
      : null;
  const noisy = deviation
    ? `Lines: ± ${COUNT.format(Math.round(2 * deviation))} records, the noise alone in 95 of ` +
      "100 runs. Sizes can even come out below zero."
    : "This result does not state how large the noise is.";
  const words = level
    ? "Lines: 95% intervals of the number of records nearest to each centre; they allow for " +
      "the noise, and for records near the border between two clusters."
    : noisy;
  return h(
    "section",
    { class: "card stack" },
    h("h2", {}, "How many records each has, with noise"),
    sizeBars({ sizes, hues }, ends),
    h("p", { class: "small muted" }, words),
  );
}

// A heat map of all centres, and a small picture of each: at once if there are few, on request if there are
// many.
function profileCard({ centres, columns, low, high, lengths, places, level, known, hues }) {
  const map = h("div", { class: "stack tight" });
  const small = h("div", { class: "profiles" });
  const more = h("div", {});
  let chosen = [];
  let drawn = centres.length > FEW_CENTRES ? 0 : centres.length;
  const interval = (i, j) =>
    known.centre_low
      ? [known.centre_low[i][j], known.centre_high[i][j]]
      : [-2, 2].map((side) => centres[i][j] + side * places[i] * lengths[j]);
  const draw = () => {
    const pick = (list) => chosen.map((j) => list[j]);
    const picked = {
      centres: centres.map(pick),
      columns: pick(columns),
      low: pick(low),
      high: pick(high),
      hues,
    };
    const rest = centres.length - drawn;
    const many = centres.length > FEW_CENTRES || chosen.length > FEW_CHOICES;
    replace(
      map,
      many &&
        centres.length > 1 &&
        chosen.length > 0 && [
          h(
            "p",
            { class: "small muted" },
            "Blue: below the middle of all centres. Orange: above it. Stronger colours are " +
              "further away, relative to the width of the bounds.",
          ),
          heatMap(picked),
        ],
    );
    replace(
      small,
      chosen.length > 0 &&
        centres.slice(0, drawn).map((_, i) => {
          const ends = known.centre_low || places ? chosen.map((j) => interval(i, j)) : null;
          return h(
            "figure",
            { class: `stack tight ${hue(hues[i])} flat` },
            h("figcaption", {}, h("h3", {}, h("span", { class: "swatch" }), `Centre ${i + 1}`)),
            profile(i, { ...picked, ends }),
          );
        }),
    );
    replace(
      more,
      rest > 0 &&
        button(
          `Draw ${drawn ? "the other " : ""}${plural(rest, "centre")} one by one`,
          () => {
            drawn = centres.length;
            draw();
          },
          "small",
        ),
    );
  };
  const noisy = places
    ? " Lines show the noise alone, in 95 of 100 runs: not what clipping cut off, or what " +
      "another run would find."
    : "";
  const lines = level ? " Lines are 95% intervals of the mean of the records nearest to the centre." : noisy;
  return {
    element: h(
      "section",
      { class: "card stack" },
      h("h2", {}, "What each centre is like"),
      h(
        "p",
        { class: "small muted" },
        (columns.length > FEW_COLUMNS
          ? "At first, the columns in which the centres differ most are shown. "
          : "") +
          "In " +
          "the picture of a centre each column goes from its lowest to its highest bound; the " +
          `tick is the middle of all centres.${lines}`,
      ),
      map,
      small,
      more,
    ),
    show(places) {
      chosen = places;
      draw();
    },
  };
}

// The ends of each coordinate; site numbers are drawn between the least and the greatest.
function edges({ low, high }, centres) {
  if (low.length) return [low, high];
  const all = centres[0].map((_, j) => centres.map((centre) => centre[j]));
  return [all.map((each) => Math.min(...each)), all.map((each) => Math.max(...each))];
}
