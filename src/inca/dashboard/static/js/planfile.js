// A plan that was read from a file, as a table for people.

import { h, percent, text } from "./dom.js";
import { facts } from "./certificate.js";
import { hint } from "./hints.js";

const options = (title, list) => list.length > 0 && h("details", {}, h("summary", {}, title),
  h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
  h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Design"), h("th", { scope: "col", class: "number" }, "Messages of a party"),
  h("th", { scope: "col", class: "number" }, "Error, chosen = 1"))),
  h("tbody", {}, list.map((each) => h("tr", {}, h("th", { scope: "row" }, each.design), h("td", { class: "number" }, text(each.messages)),
    h("td", { class: "number" }, each.relative_mse === null ? "none" : text(each.relative_mse, 3))))))));

/** A card for a plan's fields. */
export function planView(fields) {
  const { wish, error, sampling } = fields, total = fields.expected_mse;
  const part = (name) => (total > 0 && total < Infinity ? ` (${percent(error[name] / total)})` : "");
  const tile = (big, ...words) => h("div", { class: "tile" }, h("div", { class: "big" }, big), h("div", { class: "note" }, words));
  const early = fields.injection?.kind === "early";
  const asked = { parties: wish.parties, epsilon: wish.epsilon, delta: wish.delta, colluding: wish.colluding, dropout: wish.dropout, messages: wish.messages };
  const run = { parties: wish.parties, rounds: fields.rounds, receivers: fields.receivers, schedule: fields.schedule, quiet: fields.quiet_rounds,
    injection: early ? "early" : "incremental",
    sigma_independent: fields.sigma_independent / (wish.sensitivity || 1), sigma_cancelling: fields.sigma_cancelling / (wish.sensitivity || 1) };
  const way = (path, given, words) => h("a", { href: `${path}?${new URLSearchParams(given)}` }, words);
  return h("section", { class: "card", "aria-label": "Plan" }, h("h2", {}, "Plan"),
    h("div", { class: "tiles" }, tile(text(Math.sqrt(total), 3), "expected error of the mean (root mean square)", hint("mse")),
      tile(`${text(total / fields.central_mse, 3)} ×`, "the squared error that a trusted server would have", hint("central")),
      tile(`${text(fields.rounds)} × ${text(fields.receivers)}`, "rounds × receivers", hint("messages"))),
    h("h3", {}, "What was wished"),
    facts([["Parties", text(wish.parties), hint("parties")],
      ["Privacy", `epsilon ${text(wish.epsilon)} at delta ${text(wish.delta)} (${wish.rule} rule)`, hint("epsilon")],
      ["Adversary", `${percent(wish.colluding)} of parties collude${wish.eavesdropped ? `, ${percent(wish.eavesdropped)} of messages are tapped` : ""}`,
      hint("colluding")],
      ["Leavers", percent(wish.dropout), hint("dropout")], ["Messages of a party", `at most ${text(wish.messages)}`, hint("messages")],
        ["A value can differ by", text(wish.sensitivity)]]),
    h("h3", {}, "What to do"),
    facts([["Rounds", `${text(fields.rounds)}, the last ${text(fields.quiet_rounds)} quiet`, hint("quiet")],
      ["Receivers", text(fields.receivers), hint("receivers")], ["Schedule", fields.schedule, hint("schedule")],
      ["Value goes in", early ? "at once" : "in shares", hint("injection")],
      ["Independent noise", text(fields.sigma_independent), hint("independent")], ["Cancelling noise", text(fields.sigma_cancelling), hint("cancelling")]]),
    h("h3", {}, "What to expect"),
    facts([["Mean squared error", `${text(total)}, known to within ${text(fields.standard_error, 2)}`, hint("mse")],
      ["… by independent noise", text(error.independent) + part("independent"), hint("independent")],
      ["… by cancelling noise", text(error.cancelling) + part("cancelling"), hint("cancelling")],
      ["… by lost values", text(error.data) + part("data"), hint("data")],
      ["With a trusted server", text(fields.central_mse), hint("central")], ["Everyone alone", text(fields.local_mse), hint("local")],
        ["Chance to break the promise", `at most ${text(fields.failure_probability)}`],
      ["How it is known", `from ${text(sampling.views)} sampled views of ${text(sampling.parties)} parties each, confidence ${percent(sampling.confidence)}`]]),
    options("Other designs that were considered", fields.considered ?? []), options("What other numbers of messages would bring", fields.further ?? []),
    h("p", { class: "row" }, way("/plan", asked, "Open in Plan"), way("/run", run, "Watch a run of it"),
      way("/eyes", run, "See it through an adversary's eyes")));
}
