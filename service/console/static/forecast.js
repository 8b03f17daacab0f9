// What a plan lets expect, in words: the figures are the service's own, from the answer to POST /v1/plans.

import { count, number, percent } from "./format.js";

const TWICE = "in 95 of 100 runs";

// Figures that have a place of their own, in the order in which they are shown: name, figure, explanation.
const KNOWN = {
  smallest_cluster: (x, { average }) => ["Smallest cluster that is found", count(x), `records, about; an average one has ${count(average)}`],
  size_noise: (x, { average }) => ["Size of a cluster", `± ${count(2 * x)}`, `records ${TWICE}; an average one has ${count(average)}`],
  noise_per_radius: (x) => ["Position of a centre", `± ${percent(2 * x)}`, `of its cluster's radius ${TWICE}, for an average cluster`],
  noise_at_bounds: (x, { widest }) => ["Position at worst", `± ${number(2 * x, 2)}`, `in ${widest}, for a cluster that fills the bounds`],
};
const SILENT = ["cluster_share"];
const OTHERS = { scaling_share: (x) => ["private scaling", `takes ${percent(x)} of the cost`] };

// Known figures, and whatever else an algorithm has to say, as far as it is numbers and words.
export function expectations(quote) {
  const { forecast, plan } = quote;
  const average = plan.domain.size * (forecast.cluster_share ?? 1 / plan.k);
  const widest = widestColumn(plan.domain);
  const figures = Object.entries(KNOWN)
    .filter(([key]) => Number.isFinite(forecast[key]))
    .map(([key, words]) => [key, ...words(forecast[key], { average, widest })]);
  const others = Object.entries(forecast).filter(([key, x]) => !(key in KNOWN) && !SILENT.includes(key) && ["number", "string"].includes(typeof x));
  return {
    figures,
    others: others.map(([key, x]) => OTHERS[key]?.(x) ?? [key.replaceAll("_", " "), typeof x === "number" ? number(x) : x]),
    verdict: verdict(forecast, average),
    measurements: plan.steps.reduce((sum, step) => sum + step.repeats, 0),
  };
}

function widestColumn({ bounds, columns }) {
  if (!bounds?.box || !columns) return "any column";
  const widths = bounds.box.high.map((high, i) => high - bounds.box.low[i]);
  return columns[widths.indexOf(Math.max(...widths))];
}

// In a sentence: noise beside the clusters. The limits are where the figures in docs/choosing.md turn.
function verdict(forecast, average) {
  const { smallest_cluster: smallest, size_noise: size, noise_per_radius: blur } = forecast;
  if ([smallest, size, blur].every((each) => each === undefined)) return null;
  const crowded = (smallest ?? 3 * (size ?? 0)) / average;
  const blurred = blur ?? 0;
  if (crowded > 0.8 || blurred > 0.15) return ["The noise is as large as the clusters: raise epsilon, or ask for fewer clusters.", "bad"];
  if (crowded > 0.2 || blurred > 0.03) return ["The noise is noticeable: expect accurate large clusters and inaccurate small ones.", "warn"];
  return ["The noise is small beside the clusters: expect centres close to those without privacy.", "good"];
}
