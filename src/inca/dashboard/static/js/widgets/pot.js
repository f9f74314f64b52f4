// The pot: everything that all parties hold together, as one bar. Noise cancels in the sum, so the sum is shown.

/** @import { RunAnswer } from "../lib/types.js" */
import { fill, h, svg } from "../lib/dom.js";
import { format } from "../lib/format.js";
import { scale, ticks } from "../lib/scale.js";
import { swatch } from "./elements.js";
import { resizable } from "./resizable.js";

/** @typedef {{ value: number, noise: number }} Pot both as means over all parties */

const HEIGHT = 92;
const SIDE = 14;
const LETTER = 6.6; // about how wide one is
const BAR = { top: 22, height: 30 };

/**
 * What is in the pot after a round, by the parties that are there; after the last one, also once they have settled.
 * @param {RunAnswer} run
 * @param {number} round
 * @param {boolean} settled
 * @returns {Pot | null} null without a simulation, or if nobody is there
 */
function potOf({ simulation, present, rounds, weights }, round, settled) {
  if (!simulation) return null;
  const after = settled && round === rounds ? simulation.settled : null;
  const messages = after?.messages ?? simulation.messages[round];
  const noiseless = after?.noiseless ?? simulation.noiseless[round];
  const total = (/** @type {number[]} */ numbers, /** @type {number} */ at) =>
    numbers.reduce((sum, number, party) => sum + (present[at][party] ? number : 0), 0);
  const parts = after?.weight ?? total(weights[rounds], rounds);
  if (!parts) return null;
  const value = total(noiseless, round) / parts;
  return { value, noise: total(messages, round) / parts - value };
}

/**
 * The mean that a round is to come to: that of all values, or, once others have left and that is settled, of those who
 * stayed.
 * @param {RunAnswer} run
 * @param {number} round
 */
export function truthOf({ simulation, published, rounds }, round) {
  if (!simulation) return null;
  const { values, settled, true_mean: all } = simulation;
  if (!settled || round < rounds) return { mean: all, label: "true mean" };
  const mean = published.reduce((sum, party) => sum + values[party], 0) / published.length;
  return { mean, label: "mean of those who stayed" };
}

/**
 * Where a label stands beside a line so that it is not cut off: before it, else after it, else in the middle.
 * @param {number} line
 * @param {string} label
 * @param {number} width
 */
function besideLine(line, label, width) {
  const needed = LETTER * label.length + 4;
  if (line >= needed) return { x: line - 4, "text-anchor": "end" };
  if (line + needed <= width) return { x: line + 4, "text-anchor": "start" };
  return { x: width / 2, "text-anchor": "middle" };
}

/**
 * @param {Pot} pot
 * @param {{ truth: { mean: number, label: string }, low: number, high: number, width: number, title: string }} look
 */
function draw({ value, noise }, { truth, low, high, width, title }) {
  const x = scale(low, high, SIDE, width - SIDE);
  const within = (/** @type {number} */ at) => x(Math.min(Math.max(at, low), high));
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": title });
  const bar = (
    /** @type {number} */ from,
    /** @type {number} */ to,
    /** @type {string} */ kind,
    /** @type {object} */ more,
  ) => {
    const [left, right] = [within(Math.min(from, to)), within(Math.max(from, to))];
    const size = { x: left, width: Math.max(right - left, 0), y: BAR.top, height: BAR.height };
    return svg("rect", { ...size, fill: `var(--${kind})`, ...more });
  };
  const floor = BAR.top + BAR.height;
  for (const at of ticks(low, high, 6)) {
    drawing.append(
      svg("line", { class: "axis", x1: x(at), x2: x(at), y1: BAR.top - 6, y2: floor + 6 }),
      svg("text", { class: "soft", x: x(at), y: floor + 20, "text-anchor": "middle" }, format(at, 3)),
    );
  }
  const end = value + noise;
  drawing.append(
    bar(0, value, "own", {}),
    bar(value, end, "cancelling", { opacity: noise < 0 ? 0.6 : 0.9 }),
    svg("line", { class: "pot-truth", x1: x(truth.mean), x2: x(truth.mean), y1: BAR.top - 12, y2: floor + 6 }),
    svg("text", { class: "soft", y: BAR.top - 12, ...besideLine(x(truth.mean), truth.label, width) }, truth.label),
  );
  if (end < low || end > high) {
    const [tip, base] = end > high ? [width - 2, width - 12] : [2, 12];
    const middle = BAR.top + BAR.height / 2;
    drawing.append(
      svg("path", { d: `M${base} ${middle - 9}L${base} ${middle + 9}L${tip} ${middle}Z`, fill: "var(--cancelling)" }),
    );
  }
  return drawing;
}

/**
 * What is mere rounding is nothing.
 * @param {number} noise
 */
const small = (noise) => (Math.abs(noise) < 1e-3 ? 0 : noise);

/** The pot with its words. */
export class PotBar {
  /** @type {{ pot: Pot, run: RunAnswer, round: number, title: string } | null} */
  #shown = null;
  #words = h("p", { class: "numbers", role: "status" });

  /** @param {AbortSignal} viewClosed */
  constructor(viewClosed) {
    this.place = resizable((width) => this.#shown && this.#draw(this.#shown, width), viewClosed);
    const legend = [swatch("own", "value part"), swatch("cancelling", "noise that is still in it")];
    this.element = h("div", { class: "pot" }, this.place.element, h("div", { class: "legend" }, legend), this.#words);
  }

  /**
   * @param {{ pot: Pot, run: RunAnswer, round: number, title: string }} shown
   * @param {number} width
   */
  #draw({ pot, run, round, title }, width) {
    const truth = truthOf(run, round);
    if (!run.simulation || !truth) return null;
    const [least, most] = run.simulation.domain;
    const margin = (most - least) / 4;
    return draw(pot, { truth, low: least - margin, high: most + margin, width, title });
  }

  /**
   * @param {RunAnswer} run
   * @param {number} round
   * @param {boolean} [settled]
   */
  show(run, round, settled = true) {
    const pot = potOf(run, round, settled);
    this.element.hidden = !pot;
    this.#shown = null;
    if (!pot || !run.simulation) return;
    const { unit } = run.simulation;
    const words = `Everything together, for each party: ${format(pot.value, 3)} ${unit} of values, ${format(small(pot.noise), 2)} of noise.`;
    fill(this.#words, words);
    this.#shown = { pot, run, round, title: `Everything together. ${words}` };
    this.place.redraw();
  }
}
