// Figures of slow mechanisms, by requirements: they take long, so this window keeps them, also when it is loaded again.

/** @import { MechanismEntry, Requirements } from "../../lib/types.js" */
import { keyOf } from "../../lib/requirements.js";

const NAME = "slow mechanisms";
const MOST = 16; // requirements

/** @type {Map<string, MechanismEntry[]>} */
const kept = new Map(stored());

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(NAME) ?? "[]");
  } catch {
    return []; // storage may be forbidden, or hold what somebody else wrote
  }
}

/**
 * The figures that were computed for these requirements.
 * @param {Requirements} requirements
 */
export const slowEntries = (requirements) => kept.get(keyOf(requirements)) ?? [];

/**
 * Keep a figure, instead of an older one of the same mechanism.
 * @param {MechanismEntry} entry
 * @param {Requirements} requirements
 */
export function keepSlowEntry(entry, requirements) {
  const others = slowEntries(requirements).filter(({ mechanism }) => mechanism !== entry.mechanism);
  kept.set(keyOf(requirements), [...others, entry]);
  try {
    sessionStorage.setItem(NAME, JSON.stringify([...kept].slice(-MOST)));
  } catch {
    // then they are kept until the page is left
  }
}
