// What a plan lets expect, computed from its steps and from public facts: never from rows.
//
// A mechanism adds noise relative to the most that one record can change a statistic. For the number of
// records in a cluster that is one record; for the sum of their positions it is the radius to which the
// cluster is clipped, taken here as the radius of the bounds: compact clusters get less noise than that.

const UNITS = 32767;

// Standard deviation of the noise of one coordinate, in multiples of one record's largest influence.
function spread(mechanism, { width = 1, l1 = 1 } = {}) {
  switch (mechanism.kind) {
    case "gaussian":
      return 1 / mechanism.mu;
    case "laplace":
      return (Math.SQRT2 * l1) / mechanism.epsilon;
    case "l2":
      return Math.sqrt(width + 1) / mechanism.epsilon;
    default:
      return null;
  }
}

function last(steps, statistic) {
  return [...steps].reverse().find((step) => step.statistic === statistic) ?? null;
}

// Data units per encoded unit, per column, as the domain defines them.
export function unitLengths(domain) {
  const { bounds, scaling } = domain;
  if (bounds?.box) {
    const half = bounds.box.low.map((low, i) => (bounds.box.high[i] - low) / 2);
    if (scaling === "unit") return half.map((each) => (each * Math.sqrt(half.length)) / UNITS);
    const norm = Math.hypot(...half);
    return half.map(() => norm / UNITS);
  }
  const radius = bounds?.ball?.radius ?? domain.radius;
  const width = domain.columns?.length ?? domain.dimension;
  return radius ? Array.from({ length: width }, () => radius / UNITS) : null;
}

// The noise a plan adds: to sizes (records) and, per column, to a centre for a cluster of `records` records.
export function noise(plan) {
  const domain = plan.domain;
  const lengths = domain.kind === "ids" ? null : unitLengths(domain);
  const width = lengths?.length ?? 1;
  const counts = last(plan.steps, "cluster-counts") ?? last(plan.steps, "count");
  const sums = last(plan.steps, "residual-sums") ?? last(plan.steps, "sums");
  const size = counts && counts.statistic === "cluster-counts" ? spread(counts.mechanism) : null;
  const sum = sums && lengths ? spread(sums.mechanism, { width, l1: Math.sqrt(width) }) : null;
  return {
    size,
    position: sum === null ? null : (records) => (sum * UNITS) / Math.max(records, 1),
    lengths,
  };
}

export function forecast(plan) {
  const { size, position, lengths } = noise(plan);
  const average = plan.domain.size / plan.k;
  const ranges = plan.domain.bounds?.box?.high.map((high, i) => high - plan.domain.bounds.box.low[i]) ?? null;
  const shift = position ? position(average) : null;
  const relative = shift !== null && lengths ? (ranges ? (shift * lengths[0]) / ranges[0] : shift / (2 * UNITS)) : null;
  return {
    average,
    size,
    relativeSize: size === null ? null : size / average,
    smallest: size === null ? null : 3 * size,
    relativePosition: relative,
    measurements: plan.steps.reduce((sum, step) => sum + step.repeats, 0),
  };
}

export function verdict(found) {
  if (found.relativeSize === null) return null;
  const worst = Math.max(found.relativeSize, found.relativePosition ?? 0);
  if (worst < 0.02) return ["The noise is small beside the clusters: expect centres close to those without privacy.", "good"];
  if (worst < 0.15) return ["The noise can be felt: large clusters come out well, small ones blur.", "warn"];
  return ["The noise is as large as the clusters: raise epsilon, or ask for fewer clusters.", "bad"];
}
