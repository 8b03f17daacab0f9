// The directions in which points differ most, by power iteration on the points themselves: hundreds of
// columns, or of points, cost no more than what is drawn.

const MOST_ROUNDS = 500;

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
}

// The leading direction across those that were found before; zeros where nothing is left to tell apart.
function leading(away, before, start) {
  let direction = start;
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const next = start.map(() => 0);
    for (const point of away) {
      const along = dot(point, direction);
      for (let j = 0; j < next.length; j += 1) next[j] += along * point[j];
    }
    for (const other of before) {
      const shared = dot(next, other);
      for (let j = 0; j < next.length; j += 1) next[j] -= shared * other[j];
    }
    const length = Math.sqrt(dot(next, next));
    if (length < 1e-300) return start.map(() => 0);
    for (let j = 0; j < next.length; j += 1) next[j] /= length;
    const change = 1 - Math.abs(dot(next, direction));
    direction = next;
    if (round > 3 && change < 1e-14) break;
  }
  return direction;
}

export function principalPlane(points) {
  const width = points[0].length;
  const middle = Array.from(
    { length: width },
    (_, j) => points.reduce((sum, p) => sum + p[j], 0) / points.length,
  );
  const away = points.map((p) => p.map((x, j) => x - middle[j]));
  const total = away.reduce((sum, p) => sum + dot(p, p), 0);
  const axes = [];
  for (let axis = 0; axis < 2; axis += 1) {
    // A start that is across no direction that matters, in all likelihood.
    const start = Array.from({ length: width }, (_, j) => Math.sin(1 + j * (axis + 1.618)));
    const found = leading(
      away,
      axes.map((each) => each.direction),
      start,
    );
    // Either sign is as good; the one in which the heaviest column grows is easier to read.
    const heaviest = found.reduce((best, x) => (Math.abs(x) > Math.abs(best) ? x : best), 0);
    const value = away.reduce((sum, p) => sum + dot(p, found) ** 2, 0);
    const kept = value > total * 1e-12 ? Math.sign(heaviest) : 0;
    const direction = found.map((x) => kept * x);
    axes.push({
      direction,
      share: total > 0 ? value / total : 0,
      places: away.map((p) => dot(p, direction)),
    });
  }
  return { middle, axes, places: points.map((_, i) => [axes[0].places[i], axes[1].places[i]]) };
}
