// The parameters of an address in words, for pictures that leave the page.

/** @import { Params } from "./types.js" */

/** @type {Record<string, string>} those that decide what is drawn, in the order in which they are told */
const WORDS = {
  file: "file",
  parties: "parties",
  rounds: "rounds",
  receivers: "receivers",
  schedule: "schedule",
  injection: "injection",
  quiet: "quiet rounds",
  sigma_independent: "independent noise",
  sigma_cancelling: "cancelling noise",
  seed: "seed",
  records: "records per value",
  epsilon: "epsilon",
  delta: "delta",
  sensitivity: "sensitivity",
  colluding: "colluding",
  eavesdropped: "eavesdropped",
  dropout: "dropping out",
  messages: "messages per party",
  absent: "absent",
  t: "round",
  party: "chosen party",
};
const MAX_LETTERS = 60; // of one parameter: hundreds of colluders are too many to list

/**
 * Parameters and what they are: "parties 12, rounds 10, seed 1".
 * @param {Params} params
 */
export function describeParams(params) {
  const shown = Object.entries(WORDS).flatMap(([name, words]) => {
    const value = String(params[name] ?? "");
    if (!value) return [];
    return [`${words} ${value.length > MAX_LETTERS ? `${value.slice(0, MAX_LETTERS)}…` : value}`];
  });
  return shown.join(", ");
}
