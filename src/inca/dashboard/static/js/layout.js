// Where parties stand on the stage: on one circle, on circles in a zigzag if it gets narrow, or as the seeds of a sunflower.

export const CROWD = 300; // more than so many parties are drawn as a crowd of dots
const ROOMY = 19; // pixels from one party to the next that leave room for a disc
const MOST_RINGS = 4; // with more, the inner ones would be too crowded
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

/** Places for `parties` in a square of `size` pixels: x and y, the radius of a disc, and whether there is room for names. */
export function places(parties, size) {
  if (parties > CROWD) return sunflower(parties, size, 0.72, true);
  return circles(parties, size) ?? sunflower(parties, size, 0.62, false);
}

function circles(parties, size) {
  const middle = size / 2;
  const reach = (label) => middle - label;
  let rings = 1;
  // Every circle more gives neighbours on one circle more room, but takes it from the inside.
  while (rings <= MOST_RINGS && (2 * Math.PI * (reach(16) - rings * ROOMY) * rings) / parties < ROOMY) rings += 1;
  if (rings > MOST_RINGS) return null;
  const named = rings === 1;
  const gap = (2 * Math.PI * reach(named ? 44 : 16) * rings) / parties;
  const radius = Math.max(3, Math.min(named ? 25 : 10, (rings === 1 ? 0.34 : 0.31) * gap));
  const outer = reach(named ? radius + 22 : radius + 8);
  const x = new Float64Array(parties), y = new Float64Array(parties);
  const spots = Math.ceil(parties / rings) * rings; // so that the last one does not meet the first on its circle
  for (let i = 0; i < parties; i += 1) {
    const turn = (2 * Math.PI * i) / spots - Math.PI / 2, out = outer - (i % rings) * (2 * radius + 7);
    x[i] = middle + out * Math.cos(turn);
    y[i] = middle + out * Math.sin(turn);
  }
  return { x, y, radius, named, middle, crowd: false };
}

function sunflower(parties, size, fill, crowd) {
  const middle = size / 2, step = (middle - 12) / Math.sqrt(parties);
  const x = new Float64Array(parties), y = new Float64Array(parties);
  for (let i = 0; i < parties; i += 1) {
    const out = step * Math.sqrt(i + 0.5), turn = i * GOLDEN;
    x[i] = middle + out * Math.cos(turn);
    y[i] = middle + out * Math.sin(turn);
  }
  return { x, y, radius: Math.max(1.5, fill * step), named: false, middle, crowd };
}

/** The party nearest to a point, if one is near. */
export function nearest(layout, px, py) {
  let best = null, least = Math.max(layout.radius + 6, layout.crowd ? 8 : 14) ** 2;
  for (let i = 0; i < layout.x.length; i += 1) {
    const far = (layout.x[i] - px) ** 2 + (layout.y[i] - py) ** 2;
    if (far < least) { best = i; least = far; }
  }
  return best;
}

/** A point of the arc from one party to another, which bends towards the middle so that there and back differ; `bend` null for a straight line. */
export function along(layout, from, to, part, bend = 0.16) {
  const { x, y, middle } = layout;
  const mx = (x[from] + x[to]) / 2, my = (y[from] + y[to]) / 2, dx = x[to] - x[from], dy = y[to] - y[from];
  if (bend === null) return [x[from] + part * dx, y[from] + part * dy, mx, my];
  // All arcs also bend a little to their right; between neighbours by more, or nothing would be left of them between two discs.
  const far = Math.hypot(dx, dy) || 1, side = Math.max(0.1, Math.min(1.2, (3 * layout.radius) / far - 0.5));
  const cx = mx + bend * (middle - mx) - side * dy, cy = my + bend * (middle - my) + side * dx, rest = 1 - part;
  return [rest * rest * x[from] + 2 * rest * part * cx + part * part * x[to], rest * rest * y[from] + 2 * rest * part * cy + part * part * y[to], cx, cy];
}
