// What the errors mean for a person: how far off the mean will be, and where that comes from.

import { h, swatch, text } from "./dom.js";
import { hint } from "./hints.js";
import { PARTS } from "./mechanisms.js";
import { spoken } from "./wish.js";

const NO_BETTER = 0.5; // whoever always says 0.5 is never further off
const DUST = 1e-9; // shares below this are rounding errors
const REASONS = {
  independent: "it stays in the result for good: it is what the promise itself costs.",
  cancelling: "it was put in to hide messages, by parties that left before they could take it out again.",
  data: "they never reached the mean, as their parties left.",
};

const times = (factor) => `${text(factor, 3)} times`;

/** "53 %", and no powers of ten for what is next to nothing. */
function share(part) {
  if (part === 0) return "0 %";
  if (part < 0.001) return "less than 0.1 %";
  return part > 0.999 && part < 1 ? "more than 99.9 %" : `${text(100 * part, part < 0.01 ? 2 : 3)} %`;
}

function compared(own, central, local) {
  const said = [];
  if (central?.mse) {
    const now = own.mse / central.mse;
    const full = own.relative && Math.abs(own.relative / now - 1) > 0.01 ? `, and ${times(own.relative)} what Central DP's would be if nobody left` : "";
    said.push(Math.abs(now - 1) < 0.005 ? `The mean squared error is that of Central DP${full}.` : `The mean squared error is ${times(now)} Central DP's${full}.`);
  }
  if (local?.mse && local.mse > 1.01 * own.mse) said.push(`Local DP's is ${times(local.mse / own.mse)} inca's.`);
  return said.join(" ");
}

/** One sentence in big letters, and what it is measured by. */
export function headline(own, entries) {
  if (!own) return [h("p", { class: "big" }, "How far off? Being worked out …")];
  if (own.why_not) return [h("p", { class: "big" }, "inca cannot do this."), h("p", { class: "error" }, spoken(own.why_not))];
  if (own.mse === null) return [h("p", { class: "big" }, "There is no end to the error.")];
  const off = Math.sqrt(own.mse), find = (name) => entries.find((each) => each.mechanism === name);
  return [
    h("p", { class: "big" }, "The estimated mean will be about ", h("strong", {}, text(off, 2)), " off."),
    h("p", {}, "All values lie between 0 and 1. ", compared(own, find("Central DP"), find("Local DP")), hint("mse"), hint("central")),
    off < NO_BETTER ? null : h("p", { class: "warn" }, "⚠ That is no better than a guess: whoever says 0.5 without asking anyone is never more than 0.5 off. " +
      "More parties or a larger epsilon would help."),
  ];
}

/** How sure that is. */
export const sureness = (planned) => (planned ? ["This is what the plan expects.", hint("plan")]
  : ["This is a first idea, not a promise: make the plan to be sure.", hint("first idea")]);

/** Where the error comes from, in words. */
export function sources(own) {
  const sum = own.parts && Object.values(own.parts).reduce((total, part) => total + part, 0);
  if (!sum) return null;
  const shares = Object.keys(PARTS).sort((a, b) => own.parts[b] - own.parts[a]);
  return h("ul", { class: "plain" }, ...shares.map((kind) => {
    const exact = own.parts[kind] / sum, part = exact < DUST ? 0 : exact;
    return h("li", {}, swatch(kind, ""), h("strong", {}, `${share(part)} ${PARTS[kind]}`), part === 0 ? ": none here." : `: ${REASONS[kind]}`, hint(kind));
  }));
}
