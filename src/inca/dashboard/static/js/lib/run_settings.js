// What a run is described by: the parameters of its address, their defaults, and what fits together.

/** @import { AdversaryChoice, RunSettings } from "./types.js" */
import { fitAbsences } from "./absences.js";

/** The adversary of nobody, as an address writes it: a file's own adversary counts where none is named. */
export const NOBODY = "none";

/** @type {RunSettings} written into every address in full, so that it shows the same run when a default changes */
export const DEFAULT_SETTINGS = {
  parties: 12,
  rounds: 10,
  receivers: 1,
  schedule: "permutation",
  injection: "incremental",
  quiet: 2,
  sigma_independent: 5,
  sigma_cancelling: 60,
  seed: 1,
  records: 60,
  absent: "",
};

/** @type {[value: string, words: string][]} */
export const SCHEDULES = [
  ["permutation", "by permutations"],
  ["random", "at random"],
  ["distinct", "at random, all different"],
  ["circle", "around a circle"],
  ["hypercube", "along a hypercube"],
  ["complete", "everyone to everyone"],
];

/** @type {[value: string, words: string][]} */
export const INJECTIONS = [
  ["incremental", "value in shares (the protocol)"],
  ["early", "value at once (the protocol)"],
  ["single", "one noise term (broken)"],
  ["plain", "no cancelling noise (broken)"],
];

/**
 * Read an address; numbers that cannot be read stay words, for the server to refuse.
 * @param {Record<string, string>} params
 * @returns {RunSettings}
 */
export function readSettings(params) {
  const settings = { ...DEFAULT_SETTINGS };
  for (const [name, usual] of Object.entries(DEFAULT_SETTINGS)) {
    const words = params[name];
    if (words === undefined || words === "") continue;
    const isNumber = typeof usual === "number" && Number.isFinite(Number(words));
    Object.assign(settings, { [name]: isNumber ? Number(words) : words });
  }
  return settings;
}

/**
 * Read who colludes and what is eavesdropped from an address.
 * @param {Record<string, string>} params
 * @returns {AdversaryChoice}
 */
export const readAdversary = ({ colluding = "", eavesdropped = "" }) => ({ colluding, eavesdropped });

/**
 * Read ids.
 * @param {string} words
 */
export const readIds = (words) => new Set(words.split(/\s+/).filter(isId).map(Number));

/**
 * Write ids as an address does.
 * @param {Iterable<number>} ids
 */
export const writeIds = (ids) => [...ids].sort((a, b) => a - b).join(" ") || NOBODY;

/** @param {string} word */
const isId = (word) => /^\d+$/.test(word);

/**
 * The first word that is neither an id of these parties nor "none"; undefined if there is none.
 * @param {string} words
 * @param {number} parties
 */
export const unknownId = (words, parties) =>
  words.split(/\s+/).find((word) => word && word !== NOBODY && !(isId(word) && Number(word) < parties));

/**
 * Read which messages are eavesdropped: entries ROUND:PARTY, or ROUND:* for all messages of a round.
 * @param {string} words
 * @returns {(round: number, party: number) => boolean}
 */
export function readEavesdropped(words) {
  const entries = new Set(words.split(/\s+/));
  return (round, party) => entries.has(`${round}:${party}`) || entries.has(`${round}:*`);
}

/**
 * Make receivers, quiet rounds and absences fit the number of parties and rounds.
 * @param {RunSettings} settings
 * @returns {RunSettings}
 */
export function fitSettings(settings) {
  const { parties, rounds, receivers, quiet, absent } = settings;
  if (![parties, rounds, receivers, quiet].every(Number.isInteger)) return settings; // the server says what is wrong
  return {
    ...settings,
    receivers: Math.min(receivers, parties - 1),
    quiet: Math.min(quiet, rounds - 1),
    absent: fitAbsences(absent, parties, rounds),
  };
}

/**
 * Leave out of an adversary who or what so many parties and rounds do not have.
 * @param {AdversaryChoice} adversary
 * @param {RunSettings} settings
 * @returns {AdversaryChoice}
 */
export function fitAdversary({ colluding, eavesdropped }, { parties, rounds }) {
  const messages = eavesdropped.split(/\s+/).filter((entry) => {
    const [round, party] = entry.split(":");
    return entry && !(Number(round) > rounds) && !(Number(party) >= parties);
  });
  const ids = colluding.split(/\s+/).filter((id) => id && !(Number(id) >= parties));
  return { colluding: colluding && (ids.join(" ") || NOBODY), eavesdropped: messages.join(" ") };
}
