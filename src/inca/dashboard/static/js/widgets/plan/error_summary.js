// What the errors mean for a person: how far off the mean will be, and where that comes from.

/** @import { ErrorParts, MechanismEntry } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";
import { errorSentence, format } from "../../lib/format.js";
import { LABELS } from "../../lib/requirements.js";
import { swatch } from "../elements.js";
import { hint } from "../hint.js";
import { KINDS, PARTS } from "./mechanism_comparison.js";

const ROUNDING_ERROR = 1e-9; // smaller shares are none
/** @type {Record<keyof ErrorParts, string>} */
const REASONS = {
  independent: "it stays in the result for good: it is the price of the guarantee itself.",
  cancelling: "it was added to hide messages, by parties that left before they could remove it again.",
  data: "they never reached the mean, because their parties left.",
};

/** @param {number} factor */
const times = (factor) => `${format(factor, 3)} times`;

/**
 * A share without powers of ten.
 * @param {number} part
 */
function shareWords(part) {
  if (part === 0) return "0 %";
  if (part < 0.001) return "less than 0.1 %";
  if (part > 0.999 && part < 1) return "more than 99.9 %";
  return `${format(100 * part, part < 0.01 ? 2 : 3)} %`;
}

/**
 * @param {number} mse
 * @param {number | null} relative to Central DP if nobody leaves
 * @param {MechanismEntry[]} entries
 * @param {boolean} most whether the error is only the upper end of a range
 */
function comparison(mse, relative, entries, most) {
  const errorOf = (/** @type {string} */ name) => entries.find(({ mechanism }) => mechanism === name)?.mse;
  const [central, local] = [errorOf("Central DP"), errorOf("Local DP")];
  const sentences = [];
  if (central) {
    const factor = mse / central;
    const differs = relative !== null && Math.abs(relative / factor - 1) > 0.01;
    const full = differs ? `, and ${times(relative)} what Central DP's would be if nobody left` : "";
    const same = Math.abs(factor - 1) < 0.005;
    sentences.push(
      `The mean squared error is ${most ? "at most " : ""}${same ? "that of Central DP" : `${times(factor)} Central DP's`}${full}.`,
    );
  }
  if (local && local > 1.01 * mse)
    sentences.push(`Local DP's is ${most ? "at least " : ""}${times(local / mse)} inca's.`);
  return sentences.join(" ");
}

/**
 * One sentence in large letters, and what it is compared with.
 * @param {MechanismEntry | undefined} own
 * @param {MechanismEntry[]} entries
 */
export function headline(own, entries) {
  const large = (/** @type {string} */ words) => h("p", { class: "big" }, words);
  if (!own) return [large("How far off? Being computed …")];
  if (own.why_not) {
    const why = h("p", { class: "error" }, errorSentence(own.why_not, LABELS));
    return [large("inca cannot meet these requirements."), why];
  }
  if (own.mse === null) return [large("The error is unbounded.")];
  const error = Math.sqrt(own.mse);
  const words = comparison(own.mse, own.relative, entries, own.low !== null);
  const from = own.low === null ? "" : `${format(Math.sqrt(own.low), 2)} to `;
  return [
    h("p", { class: "big" }, `The estimated mean will be about ${from}`, h("strong", {}, format(error, 2)), " off."),
    h("p", {}, "All values lie between 0 and 1. ", words, hint("mse"), hint("central")),
    own.remark && h("p", { class: "warn" }, `⚠ ${own.remark} More parties or a larger epsilon would help.`),
  ];
}

/**
 * The same in a few words, for where there is little room.
 * @param {MechanismEntry | undefined} own
 */
export function shortHeadline(own) {
  if (!own) return "Being computed …";
  if (own.why_not) return "Not possible: see below";
  if (own.mse === null) return "The error is unbounded.";
  const from = own.low === null ? "" : `${format(Math.sqrt(own.low), 2)} to `;
  return `About ${from}${format(Math.sqrt(own.mse), 2)} off`;
}

/**
 * How certain that is.
 * @param {MechanismEntry} own
 * @param {boolean} planned
 * @param {boolean} complete whether no more views will be sampled
 */
export function certainty({ low, views, planned_views: all }, planned, complete) {
  if (planned) return ["This is what the plan expects.", hint("plan")];
  if (low === null) {
    return ["Looked up in tables of drawn views, as the plan will be: make it to have it as a file.", hint("plan")];
  }
  const known = views
    ? `from ${format(views)} of the ${format(all)} views that a plan samples`
    : "before any view is sampled";
  const more = complete ? "make the plan to be sure" : "it narrows as more are sampled";
  return [`An estimate, not a guarantee: a range ${known}; ${more}.`, hint("quick estimate")];
}

/**
 * Where the error comes from, in words; null if there is none.
 * @param {MechanismEntry} own
 */
export function errorSources({ parts }) {
  const sum = parts ? KINDS.reduce((total, kind) => total + parts[kind], 0) : 0;
  if (!parts || !sum) return null;
  const items = [...KINDS]
    .sort((a, b) => parts[b] - parts[a])
    .map((kind) => {
      const part = parts[kind] / sum < ROUNDING_ERROR ? 0 : parts[kind] / sum;
      const share = h("strong", {}, `${shareWords(part)} ${PARTS[kind]}`);
      return h("li", {}, swatch(kind, ""), share, part === 0 ? ": none here." : `: ${REASONS[kind]}`, hint(kind));
    });
  return h("ul", { class: "plain-list" }, items);
}
