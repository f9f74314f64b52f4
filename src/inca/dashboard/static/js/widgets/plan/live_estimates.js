// What is known about the errors for the requirements of this moment: as the server said, or by formulas until it does.

import { keyOf } from "../../lib/requirements.js";
/** @import { MechanismEntry, Requirements, TradeoffAnswer } from "../../lib/types.js" */
import { byFormula, formulaErrors, headOf, withOtherGuarantee } from "./closed_forms.js";

/**
 * An entry, or the place of one that is still being computed: `pendingAt` is the error that it had before.
 * @typedef {MechanismEntry & { pendingAt?: number }} LiveEntry
 */

/** @typedef {{ entry: MechanismEntry, requirements: Requirements }} Answered */

/** @param {{ mechanism: string }} entry */
export const isOwn = ({ mechanism }) => mechanism.startsWith("inca");

/**
 * Under what an entry is kept: inca's own and Muffliato's change their names with the requirements.
 * @param {MechanismEntry} entry
 */
function placeOf(entry) {
  if (isOwn(entry)) return "inca";
  return entry.mechanism.startsWith("Muffliato") ? "Muffliato" : entry.mechanism;
}

/**
 * Whether requirements differ in epsilon and delta only: then inca's design and its noise but for the unit are the same.
 * @param {Requirements} a
 * @param {Requirements} b
 */
export const sameButGuarantee = (a, b) =>
  keyOf({ ...a, epsilon: b.epsilon, delta: b.delta }) === keyOf(/** @type {Requirements} */ (b));

/** @param {MechanismEntry} entry @returns {LiveEntry} */
const pending = (entry) => ({
  ...entry,
  mse: null,
  low: null,
  parts: null,
  why_not: "",
  pendingAt: entry.mse ?? Number.MAX_VALUE,
});

/** The newest answers by mechanism, carried over to the requirements of this moment. */
export class LiveEstimates {
  /** @type {Map<string, Answered>} */
  #answers = new Map();
  /** @type {{ answer: TradeoffAnswer, requirements: Requirements } | null} */
  #tradeoff = null;
  /** @type {string[]} */
  #slow = [];
  complete = false;

  /** @param {Requirements} requirements */
  constructor(requirements) {
    this.requirements = { ...requirements };
    this.formulas = formulaErrors(requirements);
  }

  /** @param {Requirements} requirements */
  change(requirements) {
    this.requirements = { ...requirements };
    this.formulas = formulaErrors(requirements);
    this.complete = false;
  }

  /**
   * Take an entry of the server's; fewer views than there are already tell nothing new.
   * @param {MechanismEntry} entry
   * @param {Requirements} asked
   */
  take(entry, asked) {
    const before = this.#answers.get(placeOf(entry));
    const known = before && sameButGuarantee(before.requirements, asked) ? (before.entry.views ?? 0) : 0;
    if (entry.views !== null && entry.views < known) return;
    this.#answers.set(placeOf(entry), { entry, requirements: { ...asked } });
  }

  /** @param {string[]} names */
  takeSlow(names) {
    this.#slow = names;
  }

  /**
   * Take what the tables say, which is there before everything else.
   * @param {TradeoffAnswer} answer
   * @param {Requirements} asked
   */
  takeTradeoff(answer, asked) {
    this.#tradeoff = { answer, requirements: { ...asked } };
    if (answer.entry) this.take(answer.entry, asked);
  }

  /** Everything has come: what was not answered again is no longer there. */
  finish() {
    this.complete = true;
    for (const [place, { requirements }] of this.#answers) {
      if (!sameButGuarantee(requirements, this.requirements)) this.#answers.delete(place);
    }
  }

  get isEmpty() {
    return this.#answers.size === 0;
  }

  /** The tables' answer, if it is for these requirements but for epsilon and delta. */
  get tradeoff() {
    const known = this.#tradeoff;
    return known && sameButGuarantee(known.requirements, this.requirements) ? known.answer : null;
  }

  get head() {
    return headOf(this.requirements, this.#slow);
  }

  /**
   * @param {Answered} answered
   * @returns {LiveEntry}
   */
  #now({ entry, requirements }) {
    if (keyOf(requirements) === keyOf(this.requirements)) return entry;
    const formula = this.formulas.get(entry.mechanism);
    if (formula) return byFormula(entry, formula, this.requirements);
    if (isOwn(entry) && sameButGuarantee(requirements, this.requirements)) {
      return withOtherGuarantee(entry, requirements, this.requirements);
    }
    return pending(entry);
  }

  /** All mechanisms. */
  entries() {
    return [...this.#answers.values()].map((answered) => this.#now(answered));
  }

  /** inca's own, if it is there. */
  own() {
    const answered = this.#answers.get("inca");
    const entry = answered && this.#now(answered);
    return entry?.pendingAt === undefined ? entry : undefined;
  }
}
