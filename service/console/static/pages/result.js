// What a job released: plots, a table and downloads. All of it was paid for; nothing comes from rows.

import { download, save } from "../api.js";
import { asCsv, centreRows, centreTable, columnChooser, FEW_COLUMNS, tellingColumns } from "../centres.js";
import { heatMap, hue, mapOfCentres, profile, sizeBars } from "../charts.js";
import { h, replace } from "../dom.js";
import { COUNT, plural } from "../format.js";
import { noise } from "../noise.js";
import { resultAsCurl, resultAsPython } from "../snippets.js";
import { tableParts } from "../table-result.js";
import { button, copyButton } from "../widgets.js";

const FEW_CENTRES = 12;
const FEW_CHOICES = 6;

export function resultView(job, result, receipt) {
  const columns = result.columns ?? result.centres[0].map((_, j) => `x${j}`);
  const added = noise(receipt.domain, result);
  const shape = { ...result, columns, domain: receipt.domain, ...added };
  const drawable = result.centres[0].length > 0 && receipt.domain.kind !== "ids" && added.lengths;
  const [low, high] = edges(receipt.domain, result.centres, columns);
  const table = centreTable(columns, result);
  const kinds = result.profiles ? tableParts(result, receipt.domain) : null;
  const profiles = drawable ? profileCard({ ...shape, low, high }) : null;
  const chooser = columnChooser(columns, tellingColumns(result.centres, low, high), (chosen) => {
    table.show(chosen);
    profiles?.show(chosen);
  });
  const stem = `${job.dataset}-${job.id.slice(0, 8)}`;
  const file = (words, accept, ending) => button(words, () => download(`/v1/jobs/${job.id}/result`, accept, `${stem}.${ending}`), "small");
  const rows = () => centreRows(columns, { ...result, centres: kinds?.values ?? result.centres }, added.size);
  const csv = button("CSV", () => save(new Blob([asCsv(rows())], { type: "text/csv" }), `${stem}.csv`), "small");
  return [
    drawable && h("div", { class: "plots" }, mapCard(shape), result.sizes && sizeCard(result.sizes, added.size)),
    !kinds && columns.length > FEW_CHOICES && h("section", { class: "card" }, chooser),
    kinds?.profiles ?? profiles?.element,
    h(
      "section",
      { class: "card stack" },
      h(
        "div",
        { class: "row apart" },
        h("h2", {}, "Centres"),
        h(
          "div",
          { class: "row" },
          copyButton(() => rows().map((row) => row.join("\t")).join("\n"), "Copy table"),
          csv,
          file("JSON", "application/json", "json"),
          file("NPY", "application/x-npy", "npy"),
          copyButton(() => resultAsPython(job), "Copy as Python"),
          copyButton(() => resultAsCurl(job), "Copy as curl"),
        ),
      ),
      kinds?.table ?? table.element,
    ),
  ];
}

function mapCard(shape) {
  const { picture, label } = mapOfCentres(shape);
  const areas = shape.sizes ? "Larger dots have more records; a dot does not show how far its cluster reaches. " : "";
  const whose = shape.clipped ? "" : ", for clusters as wide as the bounds; compact ones get less";
  const rings = shape.places ? `Dashed rings: the last round's noise in 95 of 100 runs${whose}; where none is seen, it is smaller than the dot.` : "";
  return h("section", { class: "card stack" }, h("h2", {}, "Where the centres lie"), picture, h("p", { class: "small muted" }, `${label} ${areas}${rings}`));
}

function sizeCard(sizes, deviation) {
  const words = deviation ? `Lines: ± ${COUNT.format(Math.round(2 * deviation))} records, the noise in 95 of 100 runs. Sizes can even come out below zero.` : "This result does not state how large the noise is.";
  return h("section", { class: "card stack" }, h("h2", {}, "How many records each has, with noise"), sizeBars(sizes, deviation), h("p", { class: "small muted" }, words));
}

// A heat map of all centres, and a small picture of each: at once if there are few, on request if there are many.
function profileCard({ centres, columns, low, high, lengths, places }) {
  const map = h("div", { class: "stack tight" });
  const small = h("div", { class: "profiles" });
  const more = h("div", {});
  let chosen = [];
  let drawn = centres.length > FEW_CENTRES ? 0 : centres.length;
  const draw = () => {
    const pick = (list) => chosen.map((j) => list[j]);
    const picked = { centres: centres.map(pick), columns: pick(columns), low: pick(low), high: pick(high) };
    const rest = centres.length - drawn;
    const many = centres.length > FEW_CENTRES || chosen.length > FEW_CHOICES;
    replace(map, many && centres.length > 1 && chosen.length > 0 && [h("p", { class: "small muted" }, "Blue: below the middle of all centres. Orange: above it. Stronger colours are further away, relative to the width of the bounds."), heatMap(picked)]);
    replace(
      small,
      chosen.length > 0 && centres.slice(0, drawn).map((_, i) => {
        const reach = chosen.map((j) => (places ? 2 * places[i] * lengths[j] : 0));
        return h("figure", { class: `stack tight ${hue(i)} flat` }, h("figcaption", {}, h("h3", {}, h("span", { class: "swatch" }), `Centre ${i + 1}`)), profile(i, { ...picked, reach }));
      }),
    );
    replace(more, rest > 0 && button(`Draw ${drawn ? "the other " : ""}${plural(rest, "centre")} one by one`, () => {
      drawn = centres.length;
      draw();
    }, "small"));
  };
  return {
    element: h(
      "section",
      { class: "card stack" },
      h("h2", {}, "What each centre is like"),
      h("p", { class: "small muted" }, `${columns.length > FEW_COLUMNS ? "At first the columns are shown in which the centres differ most. " : ""}In the picture of a centre each column goes from its lowest to its highest bound; the tick is the middle of all centres.`),
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

function edges(domain, centres, columns) {
  const { box, ball } = domain.bounds ?? {};
  if (box) return [box.low, box.high];
  if (ball) return [columns.map((_, j) => (ball.centre?.[j] ?? 0) - ball.radius), columns.map((_, j) => (ball.centre?.[j] ?? 0) + ball.radius)];
  return [columns.map((_, j) => Math.min(...centres.map((c) => c[j]))), columns.map((_, j) => Math.max(...centres.map((c) => c[j])))];
}
