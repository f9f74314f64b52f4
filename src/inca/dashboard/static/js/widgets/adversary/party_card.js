// One party: how well its value can be told from another, and its epsilon for every delta.

/** @import { AdversaryAnswer } from "../../lib/types.js" */
/** @import { Loss } from "../loss_chart.js" */
import { fill, h } from "../../lib/dom.js";
import { format, percent } from "../../lib/format.js";
import { correctGuessProbability, deltaFor, density } from "../../lib/normal_distribution.js";
import { range } from "../../lib/scale.js";
import { curveChart } from "../curve_chart.js";
import { figureHead, swatch } from "../elements.js";
import { hint } from "../hint.js";
import { saveButton } from "../picture_buttons.js";
import { resizable } from "../resizable.js";

/** @typedef {{ party: number, mu: number, epsilon: number, delta: number }} PartyLoss */

const POINTS = 121;
const HEIGHT = 240;
const MAX_WIDTH = 640;

/**
 * Points from one number to another, at equal distances.
 * @param {number} from
 * @param {number} to
 */
const points = (from, to) => range(POINTS).map((i) => from + ((to - from) * i) / (POINTS - 1));

/**
 * What the best test sees, in units of its noise: around 0 in one case, around mu in the other.
 * @param {PartyLoss} loss
 * @param {number} width
 */
function testChart({ party, mu }, width) {
  const x = points(-4, 4 + mu);
  return curveChart({
    title: `Two bell curves, ${format(mu, 3)} standard deviations apart: what the best test sees in the two cases, of party ${party}.`,
    x,
    curves: [
      { kind: "low", y: x.map((at) => density(at)), area: true },
      { kind: "high", y: x.map((at) => density(at - mu)), area: true, dashed: true },
    ],
    xLabel: "everything it sees, in one number",
    yLabel: "density",
    width,
    height: HEIGHT,
  }).drawing;
}

/**
 * Delta for every epsilon.
 * @param {PartyLoss} loss
 * @param {number} width
 */
function deltaChart({ party, mu, epsilon, delta }, width) {
  const x = points(0, Math.max(2 * epsilon, 0.1));
  const least = Math.min(delta > 0 ? delta / 1e3 : 1e-12, 1e-8);
  const y = x.map((at) => {
    const value = deltaFor(mu, at);
    return value >= least ? value : null;
  });
  return curveChart({
    title: `The probability delta with which the guarantee fails, for every epsilon up to ${format(x[POINTS - 1], 3)}, of party ${party}.`,
    x,
    curves: [{ kind: "own", y }],
    xLabel: "epsilon",
    yLabel: "delta",
    logFrom: least,
    mark: { at: epsilon, label: `epsilon ${format(epsilon, 3)}`, kind: "bad" },
    width,
    height: HEIGHT,
  }).drawing;
}

/**
 * @param {{ party: number, mu: number, epsilon: number | null, delta: number }} loss
 * @param {number} sensitivity
 */
function describe({ party, mu, epsilon, delta }, sensitivity) {
  const loss =
    epsilon === null
      ? "At this delta there is no finite epsilon"
      : `Its loss is epsilon ${format(epsilon)} at delta ${format(delta)}`;
  return h(
    "p",
    {},
    `Suppose the adversary knows everything else, and only wants to know which of two values party ${party} has, as far apart as they can be (${format(sensitivity)}). The two cases lie ${format(mu, 3)} standard deviations of noise apart`,
    hint("mu"),
    ". ",
    h(
      "strong",
      {},
      `The best guess of which of the two it is, is right in ${percent(correctGuessProbability(mu))} of cases`,
    ),
    " (a coin flip: 50 %). ",
    loss,
    hint("epsilon"),
    ".",
  );
}

/** The card. */
export class PartyCard {
  /** @type {PartyLoss | null} */
  #shown = null;
  #title = h("h2", { id: "party-title" });
  #words = h("div");
  #listed = "";

  /**
   * @param {(party: number) => void} choose
   * @param {AbortSignal} viewClosed
   */
  constructor(choose, viewClosed) {
    this.select = h("select", { id: "field-focus", onchange: () => choose(Number(this.select.value)) });
    this.test = resizable((width) => this.#shown && testChart(this.#shown, width), viewClosed, MAX_WIDTH);
    this.deltas = resizable((width) => this.#shown && deltaChart(this.#shown, width), viewClosed, MAX_WIDTH);
    const legend = [swatch("low", "in one case"), swatch("high", "in the other (dashed)")];
    this.charts = h(
      "div",
      { class: "two" },
      h(
        "figure",
        {},
        figureHead(["Which of two values is it?", hint("test")], saveButton(this.test.drawing, "two-cases")),
        this.test.element,
        h("div", { class: "legend" }, legend),
      ),
      h(
        "figure",
        {},
        figureHead(["Epsilon for every delta", hint("delta")], saveButton(this.deltas.drawing, "epsilon-delta")),
        this.deltas.element,
        h("div", { class: "legend" }, swatch("own", "delta for every epsilon")),
      ),
    );
    const label = h("label", { for: "field-focus" }, "Look at party");
    const controls = h("div", { class: "row" }, label, this.select);
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "party-title" },
      h("div", { class: "row spread" }, this.#title, controls),
      this.#words,
      this.charts,
    );
  }

  /**
   * @param {AdversaryAnswer} answer
   * @param {Loss[]} losses largest first
   * @param {number} party
   */
  show({ honest, mu: mus, epsilon: epsilons, delta, sensitivity }, losses, party) {
    const parties = losses.map((loss) => String(loss.party));
    if (this.#listed !== parties.join()) {
      this.#listed = parties.join();
      this.select.replaceChildren(...parties.map((id) => h("option", { value: id }, id)));
    }
    this.select.value = String(party);
    this.#title.textContent = `Party ${party}`;
    const i = honest.indexOf(party);
    const [mu, epsilon] = [mus[i], epsilons[i]];
    const exposed =
      "There is no privacy at all here: whoever knows the other values can tell the two cases apart for certain, and compute the value exactly.";
    const alarm = () => h("p", { class: "alarm" }, exposed);
    fill(this.#words, mu === null ? alarm() : describe({ party, mu, epsilon, delta }, sensitivity));
    this.#shown = mu === null || epsilon === null ? null : { party, mu, epsilon, delta };
    this.charts.hidden = this.#shown === null;
    this.test.redraw();
    this.deltas.redraw();
  }
}
