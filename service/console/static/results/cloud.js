// The map of a job that left k open: a cloud of made-up rows, coloured by the nearest centre.
// Nothing here is a record: the rows were drawn from what the job released.

import { axisName, hue, padded, responsive, scale, short, ticks } from "./charts.js";
import { h, s } from "../dom.js";
import { field, select } from "../forms.js";
import { number, percent, plural } from "../format.js";
import { dot, principalPlane } from "./pca.js";

const MARGIN = { left: 52, right: 14, top: 14, bottom: 46 };
const DEVIATIONS = 2; // of the ellipses

// The number of the nearest centre for each row, as the service measures distances.
export function nearest(rows, centres) {
  const norms = centres.map((centre) => dot(centre, centre));
  return rows.map((row) => {
    let best = 0;
    let least = Infinity;
    centres.forEach((centre, i) => {
      const distance = norms[i] - 2 * dot(row, centre);
      if (distance < least) [best, least] = [i, distance];
    });
    return best;
  });
}

// Middle, half axes and turn of the ellipse that holds most of some points.
export function ellipse(points) {
  const n = points.length;
  const [mx, my] = [0, 1].map((j) => points.reduce((sum, p) => sum + p[j], 0) / n);
  let [xx, xy, yy] = [0, 0, 0];
  for (const [x, y] of points) {
    xx += (x - mx) ** 2 / n;
    xy += ((x - mx) * (y - my)) / n;
    yy += (y - my) ** 2 / n;
  }
  const half = (xx + yy) / 2;
  const apart = Math.hypot((xx - yy) / 2, xy);
  const turn = (Math.atan2(2 * xy, xx - yy) * 90) / Math.PI;
  const axis = (variance) => DEVIATIONS * Math.sqrt(Math.max(variance, 0));
  return { mx, my, rx: axis(half + apart), ry: axis(half - apart), turn };
}

// What may be laid along an axis of the picture: each gives a row, or a centre, its place.
function directions(columns, lengths, rows, words) {
  const scaled = (row) => row.map((value, j) => value / lengths[j]);
  const plane = columns.length > 1 ? principalPlane(rows.map(scaled)) : null;
  const principal = (plane?.axes ?? []).map((axis, i) => ({
    key: `axis-${i}`,
    words: `${i ? "Second" : "First"} principal axis`,
    name: `${axisName(axis, columns)} (${percent(axis.share)} of the variance)`,
    ticked: null,
    of: (row) => dot(scaled(row), axis.direction) - dot(plane.middle, axis.direction),
  }));
  return [
    ...principal,
    ...columns.map((name, j) => ({
      key: `column-${j}`,
      words: name,
      name: short(name, 44),
      ticked: words ? words[j] : (x) => number(x, 3),
      of: (row) => row[j],
    })),
  ];
}

export function cloudMap({ columns, lengths, rows, words }) {
  const choices = directions(columns, lengths, rows, words);
  const scaledRows = rows.map((row) => row.map((value, j) => value / lengths[j]));
  const start =
    columns.length === 2 ? ["column-0", "column-1"] : [choices[0].key, (choices[1] ?? choices[0]).key];
  const picker = (name, chosen) => {
    const made = select(
      name,
      choices.map((each) => [each.key, each.words]),
    );
    made.value = chosen;
    made.addEventListener("change", () => picture.redraw());
    return made;
  };
  const [across, upwards] = [picker("across", start[0]), picker("upwards", start[1])];
  const chosen = (control) => choices.find((each) => each.key === control.value);
  let shown = null;
  const picture = responsive(
    (w) => shown && draw(w, chosen(across), chosen(upwards), rows, shown),
    "Map of made-up rows",
  );
  return {
    element: h(
      "section",
      { class: "card stack", id: "map" },
      h(
        "div",
        { class: "row apart" },
        h("h2", {}, "What the data look like"),
        h("span", { class: "tag warn" }, "made-up rows"),
      ),
      h("div", { class: "columns" }, field("Across", across), field("Upwards", upwards)),
      picture,
      h(
        "p",
        { class: "small muted" },
        `${plural(rows.length, "row")} drawn from what this job released: none of them is a ` +
          "record. Each has the colour of the nearest centre. Ellipses reach two standard " +
          "deviations of a cluster's made-up rows. A number with a question mark: noise alone " +
          "could have made the cluster.",
      ),
    ),
    show({ centres, level, hues }) {
      const labels = nearest(
        scaledRows,
        centres.map((centre) => centre.map((value, j) => value / lengths[j])),
      );
      shown = { centres, hues, labels, real: level?.real ?? centres.map(() => true) };
      picture.relabel(`Map of ${plural(rows.length, "made-up row")} in ${plural(centres.length, "cluster")}`);
      picture.redraw();
    },
  };
}

