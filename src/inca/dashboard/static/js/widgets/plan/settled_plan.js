// The plan of a settled run, in closed form: inca.planning.settled, inca.privacy.theorems.circle and joined_bound, and
// inca.protocol.topup, where the formulas are explained. tests/dashboard/test_plan_formulas.py compares.

/** @import { Requirements } from "../../lib/types.js" */
import { general, whole } from "../../lib/format.js";
import { lostValues, noiseUnit, partyCounts } from "./closed_forms.js";
import { permutationRounds } from "./party_cut_off.js";

/**
 * @typedef {object} Design
 * @property {"circle" | "permutation"} schedule
 * @property {number} rounds
 * @property {number} failure how likely a party is joined with fewer than all but `spare` of those that stay; 0: certain
 * @property {number} spare
 */
/**
 * @typedef {object} Noise standard deviations, the last of what all honest parties that stay need together
 * @property {number} independent
 * @property {number} cancelling
 * @property {number} together
 */
/** @typedef {Design & Noise & { mse: number, relative: number, messages: number, counts: ReturnType<typeof partyCounts> }} Plan */

const FACTOR = 1.005;
const LOST_MESSAGES = 1;
const MOST_CIRCLE_ROUNDS = 8;
const MOST_ROUNDS = 1000;
const FAILURE = 1e-6; // that plans may have, by default
const ROUND_UP = 1 + 1e-9;
const LEAST_TOPUP = 1 / 32; // of the independent noise
const UP = 1 + 2 ** -48;

/**
 * The least number of rounds after which a circle joins all that stay, whatever is taken away; null if none does.
 * @param {number} parties
 * @param {number} removed
 */
function circleRounds(parties, removed) {
  if (removed + LOST_MESSAGES + 1 < parties) return Math.floor((removed + LOST_MESSAGES + 2) / 2);
  const rounds = removed + Math.floor((LOST_MESSAGES + 2) / 2);
  return rounds < parties ? rounds : null;
}

/** @param {Requirements} requirements */
function localError(requirements) {
  return general(noiseUnit(requirements) / requirements.parties, 3);
}

/** @param {Requirements} requirements */
function tooFewHonest(requirements) {
  const { parties, colluders, leavers } = partyCounts(requirements);
  const who = [
    ...(colluders ? [`${whole(colluders)} may collude`] : []),
    ...(leavers ? [`${whole(leavers)} may leave`] : []),
  ];
  return `of ${whole(parties)} parties ${who.join(" and ")}, which leaves fewer than the two honest ones that hide each other: at least ${whole(colluders + leavers + 2)} parties are needed with as many, or use Local DP, at a mean squared error of ${localError(requirements)}`;
}

/**
 * @param {Requirements} requirements
 * @param {number} rounds
 * @param {number[]} sufficient
 */
function tooFewRounds(requirements, rounds, sufficient) {
  const local = `use Local DP, which needs no hidden messages, at a mean squared error of ${localError(requirements)}`;
  if (!sufficient.length) return `no number of rounds hides enough: lower away or eavesdropped, or ${local}`;
  const needed = Math.min(...sufficient);
  const tooFew = rounds === 1 ? "1 round is too few" : `${rounds} rounds are too few`;
  return `${tooFew} to join every honest party with the others: ${needed} are needed, that is ${needed + 1} messages a party; allow as many, or ${local}`;
}

/**
 * The design of least rounds that joins the honest parties that stay, or a sentence that says why there is none.
 * @param {Requirements} requirements
 * @param {number} failure
 * @returns {Design | string}
 */
function joinedDesign(requirements, failure) {
  const { parties, colluders, leavers } = partyCounts(requirements);
  const [known, { eavesdropped, messages }] = [colluders + leavers, requirements];
  if (parties - known < 2) return tooFewHonest(requirements);
  const most = messages === null ? MOST_ROUNDS : messages - 1;
  const circle = eavesdropped === 0 ? circleRounds(parties, known) : null;
  const drawn = permutationRounds({ parties, known, failure, eavesdropped, most: MOST_ROUNDS });
  const mostOnCircle = Math.max(MOST_CIRCLE_ROUNDS, drawn?.rounds ?? MOST_ROUNDS);
  if (circle !== null && circle <= mostOnCircle && circle < parties && circle <= most) {
    return { schedule: "circle", rounds: circle, failure: 0, spare: 0 };
  }
  if (drawn && drawn.rounds <= most) return { schedule: "permutation", ...drawn };
  const sufficient = [...(circle === null ? [] : [circle]), ...(drawn ? [drawn.rounds] : [])];
  return tooFewRounds(requirements, most, sufficient);
}

/**
 * The noise that is proven to suffice where all but `spare` of the honest that stay are joined.
 * @param {Requirements} requirements
 * @param {Design} design
 * @returns {Noise}
 */
function settledNoise(requirements, { rounds, spare }) {
  const [{ honest, leavers }, unit] = [partyCounts(requirements), noiseUnit(requirements)];
  const staying = honest - leavers;
  const factor = (FACTOR * staying) / (staying - spare);
  const cancelling = ((rounds + 6) * honest * unit * FACTOR) / (FACTOR - 1);
  return {
    independent: Math.sqrt(((unit * factor) / honest) * ROUND_UP),
    cancelling: Math.sqrt(cancelling * ROUND_UP),
    together: Math.sqrt(unit * factor * ROUND_UP ** 0.5),
  };
}

/**
 * What each of those who stay adds when it settles, if nobody missed a round.
 * @param {Noise} noise
 * @param {number} honest how many of them are, at least
 */
function topUp({ independent, together }, honest) {
  const lacking = together ** 2 * UP - (independent ** 2 * honest) / UP;
  return lacking > 0 ? Math.max(Math.sqrt(lacking / honest), independent * LEAST_TOPUP) : 0;
}

/**
 * What nobody can plan for, as a sentence; null if somebody is honest and somebody stays.
 * @param {Requirements} requirements
 */
function nobodyLeft(requirements) {
  const { parties, honest, survivors, dropout } = partyCounts(requirements);
  const refusal = (/** @type {string} */ name, /** @type {number} */ value, /** @type {string} */ what) =>
    `${name} must be a fraction that leaves one of ${parties} parties ${what}, got ${value}`;
  if (honest < 1) return refusal("colluding", requirements.colluding, "honest");
  return survivors < 1 ? refusal("dropout", dropout, "present") : null;
}

/**
 * The plan that meets requirements with the least error, or a sentence that says why there is none.
 * @param {Requirements} requirements
 * @param {number} [failure]
 * @returns {Plan | string}
 */
export function settledPlan(requirements, failure = FAILURE) {
  const design = nobodyLeft(requirements) ?? joinedDesign(requirements, failure);
  if (typeof design === "string") return design;
  const counts = partyCounts(requirements);
  const noise = settledNoise(requirements, design);
  const added = topUp(noise, Math.max(1, counts.survivors - counts.colluders));
  const mse = (noise.independent ** 2 + added ** 2) / counts.survivors + lostValues(requirements);
  const relative = (mse * counts.parties ** 2) / noiseUnit(requirements);
  return { ...design, ...noise, mse, relative, messages: design.rounds + 1, counts };
}
