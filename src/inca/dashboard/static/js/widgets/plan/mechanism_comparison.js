// The mechanisms side by side: their bars and their table.

/** @import { ErrorParts, EstimateHead, MechanismEntry } from "../../lib/types.js" */
/** @import { LiveEntry } from "./live_estimates.js" */
import { h } from "../../lib/dom.js";
import { errorSentence, format } from "../../lib/format.js";
import { LABELS } from "../../lib/requirements.js";
import { barChart } from "../bar_chart.js";
import { dataTable } from "../data_table.js";
import { swatch } from "../elements.js";
import { hint } from "../hint.js";
import { isOwn } from "./live_estimates.js";

/** @type {Record<keyof ErrorParts, string>} */
export const PARTS = {
  independent: "independent noise",
  cancelling: "cancelling noise left by leavers",
  data: "lost values",
};
export const KINDS = /** @type {(keyof ErrorParts)[]} */ (Object.keys(PARTS));

export const QUICK_ESTIMATE = "inca, quick estimate";

const OWN_GUARANTEE =
  "colluders and eavesdroppers together, who know who sent to whom, and see their messages and all final ones";
/** @type {Record<string, string>} */
const SHORT_NAMES = {
  "GOPA, half of the leavers late": "GOPA, half late",
  "GOPA, one leaver late": "GOPA, one late",
  "GOPA, no leaver late": "GOPA, none late",
  "GOPA, leavers at random times": "GOPA, random times",
  "secure aggregation, k-regular": "secure agg., k-regular",
  "secure aggregation, no server": "secure agg., no server",
};

/**
 * By their error, or by the one before while it is being computed; then those that cannot meet the requirements.
 * @param {LiveEntry[]} entries
 */
const sorted = (entries) => {
  const error = (/** @type {LiveEntry} */ { mse, pendingAt }) => mse ?? pendingAt ?? Number.MAX_VALUE;
  return [...entries].sort((a, b) => error(a) - error(b));
};

/** @param {LiveEntry} entry */
function whyNoBar(entry) {
  if (entry.pendingAt !== undefined) return "being computed …";
  return entry.why_not ? `not possible: see ${isOwn(entry) ? "above" : "below"}` : "unbounded error";
}

/** @param {LiveEntry} entry */
function errorWords(entry) {
  if (entry.pendingAt !== undefined) return "being computed";
  if (entry.why_not) return "not possible";
  return entry.low === null ? format(entry.mse) : `from ${format(entry.low)} to ${format(entry.mse)}`;
}

const GUESS = "guessing 0.5, the middle";

/**
 * The bars, and a line at the error of a guess.
 * @param {LiveEntry[]} entries
 * @param {EstimateHead | null} head
 * @param {string[]} waiting mechanisms that are still being computed
 * @param {boolean} narrow for a small screen
 */
export function mechanismChart(entries, head, waiting, narrow) {
  const shown = sorted(entries);
  const errors = shown.flatMap(({ mechanism, mse }) => (mse === null ? [] : [`${mechanism} ${format(mse, 3)}`]));
  const bars = shown.map((entry) => ({
    label: (SHORT_NAMES[entry.mechanism] ?? entry.mechanism) + (entry.weaker ? " *" : ""),
    value: entry.mse,
    own: isOwn(entry),
    parts: entry.parts,
    note: whyNoBar(entry),
  }));
  const coming = waiting.map((label) => ({ label, value: null, own: false, parts: null, note: "being computed …" }));
  const limit = head && { value: head.guess_mse, label: GUESS };
  const guess = head ? `; ${GUESS}, at most ${format(head.guess_mse, 3)}` : "";
  const title = `Mean squared error of each mechanism, smallest first: ${errors.join("; ")}${guess}.`;
  return barChart({ title, bars: [...bars, ...coming], width: narrow ? 400 : 720, limit });
}

/**
 * What the colours and the asterisk mean.
 * @param {MechanismEntry[]} entries
 */
export function mechanismLegend(entries) {
  const weaker = new Set(entries.filter((entry) => entry.weaker).map(({ mechanism }) => mechanism.split(",")[0]));
  const note = (/** @type {string} */ words) => h("p", { class: "note" }, words);
  return [
    h(
      "p",
      { class: "legend" },
      h("span", {}, "inca:"),
      KINDS.map((kind) => h("span", {}, swatch(kind, PARTS[kind]), hint(kind))),
      swatch("baseline", "other mechanisms"),
    ),
    note("A dot is the error, on a logarithmic scale; the bar of 100 % below divides inca's error into its parts."),
    note(
      "The dashed line is the error of always guessing 0.5, without any data, if all values are 0 or all are 1; for others a guess is better still. Dots beyond it say nothing.",
    ),
    entries.some(({ low }) => low !== null) &&
      note("inca's bar ends at the worse end of the range in which the plan's error will lie: an estimate."),
    weaker.size > 0 &&
      note(
        `* a weaker guarantee than inca's: ${[...weaker].join(", ")}. The table says against whom each guarantee holds.`,
      ),
  ];
}

/**
 * Who cannot meet the requirements, and why.
 * @param {MechanismEntry[]} entries
 */
export function impossibleMechanisms(entries) {
  const impossible = entries.filter((entry) => entry.why_not && !isOwn(entry));
  if (!impossible.length) return null;
  const items = impossible.map(({ mechanism, why_not: why }) =>
    h("li", {}, h("strong", {}, mechanism), ": ", errorSentence(why, LABELS)),
  );
  return h("div", {}, h("h3", {}, "Not possible"), h("ul", { class: "plain-list" }, items));
}

/** @param {MechanismEntry} entry */
function guarantee(entry) {
  if (entry.why_not) return entry.why_not;
  if (entry.mechanism === QUICK_ESTIMATE) return "nobody yet: it only says what a plan would guarantee";
  return (isOwn(entry) ? OWN_GUARANTEE : entry.promise) + (entry.weaker ? " (weaker than inca's)" : "");
}

/** @param {ErrorParts} parts */
const describeParts = (parts) => KINDS.map((kind) => `${format(parts[kind], 3)} ${PARTS[kind]}`).join(", ");

/**
 * Everything as a table.
 * @param {LiveEntry[]} entries
 * @param {EstimateHead | null} head
 */
export function mechanismTable(entries, head) {
  const columns = [
    "Mechanism",
    "Mean squared error",
    "About how far off",
    "Times Central DP, nobody leaving",
    "Messages per party",
    "The guarantee holds against",
    "Where inca's error comes from",
  ];
  const rows = sorted(entries).map((entry) => [
    entry.mechanism,
    errorWords(entry),
    entry.mse === null ? null : format(Math.sqrt(entry.mse), 3),
    entry.relative === null ? null : format(entry.relative, 3),
    entry.messages,
    guarantee(entry),
    entry.parts && describeParts(entry.parts),
  ]);
  const guess = head && [GUESS, `at most ${format(head.guess_mse)}`, `at most ${format(Math.sqrt(head.guess_mse), 3)}`];
  if (guess) rows.push([...guess, null, 0, "nobody: it needs no data", null]);
  const table = dataTable("Errors and guarantees of all mechanisms", columns, rows);
  table.classList.add("mechanisms");
  return table;
}
