// The noise in what was released, as the result states it: for error bars and rings.

import { tableLengths } from "./geometry.js";

const UNITS = 32767;

// Data units per encoded unit, per column, as the domain defines them.
export function unitLengths(domain, details) {
  if (domain.kind === "table") return tableLengths(domain, details?.ranges);
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

// Standard deviations: of a size, in records, and of each centre's place, in encoded units. Null where
// the result does not state them, as those of earlier versions.
export function noise(domain, { noise: stated, details }) {
  const lengths = domain.kind === "ids" ? null : unitLengths(domain, details);
  const widest = lengths && Math.max(...lengths); // places are stated in units of the widest column
  return {
    lengths,
    size: stated?.size ?? null,
    clipped: Boolean(details?.clipping_radii),
    places: (widest && stated?.centres?.map((each) => each / widest)) ?? null,
  };
}
