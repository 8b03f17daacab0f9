// The centres as a table with chosen columns, and as files for other programs.

import { hue, short } from "./charts.js";
import { h, replace } from "../dom.js";
import { checkbox, field, input } from "../forms.js";
import { COUNT, estimateWords, number, plural, sizeWords } from "../format.js";
import { button } from "../widgets.js";

export const FEW_COLUMNS = 12;
const MOST_LISTED = 200;

// The columns in which the centres lie furthest apart, relative to the width of the bounds.
export function tellingColumns(centres, low, high, most = FEW_COLUMNS) {
  const spread = low.map((_, j) => {
    const values = centres.map((centre) => centre[j]);
    return (Math.max(...values) - Math.min(...values)) / (high[j] - low[j] || 1);
  });
  const best = spread.map((_, j) => j).sort((a, b) => spread[b] - spread[a] || a - b);
  return best.slice(0, most).sort((a, b) => a - b);
}

// Lets people find and choose columns; who follows it gets the chosen places in order, now and after each
// change. Sparse rows may have a hundred thousand columns, so only some of those found are listed.
export function columnChooser(columns, telling) {
  let chosen = new Set(telling);
  /** @type {(places: number[]) => void} */
  let changed = () => {};
  const summary = h("summary", {});
  const list = h("div", { class: "column-list" });
  const search = input("find-column", { type: "search", placeholder: "part of a name" });
  const found = () => {
    const words = search.value.trim().toLowerCase();
    return [...columns.keys()].filter((j) => columns[j].toLowerCase().includes(words));
  };
  const tell = () => {
    summary.textContent = `Columns: ${COUNT.format(chosen.size)} of ${COUNT.format(columns.length)}`;
    changed([...chosen].sort((a, b) => a - b));
  };
  const draw = () => {
    const places = found();
    const boxes = places.slice(0, MOST_LISTED).map((j) => {
      const box = checkbox(`column-${j}`, columns[j], { checked: chosen.has(j) });
      const control = box.querySelector("input");
      control.addEventListener("change", () => {
        if (control.checked) chosen.add(j);
        else chosen.delete(j);
        tell();
      });
      return box;
    });
    const more = places.length - boxes.length;
    replace(list, boxes, more > 0 && h("p", { class: "small muted" }, `and ${plural(more, "more column")}`));
  };
  const set = (wanted) => {
    chosen = new Set(wanted);
    draw();
    tell();
  };
  search.addEventListener("input", draw);
  const element = h(
    "details",
    { id: "columns" },
    summary,
    h(
      "div",
      { class: "stack" },
      h(
        "div",
        { class: "row" },
        columns.length <= MOST_LISTED && button("All", () => set(columns.keys()), "small"),
        telling.length < columns.length &&
          button(`The ${FEW_COLUMNS} that differ most`, () => set(telling), "small"),
        button("Only those found", () => set(found().slice(0, MOST_LISTED)), "small"),
      ),
      field("Find a column", search),
      list,
    ),
  );
  draw();
  return {
    element,
    follow(act) {
      changed = act;
      tell();
    },
  };
}

// A table of the chosen columns that is sorted by any of them.
export function centreTable(columns, { centres, sizes, hues, known }) {
  const place = h("div", { class: "stack" });
  let shown = [];
  let sorted = { key: "number", ascending: true };
  const cell = (i, j) => {
    if (!known?.centre_low) return number(centres[i][j], 5);
    const { value, interval } = estimateWords(centres[i][j], [
      known.centre_low[i][j],
      known.centre_high[i][j],
    ]);
    return [value, interval && h("small", { class: "muted nowrap" }, ` (${interval})`)];
  };
  const values = (key) => (i) => (key === "number" ? i : key === "size" ? sizes[i] : centres[i][key]);
  const draw = () => {
    const order = centres
      .map((_, i) => i)
      .sort((a, b) => (values(sorted.key)(a) - values(sorted.key)(b)) * (sorted.ascending ? 1 : -1));
    const heading = (key, words) =>
      h(
        "th",
        {
          scope: "col",
          class: key === "number" ? null : "right",
          "aria-sort": sorted.key === key ? (sorted.ascending ? "ascending" : "descending") : null,
        },
        h(
          "button",
          { type: "button", "data-sort": key, title: words, on: { click: () => sort(key) } },
          short(words, 28),
        ),
      );
    const head = h(
      "tr",
      {},
      heading("number", "Centre"),
      sizes && heading("size", "Noisy size"),
      shown.map((j) => heading(j, columns[j])),
    );
    const body = order.map((i) =>
      h(
        "tr",
        { class: hue(hues[i]) },
        h("td", { class: "nowrap" }, h("span", { class: "swatch" }), String(i + 1)),
        sizes && h("td", { class: "right" }, sizeWords(sizes[i], known, i)),
        shown.map((j) => h("td", { class: "right" }, cell(i, j))),
      ),
    );
    const hidden = columns.length - shown.length;
    replace(
      place,
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Centres" },
        h("table", { id: "centres" }, h("thead", {}, head), h("tbody", {}, body)),
      ),
      hidden > 0 &&
        h(
          "p",
          { class: "small muted" },
          `${plural(hidden, "column")} not shown: choose them above. Downloaded files have all of them.`,
        ),
    );
  };
  const sort = (key) => {
    sorted = { key, ascending: sorted.key === key ? !sorted.ascending : true };
    draw();
    /** @type {HTMLElement | null} */ (place.querySelector(`[data-sort="${key}"]`))?.focus();
  };
  return {
    element: place,
    show(places) {
      shown = places;
      if (typeof sorted.key === "number" && !shown.includes(sorted.key))
        sorted = { key: "number", ascending: true };
      draw();
    },
  };
}

// All columns, with the number of each cluster, its noisy size, the error in it and all intervals, to paste
// into a spreadsheet.
export function centreRows(columns, { centres, sizes, known }, sizeNoise) {
  const ends = (name, values) => values.map((each, i) => [`${name}_${["low", "high"][i]}`, each]);
  const derived = [
    ...(sizes ? [["size", sizes]] : []),
    ...(sizes && sizeNoise ? [["size_noise", sizes.map(() => sizeNoise)]] : []),
    ...(known?.size_low ? ends("size", [known.size_low, known.size_high]) : []),
    ...(known?.centre_low
      ? columns.flatMap((name, j) =>
          ends(
            name,
            [known.centre_low, known.centre_high].map((rows) => rows.map((row) => row[j])),
          ),
        )
      : []),
  ];
  const prefix = derived.some(([name]) => columns.includes(name)) ? "cluster_" : "";
  const heading = ["cluster", ...columns, ...derived.map(([name]) => prefix + name)];
  return [
    heading,
    ...centres.map((centre, i) => [i + 1, ...centre, ...derived.map(([, values]) => values[i])]),
  ];
}
