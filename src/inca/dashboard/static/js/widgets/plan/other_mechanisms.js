// Other mechanisms whose errors have formulas, so that they follow a slider at once: as in inca.mechanisms.
// tests/dashboard/test_plan_formulas.py compares.

/** @import { MechanismEntry, Requirements } from "../../lib/types.js" */
import { lostValues, noiseUnit, partyCounts } from "./closed_forms.js";

const FACTORS = 40; // that CorDP-DME tries
const TOO_FEW = "too few honest parties stay to hide each other";
/** @type {Record<string, string>} against whom each guarantee holds */
const PROMISES = {
  "Central DP": "whoever sees the result; the curator sees all values and must be trusted",
  "Local DP": "everyone else together: all other parties may collude and every message may be seen",
  "secure aggregation":
    "colluders and the server together, as long as the cryptography holds; needs a server that all can reach",
  "secure aggregation, no server":
    "colluders who see all that is published, as long as the cryptography holds; needs keys of all parties, agreement on who has published, and a quorum of every party's neighbours",
  "CorDP-DME": "colluders who see the topology, their own pairwise terms and all that is published",
};

/**
 * CorDP-DME's noise at its best balance, in units of Local DP's variance.
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
  return best;
}

/**
 * The entries of mechanisms that have formulas; `messages` null: how many suffice is searched for, in the program.
 * @param {Requirements} requirements
 * @returns {MechanismEntry[]}
 */
export function otherMechanisms(requirements) {
  const counts = partyCounts(requirements);
  const { parties, colluders, honest, survivors } = counts;
  if (honest < 1 || survivors < 1) return [];
  const [unit, data] = [noiseUnit(requirements), lostValues(requirements)];
  const entry = (
    /** @type {string} */ mechanism,
    /** @type {number} */ noise,
    /** @type {number | null} */ messages,
    /** @type {string} */ why_not = "",
  ) => ({
    mechanism,
    mse: why_not ? null : unit * noise + data,
    messages,
    promise: PROMISES[mechanism],
    weaker: mechanism === "Central DP",
    why_not,
  });
  const aggregated = 1 / (Math.max(1, survivors - colluders) * survivors);
  const hidden = survivors - colluders >= 2 ? "" : TOO_FEW;
  const seen = requirements.eavesdropped ? "its pairwise noise needs channels that nobody else can read" : "";
  return [
    entry("Central DP", 1 / survivors ** 2, 1),
    entry("secure aggregation", aggregated, 2 * (parties - 1) + 2),
    entry("secure aggregation, no server", aggregated, null, hidden),
    entry("CorDP-DME", pairwiseNoise(counts), parties - 1, seen),
    entry("Local DP", 1 / survivors, 0),
  ];
}
