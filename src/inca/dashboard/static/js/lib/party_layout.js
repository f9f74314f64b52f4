// Where parties stand on the stage: on one circle, on several circles if it gets narrow, or like sunflower seeds.

/**
 * @typedef {object} Layout
 * @property {Float64Array} x
 * @property {Float64Array} y
 * @property {number} radius of a party's disc
 * @property {boolean} named whether there is room for a name beside every party
 * @property {number} middle
 * @property {boolean} crowd whether parties are mere dots
 */

const CROWD_PARTIES = 300; // more than so many are drawn as dots
const ROOMY_PX = 19; // from one party to the next, so that there is room for a disc
const MAX_RINGS = 4; // with more, the inner ones would be too crowded
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
const BEND = 0.16; // of arcs towards the middle, so that there and back differ

/**
 * Places for parties in a square of `size` pixels.
 * @param {number} parties
 * @param {number} size
 * @returns {Layout}
 */
export function placeParties(parties, size) {
  if (parties > CROWD_PARTIES) return sunflower(parties, size, true);
  const rings = ringsNeeded(parties, size);
  return rings <= MAX_RINGS ? circles(parties, size, rings) : sunflower(parties, size, false);
}

/**
 * How many circles give neighbours room: each circle more leaves fewer parties on one, but takes room from the inside.
 * @param {number} parties
 * @param {number} size
 */
function ringsNeeded(parties, size) {
  const gap = (/** @type {number} */ rings) => (2 * Math.PI * (size / 2 - 16 - rings * ROOMY_PX) * rings) / parties;
  let rings = 1;
  while (rings <= MAX_RINGS && gap(rings) < ROOMY_PX) rings += 1;
  return rings;
}

/**
 * @param {number} parties
 * @param {number} size
 * @param {number} rings
 * @returns {Layout}
 */
function circles(parties, size, rings) {
  const middle = size / 2;
  const named = rings === 1;
  const gap = (2 * Math.PI * (middle - (named ? 44 : 16)) * rings) / parties;
  const radius = Math.max(3, Math.min(named ? 25 : 10, (named ? 0.34 : 0.31) * gap));
  const outer = middle - radius - (named ? 22 : 8);
  const spots = Math.ceil(parties / rings) * rings; // so that the last party does not meet the first on its circle
  return spread(parties, middle, { radius, named, crowd: false }, (i) => [
    outer - (i % rings) * (2 * radius + 7),
    (2 * Math.PI * i) / spots - Math.PI / 2,
  ]);
}

/**
 * @param {number} parties
 * @param {number} size
 * @param {boolean} crowd
 * @returns {Layout}
 */
function sunflower(parties, size, crowd) {
  const middle = size / 2;
  const step = (middle - 12) / Math.sqrt(parties);
  const radius = Math.max(1.5, (crowd ? 0.72 : 0.62) * step);
  return spread(parties, middle, { radius, named: false, crowd }, (i) => [step * Math.sqrt(i + 0.5), i * GOLDEN_ANGLE]);
}

/**
 * @param {number} parties
 * @param {number} middle
 * @param {{ radius: number, named: boolean, crowd: boolean }} rest
 * @param {(party: number) => [distance: number, angle: number]} polar
 * @returns {Layout}
 */
function spread(parties, middle, rest, polar) {
  const x = new Float64Array(parties);
  const y = new Float64Array(parties);
  for (let i = 0; i < parties; i += 1) {
    const [distance, angle] = polar(i);
    x[i] = middle + distance * Math.cos(angle);
    y[i] = middle + distance * Math.sin(angle);
  }
  return { x, y, middle, ...rest };
}

/**
 * The party nearest to a point, or null if none is near.
 * @param {Layout} layout
 * @param {number} pointX
 * @param {number} pointY
 */
export function nearestParty(layout, pointX, pointY) {
  /** @type {number | null} */
  let nearest = null;
  let least = Math.max(layout.radius + 6, layout.crowd ? 8 : 14) ** 2;
  for (let i = 0; i < layout.x.length; i += 1) {
    const squared = (layout.x[i] - pointX) ** 2 + (layout.y[i] - pointY) ** 2;
    if (squared < least) {
      nearest = i;
      least = squared;
    }
  }
  return nearest;
}

/**
 * The control point of the arc from one party to another: towards the middle, and a little to the right of the way;
 * between neighbours by more, or nothing would be left of the arc between two discs.
 * @param {Layout} layout
 * @param {number} from
 * @param {number} to
 * @returns {[x: number, y: number]}
 */
export function arcControl({ x, y, middle, radius, crowd }, from, to) {
  const midX = (x[from] + x[to]) / 2;
  const midY = (y[from] + y[to]) / 2;
  if (crowd) return [midX, midY];
  const dx = x[to] - x[from];
  const dy = y[to] - y[from];
  const side = Math.max(0.1, Math.min(1.2, (3 * radius) / (Math.hypot(dx, dy) || 1) - 0.5));
  return [midX + BEND * (middle - midX) - side * dy, midY + BEND * (middle - midY) + side * dx];
}

/**
 * A point of that arc: `part` 0 is its start, 1 its end. In a crowd, arcs are straight.
 * @param {Layout} layout
 * @param {number} from
 * @param {number} to
 * @param {number} part
 * @returns {[x: number, y: number]}
 */
export function arcPoint(layout, from, to, part) {
  const { x, y } = layout;
  const [controlX, controlY] = arcControl(layout, from, to);
  const rest = 1 - part;
  const bezier = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ c) =>
    rest * rest * a + 2 * rest * part * b + part * part * c;
  return [bezier(x[from], controlX, x[to]), bezier(y[from], controlY, y[to])];
}

/**
 * How far along the arc its visible start (`end` false) or end lies: at the rim of a disc.
 * @param {Layout} layout
 * @param {number} from
 * @param {number} to
 * @param {boolean} end
 */
export function arcRim({ x, y, radius }, from, to, end) {
  const distance = Math.hypot(x[to] - x[from], y[to] - y[from]) || 1;
  const hidden = Math.min(0.32, (radius + 5) / distance);
  return end ? 1 - hidden : hidden;
}
