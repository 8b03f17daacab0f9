// The two directions in which a few points differ most; works on the points' inner products, so that
// hundreds of columns cost no more than a few.

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
}

function leading(matrix, start) {
  let vector = start;
  let found = 0;
  for (let round = 0; round < 500; round += 1) {
    const next = matrix.map((row) => dot(row, vector));
    const length = Math.hypot(...next);
    if (length < 1e-300) return { value: 0, vector: start.map(() => 0) };
    for (let i = 0; i < next.length; i += 1) next[i] /= length;
    const change = 1 - Math.abs(dot(next, vector));
    vector = next;
    found = length;
    if (round > 3 && change < 1e-14) break;
  }
  return { value: found, vector };
}

export function principalPlane(points) {
  const n = points.length;
  const width = points[0].length;
  const middle = Array.from({ length: width }, (_, j) => points.reduce((sum, p) => sum + p[j], 0) / n);
  const away = points.map((p) => p.map((x, j) => x - middle[j]));
  const products = away.map((a) => away.map((b) => dot(a, b)));
  const total = products.reduce((sum, row, i) => sum + row[i], 0);
  const axes = [];
  let rest = products;
  for (let axis = 0; axis < 2; axis += 1) {
    // Starts that are no multiples of each other or of the constant vector, which the centring annuls.
    const start = Array.from({ length: n }, (_, i) => Math.sin(1 + i * (axis + 1.618)));
    const { value, vector: found } = leading(rest, start);
    const scale = value > total * 1e-12 ? 1 / Math.sqrt(value) : 0;
    const raw = Array.from({ length: width }, (_, j) => scale * away.reduce((sum, a, i) => sum + found[i] * a[j], 0));
    // Either sign is as good; the one in which the heaviest column grows is easier to read.
    const heaviest = raw.reduce((best, x) => (Math.abs(x) > Math.abs(best) ? x : best), 0);
    const sign = heaviest < 0 ? -1 : 1;
    const direction = raw.map((x) => sign * x);
    const vector = found.map((x) => sign * x);
    axes.push({ value, direction, share: total > 0 ? value / total : 0, places: vector.map((v) => v * Math.sqrt(Math.max(value, 0))) });
    rest = rest.map((row, i) => row.map((x, j) => x - value * vector[i] * vector[j]));
  }
  return { middle, axes, places: points.map((_, i) => [axes[0].places[i], axes[1].places[i]]) };
}