function draw(w, across, upwards, rows, { centres, hues, labels, real }) {
  const height = Math.round(Math.min(520, Math.max(300, w * 0.6)));
  const [right, bottom] = [w - MARGIN.right, height - MARGIN.bottom];
  const ends = [across, upwards].map((axis) => padded(rows.map(axis.of), 0.03));
  const x = scale(...ends[0], MARGIN.left, right);
  const y = scale(...ends[1], bottom, MARGIN.top);
  const clusters = centres.map(() => []);
  for (const [i, row] of rows.entries()) clusters[labels[i]].push([x(across.of(row)), y(upwards.of(row))]);
  const dots = clusters.map(
    (points, i) =>
      points.length > 0 &&
      s("path", {
        class: `dust hued-line ${hue(hues[i])}`,
        d: points.map(([px, py]) => `M${px.toFixed(1)} ${py.toFixed(1)}h0`).join(""),
      }),
  );
  const rings = clusters.map((points, i) => {
    if (points.length < 3) return null;
    const { mx, my, rx, ry, turn } = ellipse(points);
    return s("ellipse", {
      class: `spread hued-line ${hue(hues[i])}`,
      cx: mx,
      cy: my,
      rx,
      ry,
      transform: `rotate(${turn} ${mx} ${my})`,
    });
  });
  const names = centres.map((centre, i) => {
    const [px, py] = [x(across.of(centre)), y(upwards.of(centre))];
    return s(
      "g",
      { class: hue(hues[i]) },
      s("circle", { class: "dot hued", cx: px, cy: py, r: 5 }),
      s(
        "text",
        { class: "strong halo", x: px, y: py - 9, "text-anchor": "middle" },
        `${i + 1}${real[i] ? "" : "?"}`,
      ),
    );
  });
  const marks = [
    across.ticked &&
      ticks(...ends[0], w / 110).map((t) => [
        s("line", { class: "grid", x1: x(t), x2: x(t), y1: MARGIN.top, y2: bottom }),
        s("text", { x: x(t), y: bottom + 16, "text-anchor": "middle" }, across.ticked(t)),
      ]),
    upwards.ticked &&
      ticks(...ends[1], height / 60).map((t) => [
        s("line", { class: "grid", y1: y(t), y2: y(t), x1: MARGIN.left, x2: right }),
        s("text", { x: MARGIN.left - 7, y: y(t) + 4, "text-anchor": "end" }, upwards.ticked(t)),
      ]),
  ];
  const middle = (MARGIN.top + bottom) / 2;
  return s(
    "svg",
    { viewBox: `0 0 ${w} ${height}`, "aria-hidden": "true" },
    s(
      "defs",
      {},
      s(
        "clipPath",
        { id: "map-window" },
        s("rect", { x: MARGIN.left, y: MARGIN.top, width: right - MARGIN.left, height: bottom - MARGIN.top }),
      ),
    ),
    s("rect", {
      class: "grid",
      x: MARGIN.left,
      y: MARGIN.top,
      width: right - MARGIN.left,
      height: bottom - MARGIN.top,
      rx: 6,
    }),
    marks,
    s("g", { "clip-path": "url(#map-window)" }, dots, rings),
    names,
    s("text", { x: (MARGIN.left + right) / 2, y: height - 8, "text-anchor": "middle" }, across.name),
    s(
      "text",
      { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` },
      upwards.name,
    ),
  );
}
