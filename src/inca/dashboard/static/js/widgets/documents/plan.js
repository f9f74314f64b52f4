// A plan that was read from a file, for people to read.

/** @import { PlanFields, PlanOption } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";
import { format, percent } from "../../lib/format.js";
import { queryString } from "../../lib/navigation.js";
import { RECORD_MOVES_BY } from "../../lib/run_settings.js";
import { scrollingTable } from "../data_table.js";
import { facts, tile } from "../elements.js";
import { hint } from "../hint.js";

/**
 * @param {string} title
 * @param {PlanOption[]} options
 */
function optionsTable(title, options) {
  if (!options.length) return null;
  const rows = options.map(({ design, messages, relative_mse: relative }) => [
    design,
    messages,
    relative === null ? "none" : format(relative, 3),
  ]);
  const columns = ["Design", "Messages of a party", "Error, chosen = 1"];
  return h("details", {}, h("summary", {}, title), scrollingTable(title, columns, rows));
}

/** @param {PlanFields} fields */
const isEarly = (fields) => fields.injection?.kind === "early";

/** @param {PlanFields} fields */
function requirements({ wish: required }) {
  const messages = required.eavesdropped ? `, ${percent(required.eavesdropped)} of messages are eavesdropped` : "";
  return facts([
    ["Parties", format(required.parties), hint("parties")],
    [
      "Privacy",
      `epsilon ${format(required.epsilon)} at delta ${format(required.delta)} (${required.rule === "classic" ? "classic" : "analytic"} rule)`,
      hint("epsilon"),
    ],
    ["Adversary", `${percent(required.colluding)} of parties collude${messages}`, hint("colluding")],
    ["Leavers", percent(required.dropout), hint("dropout")],
    ["Messages of a party", `at most ${format(required.messages)}`, hint("messages")],
    ["A value can differ by", format(required.sensitivity)],
  ]);
}

/** @param {PlanFields} fields */
function design(fields) {
  return facts([
    ["Rounds", `${format(fields.rounds)}, the last ${format(fields.quiet_rounds)} quiet`, hint("quiet")],
    ["Receivers", format(fields.receivers), hint("receivers")],
    ["Schedule", fields.schedule, hint("schedule")],
    ["Value enters", isEarly(fields) ? "at once" : "in shares", hint("injection")],
    ["Independent noise", format(fields.sigma_independent), hint("independent")],
    ["Cancelling noise", format(fields.sigma_cancelling), hint("cancelling")],
  ]);
}

/** @param {PlanFields} fields */
function expectations(fields) {
  const { error, sampling, expected_mse: total } = fields;
  const part = (/** @type {"independent" | "cancelling" | "data"} */ name) =>
    format(error[name]) + (total > 0 && Number.isFinite(total) ? ` (${percent(error[name] / total)})` : "");
  return facts([
    ["Mean squared error", `${format(total)}, known to within ${format(fields.standard_error, 2)}`, hint("mse")],
    ["… by independent noise", part("independent"), hint("independent")],
    ["… by cancelling noise", part("cancelling"), hint("cancelling")],
    ["… by lost values", part("data"), hint("data")],
    ["With a trusted server", format(fields.central_mse), hint("central")],
    ["Everyone alone", format(fields.local_mse), hint("local")],
    ["Probability of failure", `the guarantee fails with probability at most ${format(fields.failure_probability)}`],
    [
      "How it is known",
      `from ${format(sampling.views)} sampled views of ${format(sampling.parties)} parties each, confidence ${percent(sampling.confidence)}`,
    ],
  ]);
}

/** @param {PlanFields} fields */
function links(fields) {
  const { parties, epsilon, delta, colluding, eavesdropped, dropout, messages, sensitivity } = fields.wish;
  const run = queryString({
    parties,
    rounds: fields.rounds,
    receivers: fields.receivers,
    schedule: fields.schedule,
    quiet: fields.quiet_rounds,
    injection: isEarly(fields) ? "early" : "incremental",
    sigma_independent: (fields.sigma_independent / (sensitivity || 1)) * RECORD_MOVES_BY,
    sigma_cancelling: (fields.sigma_cancelling / (sensitivity || 1)) * RECORD_MOVES_BY,
  });
  const plan = queryString({ parties, epsilon, delta, colluding, eavesdropped, dropout, messages });
  return h(
    "p",
    { class: "row" },
    h("a", { href: `/plan${plan}` }, "Open in Plan"),
    h("a", { href: `/run${run}` }, "Watch a run of it"),
    h("a", { href: `/adversary${run}` }, "See the adversary's view of it"),
  );
}

/**
 * A card for a plan.
 * @param {PlanFields} fields
 * @param {string[]} remarks
 */
export function planFileCard(fields, remarks) {
  const total = fields.expected_mse;
  return h(
    "section",
    { class: "card", "aria-label": "Plan" },
    h("h2", {}, "Plan"),
    h(
      "div",
      { class: "tiles" },
      tile(format(Math.sqrt(total), 3), "expected error of the mean (root mean square)", hint("mse")),
      tile(
        `${format(total / fields.central_mse, 3)} ×`,
        "the squared error that a trusted server would have",
        hint("central"),
      ),
      tile(`${format(fields.rounds)} × ${format(fields.receivers)}`, "rounds × receivers", hint("messages")),
    ),
    remarks.map((sentence) => h("p", { class: "warn" }, `⚠ ${sentence}`)),
    h("h3", {}, "Requirements"),
    requirements(fields),
    h("h3", {}, "Design"),
    design(fields),
    h("h3", {}, "What to expect"),
    expectations(fields),
    optionsTable("Other designs that were considered", fields.considered ?? []),
    optionsTable("With other numbers of messages", fields.further ?? []),
    links(fields),
  );
}
