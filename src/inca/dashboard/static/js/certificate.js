// A certificate of privacy for people to read.

import { shortIds } from "./adversary.js";
import { h, text } from "./dom.js";
import { hint } from "./hints.js";
import { lossesChart } from "./losses.js";
import { saveButton } from "./picture.js";

/** Pairs of a word and what it is; pairs of null are left out. */
export const facts = (pairs) => h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, ...what]) => [h("dt", {}, name), h("dd", {}, what)]).flat());

/** What an epsilon means, in words. */
export function inWords(epsilon) {
  if (epsilon === null) return "Nothing is promised: at least one value can be read off exactly, or nothing hides it.";
  const factor = Math.exp(epsilon), start = `Whatever this adversary believed about a party before, seeing the run changes the odds by a factor of at ` +
    `most ${text(factor, 3)}`;
  if (epsilon <= 0.5) return `${start}: a strong promise.`;
  if (epsilon <= 2) return `${start}: a fair promise.`;
  return epsilon <= 5 ? `${start}: a weak promise.` : `${start}: that is hardly a promise.`;
}

function adversary(fields) {
  const { colluding, eavesdropped } = fields.adversary;
  const who = colluding.length ? `${text(colluding.length)} of ${text(fields.parties)} parties collude (${shortIds(colluding)})` : "nobody colludes";
  return `${who}; ${eavesdropped.length ? `${text(eavesdropped.length)} messages are tapped` : "no message is tapped"}. It also sees all final messages.`;
}

/** Cards for a certificate's fields; `stop` ends the watching of their width. */
export function certificateView(fields, heading = "h2") {
  const losses = lossesChart(), { worst, rank, full_attendance: full } = fields;
  losses.set({ honest: fields.honest, epsilon: fields.epsilon, focus: worst.party });
  const most = full === null ? worst.epsilon : worst.epsilon === null || full.epsilon === null ? null : Math.max(worst.epsilon, full.epsilon);
  const element = h("section", { class: "card", "aria-label": "Certificate" },
    h("div", { class: "row spread" }, h(heading, {}, "Certificate of privacy", hint("certificate")), saveButton(losses.drawing, "certificate-losses")),
    h("div", { class: "tiles" }, h("div", { class: "tile" }, h("div", { class: "big" }, worst.epsilon === null ? "∞" : text(worst.epsilon, 3)),
      h("div", { class: "note" }, `worst privacy loss epsilon, of party ${worst.party}, at delta ${text(fields.delta)}`, hint("epsilon"))),
      h("div", { class: "tile" }, h("div", { class: "big" }, `${text(fields.honest.length)}`),
        h("div", { class: "note" }, `honest parties of ${text(fields.parties)}, in ${text(fields.rounds)} rounds`)),
      full && h("div", { class: "tile" }, h("div", { class: "big" }, full.epsilon === null ? "∞" : text(full.epsilon, 3)),
        h("div", { class: "note" }, "worst loss if nobody had been away and all had arrived"))),
    h("p", { class: most === null ? "alarm" : null }, inWords(most), most === null ? "" : ` This holds but for a chance of ${text(fields.delta)}.`),
    h("h3", {}, "The loss of every honest party"), losses, h("h3", {}, "Against whom, and why it holds"),
    facts([["Adversary", adversary(fields)], ["Kind of privacy", fields.notion],
      ["Hidden messages", `they tie together ${text(rank.hidden)} of ${text(rank.needed)} needed: ${rank.met ? "enough" : "NOT enough"}`, hint("rank")],
      ["Noise", `independent ${text(fields.sigma_independent)}, cancelling ${text(fields.sigma_cancelling)} (standard deviations); one value can differ ` +
        `by ${text(fields.sensitivity)}`, hint("sigma")],
      ["Rule", fields.rule === "exact" ? "exact (no bound: this is the loss)" : fields.rule],
      ["Execution", h("code", {}, fields.execution)], ["Made by", `inca ${fields.inca}`]]),
    h("p", {}, h("strong", {}, "What it does not cover: "),
      "other adversaries than this one, parties that do not follow the protocol, other sessions with the same values, and what the result itself tells."),
    h("details", {}, h("summary", {}, "What it rests on"), h("ul", {}, (fields.assumptions ?? []).map((each) => h("li", {}, each)))));
  element.stop = losses.stop;
  return element;
}
