// Own pictures in SVG: they need neither inline styles nor eval, so they run under the strict policy.
// Everything drawn comes from the result, the receipt and public facts.

import { h, replace, s } from "../dom.js";
import { COUNT, estimateWords, number, percent } from "../format.js";
import { principalPlane } from "./pca.js";
import { pictureButtons } from "./pictures.js";

export const hue = (i) => `hue-${i % 10}`;

/**
 * Draws for the width there is, and again when that changes or `redraw` is called.
 * @param {(width: number) => any} draw
 * @param {string} label
 * @param {{saved?: boolean}} [options] whether the chart can be saved as a file
 */
export function responsive(draw, label, { saved = true } = {}) {
  const place = h("div", { class: "chart", role: "img", "aria-label": label });
  let width = 0;
  const redraw = () => width && replace(place, draw(width));
  new ResizeObserver((entries) => {
    const now = Math.round(entries[0].contentRect.width);
    if (now && now !== width) {
      width = now;
      redraw();
    }
  }).observe(place);
  return Object.assign(h("div", {}, place, saved && pictureButtons(place)), {
    redraw,
    /** @param {string} words */
    relabel: (words) => place.setAttribute("aria-label", words),
  });
}

export function ticks(low, high, most) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((candidate) => candidate >= raw);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) {
    found.push(i * step + 0); // never −0
  }
  return found;
}

export function scale(low, high, from, to) {
  const span = high - low || 1;
  return (x) => from + ((x - low) / span) * (to - from);
}

/**
 * @param {number[]} values
 * @param {number} share
 * @returns {[number, number]}
 */
export function padded(values, share) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const margin = (high - low || Math.abs(high) || 1) * share;
  return [low - margin, high + margin];
}

// Where the centres lie: two columns as they are, more of them in the plane where centres differ most.
export function mapOfCentres({ centres, sizes, columns, domain, lengths, places: noisy }) {
  const width = centres[0].length;
  const records = sizes ? sizes.map((n) => Math.max(n, 1)) : centres.map(() => domain.size / centres.length);
  const places = layout(centres, columns, domain, lengths, width);
  const reach = places.units.map((unit) => centres.map((_, i) => (noisy ? 2 * noisy[i] * unit : 0)));
  const words = `Map of ${centres.length} centres. ${places.label}`;
  const picture = responsive((w) => {
    const margin = { left: 52, right: 16, top: 14, bottom: 46 };
    const height = Math.round(Math.min(460, Math.max(280, w * 0.72)));
    const biggest = centres.length > 12 ? 8 : 15;
    const most = Math.max(...records);
    const radius = (n) => (sizes ? Math.max(3, biggest * Math.sqrt(Math.max(n, 0) / most)) : 6);
    const x = scale(...places.x, margin.left + biggest, w - margin.right - biggest);
    const y = scale(...places.y, height - margin.bottom - biggest, margin.top + biggest);
    const kx = Math.abs(x(1) - x(0));
    const ky = Math.abs(y(1) - y(0));
    const frame = s("rect", {
      class: "grid",
      x: margin.left,
      y: margin.top,
      width: w - margin.left - margin.right,
      height: height - margin.top - margin.bottom,
      rx: 6,
    });
    const marks = [
      ...ticks(...places.x, w / 110).map((t) => [
        s("line", { class: "grid", x1: x(t), x2: x(t), y1: margin.top, y2: height - margin.bottom }),
        s(
          "text",
          { x: x(t), y: height - margin.bottom + 16, "text-anchor": "middle" },
          places.ticked ? number(t, 3) : "",
        ),
      ]),
      ...ticks(...places.y, height / 60).map((t) => [
        s("line", { class: "grid", y1: y(t), y2: y(t), x1: margin.left, x2: w - margin.right }),
        s(
          "text",
          { x: margin.left - 7, y: y(t) + 4, "text-anchor": "end" },
          places.ticked && places.yName ? number(t, 3) : "",
        ),
      ]),
    ];
    const order = places.points.map((_, i) => i).sort((a, b) => records[b] - records[a]);
    const blobs = order.map((i) => {
      const [px, py] = [x(places.points[i][0]), y(places.points[i][1])];
      const about = sizes ? `, about ${COUNT.format(Math.max(0, Math.round(sizes[i])))} records` : "";
      const title = `Centre ${i + 1}${about}`;
      return s(
        "g",
        { class: hue(i) },
        s("title", {}, title),
        noisy &&
          s("ellipse", {
            class: "noise hued-line",
            cx: px,
            cy: py,
            rx: Math.max(1, reach[0][i] * kx),
            ry: Math.max(1, reach[1][i] * ky),
          }),
        s("circle", { class: "dot hued", cx: px, cy: py, r: radius(records[i]) }),
        s(
          "text",
          { class: "strong halo", x: px, y: py - radius(records[i]) - 4, "text-anchor": "middle" },
          String(i + 1),
        ),
      );
    });
    return s(
      "svg",
      { viewBox: `0 0 ${w} ${height}`, "aria-hidden": "true" },
      frame,
      marks.flat(),
      blobs,
      s(
        "text",
        { x: (margin.left + w - margin.right) / 2, y: height - 8, "text-anchor": "middle" },
        places.xName,
      ),
      s(
        "text",
        {
          x: 14,
          y: (margin.top + height - margin.bottom) / 2,
          "text-anchor": "middle",
          transform: `rotate(-90 14 ${(margin.top + height - margin.bottom) / 2})`,
        },
        places.yName,
      ),
    );
  }, words);
  return { picture, label: places.label };
}

