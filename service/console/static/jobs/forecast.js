// What a plan lets expect, in words: the figures are the service's own, from the answer to POST /v1/plans.

import { count, number, percent } from "../format.js";

const TWICE = "in 95 of 100 runs";

// Figures that have a place of their own, in the order in which they are shown: name, figure, explanation.
const KNOWN = {
  smallest_cluster: (x, { average }) => [
    "Smallest cluster that is found",
    `≈ ${count(x)}`,
    `records; ${average}`,
  ],
  size_noise: (x, { average }) => ["Size of a cluster", `± ${count(2 * x)}`, `records ${TWICE}; ${average}`],
  noise_per_radius: (x, { whose }) => [
    "Position of a centre",
    `± ${percent(2 * x)}`,
    `of its cluster's radius ${TWICE}, for ${whose}`,
  ],
  noise_at_bounds: (x, { widest }) => [
    "Position at worst",
    `± ${number(2 * x, 2)}`,
    `in ${widest}, for a cluster that fills the bounds`,
  ],
};
const SILENT = ["cluster_share"];
const OTHERS = { scaling_share: (x) => ["private scaling", `takes ${percent(x)} of the cost`] };

// Known figures, and whatever else an algorithm has to say, as far as it is numbers and words.
export function expectations(quote) {
  const { forecast, plan } = quote;
  const records = plan.domain.size * (forecast.cluster_share ?? 1 / plan.k);
  // Where k is left open, the figures are of the fine clusters that are measured.
  const whose = plan.k_range ? `an average one of ${plan.k} fine clusters` : "an average cluster";
  const average = `${plan.k_range ? whose : "an average one"} has ${count(records)}`;
  const widest = widestColumn(plan.domain);
  const figures = Object.entries(KNOWN)
    .filter(([key]) => Number.isFinite(forecast[key]))
    .map(([key, words]) => [key, ...words(forecast[key], { average, whose, widest })]);
  const others = Object.entries(forecast).filter(
    ([key, x]) => !(key in KNOWN) && !SILENT.includes(key) && ["number", "string"].includes(typeof x),
  );
  return {
    figures,
    others: others.map(
      ([key, x]) => OTHERS[key]?.(x) ?? [key.replaceAll("_", " "), typeof x === "number" ? number(x) : x],
    ),
    verdict: withRelease(
      plan.k_range ? rangeVerdict(forecast, records, plan) : verdict(forecast, records),
      quote.earlier,
    ),
    measurements: plan.steps.reduce((sum, step) => sum + step.repeats, 0),
  };
}

function widestColumn({ bounds, columns }) {
  if (!bounds?.box || !columns) return "any column";
  const widths = bounds.box.high.map((high, i) => high - bounds.box.low[i]);
  return columns[widths.indexOf(Math.max(...widths))];
}

// Noise beside the clusters, as shares of what they can bear: in how many records one needs, and in its
// radius. The limits are where the figures in docs/choosing.md turn.
const LIMITS = { good: [0.2, 0.03], fair: [0.8, 0.15] };

function strain(forecast, records) {
  const { smallest_cluster: smallest, size_noise: size, noise_per_radius: blur } = forecast;
  if ([smallest, size, blur].every((each) => each === undefined)) return null;
  return [(smallest ?? 3 * (size ?? 0)) / records, blur ?? 0];
}

// In a sentence, for one k.
function verdict(forecast, records) {
  const found = strain(forecast, records);
  if (!found) return null;
  const above = (limits) => found.some((each, i) => each > limits[i]);
  if (above(LIMITS.fair))
    return ["The noise is as large as the clusters: raise epsilon, or ask for fewer clusters.", "bad"];
  if (above(LIMITS.good))
    return ["The noise is noticeable: expect accurate large clusters and inaccurate small ones.", "warn"];
  return ["The noise is small beside the clusters.", "good"];
}

const NOISE_ONLY =
  "This counts noise only: clusters of few records far from all others can be off by more. " +
  "Once you have a result that left k open, plans say by how much.";

// The verdict with what an earlier release of the caller adds: the forecast itself counts noise alone.
function withRelease(found, earlier) {
  if (!found) return null;
  const [words, kind] = found;
  // Noise alone is too much: what else may be off matters no more.
  if (kind === "bad" && !earlier) return found;
  return [
    `${words} ${earlier ? earlier.sentence : NOISE_ONLY}`,
    kind === "good" && earlier?.uncertain ? "warn" : kind,
  ];
}

// In a sentence, for a range: fewer clusters have more records each, so both shares shrink with k.
function rangeVerdict(forecast, records, { k, k_range: { from, to } }) {
  const found = strain(forecast, records);
  if (!found) return null;
  const upTo = (limits) =>
    Math.floor(Math.min(...limits.map((limit, i) => (found[i] ? (limit * k) / found[i] : Infinity))));
  const [good, fair] = [upTo(LIMITS.good), upTo(LIMITS.fair)];
  if (good >= to) return ["The noise is small beside the clusters, whichever k you choose.", "good"];
  if (fair < Math.max(from, 2)) return ["The noise is as large as the clusters: raise epsilon.", "bad"];
  const large = fair < to ? `; above about k = ${fair} it is as large as the clusters` : "";
  if (good < Math.max(from, 2)) return [`The noise is noticeable${large}.`, "warn"];
  return [`Up to about k = ${good} the noise is small beside the clusters, then noticeable${large}.`, "good"];
}
