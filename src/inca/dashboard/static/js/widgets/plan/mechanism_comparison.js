// The mechanisms side by side: how far off each is, as dots and as a table.

/** @import { MechanismEntry } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";
import { errorSentence, format } from "../../lib/format.js";
import { LABELS } from "../../lib/requirements.js";
import { barChart } from "../bar_chart.js";
import { dataTable } from "../data_table.js";

export const OWN = "inca";

const GUESS = { label: "guessing 0.5 would do as well", value: 0.25 }; // as inca.protocol.usefulness has it
/** @type {Record<string, string>} */
const SHORT_NAMES = {
  "GOPA, half of the leavers late": "GOPA, half late",
  "GOPA, one leaver late": "GOPA, one late",
  "GOPA, no leaver late": "GOPA, none late",
  "GOPA, leavers at random times": "GOPA, random times",
  "secure aggregation, no server": "secure agg., no server",
};

/** @param {MechanismEntry} entry */
const errorOf = ({ mse }) => (mse === null ? null : Math.sqrt(mse));

/**
 * Those that can meet the requirements, by their error.
 * @param {MechanismEntry[]} entries
 */
const sorted = (entries) =>
  entries.filter((entry) => !entry.why_not).sort((a, b) => (a.mse ?? Number.MAX_VALUE) - (b.mse ?? Number.MAX_VALUE));

/**
 * The dots, and a line at the error of a guess.
 * @param {MechanismEntry[]} entries
 * @param {boolean} narrow for a small screen
 */
export function mechanismChart(entries, narrow) {
  const bars = sorted(entries).map((entry) => ({
    label: (SHORT_NAMES[entry.mechanism] ?? entry.mechanism) + (entry.weaker ? " *" : ""),
    value: errorOf(entry),
    own: entry.mechanism === OWN,
    note: "unbounded error",
  }));
  const errors = sorted(entries).map((entry) => `${entry.mechanism} ${format(errorOf(entry), 3)}`);
  const title = `About how far off each mechanism is, the best first: ${errors.join("; ")}; from ${GUESS.value} on ${GUESS.label}.`;
  return barChart({ title, bars, width: narrow ? 400 : 720, limit: GUESS });
}

/**
 * What is to be said of the dots.
 * @param {MechanismEntry[]} entries
 */
export function mechanismNotes(entries) {
  const note = (/** @type {string} */ words) => h("p", { class: "note" }, words);
  const weaker = new Set(entries.filter((entry) => entry.weaker).map(({ mechanism }) => mechanism.split(",")[0]));
  const impossible = entries.filter((entry) => entry.why_not && entry.mechanism !== OWN);
  return [
    note(
      "On a logarithmic scale, with all leaving who may. Beyond the dashed line a guess without any data would do as well.",
    ),
    weaker.size > 0 &&
      note(
        `* a weaker guarantee than inca's: ${[...weaker].join(", ")}. The table says against whom each guarantee holds.`,
      ),
    impossible.map(({ mechanism, why_not: why }) =>
      h("p", { class: "note" }, `Not possible here: ${mechanism}. ${errorSentence(why, LABELS)}`),
    ),
  ];
}

/**
 * Everything as a table.
 * @param {MechanismEntry[]} entries
 * @param {number} central the squared error of Central DP if nobody leaves
 */
export function mechanismTable(entries, central) {
  const columns = [
    "Mechanism",
    "About how far off",
    "Mean squared error",
    "Times Central DP, nobody leaving",
    "Messages per party",
    "The guarantee holds against",
  ];
  const rows = sorted(entries).map((entry) => [
    entry.mechanism,
    format(errorOf(entry), 3),
    format(entry.mse),
    entry.mse === null ? null : format(entry.mse / central, 3),
    entry.messages,
    entry.promise + (entry.weaker ? " (weaker than inca's)" : ""),
  ]);
  rows.push([
    GUESS.label,
    `at most ${GUESS.value}`,
    `at most ${GUESS.value ** 2}`,
    null,
    0,
    "nobody: it needs no data",
  ]);
  const table = dataTable("Errors and guarantees of all mechanisms", columns, rows);
  table.classList.add("mechanisms");
  return table;
}
