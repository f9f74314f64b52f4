// What a run is described by: the fields of the address, their defaults, and what fits together.

import { fitting } from "./absences.js";

/** Written into every address in full, so that it shows the same run when a default changes. */
export const DEFAULTS = {
  parties: 12, rounds: 10, receivers: 1, schedule: "permutation", injection: "incremental", quiet: 2,
  sigma_independent: 0.5, sigma_cancelling: 5, seed: 1, absent: "",
};

/** Read an address; numbers that cannot be read stay words, for the server to refuse. */
export function readSettings(given) {
  const number = (words, otherwise) => (words === undefined || words === "" ? otherwise : Number.isFinite(Number(words)) ? Number(words) : words);
  return Object.fromEntries(Object.entries(DEFAULTS).map(([name, usual]) =>
    [name, typeof usual === "number" ? number(given[name], usual) : given[name] ?? usual]));
}

/** Ids as the address writes them. */
export const readIds = (words) => new Set((words ?? "").split(/\s+/).filter((each) => /^\d+$/.test(each)).map(Number));

export const writeIds = (ids) => [...ids].sort((a, b) => a - b).join(" ");

/** Whether the message that a party holds after a round is read by somebody outside: entries ROUND:PARTY, or ROUND:* for all. */
export function tapsOf(words) {
  const taps = new Set((words ?? "").split(/\s+/));
  return (t, party) => taps.has(`${t}:${party}`) || taps.has(`${t}:*`);
}

/** Make the rest fit the number of parties and rounds: fewer receivers and quiet rounds, and nobody who is not there. */
export function fitted(settings, adversary) {
  const { parties, rounds } = settings;
  const taps = (adversary.tapped ?? "").split(/\s+/).filter((entry) => {
    const [t, party] = entry.split(":");
    return entry && Number(t) <= rounds && (party === "*" || Number(party) < parties);
  });
  return {
    settings: {
      ...settings, receivers: Math.min(settings.receivers, parties - 1), quiet: Math.min(settings.quiet, rounds),
      absent: fitting(settings.absent, parties, rounds),
    },
    adversary: { colluding: writeIds([...readIds(adversary.colluding)].filter((id) => id < parties)), tapped: taps.join(" ") },
  };
}
