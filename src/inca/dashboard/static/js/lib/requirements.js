// What is required of a plan: its fields, their defaults, and how they stand in an address.

/** @import { Requirements } from "./types.js" */
import { format } from "./format.js";

/**
 * @typedef {object} FieldSpec
 * @property {string} label
 * @property {number | null} value the default: the same as in inca.dashboard.questions
 * @property {number} min
 * @property {number} max
 * @property {"log"} [scale] sliders move by factors
 * @property {boolean} [whole]
 * @property {boolean} [fraction] shown in percent
 */

/** @type {Record<keyof Requirements, FieldSpec>} */
export const FIELDS = {
  parties: { label: "Parties", value: 200, min: 2, max: 1e6, scale: "log", whole: true },
  epsilon: { label: "Epsilon", value: 0.5, min: 0.01, max: 20, scale: "log" },
  delta: { label: "Delta", value: 1e-5, min: 1e-12, max: 0.1, scale: "log" },
  colluding: { label: "Colluding", value: 0.1, min: 0, max: 0.9, fraction: true },
  eavesdropped: { label: "Eavesdropped", value: 0, min: 0, max: 0.9, fraction: true },
  dropout: { label: "Dropping out", value: null, min: 0, max: 0.8, fraction: true },
  messages: { label: "Messages per party", value: null, min: 2, max: 1000, whole: true },
};

const NAMES = /** @type {(keyof Requirements)[]} */ (Object.keys(FIELDS));

/** Labels by the names that the server uses in what it refuses. */
export const LABELS = Object.fromEntries(NAMES.map((name) => [name, FIELDS[name].label]));

/** @param {(name: keyof Requirements) => number | null} value @returns {Requirements} */
const build = (value) =>
  /** @type {Requirements} */ (/** @type {unknown} */ (Object.fromEntries(NAMES.map((name) => [name, value(name)]))));

export const DEFAULT_REQUIREMENTS = build((name) => FIELDS[name].value);

/**
 * @param {keyof Requirements} name
 * @param {number} number
 */
function isAllowed(name, number) {
  const { min, max, whole } = FIELDS[name];
  return Number.isFinite(number) && number >= min && number <= max && (!whole || Number.isInteger(number));
}

/**
 * Read an address: requirements, and sentences about parameters for which the default is taken.
 * @param {Record<string, string>} params
 * @returns {[requirements: Requirements, problems: string[]]}
 */
export function readRequirements(params) {
  const isGood = (/** @type {keyof Requirements} */ name) =>
    params[name] !== "" && isAllowed(name, Number(params[name]));
  const problems = NAMES.filter((name) => params[name] !== undefined && !isGood(name)).map((name) => {
    const { label, value, min, max } = FIELDS[name];
    const taken = value === null ? "the usual" : format(value);
    return `${label} must be from ${format(min)} to ${format(max)}, got “${params[name]}” in the address: ${taken} is taken instead.`;
  });
  return [build((name) => (isGood(name) ? Number(params[name]) : FIELDS[name].value)), problems];
}

/**
 * Requirements as a key: equal requirements have equal keys.
 * @param {Requirements} requirements
 */
export const keyOf = (requirements) => NAMES.map((name) => requirements[name]).join(" ");
