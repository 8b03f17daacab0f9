// What a plan lets expect, in words: the figures are the service's own, from the answer to POST /v1/plans.

import { count, number, percent } from "./format.js";

const TWICE = "in 95 of 100 runs";

// Figures that have a place of their own, in the order in which they are shown: name, figure, explanation.
const KNOWN = {
  smallest_cluster: (x, { average }) => ["Smallest cluster that is found", count(x), `records, about; an average one has ${count(average)}`],
  size_noise: (x, { average }) => ["Size of a cluster", `± ${count(2 * x)}`, `records ${TWICE}; an average one has ${count(average)}`],
  noise_per_radius: (x) => ["Position of a centre", `± ${percent(2 * x)}`, `of its cluster's radius ${TWICE}, for an average cluster`],
  noise_at_bounds: (x) => ["The same at worst", `± ${number(2 * x, 2)}`, "in the widest column's unit, for a cluster that fills the bounds"],
};
const SILENT = ["cluster_share"];

// Known figures, and whatever else an algorithm has to say, as far as it is numbers and words.
export function expectations(quote) {
  const { forecast, plan } = quote;
  const average = plan.domain.size * (forecast.cluster_share ?? 1 / plan.k);
  const figures = Object.entries(KNOWN)
    .filter(([key]) => Number.isFinite(forecast[key]))
    .map(([key, words]) => [key, ...words(forecast[key], { average })]);
  const others = Object.entries(forecast).filter(([key, x]) => !(key in KNOWN) && !SILENT.includes(key) && ["number", "string"].includes(typeof x));
  return {
    figures,
    others: others.map(([key, x]) => [key.replaceAll("_", " "), typeof x === "number" ? number(x) : x]),
    verdict: verdict(forecast, average),
    measurements: plan.steps.reduce((sum, step) => sum + step.repeats, 0),
  };
}

// In a sentence: noise beside the clusters. The limits are where the figures in docs/choosing.md turn.
function verdict(forecast, average) {
  const crowded = (forecast.smallest_cluster ?? 0) / average;
  const blurred = forecast.noise_per_radius ?? 0;
  if (forecast.smallest_cluster === undefined && forecast.noise_per_radius === undefined) return null;
  if (crowded > 0.8 || blurred > 0.15) return ["The noise is as large as the clusters: raise epsilon, or ask for fewer clusters.", "bad"];
  if (crowded > 0.2 || blurred > 0.03) return ["The noise can be felt: large clusters come out well, small ones blur.", "warn"];
  return ["The noise is small beside the clusters: expect centres close to those without privacy.", "good"];
}
