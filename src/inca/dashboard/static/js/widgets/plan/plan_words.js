// A plan in words: those of `inca plan`, from inca.reporting.plan. tests/dashboard/test_plan_formulas.py compares.

/** @import { Requirements } from "../../lib/types.js" */
/** @import { Plan } from "./settled_plan.js" */
import { general, roundedUp, whole } from "../../lib/format.js";
import { noiseUnit } from "./closed_forms.js";

const RANGE = 1; // of the values: they lie between 0 and 1

/** @param {number} mse */
const root = (mse) => general(Math.sqrt(mse), 2);

/**
 * Whether guessing the middle would do as well, in a sentence: `remark_on_error` of inca.protocol.usefulness.
 * @param {number} mse
 */
function remark(mse) {
  const error = Math.sqrt(mse);
  if (2 * error < RANGE / 2) return "";
  return `The expected error ${general(error, 3)} is a large part of a range of ${RANGE}: if all values lie in one, guessing its middle would do as well.`;
}

/**
 * What the plan comes to, in one sentence, and whether that is of use.
 * @param {Plan} plan
 */
export function verdictOn({ mse }) {
  const useless = remark(mse);
  if (useless) return { good: false, text: useless };
  return {
    good: true,
    text: `the mean will be off by about ${root(mse)} (values differ by at most ${RANGE})`,
  };
}

/**
 * @param {Requirements} requirements
 * @param {Plan} plan
 */
function against({ eavesdropped }, { schedule, counts: { colluders, parties } }) {
  const which = schedule === "circle" ? "any" : "random";
  const who = [
    ...(colluders ? [`${which} ${whole(colluders)} of the ${whole(parties)} pooling what they see`] : []),
    ...(eavesdropped ? [`eavesdroppers on ${general(eavesdropped, 3)} of all messages`] : []),
  ];
  return who.join(" and ") || "only those who read the final messages";
}

/**
 * What everyone should know of the plan.
 * @param {Requirements} requirements
 * @param {Plan} plan
 * @returns {[name: string, words: string][]}
 */
export function planRows(requirements, plan) {
  const { epsilon, delta, parties } = requirements;
  const { failure, rounds, messages, counts } = plan;
  const unit = noiseUnit(requirements);
  const more = failure ? ` + ${roundedUp(failure, 2)}` : "";
  const { leavers } = counts;
  return [
    ["Compare", `a trusted server: ${root(unit / parties ** 2)}; everyone alone: ${root(unit / parties)}`],
    [
      "Privacy",
      `epsilon ${general(epsilon)} at delta ${general(delta)}${more}, for each party; proven${failure ? "" : ", certain"}`,
    ],
    ["Against", against(requirements, plan)],
    ["Dropouts", leavers ? `up to ${whole(leavers)} may leave, at any time` : "nobody may leave"],
    ["Cost", `${whole(rounds)} round${rounds === 1 ? "" : "s"}, ${whole(messages)} messages a party`],
  ];
}
