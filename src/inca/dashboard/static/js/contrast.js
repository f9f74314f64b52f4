// The protocol beside variants that are broken, against the same adversary; and how much noise would be enough.

import { ask, gaveUp } from "./api.js";
import { h, tell, text } from "./dom.js";
import { hint } from "./hints.js";
import { offBy } from "./normal.js";
import { sentence } from "./sentence.js";

const VARIANTS = [
  ["incremental", "In shares (protocol)"],
  ["early", "At once (protocol)"],
  ["single", "One noise term (broken)"],
  ["plain", "No cancelling noise (broken)"],
];

const loss = (worst) => (worst.epsilon === null ? h("strong", { class: "error" }, "infinite: values can be read off") : text(worst.epsilon));
const off = (guesses, kind) => (guesses.why_not ? "–" : text(offBy(guesses[kind], guesses.truth), 3));

/** The card that compares; `wanted(true)` remembers that it was asked for. */
export function contrastCard(remembered) {
  let asked = null, inCase = null, running = null;
  const cells = VARIANTS.map(() => [h("td", { class: "number" }, "–"), h("td", { class: "number" }, "–"), h("td", { class: "number" }, "–")]);
  const heads = VARIANTS.map(([, words]) => h("th", { scope: "row" }, words));
  const problem = h("p", { class: "error", role: "alert" }), local = h("p", { class: "note" });
  const table = h("div", { class: "scroll whole", tabindex: 0, role: "region", "aria-label": "Comparison of the variants" },
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "How noise goes in"),
    h("th", { scope: "col", class: "number" }, "Worst epsilon"), h("th", { scope: "col", class: "number" }, "Guess off", hint("naive")),
      h("th", { scope: "col", class: "number" }, "… if informed", hint("informed")))),
  h("tbody", {}, VARIANTS.map((_, i) => h("tr", {}, heads[i], cells[i])))));
  const button = h("button", { type: "button", onclick: () => { remembered(); work(); } }, "Compare with one noise term, and without cancelling noise");
  const not = h("p", { class: "note" }, "A file holds one way only, so there is nothing to compare it with.");
  const body = h("div", {}, h("p", {}, "With one noise term for all rounds, each message that is seen of a party is one more equation, but there are only " +
    "two unknowns: its noise and its value. ",
    "Whoever sees enough messages solves for both, and nothing but the independent noise is left to hide behind; the protocol adds fresh noise in every " +
      "round, so as long as enough messages stay hidden, there are more unknowns than equations."), button, problem, table, local);
  const card = h("section", { class: "card", "aria-labelledby": "contrast-title" },
    h("h2", { id: "contrast-title" }, "What if it were done in a simpler way?", hint("injection")), not, body);

  async function work() {
    running?.abort();
    const here = running = new AbortController();
    problem.textContent = "";
    table.hidden = false;
    for (const cell of cells.flat()) cell.textContent = "…";
    try {
      for (const [i, [injection]] of VARIANTS.entries()) {
        const answer = inCase.injection === injection ? inCase.answer : await ask("eyes", { ...asked, injection }, here.signal);
        if (here.signal.aborted) return;
        cells[i][0].replaceChildren(loss(answer.worst));
        cells[i][1].textContent = off(answer.guesses, "naive");
        cells[i][2].textContent = off(answer.guesses, "informed");
        local.textContent = answer.local === null ? "" : `Independent noise alone, without any help from others, would give everyone epsilon ` +
          `${text(answer.local)}. Guesses are off by so much (root mean square) on a scale from 0 to 1.`;
      }
      tell("All four variants are worked out.");
    } catch (error) {
      if (gaveUp(error)) return;
      problem.textContent = sentence(error);
      for (const cell of cells.flat()) if (cell.textContent === "…") cell.textContent = "–";
    }
  }
  table.hidden = true;
  /** Take what is looked at: parameters, their injection, the answer; compare at once if that was wanted before. */
  card.set = (given, injection, answer, wanted) => {
    [asked, inCase] = [given, { injection, answer }];
    not.hidden = !("file" in given);
    body.hidden = "file" in given;
    heads.forEach((head, i) => { head.textContent = VARIANTS[i][1] + (VARIANTS[i][0] === injection ? " ← shown above" : ""); });
    if (wanted && !("file" in given)) work();
    else { running?.abort(); table.hidden = true; local.textContent = ""; }
  };
  card.stale = () => { running?.abort(); for (const cell of cells.flat()) cell.textContent = "…"; local.textContent = ""; };
  card.stop = () => running?.abort();
  return card;
}

/** The card that finds the level of cancelling noise; `use(level)` takes it over. */
export function enoughCard({ epsilon, remembered, use }) {
  let asked = null, running = null;
  const input = h("input", { type: "number", id: "field-enough", min: 0.001, step: "any", value: epsilon, onchange: () => remembered(input.value) });
  const result = h("div", { role: "status" }), delta = h("span");
  const find = h("button", { type: "button", onclick: work }, "How much is enough?");
  const card = h("section", { class: "card", "aria-labelledby": "enough-title" },
    h("h2", { id: "enough-title" }, "How much cancelling noise would be enough?", hint("cancelling")),
    h("p", {}, "Against this adversary, in this run: the least level at which nobody loses more than"),
    h("div", { class: "row" }, h("label", { for: "field-enough" }, "epsilon"), input, delta, find), result);

  async function work() {
    const wanted = Number(input.value);
    if (!(wanted > 0)) { result.replaceChildren(h("p", { class: "error", role: "alert" }, "Epsilon must be a number above 0.")); return; }
    running?.abort();
    const here = running = new AbortController();
    result.replaceChildren(h("p", { class: "note" }, "Working it out …"));
    try {
      const answer = await ask("enough", { ...asked, epsilon: input.value }, here.signal);
      if (here.signal.aborted) return;
      const level = answer.sigma_cancelling;
      if (level === null) { result.replaceChildren(h("p", { class: "warn" },
        "No level is enough: this adversary sees too much, or there is too little independent noise.")); return; }
      const shown = Number(level.toPrecision(6)) < level ? Number((level * (1 + 1e-5)).toPrecision(6)) : Number(level.toPrecision(6));
      result.replaceChildren(h("p", {}, "A standard deviation of ", h("strong", {}, text(shown, 6)), " is enough, and less is not."),
        "file" in asked ? h("p", { class: "note" }, "The file keeps its own level; this is what the same run would have needed.")
          : h("button", { type: "button", class: "main", onclick: () => use(shown) }, "Use it"));
    } catch (error) {
      if (!gaveUp(error)) result.replaceChildren(h("p", { class: "error", role: "alert" }, `That cannot be had by cancelling noise alone. ${sentence(error)}`));
    }
  }
  card.set = (given) => {
    asked = given;
    running?.abort();
    result.replaceChildren();
    delta.textContent = `at delta ${text(Number(given.delta))}`;
  };
  card.stop = () => running?.abort();
  return card;
}