function layout(centres, columns, domain, lengths, width) {
  if (width === 1) {
    return {
      points: centres.map((c) => [c[0], 0]),
      x: padded(
        centres.map((c) => c[0]),
        0.08,
      ),
      y: [-1, 1],
      xName: columns[0],
      yName: "",
      ticked: true,
      units: [lengths[0], 0],
      label: `Positions along ${columns[0]}.`,
    };
  }
  if (width === 2 && domain.kind !== "table") {
    return {
      points: centres,
      x: padded(
        centres.map((c) => c[0]),
        0.08,
      ),
      y: padded(
        centres.map((c) => c[1]),
        0.08,
      ),
      xName: short(columns[0], 48),
      yName: short(columns[1], 32),
      ticked: true,
      units: lengths,
      label: `${columns[0]} across, ${columns[1]} upwards, in the data's own units.`,
    };
  }
  const plane = principalPlane(centres.map((c) => c.map((value, j) => value / lengths[j])));
  const shown = plane.axes[0].share + plane.axes[1].share;
  const x = padded(
    plane.places.map((p) => p[0]),
    0.08,
  );
  return {
    points: plane.places,
    x,
    y: widened(
      (x[1] - x[0]) / 4,
      padded(
        plane.places.map((p) => p[1]),
        0.08,
      ),
    ),
    xName: axisName(plane.axes[0], columns),
    yName: axisName(plane.axes[1], columns),
    ticked: false,
    units: [1, 1],
    label:
      `The plane in which the centres differ most; it holds ${percent(shown)} of what sets ` +
      "them apart. Found from the centres alone.",
  };
}

// A range widened to both sides: two centres differ in one direction only, and noise must not fill the other.
function widened(width, [low, high]) {
  const missing = Math.max(0, width - (high - low)) / 2;
  return [low - missing, high + missing];
}

export function axisName(axis, columns) {
  const heavy = axis.direction
    .map((x, j) => [Math.abs(x), x, j])
    .sort((a, b) => b[0] - a[0])
    .slice(0, 2)
    .filter(([size]) => size > 0.25);
  const names = heavy.map(([, x, j], i) => `${x < 0 ? "− " : i ? "+ " : ""}${short(columns[j], 20)}`);
  return names.length ? `mostly ${names.join(" ")}` : "a mixture of many columns";
}

// Noisy sizes; `ends` has the interval of each, or is null where none is stated.
const whole = (value) => COUNT.format(Math.round(value));

export function sizeBars({ sizes, hues }, ends) {
  const words = sizes.map((n, i) => `centre ${i + 1}: about ${COUNT.format(Math.round(n))}`).join("; ");
  return responsive((w) => {
    const rowHeight = sizes.length > 24 ? 18 : 30;
    const left = 44;
    const right = 74;
    const height = sizes.length * rowHeight + 30;
    const most = Math.max(1, ...(ends ? ends.map(([, high]) => high) : sizes));
    const x = scale(0, most, left, w - right);
    const grid = ticks(0, most, w / 120).map((t) => [
      s("line", { class: "grid", x1: x(t), x2: x(t), y1: 0, y2: height - 24 }),
      s("text", { x: x(t), y: height - 6, "text-anchor": "middle" }, number(t, 3)),
    ]);
    const bars = sizes.map((n, i) => {
      const y = i * rowHeight;
      const middle = y + rowHeight / 2;
      const shown = Math.max(0, n);
      const [from, to] = (ends?.[i] ?? [n, n]).map((end) => x(Math.max(0, end)));
      return s(
        "g",
        { class: hue(hues[i]) },
        s("text", { class: "strong", x: left - 12, y: middle + 4, "text-anchor": "end" }, String(i + 1)),
        s("rect", {
          class: "hued",
          x: left,
          y: y + rowHeight * 0.2,
          width: Math.max(1, x(shown) - left),
          height: rowHeight * 0.6,
          rx: 3,
          "stroke-width": 0,
        }),
        ends &&
          s("path", {
            class: "whisker",
            d: `M${from} ${middle}H${to}M${from} ${middle - 5}v10M${to} ${middle - 5}v10`,
          }),
        s(
          "text",
          { class: "strong", x: to + 8, y: middle + 4 },
          estimateWords(n, ends?.[i] ?? [n, n], { words: whole }).value,
        ),
      );
    });
    return s("svg", { viewBox: `0 0 ${w} ${height}`, "aria-hidden": "true" }, grid.flat(), bars);
  }, `Noisy sizes: ${words}`);
}

