// One party under the loupe: how well its value can be told from another, and what is promised at every delta.

import { curves } from "./charts.js";
import { h, percent, swatch, text } from "./dom.js";
import { fitted } from "./fit.js";
import { hint } from "./hints.js";
import { deltaFor, density, rightGuesses } from "./normal.js";
import { saveButton } from "./picture.js";

const POINTS = 121;
const line = (from, to) => Array.from({ length: POINTS }, (_, i) => from + ((to - from) * i) / (POINTS - 1));

/** Both bells: in units of its own noise the best statistic lies around 0 with value 0, and around mu with value 1. */
function bells(mu, party, width) {
  const at = line(-4, 4 + mu);
  return curves({ title: `Two bell curves, ${text(mu, 3)} standard deviations apart: what the best test sees if the value of party ${party} is 0, and if it is 1.`,
    series: [{ label: "value 0", kind: "low", x: at, y: at.map((each) => density(each)), area: true },
      { label: "value 1", kind: "high", x: at, y: at.map((each) => density(each - mu)), area: true, dashed: true }],
    xLabel: "what all that it sees adds up to", yLabel: "how likely", width, height: 240 });
}

function promise(mu, epsilon, delta, party, width) {
  const at = line(0, Math.max(2 * epsilon, 0.1));
  const low = Math.min(delta > 0 ? delta / 1e3 : 1e-12, 1e-8);
  return curves({ title: `The chance delta that the promise fails with, for every epsilon up to ${text(at.at(-1), 3)}, of party ${party}.`,
    series: [{ label: "delta", kind: "own", x: at, y: at.map((each) => { const value = deltaFor(mu, each); return value >= low ? value : null; }) }],
    xLabel: "epsilon", yLabel: "delta", logY: true, low, high: 1, marks: [{ at: epsilon, label: `epsilon ${text(epsilon, 3)}`, kind: "bad" }], width,
      height: 240 });
}

/** The card; `choose(party)` is told who shall be looked at. */
export function focusCard(choose) {
  let shown = null;
  const select = h("select", { id: "field-focus", onchange: () => choose(Number(select.value)) });
  const title = h("h2", { id: "focus-title" }), words = h("div"), charts = h("div", { class: "two" });
  const left = fitted((width) => bells(shown.mu, shown.party, width), 640),
    right = fitted((width) => promise(shown.mu, shown.epsilon, shown.delta, shown.party, width), 640);
  charts.append(h("figure", {}, h("figcaption", {}, "Is its value 0 or 1?", hint("test")), left,
    h("div", { class: "legend" }, swatch("low", "if its value is 0"), swatch("high", "if its value is 1 (dashed)"))),
    h("figure", {}, h("figcaption", {}, "Epsilon for every delta", hint("delta")), right));
  const card = h("section", { class: "card", "aria-labelledby": "focus-title" },
    h("div", { class: "row spread" }, title, h("div", { class: "row" }, h("label", { for: "field-focus" }, "Look at party"), select,
      saveButton(() => left.querySelector("svg"), "two-cases"))), words, charts);
  card.set = (answer, sorted, party) => {
    const i = answer.honest.indexOf(party), mu = answer.mu[i], epsilon = answer.epsilon[i];
    const key = sorted.map((each) => each.party).join();
    if (select.dataset.key !== key) {
      select.dataset.key = key;
      select.replaceChildren(...sorted.map((each) => h("option", { value: each.party }, `${each.party}`)));
    }
    select.value = String(party);
    title.textContent = `Party ${party}`;
    charts.hidden = mu === null || epsilon === null;
    if (mu === null) {
      words.replaceChildren(h("p", { class: "alarm" }, "There is no privacy at all here: whoever knows the other values can tell the two cases apart " +
        "for certain, and read its value off exactly."));
      return;
    }
    words.replaceChildren(h("p", {}, `Say the adversary knows everything else, and only wants to know whether the value of party ${party} is 0 or 1. The ` +
      `two cases lie ${text(mu, 3)} standard deviations of noise apart`, hint("mu"), ". ",
      h("strong", {}, `Whoever guesses from this which of the two it is, is right in ${percent(rightGuesses(mu))} of cases`), " (a coin is right in 50 %). ",
      epsilon === null ? "At this delta there is no finite epsilon." : `Its loss is epsilon ${text(epsilon)} at delta ${text(answer.delta)}`, hint("epsilon"),
        "."));
    if (charts.hidden) return;
    shown = { mu, epsilon, delta: answer.delta, party };
    left.again();
    right.again();
  };
  card.stop = () => { left.stop(); right.stop(); };
  return card;
}
