// Errors that have formulas, so that they follow a slider at once: the same as in inca.mechanisms and inca.privacy.
// tests/dashboard/test_plan_live.py compares them with those of the library.

/** @import { EstimateHead, MechanismEntry, Requirements } from "../../lib/types.js" */

/** @typedef {{ mse: number, messages: number | null }} Formula `messages` null: only the server knows */

const SENSITIVITY = 1; // all values lie between 0 and 1
const VALUE_VARIANCE = SENSITIVITY ** 2 / 12;
const FACTORS = 40; // that CorDP-DME tries: inca.planning.sampling.candidate_factors
const HALVINGS = 100;
const CONTINUED_FROM = 2;

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
 * The logarithm of the delta of mu-GDP at an epsilon (Balle, Wang 2018).
 * @param {number} mu
 * @param {number} epsilon
 */
function logDelta(mu, epsilon) {
  const a = mu / 2 - epsilon / mu;
  const second = erfcx((mu - a) / Math.SQRT2);
  if (a <= 0) return -(a * a) / 2 + Math.log((erfcx(-a / Math.SQRT2) - second) / 2);
  const small = Math.exp((-a * a) / 2) / 2;
  return Math.log(1 - small * (erfcx(a / Math.SQRT2) + second));
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

/**
 * How many collude, leave and stay.
 * @param {Requirements} requirements
 */
export function partyCounts({ parties, colluding, dropout }) {
  const colluders = Math.ceil(colluding * parties - 1e-9);
  const leavers = Math.ceil(dropout * parties - 1e-9);
  return { parties, colluders, leavers, honest: parties - colluders, survivors: parties - leavers };
}

/**
 * The squared error of lost values, the same for all mechanisms.
 * @param {Requirements} requirements
 */
function lostValues(requirements) {
  const { parties, survivors } = partyCounts(requirements);
  return VALUE_VARIANCE * (1 / survivors - 1 / parties);
}

/**
 * CorDP-DME's noise at its best balance, in units of Local DP's variance; null if nothing suffices.
 * @param {ReturnType<typeof partyCounts>} counts
 */
function pairwiseNoise({ honest, leavers, survivors }) {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < FACTORS; i++) {
    const factor = honest === 1 ? 1 : 1 + 0.01 * ((honest - 1) / 0.01) ** (i / (FACTORS - 1));
    const own = factor / honest;
    const spare = own - 1 / honest;
    if (own < 1 && spare <= 0) continue;
    const ratio = own >= 1 - 1e-12 ? 0 : ((1 - 1 / honest) / spare - 1) / honest;
    best = Math.min(best, (own * (1 + ratio * leavers)) / survivors);
  }
  return Number.isFinite(best) ? best : null;
}

/**
 * The errors of mechanisms that have formulas, by their names; those that cannot meet the requirements are left out.
 * @param {Requirements} requirements
 * @returns {Map<string, Formula>}
 */
export function formulaErrors(requirements) {
  const counts = partyCounts(requirements);
  const { parties, colluders, honest, survivors } = counts;
  /** @type {Map<string, Formula>} */
  const errors = new Map();
  if (honest < 1 || survivors < 1) return errors;
  const [unit, data] = [noiseUnit(requirements), lostValues(requirements)];
  const put = (/** @type {string} */ name, /** @type {number} */ noise, /** @type {number | null} */ messages) =>
    errors.set(name, { mse: unit * noise + data, messages });
  put("Central DP", 1 / survivors ** 2, 1);
  put("Local DP", 1 / survivors, 0);
  const aggregated = 1 / (Math.max(1, survivors - colluders) * survivors);
  put("secure aggregation", aggregated, 2 * (parties - 1) + 2);
  if (survivors - colluders >= 2) {
    put("secure aggregation, k-regular", aggregated, null); // how many neighbours suffice is searched for
    put("secure aggregation, no server", aggregated, null);
  }
  const pairwise = requirements.eavesdropped === 0 ? pairwiseNoise(counts) : null;
  if (pairwise !== null) put("CorDP-DME", pairwise, parties - 1);
  return errors;
}

/**
 * What must be said of an error: `remark_on_error` of inca.protocol.usefulness.
 * @param {number} mse
 */
function remarkOnError(mse) {
  const error = Math.sqrt(mse);
  if (2 * error < SENSITIVITY / 2) return "";
  const digits = Number(error.toPrecision(3));
  return `The expected error ${digits} is a large part of a range of ${SENSITIVITY}: if all values lie in one, guessing its middle would do as well.`;
}

/**
 * An error over that of Central DP with everyone present.
 * @param {number} mse
 * @param {Requirements} requirements
 */
const relativeError = (mse, requirements) => (mse * requirements.parties ** 2) / noiseUnit(requirements);

/**
 * An entry of inca's with another epsilon and delta: design and noise stay the same but for their unit.
 * @param {MechanismEntry} entry
 * @param {Requirements} before
 * @param {Requirements} after
 * @returns {MechanismEntry}
 */
export function withOtherGuarantee(entry, before, after) {
  if (entry.mse === null || !entry.parts) return entry;
  const ratio = noiseUnit(after) / noiseUnit(before);
  const { independent, cancelling, data } = entry.parts;
  const scaled = (/** @type {number | null} */ x, /** @type {number} */ by) => (x === null ? null : x * by);
  const mse = (independent + cancelling) * ratio + data;
  return {
    ...entry,
    mse,
    low: entry.low === null ? null : (entry.low - data) * ratio + data,
    relative: relativeError(mse, after),
    remark: remarkOnError(mse),
    parts: { independent: independent * ratio, cancelling: cancelling * ratio, data },
    sigma_independent: scaled(entry.sigma_independent, Math.sqrt(ratio)),
    sigma_cancelling: scaled(entry.sigma_cancelling, Math.sqrt(ratio)),
  };
}

/**
 * An entry of a mechanism with a formula for other requirements.
 * @param {MechanismEntry} entry
 * @param {Formula} formula
 * @param {Requirements} after
 * @returns {MechanismEntry}
 */
export const byFormula = (entry, { mse, messages }, after) => ({
  ...entry,
  mse,
  messages,
  relative: relativeError(mse, after),
  remark: remarkOnError(mse),
  why_not: "",
});

/**
 * What the server's estimates begin with, known beforehand.
 * @param {Requirements} requirements
 * @param {string[]} slow
 * @returns {EstimateHead}
 */
export function headOf(requirements, slow) {
  const { parties, colluders, leavers } = partyCounts(requirements);
  return { parties, colluders, leavers, guess_mse: SENSITIVITY ** 2 / 4, slow };
}
