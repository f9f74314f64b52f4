// The noise that a guarantee takes, and how many collude, leave and stay: as in inca.privacy.gaussian and
// inca.planning.requirements. tests/dashboard/test_plan_formulas.py compares.

/** @import { Requirements } from "../../lib/types.js" */

const SENSITIVITY = 1; // all values lie between 0 and 1
const VALUE_VARIANCE = SENSITIVITY ** 2 / 12;
const HALVINGS = 100;
const CONTINUED_FROM = 2;
const SMALL = 0.1; // a shift below which a difference would lose digits
const NODES = [-0.8611363115940526, -0.3399810435848563, 0.3399810435848563, 0.8611363115940526]; // Gauss, Legendre
const WEIGHTS = [0.3478548451374538, 0.6521451548625461, 0.6521451548625461, 0.3478548451374538];

/**
 * exp(x^2) erfc(x): for small x by the series of erf, else by its continued fraction; to 13 digits.
 * @param {number} x at least 0
 */
function erfcx(x) {
  if (x >= CONTINUED_FROM) {
    let fraction = 0;
    for (let k = 60; k >= 1; k--) fraction = k / 2 / (x + fraction);
    return 1 / (Math.sqrt(Math.PI) * (x + fraction));
  }
  let [term, sum] = [x, x];
  for (let k = 1; Math.abs(term) > 1e-18 * Math.abs(sum); k++) {
    term *= (2 * x * x) / (2 * k + 1);
    sum += term;
  }
  return Math.exp(x * x) - (2 / Math.sqrt(Math.PI)) * sum;
}

/**
 * erfcx(x) - erfcx(x + width); over a small width the integral of its slope, which loses no digits.
 * @param {number} x at least 0
 * @param {number} width
 */
function difference(x, width) {
  if (width > SMALL / Math.SQRT2) return erfcx(x) - erfcx(x + width);
  const slope = (/** @type {number} */ t) => 2 / Math.sqrt(Math.PI) - 2 * t * erfcx(t);
  return (width / 2) * NODES.reduce((sum, node, i) => sum + WEIGHTS[i] * slope(x + ((node + 1) / 2) * width), 0);
}

/**
 * The logarithm of the delta of mu-GDP at an epsilon (Balle, Wang 2018).
 * @param {number} mu
 * @param {number} epsilon
 */
function logDelta(mu, epsilon) {
  const a = mu / 2 - epsilon / mu;
  if (a <= 0) return -(a * a) / 2 + Math.log(difference(-a / Math.SQRT2, mu / Math.SQRT2) / 2);
  const small = Math.exp((-a * a) / 2) / 2;
  return Math.log(1 - small * (erfcx(a / Math.SQRT2) + erfcx((mu - a) / Math.SQRT2)));
}

/** @type {Map<string, number>} a chart asks for the same few again and again */
const shifts = new Map();

/**
 * The largest mu of mu-GDP that (epsilon, delta) allows.
 * @param {number} epsilon
 * @param {number} delta
 */
function muFor(epsilon, delta) {
  const key = `${epsilon} ${delta}`;
  const before = shifts.get(key);
  if (before !== undefined) return before;
  const target = Math.log(delta);
  let [low, high] = [0, 1];
  while (logDelta(high, epsilon) <= target) high *= 2;
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    if (logDelta(middle, epsilon) > target) high = middle;
    else low = middle;
  }
  if (shifts.size > 1000) shifts.clear();
  shifts.set(key, low);
  return low;
}

/**
 * The variance of Local DP's noise, the unit of all noise.
 * @param {{ epsilon: number, delta: number }} guarantee
 */
export const noiseUnit = ({ epsilon, delta }) => (SENSITIVITY / muFor(epsilon, delta)) ** 2;

const countOf = (/** @type {number} */ fraction, /** @type {number} */ parties) => Math.ceil(fraction * parties - 1e-9);

/**
 * How many collude, leave and stay. Unless it is said a tenth may leave, or as many as leave two honest ones.
 * @param {Requirements} requirements
 */
export function partyCounts({ parties, colluding, dropout: asked }) {
  const colluders = countOf(colluding, parties);
  const honest = parties - colluders;
  const most = Math.max(0, honest - 2);
  const dropout = asked ?? (countOf(0.1, parties) <= most ? 0.1 : most / parties);
  const leavers = countOf(dropout, parties);
  return { parties, colluders, leavers, honest, survivors: parties - leavers, dropout };
}

/**
 * The squared error of lost values, the same for all mechanisms.
 * @param {Requirements} requirements
 */
export function lostValues(requirements) {
  const { parties, survivors } = partyCounts(requirements);
  return VALUE_VARIANCE * (1 / survivors - 1 / parties);
}
