// What a job released: plots, a table and downloads. All of it was paid for; nothing comes from rows.

import { download } from "../api.js";
import { hue, mapOfCentres, profile, sizeBars } from "../charts.js";
import { h, replace } from "../dom.js";
import { COUNT, number, plural } from "../format.js";
import { noise } from "../noise.js";
import { button, copyButton } from "../widgets.js";

const FEW_COLUMNS = 12;
const MOST_PROFILES = 24;

export function resultView(job, result, receipt) {
  const columns = result.columns ?? result.centres[0].map((_, j) => `x${j}`);
  const added = noise(receipt, result);
  const shape = { ...result, columns, domain: receipt.domain, ...added };
  const drawable = result.centres[0].length > 0 && receipt.domain.kind !== "ids" && added.lengths;
  const stem = `${job.dataset}-${job.id.slice(0, 8)}`;
  const save = (words, accept, ending) => button(words, () => download(`/v1/jobs/${job.id}/result`, accept, `${stem}.${ending}`), "small");
  return [
    drawable && h("div", { class: "plots" }, mapCard(shape), result.sizes && sizeCard(result.sizes, added.size)),
    drawable && profileCard(shape),
    h(
      "section",
      { class: "card stack" },
      h(
        "div",
        { class: "row apart" },
        h("h2", {}, "Centres"),
        h("div", { class: "row" }, copyButton(() => asText(columns, result), "Copy table"), save("CSV", "text/csv", "csv"), save("JSON", "application/json", "json"), save("NPY", "application/x-npy", "npy")),
      ),
      centreTable(columns, result),
    ),
  ];
}

function mapCard(shape) {
  const { picture, label } = mapOfCentres(shape);
  const areas = shape.sizes ? "Areas show noisy sizes. " : "";
  const whose = shape.clipped ? "" : ", for clusters as wide as the bounds; compact ones get less";
  const rings = shape.places ? `Dashed rings: the last round's noise in 95 of 100 runs${whose}; where none is seen, it is smaller than the dot.` : "";
  return h("section", { class: "card stack" }, h("h2", {}, "Where the centres lie"), picture, h("p", { class: "small muted" }, `${label} ${areas}${rings}`));
}

function sizeCard(sizes, deviation) {
  const words = deviation ? `Lines: ± ${COUNT.format(Math.round(2 * deviation))} records, the noise in 95 of 100 runs. Sizes can even come out below zero.` : "";
  return h("section", { class: "card stack" }, h("h2", {}, "How many records each has, with noise"), sizeBars(sizes, deviation), h("p", { class: "small muted" }, words));
}

function profileCard(shape) {
  const { centres, columns, domain, lengths, places } = shape;
  const [low, high] = edges(domain, centres, columns);
  const drawn = centres.slice(0, MOST_PROFILES);
  const figures = drawn.map((_, i) => {
    const reach = columns.map((_, j) => (places ? 2 * places[i] * lengths[j] : 0));
    return h("figure", { class: `stack tight ${hue(i)} flat` }, h("figcaption", {}, h("h3", {}, h("span", { class: "swatch" }), `Centre ${i + 1}`)), profile(i, { centres, columns, low, high, reach }));
  });
  const rest = centres.length - drawn.length;
  return h(
    "section",
    { class: "card stack" },
    h("h2", {}, "What each centre is like"),
    h("p", { class: "small muted" }, `Each column from its lowest to its highest bound; the tick is the middle of all centres.${rest > 0 ? ` The first ${MOST_PROFILES} of ${centres.length} are drawn.` : ""}`),
    h("div", { class: "profiles" }, figures),
  );
}

function edges(domain, centres, columns) {
  const { box, ball } = domain.bounds ?? {};
  if (box) return [box.low, box.high];
  if (ball) return [columns.map((_, j) => (ball.centre?.[j] ?? 0) - ball.radius), columns.map((_, j) => (ball.centre?.[j] ?? 0) + ball.radius)];
  return [columns.map((_, j) => Math.min(...centres.map((c) => c[j]))), columns.map((_, j) => Math.max(...centres.map((c) => c[j])))];
}

// The whole table as text for a spreadsheet, however few columns are on show.
function asText(columns, { centres, sizes }) {
  const rows = centres.map((centre, i) => [i + 1, ...centre, ...(sizes ? [sizes[i]] : [])].join("\t"));
  return [["centre", ...columns, ...(sizes ? ["size"] : [])].join("\t"), ...rows].join("\n");
}

function centreTable(columns, { centres, sizes }) {
  const place = h("div", { class: "stack" });
  let shown = Math.min(columns.length, FEW_COLUMNS);
  let sorted = { key: "number", ascending: true };
  const values = (key) => (i) => (key === "number" ? i : key === "size" ? sizes[i] : centres[i][key]);
  const draw = () => {
    const order = centres.map((_, i) => i).sort((a, b) => (values(sorted.key)(a) - values(sorted.key)(b)) * (sorted.ascending ? 1 : -1));
    const heading = (key, words) =>
      h(
        "th",
        { scope: "col", class: key === "number" ? null : "right", "aria-sort": sorted.key === key ? (sorted.ascending ? "ascending" : "descending") : null },
        h("button", { type: "button", "data-sort": key, on: { click: () => sort(key) } }, words),
      );
    const head = h("tr", {}, heading("number", "Centre"), sizes && heading("size", "Noisy size"), columns.slice(0, shown).map((name, j) => heading(j, name)));
    const body = order.map((i) =>
      h("tr", { class: hue(i) }, h("td", { class: "nowrap" }, h("span", { class: "swatch" }), String(i + 1)), sizes && h("td", { class: "right" }, COUNT.format(Math.round(sizes[i]))), centres[i].slice(0, shown).map((x) => h("td", { class: "right" }, number(x, 5)))),
    );
    const hidden = columns.length - shown;
    replace(
      place,
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Centres" }, h("table", { id: "centres" }, h("thead", {}, head), h("tbody", {}, body))),
      hidden > 0 && h("div", {}, h("button", { type: "button", class: "small", on: { click: all } }, `Show ${plural(hidden, "more column")}`)),
    );
  };
  const sort = (key) => {
    sorted = { key, ascending: sorted.key === key ? !sorted.ascending : true };
    draw();
    place.querySelector(`[data-sort="${key}"]`)?.focus();
  };
  const all = () => {
    shown = columns.length;
    draw();
  };
  draw();
  return place;
}
