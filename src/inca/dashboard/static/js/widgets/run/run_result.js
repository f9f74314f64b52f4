// What comes of a run: the estimate beside the true mean, and where its error comes from.

/** @import { Term } from "../../lib/glossary.js" */
/** @import { ErrorParts, RunAnswer, RunResult, Simulation } from "../../lib/types.js" */
import { fill, h } from "../../lib/dom.js";
import { format, percent } from "../../lib/format.js";
import { blindGuess } from "../../lib/normal_distribution.js";
import { swatch } from "../elements.js";
import { hint } from "../hint.js";

/** @type {Record<keyof ErrorParts, string>} */
const PARTS = {
  independent: "independent noise",
  cancelling: "cancelling noise that was left behind",
  data: "values that left",
};
const KINDS = /** @type {(keyof ErrorParts)[]} */ (Object.keys(PARTS));

/** @param {ErrorParts} error */
const total = (error) => KINDS.reduce((sum, kind) => sum + error[kind], 0);

/**
 * Where an error comes from, as a bar and its legend.
 * @param {ErrorParts} error
 */
function errorBar(error) {
  const sum = total(error);
  if (sum === 0) return null;
  const pieces = KINDS.map((kind) => {
    const piece = h("span", { class: `fill-${kind}` });
    piece.style.flexGrow = String(error[kind] / sum);
    return piece;
  });
  const part = (/** @type {number} */ of) => (of < 1e-9 * sum ? 0 : of / sum); // less is not there, but rounding
  const legend = KINDS.map((kind) =>
    h("span", {}, swatch(kind, `${PARTS[kind]}: ${percent(part(error[kind]))}`), hint(kind)),
  );
  return [
    h("p", { class: "note" }, "Where the expected error comes from, as parts of its square:"),
    h("div", { class: "error-bar", role: "presentation" }, pieces),
    h("div", { class: "legend" }, legend),
  ];
}

/**
 * How good it is, in a sentence that anyone can read.
 * @param {number} estimate
 * @param {Simulation} simulation
 */
function verdict(estimate, { true_mean: trueMean, expected_error: error, domain: [low, high], unit }) {
  const off = `Off by ${format(Math.abs(estimate - trueMean), 2)} of ${format(high - low)} ${unit}`;
  return error && Math.sqrt(total(error)) < blindGuess([low, high]).error
    ? h("p", { class: "verdict good" }, `${off}.`)
    : h("p", { class: "verdict warn" }, `${off}: with so much noise, no better than guessing.`);
}

/**
 * @param {RunResult} result
 * @param {Simulation} simulation
 */
function outcome({ estimate, interval: [low, high], confidence, remarks }, simulation) {
  const { true_mean: trueMean, expected_error: error, unit } = simulation;
  const fact = (/** @type {string} */ name, /** @type {string} */ value, /** @type {Term | null} */ term = null) =>
    h("div", {}, h("dt", {}, name, term && hint(term)), h("dd", {}, value));
  const facts = [
    fact("Estimate", `${format(estimate)} ${unit}`, "estimate"),
    fact(`${percent(confidence)} interval`, `${format(low)} to ${format(high)}`),
    fact("True mean", format(trueMean)),
    error && fact("Expected error", `about ${format(Math.sqrt(total(error)), 3)}`, "expected error"),
  ];
  const sentences = remarks.map((sentence) => h("p", { class: "warn" }, `⚠ ${sentence}`));
  return [verdict(estimate, simulation), h("dl", { class: "run-result" }, facts), sentences, error && errorBar(error)];
}

const settlement = () =>
  h(
    "p",
    {},
    "Somebody has left. Before any final message is opened, those who are there undo all that they exchanged with whoever left, so that no noise stays behind",
    hint("settlement"),
    ".",
  );

/** A card for the estimate of the round that is shown; only simulations have one. */
export function runResult() {
  const element = h("section", { class: "card", "aria-label": "The result" });

  /**
   * @param {RunAnswer} run
   * @param {number} round
   */
  const show = ({ simulation, rounds }, round) => {
    element.hidden = !simulation;
    if (!simulation) return;
    const { estimates, result, domain, unit, settled, true_mean: trueMean } = simulation;
    const estimate = estimates[round];
    const heading = h("h2", {}, round === rounds ? "The result" : "So far");
    const sentence = (/** @type {string} */ words, /** @type {string} */ kind = "") =>
      fill(element, heading, h("p", { class: `numbers ${kind}` }, words));
    if (round === rounds && result) fill(element, heading, settled && settlement(), outcome(result, simulation));
    else if (round === rounds) sentence("Nobody is present in the last round, so there is no estimate.", "warn");
    else if (estimate === null) sentence("Nobody is present in this round, so there is nothing to estimate from.");
    else {
      const [low, high] = domain;
      const outside = estimate < low || estimate > high ? ` (outside ${low} to ${high}, where every mean is)` : "";
      sentence(
        `From the messages of this round the estimate would be ${format(estimate)} ${unit}${outside}, with noise still in them. The true mean is ${format(trueMean)}.`,
      );
    }
  };
  return { element, show };
}
