// What an adversary learns, in short.

/** @import { AdversaryAnswer } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";
import { format, percent } from "../../lib/format.js";
import { blindGuess, correctGuessProbability, rootMeanSquareError } from "../../lib/normal_distribution.js";
import { tile } from "../elements.js";
import { hint } from "../hint.js";

/** @param {(number | null)[]} numbers */
const infinite = (numbers) => numbers.filter((number) => number === null).length;

/** @param {AdversaryAnswer} answer */
function alarm({ mu, epsilon, honest }) {
  const exposed = infinite(mu);
  const unbounded = infinite(epsilon);
  if (!unbounded) return null;
  let words = `For ${format(unbounded)} parties there is no finite epsilon at this delta: nothing is guaranteed to them.`;
  if (exposed) {
    const whom = exposed < honest.length ? ` for ${format(exposed)} of ${format(honest.length)} honest parties` : "";
    words = `No privacy at all${whom}: whoever knows the other values can compute ${whom ? "theirs" : "every honest party's value"} exactly.`;
  }
  return h("p", { class: "alarm" }, words);
}

/**
 * The largest loss and the quality of guesses, as tiles, with alarms.
 * @param {AdversaryAnswer} answer
 * @param {string | null} injection of a simulated run
 */
export function summary(answer, injection) {
  const { worst, guesses, sensitivity } = answer;
  const broken = "This is not the protocol: noise enters in a way that is broken on purpose.";
  const loss = tile(
    worst.epsilon === null ? "∞" : format(worst.epsilon, 3),
    `worst privacy loss, of party ${worst.party}`,
    hint("epsilon"),
  );
  const correct = tile(
    percent(correctGuessProbability(worst.mu)),
    `of best guesses which of two values it is, ${format(sensitivity)} apart, are right; of coin flips: 50 %`,
  );
  return [
    alarm(answer),
    (injection === "single" || injection === "plain") && h("p", { class: "warn" }, broken),
    h("div", { class: "tiles" }, loss, correct, guesses && guessTile(guesses)),
  ];
}

/** @param {NonNullable<AdversaryAnswer["guesses"]>} guesses */
function guessTile({ naive, true_values: truth, domain, unit }) {
  const { middle } = blindGuess(domain);
  const error = rootMeanSquareError(naive.estimates, truth) ?? 0;
  const blind = rootMeanSquareError(
    truth.map(() => middle),
    truth,
  );
  const words = `is how far off its guesses of the values are, on average; always saying ${format(middle)} is off by ${format(blind, 2)}`;
  return tile(`${error < 1e-6 ? "0" : format(error, 2)} ${unit}`, words);
}

/**
 * The losses of all parties, in words.
 * @param {AdversaryAnswer} answer
 */
export function describeLosses({ epsilon, worst, epsilon_independent_only: alone, delta }) {
  const least = Math.min(...epsilon.map((loss) => loss ?? Number.POSITIVE_INFINITY));
  const [from, to] = [format(least, 3), format(worst.epsilon, 3)];
  const range =
    worst.epsilon === null
      ? h("strong", { class: "error" }, "At least one party has no protection: its loss is infinite. ")
      : `${from === to ? `${to} for everyone` : `Between ${from} and ${to}`}, at delta ${format(delta)}. `;
  if (alone === null) return [range, "There is no independent noise, so nobody is protected by noise of its own."];
  if (worst.epsilon !== null && worst.epsilon > 0.999 * alone) {
    const words = `That is what independent noise alone gives (${format(alone, 3)}): against this adversary, cancelling noise no longer hides those who lose most.`;
    return [range, h("strong", {}, words)];
  }
  return [
    range,
    `Its own independent noise alone would leave every party at ${format(alone, 3)}: what is below that line is protection that parties give each other.`,
  ];
}
