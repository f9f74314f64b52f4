// A certificate of privacy for people to read.

/** @import { Certificate } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";
import { count, format, idRanges } from "../../lib/format.js";
import { describeParams } from "../../lib/parameter_words.js";
import { facts, tile } from "../elements.js";
import { hint } from "../hint.js";
import { byLoss, lossChart } from "../loss_chart.js";
import { saveButton } from "../picture_buttons.js";

/**
 * What an epsilon means, in words; null is infinite.
 * @param {number | null} epsilon
 */
function describeLoss(epsilon) {
  if (epsilon === null)
    return "Nothing is guaranteed: at least one value can be computed exactly, or nothing hides it.";
  const verdicts = /** @type {const} */ ([
    [0.5, "a strong guarantee"],
    [2, "a fair guarantee"],
    [5, "a weak guarantee"],
    [Number.POSITIVE_INFINITY, "hardly a guarantee"],
  ]);
  const verdict = verdicts.find(([most]) => epsilon <= most)?.[1];
  const factor = format(Math.exp(epsilon), 3);
  return `Whatever this adversary believed about a party before, seeing the run changes the odds by a factor of at most ${factor}: ${verdict}.`;
}

/** @param {Certificate} certificate */
function describeAdversary({ adversary: { colluding, eavesdropped }, parties }) {
  const who = colluding.length
    ? `${format(colluding.length)} of ${format(parties)} parties collude (${idRanges(colluding)})`
    : "nobody colludes";
  const messages = eavesdropped.length ? count(eavesdropped.length, "message is", "messages are") : "no message is";
  return `${who}; ${messages} eavesdropped. It also sees all final messages.`;
}

/**
 * The largest loss, also counting the one if nobody had been absent; null is infinite.
 * @param {Certificate} certificate
 */
function largestLoss({ worst, full_attendance: full }) {
  if (!full) return worst.epsilon;
  return worst.epsilon === null || full.epsilon === null ? null : Math.max(worst.epsilon, full.epsilon);
}

/** @param {number | null} epsilon */
const bigLoss = (epsilon) => (epsilon === null ? "∞" : format(epsilon, 3));

/** @param {Certificate} fields */
function tiles({ worst, delta, honest, parties, rounds, full_attendance: full }) {
  return h(
    "div",
    { class: "tiles" },
    tile(
      bigLoss(worst.epsilon),
      `worst privacy loss epsilon, of party ${worst.party}, at delta ${format(delta)}`,
      hint("epsilon"),
    ),
    tile(format(honest.length), `honest parties of ${format(parties)}, in ${format(rounds)} rounds`),
    full && tile(bigLoss(full.epsilon), "worst loss if nobody had been absent and every message had arrived"),
  );
}

/** @param {Certificate} fields */
function details(fields) {
  const { rank } = fields;
  return facts([
    ["Adversary", describeAdversary(fields)],
    ["Kind of privacy", fields.notion],
    [
      "Hidden messages",
      `they connect ${format(rank.hidden)} of ${format(rank.needed)} needed: ${rank.met ? "enough" : "NOT enough"}`,
      hint("rank"),
    ],
    [
      "Noise",
      `independent ${format(fields.sigma_independent)}, cancelling ${format(fields.sigma_cancelling)} (standard deviations); one value can differ by ${format(fields.sensitivity)}`,
      hint("sigma"),
    ],
    ["Rule", fields.rule === "classic" ? "classic (a bound)" : "analytic (exact: this is the loss, not a bound)"],
    ["Execution", h("code", {}, fields.execution)],
    ["Made by", `inca ${fields.inca}`],
  ]);
}

/** What the picture of the losses must not be told without. @param {Certificate} fields */
function parametersOf(fields) {
  const { parties, rounds, delta, adversary, sigma_independent, sigma_cancelling, sensitivity } = fields;
  const told = { parties, rounds, delta, sigma_independent, sigma_cancelling, sensitivity };
  const { colluding, eavesdropped } = adversary;
  const seen = {
    colluding: idRanges(colluding) || "nobody",
    eavesdropped: count(eavesdropped.length, "message", "messages"),
  };
  return `${describeParams({ ...told, ...seen })}, execution ${fields.execution}`;
}

/**
 * A card for a certificate.
 * @param {Certificate} fields
 * @param {AbortSignal} viewClosed
 */
export function certificateCard(fields, viewClosed) {
  const chart = lossChart(viewClosed);
  const losses = byLoss(fields.honest, fields.epsilon);
  chart.show({ losses, reference: null, chosen: fields.worst.party, zoom: false });
  const most = largestLoss(fields);
  const except = most === null ? "" : ` This holds except with probability ${format(fields.delta)}.`;
  return h(
    "section",
    { class: "card", "aria-label": "Certificate", "data-parameters": parametersOf(fields) },
    h(
      "div",
      { class: "row spread" },
      h("h2", {}, "Certificate of privacy", hint("certificate")),
      saveButton(chart.drawing, "certificate-losses", () => "Certificate of privacy: the loss of every honest party"),
    ),
    tiles(fields),
    h("p", { class: most === null ? "alarm" : null }, describeLoss(most), except),
    h("h3", {}, "The loss of every honest party"),
    chart.element,
    h("h3", {}, "Against whom, and why it holds"),
    details(fields),
    h(
      "p",
      {},
      h("strong", {}, "Not covered: "),
      "adversaries other than this one, parties that deviate from the protocol, other sessions with the same values, and what the result itself reveals.",
    ),
    h(
      "details",
      {},
      h("summary", {}, "Assumptions"),
      h(
        "ul",
        {},
        (fields.assumptions ?? []).map((assumption) => h("li", {}, assumption)),
      ),
    ),
  );
}
