// The loss for every k, with its intervals, and the tree of merges: two pictures by which people choose k.
// Both are pictures for the pointer; the slider next to them does the same for the keyboard.

import { responsive, scale, ticks } from "./charts.js";
import { s } from "../dom.js";
import { percent } from "../format.js";

const MARGIN = { left: 48, right: 12, top: 16, bottom: 40 };

// The loss of one cluster, which the share of variance explained refers to.
export function wholeLoss(curve) {
  const { loss, explained } = curve.reduce((best, each) => (each.explained < best.explained ? each : best));
  return loss.value / Math.max(1e-12, 1 - explained);
}

function frame(w, height, y, most, name) {
  return [
    ticks(0, most, 5).map((t) => [
      s("line", { class: "grid", x1: MARGIN.left, x2: w - MARGIN.right, y1: y(t), y2: y(t) }),
      s("text", { x: MARGIN.left - 7, y: y(t) + 4, "text-anchor": "end" }, percent(t)),
    ]),
    s("text", { x: (MARGIN.left + w - MARGIN.right) / 2, y: height - 6, "text-anchor": "middle" }, name),
  ];
}

// A picture that shows which k is chosen, and lets the pointer choose another.
function chooser(draw, label, choose) {
  let k = null;
  const picture = responsive((w) => draw(w, k, (wanted) => ({ click: () => choose(wanted) })), label(null));
  return {
    element: picture,
    show(chosen) {
      k = chosen;
      picture.relabel(label(k));
      picture.redraw();
    },
  };
}

export function elbow({ curve, suggested }, choose) {
  const whole = wholeLoss(curve);
  const share = ({ value, low, high }) => [value / whole, low / whole, high / whole];
  const words = curve.map((each) => `k ${each.k}: ${percent(each.loss.value / whole)}`).join(", ");
  const label = (k) =>
    `Loss for each k, as a share of that of one cluster. ${words}. Suggested: ${suggested}. Shown: ${k}.`;
  const most = Math.max(...curve.map((each) => each.loss.high / whole));
  return chooser(
    (w, chosen, on) => {
      const height = 250;
      const step = (w - MARGIN.left - MARGIN.right) / curve.length;
      const x = (i) => MARGIN.left + (i + 0.5) * step;
      const y = scale(0, most, height - MARGIN.bottom, MARGIN.top);
      const every = Math.ceil(24 / step); // labels must not touch
      const bottom = height - MARGIN.bottom;
      const named = (k, i) => k === chosen || (i % every === 0 && !(Math.abs(k - chosen) < every));
      return s(
        "svg",
        { viewBox: `0 0 ${w} ${height}`, "aria-hidden": "true" },
        frame(w, height, y, most, "number of clusters, k"),
        s("path", {
          class: "curve",
          d: `M${curve.map((each, i) => `${x(i)} ${y(share(each.loss)[0])}`).join("L")}`,
        }),
        curve.map((each, i) => {
          const [middle, low, high] = share(each.loss).map(y);
          const here = each.k === chosen;
          return s(
            "g",
            { class: here ? "at chosen" : "at", "data-k": each.k, on: on(each.k) },
            s(
              "title",
              {},
              `k = ${each.k}: ${percent(each.loss.value / whole, 3)}, between ` +
                `${percent(each.loss.low / whole, 3)} and ${percent(each.loss.high / whole, 3)}`,
            ),
            s("rect", {
              class: "reach",
              x: x(i) - step / 2,
              y: MARGIN.top,
              width: step,
              height: bottom - MARGIN.top,
            }),
            s("path", {
              class: "whisker",
              d: `M${x(i)} ${low}V${high}M${x(i) - 3} ${low}h6M${x(i) - 3} ${high}h6`,
            }),
            s("circle", { class: "point", cx: x(i), cy: middle, r: here ? 6 : 3.5 }),
            each.k === suggested && s("circle", { class: "suggested", cx: x(i), cy: middle, r: 10 }),
            named(each.k, i) &&
              s(
                "text",
                { class: here ? "strong halo" : null, x: x(i), y: bottom + 16, "text-anchor": "middle" },
                String(each.k),
              ),
          );
        }),
      );
    },
    label,
    choose,
  );
}

