// The result of a session for people to read.

import { facts } from "./certificate.js";
import { h, text } from "./dom.js";
import { hint } from "./hints.js";

const vector = (estimate) => (Array.isArray(estimate)
  ? estimate.slice(0, 12).map((each) => text(each)).join(", ") + (estimate.length > 12 ? `, … (${estimate.length} in all)` : "") : text(estimate));

/** A card for a result's fields. */
export function resultView(fields) {
  const none = fields.estimate === null, many = Array.isArray(fields.estimate);
  const tile = (big, ...words) => h("div", { class: "tile" }, h("div", { class: "big" }, big), h("div", { class: "note" }, words));
  const kept = fields.epsilon !== null && fields.epsilon <= fields.wanted;
  return h("section", { class: "card", "aria-label": "Result" }, h("h2", {}, fields.name ? `Result of “${fields.name}”` : "Result"),
    none ? h("p", { class: "alarm" }, `There is no result: ${fields.reason || "no reason is given"}.`) : h("div", { class: "tiles" },
      many ? null : tile(text(fields.estimate), "estimated mean",
        fields.standard_error === null ? ", with an unknown error" : `, give or take ${text(fields.standard_error, 3)} (one standard error of the noise)`),
      tile(`${text(fields.present)} of ${text(fields.parties)}`, "parties were there at the end"),
      tile(fields.epsilon === null ? "–" : text(fields.epsilon, 3),
        `${fields.party}'s own privacy loss epsilon; at most ${text(fields.wanted)} was agreed, at delta ${text(fields.delta)}`, hint("epsilon"))),
    none || fields.epsilon === null ? null : h("p", { class: kept ? "good" : "error" },
      kept ? "✓ The loss is within what was agreed." : "✗ The loss is larger than what was agreed."),
    facts([many && ["Estimated mean", vector(fields.estimate)],
      many && ["Standard error", fields.standard_error === null ? "unknown" : text(fields.standard_error)], ["Party", fields.party],
      fields.coalition && ["Worst coalition", fields.coalition.length ? `${fields.coalition.length === 1 ? "party" : "parties"} ${fields.coalition.join(", ")}`
        : "nobody", fields.coalitions === null ? "" : `: of ${text(fields.coalitions)} coalitions that were ` +
          `tried${fields.all_coalitions ? ", all there are of this size," : ""} the one that learns most`],
      none ? null : ["Messages in doubt", fields.in_doubt?.length
        ? `${fields.in_doubt.length}: nobody can tell whether they arrived; they carry a weight of ${text(fields.weight_in_doubt)}`
        : "none: everyone agrees on what arrived"],
      none ? null : ["Sum of weights", text(fields.weight), hint("weight")], fields.reason && !none && ["Remark", fields.reason],
        ["Session", h("code", {}, fields.session)], fields.execution && ["Execution", h("code", {}, fields.execution)]]),
    h("p", { class: "note" }, "The estimate is known to all parties. No party's own value is in this."));
}
