// The result of a session for people to read.

/** @import { Result } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";
import { format, percent } from "../../lib/format.js";
import { facts, tile } from "../elements.js";
import { hint } from "../hint.js";

const MAX_COORDINATES = 12;

/** @param {number[]} estimate */
function describeVector(estimate) {
  const shown = estimate.slice(0, MAX_COORDINATES).map((coordinate) => format(coordinate));
  return shown.join(", ") + (estimate.length > MAX_COORDINATES ? `, … (${estimate.length} in total)` : "");
}

/**
 * The interval of one number, or those of the first few.
 * @param {Result} fields
 */
function describeInterval({ interval, confidence = 0.95 }) {
  if (!interval) return "";
  const [low, high] = interval.map((end) => (Array.isArray(end) ? end : [end]));
  const shown = low.slice(0, MAX_COORDINATES).map((end, i) => `${format(end)} to ${format(high[i])}`);
  const more = low.length > MAX_COORDINATES ? `, … (${low.length} in total)` : "";
  return `${shown.join(", ")}${more}, with a probability of ${percent(confidence)}`;
}

/** @param {Result} fields */
function describeCoalition({ coalition = [], coalitions, all_coalitions: all }) {
  const who = coalition.length ? `${coalition.length === 1 ? "party" : "parties"} ${coalition.join(", ")}` : "nobody";
  if (coalitions === null) return who;
  return `${who}: the one that learns most, of ${format(coalitions)} coalitions tried${all ? " (all of this size)" : ""}`;
}

/**
 * What is not exact about a result: in version 1 of the format messages whose fate is unknown, since then those who
 * settled and did not publish, and pairs of parties that contradict each other.
 * @param {Result} fields
 * @returns {[string, string][]}
 */
function describeFaults({ in_doubt: messages, weight_in_doubt: weight = 0, late, contradictions }) {
  if (!late) {
    const doubts = messages?.length
      ? `${messages.length}: nobody can tell whether they arrived; they carry a weight of ${format(weight)}`
      : "none: all parties agree on what arrived";
    return [["Messages in doubt", doubts]];
  }
  const pairs = (contradictions ?? []).map(
    ([round, sender, receiver, claim]) =>
      `${sender} says that round ${round} was ${claim} by ${receiver}, who does not`,
  );
  return [
    ["Settled, but did not publish", late.length ? `${late.join(", ")}: their noise is left in the result` : "nobody"],
    ["Contradictions", pairs.length ? pairs.join("; ") : "none: all accounts agree"],
  ];
}

/** @param {Result} fields */
function tiles({
  estimate,
  constrained,
  standard_error: error,
  present,
  parties,
  party,
  epsilon,
  wanted: agreed,
  delta,
}) {
  const plusMinus =
    error === null
      ? ", with an unknown error"
      : `, plus or minus ${format(error, 3)} (one standard error of the noise)`;
  return h(
    "div",
    { class: "tiles" },
    typeof estimate === "number" && tile(format(Number(constrained ?? estimate)), "estimated mean", plusMinus),
    tile(`${format(present)} of ${format(parties)}`, "parties were present at the end"),
    tile(
      epsilon === null ? "–" : format(epsilon, 3),
      `${party}'s own privacy loss epsilon; at most ${format(agreed)} was agreed, at delta ${format(delta)}`,
      hint("epsilon"),
    ),
  );
}

/** @param {Result} fields */
function verdict({ epsilon, wanted: agreed }) {
  if (epsilon === null) return null;
  return epsilon <= agreed
    ? h("p", { class: "good" }, "✓ The loss is within what was agreed.")
    : h("p", { class: "error" }, "✗ The loss exceeds what was agreed.");
}

/**
 * A card for a result.
 * @param {Result} fields
 */
export function resultCard(fields) {
  const { estimate, standard_error: error, reason } = fields;
  const none = estimate === null;
  const vector = fields.constrained ?? estimate;
  return h(
    "section",
    { class: "card", "aria-label": "Result" },
    h("h2", {}, fields.name ? `Result of “${fields.name}”` : "Result"),
    none ? h("p", { class: "alarm" }, `There is no result: ${reason || "no reason is given"}.`) : tiles(fields),
    none ? null : verdict(fields),
    (fields.remarks ?? []).map((sentence) => h("p", { class: "warn" }, `⚠ ${sentence}`)),
    facts([
      Array.isArray(vector) && ["Estimated mean", describeVector(vector)],
      fields.interval && ["The exact mean is in", describeInterval(fields)],
      Array.isArray(vector) && ["Standard error", error === null ? "unknown" : format(error)],
      ["Party", fields.party],
      fields.coalition && ["Worst coalition", describeCoalition(fields)],
      ...(none ? [] : describeFaults(fields)),
      !none && ["Sum of weights", format(fields.weight), hint("weight")],
      !none && reason && ["Remark", reason],
      ["Session", h("code", {}, fields.session)],
      fields.execution && ["Execution", h("code", {}, fields.execution)],
    ]),
    h("p", { class: "note" }, "All parties know the estimate. No party's own value is in this file."),
  );
}