// Where each node of the tree lies: leaves side by side, a merge above the middle of its two parts.
export function placed(joined, added) {
  const leaves = joined.length + 1;
  const order = [];
  const visit = (node) => (node < leaves ? order.push(node) : joined[node - leaves].forEach(visit));
  visit(2 * leaves - 2);
  const across = [];
  for (const [place, leaf] of order.entries()) across[leaf] = place;
  const up = Array.from({ length: leaves }, () => 0);
  joined.forEach(([a, b], i) => {
    across[leaves + i] = (across[a] + across[b]) / 2;
    up[leaves + i] = Math.max(Math.sqrt(Math.max(0, added[i])), up[a], up[b]);
  });
  return { across, up, leaves };
}

export function mergeTree({ tree, curve, from, to }, choose) {
  const root = Math.sqrt(wholeLoss(curve));
  const { across, up, leaves } = placed(tree.joined, tree.added);
  const heights = tree.joined.map((_, i) => up[leaves + i]).sort((a, b) => b - a);
  const label = (k) =>
    `Tree of ${leaves} fine clusters, merged pair by pair until one is left. ` +
    (k > leaves ? `${k} clusters are finer than it.` : `Cut into ${k}.`);
  // Between the merge that leaves k clusters and the one before it.
  const cutAt = (k) => (k === 1 ? heights[0] * 1.06 : ((heights[k - 2] ?? 0) + (heights[k - 1] ?? 0)) / 2);
  return chooser(
    (w, k, on) => {
      const height = 250;
      const x = scale(0, leaves - 1, MARGIN.left + 8, w - MARGIN.right - 8);
      const y = scale(0, heights[0] * 1.1, height - MARGIN.bottom, MARGIN.top);
      const cut = y(cutAt(k));
      const branch = ([a, b], i) => {
        const top = up[leaves + i];
        const kind = y(top) < cut ? "branch above-cut" : "branch";
        return s("path", {
          class: kind,
          d: `M${x(across[a])} ${y(up[a])}V${y(top)}H${x(across[b])}V${y(up[b])}`,
        });
      };
      const bands = Array.from({ length: Math.min(to, leaves) - from + 1 }, (_, i) => from + i).map(
        (each) => {
          const [high, low] = [each === 1 ? MARGIN.top : y(heights[each - 2]), y(heights[each - 1] ?? 0)];
          return s(
            "rect",
            {
              class: "reach at",
              "data-k": each,
              x: MARGIN.left,
              y: high,
              width: w - MARGIN.left - MARGIN.right,
              height: Math.max(0, low - high),
              on: on(each),
            },
            s("title", {}, `Cut into ${each}`),
          );
        },
      );
      return s(
        "svg",
        { viewBox: `0 0 ${w} ${height}`, "aria-hidden": "true" },
        ticks(0, (heights[0] / root) ** 2, 4).map((t) => [
          s("line", {
            class: "grid",
            x1: MARGIN.left,
            x2: w - MARGIN.right,
            y1: y(Math.sqrt(t) * root),
            y2: y(Math.sqrt(t) * root),
          }),
          s("text", { x: MARGIN.left - 7, y: y(Math.sqrt(t) * root) + 4, "text-anchor": "end" }, percent(t)),
        ]),
        tree.joined.map(branch),
        k !== null &&
          k <= leaves &&
          s("line", { class: "cut", x1: MARGIN.left, x2: w - MARGIN.right, y1: cut, y2: cut }),
        bands,
        s(
          "text",
          { x: (MARGIN.left + w - MARGIN.right) / 2, y: height - 6, "text-anchor": "middle" },
          `${leaves} fine clusters`,
        ),
      );
    },
    label,
    choose,
  );
}
