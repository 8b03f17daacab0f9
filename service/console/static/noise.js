// The noise in what was released, read off a receipt: for error bars and rings. Never from rows.
//
// A mechanism adds noise relative to the most that one record can change a statistic. For the number of
// records in a cluster that is one record; for the sum of their positions it is the radius to which the
// cluster was clipped, where the algorithm released it, else the radius of the bounds.

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

// Standard deviations: of a size, in records, and of each centre's place, in encoded units.
export function noise(receipt, { sizes, centres, details }) {
  const domain = receipt.domain;
  const lengths = domain.kind === "ids" ? null : unitLengths(domain);
  const width = lengths?.length ?? 1;
  const counts = last(receipt.steps, "cluster-counts");
  const sums = last(receipt.steps, "residual-sums") ?? last(receipt.steps, "sums");
  const sum = sums && lengths ? spread(sums.mechanism, { width, l1: Math.sqrt(width) }) : null;
  // Radii are told in units of the widest column.
  const radii = lengths && details?.clipping_radii?.map((radius) => radius / Math.max(...lengths));
  const records = (i) => Math.max(1, sizes ? sizes[i] : domain.size / centres.length);
  return {
    lengths,
    size: counts ? spread(counts.mechanism) : null,
    clipped: Boolean(radii),
    places: sum === null ? null : centres.map((_, i) => (sum * (radii?.[i] ?? UNITS)) / records(i)),
  };
}