// One small picture per centre: each column between its bounds, against the middle of all centres.
// `ends` has the interval of each column, or is null.
export function profile(index, { centres, columns, low, high, ends, hues }) {
  const centre = centres[index];
  const middle = columns.map((_, j) => centres.reduce((sum, c) => sum + c[j], 0) / centres.length);
  const words = `Profile of centre ${index + 1}: ${columns
    .slice(0, 8)
    .map((name, j) => `${name} ${number(centre[j], 3)}`)
    .join(", ")}`;
  return responsive(
    (w) => rails(w, { centre, middle, columns, low, high, ends, colour: hue(hues[index]) }),
    words,
    { saved: false },
  );
}

function rails(w, { centre, middle, columns, low, high, ends, colour }) {
  const rowHeight = 34;
  const height = columns.length * rowHeight;
  return s(
    "svg",
    { viewBox: `0 0 ${w} ${height}`, "aria-hidden": "true", class: colour },
    columns.map((name, j) => {
      const y = j * rowHeight;
      const x = scale(low[j], high[j], 6, w - 6);
      const [from, to] = (ends?.[j] ?? []).map((end) => x(Math.min(high[j], Math.max(low[j], end))));
      return [
        s("text", { x: 6, y: y + 12 }, short(name, 24)),
        s("text", { class: "strong", x: w - 6, y: y + 12, "text-anchor": "end" }, number(centre[j], 3)),
        s("rect", { class: "rail", x: 6, y: y + 19, width: w - 12, height: 5, rx: 2.5 }),
        s("line", { class: "middle", x1: x(middle[j]), x2: x(middle[j]), y1: y + 16, y2: y + 27 }),
        ends && s("line", { class: "whisker", x1: from, x2: to, y1: y + 21.5, y2: y + 21.5 }),
        s("circle", { class: "dot hued", cx: x(centre[j]), cy: y + 21.5, r: 5 }),
      ];
    }),
  );
}

// Every centre a row, every column a column: how far each value is from the middle of all centres.
export function heatMap({ centres, columns, low, high }) {
  const middle = columns.map((_, j) => centres.reduce((sum, c) => sum + c[j], 0) / centres.length);
  const away = centres.map((centre) => centre.map((x, j) => (x - middle[j]) / (high[j] - low[j] || 1)));
  const most = Math.max(1e-9, ...away.flat().map(Math.abs));
  const words = `Heat map of ${centres.length} centres and ${columns.length} columns`;
  const left = 34;
  const top = 24 + 5 * Math.min(17, Math.max(...columns.map((name) => name.length)));
  const row = centres.length > 24 ? 16 : 22;
  const picture = responsive((w) => {
    const cell = Math.max(16, Math.min(64, (w - left - 50) / columns.length));
    const size = [left + cell * columns.length + 50, top + row * centres.length + 4];
    const names = columns.map((name, j) => {
      const at = [left + (j + 0.5) * cell, top - 6];
      return s(
        "text",
        { x: at[0], y: at[1], transform: `rotate(-55 ${at.join(" ")})` },
        s("title", {}, name),
        short(name, 17),
      );
    });
    const rows = centres.map((centre, i) => [
      s(
        "text",
        { class: "strong", x: left - 8, y: top + (i + 0.5) * row + 4, "text-anchor": "end" },
        String(i + 1),
      ),
      centre.map((x, j) =>
        s(
          "rect",
          {
            class: away[i][j] < 0 ? "below" : "above",
            x: left + j * cell,
            y: top + i * row,
            width: cell - 1,
            height: row - 1,
            rx: 2,
            "fill-opacity": (Math.abs(away[i][j]) / most).toFixed(3),
          },
          s("title", {}, `Centre ${i + 1}, ${columns[j]}: ${number(x, 4)}`),
        ),
      ),
    ]);
    return s(
      "svg",
      {
        class: "own-width",
        viewBox: `0 0 ${size.join(" ")}`,
        width: size[0],
        height: size[1],
        "aria-hidden": "true",
      },
      names,
      rows.flat(2),
    );
  }, words);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": words }, picture);
}

// Long names lose their middle, because columns often differ at the end.
export function short(name, most) {
  if (name.length <= most) return name;
  const end = Math.floor((most - 1) / 2);
  return `${name.slice(0, most - 1 - end)}…${name.slice(-end)}`;
}
