// What the mechanisms are.

import { h } from "../../lib/dom.js";

/** @type {[name: string, words: string][]} */
const EXPLANATIONS = [
  [
    "inca",
    "Every party hides its messages with noise that it takes out again, and adds a little that stays. Those who stay undo what they exchanged with leavers. No server; the noise follows from formulas that are proven.",
  ],
  [
    "Central DP",
    "Everyone hands its value to a server that all must trust; the server adds noise once. The smallest possible error, and the most trust.",
  ],
  [
    "Secure aggregation",
    "Cryptography lets a server see only the sum, and every party adds a part of the noise. It needs a server that everyone can reach. Where what is published reaches everyone no server is needed, but keys of all parties, agreement on who has published, and enough neighbours of every party: one quorum that is missing, and there is no result.",
  ],
  [
    "CorDP-DME",
    "Every pair of parties shares noise that cancels in the sum. A party that leaves takes its half along, and the other half stays in the result.",
  ],
  [
    "GOPA",
    "It also shares noise in pairs, but only with a few others, and corrects for leavers whose absence is noticed in time: hence its dots, by how many leave too late for that; “at random times” means that they leave as they do here. Its calibration takes a while, so it is computed only on request.",
  ],
  [
    "Local DP",
    "Every party adds enough noise to protect itself and trusts nobody. It needs no messages to hide in, but the error is large.",
  ],
  [
    "Muffliato",
    "Every party adds noise once, then all gossip on a fixed graph. Its guarantee is weaker: a mean over single observers who do not know the graph.",
  ],
];

/** Text about all mechanisms, which opens. */
export const mechanismExplanation = () =>
  h(
    "details",
    { class: "card" },
    h("summary", {}, h("h2", {}, "What is compared here?")),
    h(
      "p",
      {},
      "Ways to compute the mean of everyone's values while each value stays private. All have the same requirements, and all errors count the noise as well as the values that leave with their parties.",
    ),
    h(
      "dl",
      {},
      EXPLANATIONS.flatMap(([name, words]) => [h("dt", {}, name), h("dd", {}, words)]),
    ),
  );
