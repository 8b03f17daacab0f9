// The noise in what was released, as the result states it: for error bars and rings.

// Standard deviations: of a size, in records, and of each centre's place, in units of the axes. Null where
// the result does not state them, as those of earlier versions.
export function noise({ units }, { noise: stated, details }) {
  const widest = units.length > 0 && Math.max(...units); // places are stated in units of the widest column
  return {
    lengths: units.length ? units : null,
    size: stated?.size ?? null,
    clipped: Boolean(details?.clipping_radii),
    places: (widest && stated?.centres?.map((each) => each / widest)) ?? null,
  };
}
