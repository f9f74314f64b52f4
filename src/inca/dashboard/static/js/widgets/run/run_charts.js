// Below the stage: how the estimate forms, and why a message reveals no value.

/** @import { Content, RunAnswer, Simulation } from "../../lib/types.js" */
/** @import { Curve } from "../curve_chart.js" */
import { fill, h } from "../../lib/dom.js";
import { format } from "../../lib/format.js";
import { range } from "../../lib/scale.js";
import { curveChart } from "../curve_chart.js";
import { dataTable } from "../data_table.js";
import { swatch } from "../elements.js";
import { hint } from "../hint.js";
import { saveButton } from "../picture_buttons.js";
import { resizable } from "../resizable.js";

/**
 * @typedef {object} ChartContent
 * @property {Content} title
 * @property {Content[]} legend
 * @property {string} description for those who cannot see it
 * @property {string} yLabel
 * @property {Curve[]} curves
 * @property {[number, number]} [limits] beyond which curves are cut, so that the end stays visible
 * @property {string[]} columns of the table, after the round
 * @property {(number | null)[][]} rows of the table, after the round
 */

const HEIGHT = 230;

/** @param {RunAnswer} run @returns {ChartContent} */
function attendance(run) {
  const present = run.present.map((row) => row.reduce((sum, here) => sum + here, 0));
  return {
    title: "How many are present",
    legend: [swatch("own", "parties that are present")],
    description: "Parties that are present, by round",
    yLabel: "parties",
    curves: [{ kind: "own", y: present }],
    columns: ["Parties present"],
    rows: present.map((parties) => [parties]),
  };
}

/**
 * @param {RunAnswer} run
 * @param {number} party
 * @returns {ChartContent}
 */
function weightOf(run, party) {
  const weights = run.weights.map((row) => row[party]);
  return {
    title: [`The weight of party ${party}`, hint("weight")],
    legend: [swatch("own", "weight of what it holds")],
    description: `Weight of what party ${party} holds, by round`,
    yLabel: "weight",
    curves: [{ kind: "own", y: weights }],
    columns: ["Weight"],
    rows: weights.map((weight) => [weight]),
  };
}

/** @param {Simulation} simulation @returns {ChartContent} */
function estimateOf({ estimates, true_mean: trueMean, domain: [low, high], unit }) {
  const margin = (high - low) / 4;
  const last = estimates[estimates.length - 1];
  return {
    title: ["The estimate as it forms", hint("estimate")],
    legend: [
      swatch("own", "estimate from all messages of the round, with the noise in them"),
      swatch("data", "true mean (dashed)"),
    ],
    description: `Estimate of the mean by round, as the noise leaves it: ${last === null ? "none" : format(last)} in the last round; the true mean is ${format(trueMean)}`,
    yLabel: `mean in ${unit}`,
    limits: [low - margin, high + margin],
    curves: [
      { kind: "data", y: estimates.map(() => trueMean), dashed: true },
      { kind: "own", y: estimates },
    ],
    columns: ["Estimate", "True mean"],
    rows: estimates.map((estimate) => [estimate, trueMean]),
  };
}

/**
 * @param {Simulation} simulation
 * @param {number} party
 * @returns {ChartContent}
 */
function messageOf(simulation, party) {
  const messages = simulation.messages.map((row) => row[party]);
  const noiseless = simulation.noiseless.map((row) => row[party]);
  return {
    title: [`What party ${party} holds`, hint("message")],
    legend: [
      swatch("cancelling", "the message others see"),
      swatch("own", "its value part, which nobody sees (dashed)"),
    ],
    description: `Message of party ${party} by round, beside its value part without any noise`,
    yLabel: simulation.unit,
    curves: [
      { kind: "own", y: noiseless, dashed: true },
      { kind: "cancelling", y: messages },
    ],
    columns: ["Message", "Value part", "Noise part"],
    rows: messages.map((message, t) => [message, noiseless[t], message - noiseless[t]]),
  };
}

/** One chart with its words and its table. A click on it goes to a round. */
class RoundChart {
  /** @type {ReturnType<typeof curveChart> | null} */
  #chart = null;
  /** @type {ChartContent | null} */
  #content = null;
  #round = 0;
  #title = h("h2");
  #legend = h("div", { class: "legend" });
  #table = h("div");

  /**
   * @param {string} name of the picture when it is saved
   * @param {(round: number) => void} goTo
   * @param {AbortSignal} viewClosed
   */
  constructor(name, goTo, viewClosed) {
    this.place = resizable((width) => this.#content && this.#draw(this.#content, width), viewClosed);
    this.place.element.classList.add("run-drawing");
    this.element = h(
      "section",
      { class: "card", hidden: true },
      h("div", { class: "row spread" }, this.#title, saveButton(this.place.drawing, name)),
      this.#legend,
      this.place.element,
      this.#table,
    );
    this.place.element.addEventListener("click", (event) => {
      if (this.#chart) goTo(this.#roundAt(event, this.#chart));
    });
  }

  /**
   * @param {MouseEvent} event
   * @param {ReturnType<typeof curveChart>} chart
   */
  #roundAt(event, { drawing, x }) {
    const box = drawing.getBoundingClientRect();
    const pixel = ((event.clientX - box.left) / box.width) * drawing.viewBox.baseVal.width;
    const distances = (this.#content?.rows ?? []).map((_, round) => Math.abs(x(round) - pixel));
    return distances.indexOf(Math.min(...distances));
  }

  /**
   * @param {ChartContent} content
   * @param {number} width
   */
  #draw({ description, curves, limits, yLabel, rows }, width) {
    this.#chart = curveChart({
      title: description,
      x: range(rows.length),
      curves,
      limits,
      xLabel: "round",
      yLabel,
      width,
      height: HEIGHT,
      mark: { at: this.#round, kind: "focus" },
    });
    return this.#chart.drawing;
  }

  /**
   * @param {ChartContent | null} content
   * @param {number} round
   */
  show(content, round) {
    this.#content = content;
    this.#round = round;
    this.element.hidden = !content;
    if (!content) return;
    fill(this.#title, content.title);
    fill(this.#legend, content.legend);
    const open = this.#table.querySelector("details")?.open ?? false;
    const rows = content.rows.map((row, t) => [String(t), ...row]);
    const table = dataTable(content.description, ["Round", ...content.columns], rows);
    table.open = open;
    this.#table.replaceChildren(table);
    this.place.redraw();
  }

  /**
   * Move the mark only: drawing again would take longer.
   * @param {number} round
   */
  moveMark(round) {
    this.#round = round;
    const mark = this.#chart?.drawing.querySelector(".mark");
    for (const end of ["x1", "x2"]) mark?.setAttribute(end, String(this.#chart?.x(round)));
  }
}

/**
 * Both charts; `goTo(round)` shows another round.
 * @param {(round: number) => void} goTo
 * @param {AbortSignal} viewClosed
 */
export function runCharts(goTo, viewClosed) {
  const ofRun = new RoundChart("inca-rounds", goTo, viewClosed);
  const ofParty = new RoundChart("inca-party", goTo, viewClosed);
  /** @type {RunAnswer | null} */
  let shownRun = null;
  /** @type {number | null} */
  let shownParty = null;

  /**
   * @param {RunAnswer} run
   * @param {number} round
   * @param {number | null} party
   */
  const show = (run, round, party) => {
    if (run === shownRun && party === shownParty) {
      for (const chart of [ofRun, ofParty]) chart.moveMark(round);
      return;
    }
    [shownRun, shownParty] = [run, party];
    const { simulation } = run;
    ofRun.show(simulation ? estimateOf(simulation) : attendance(run), round);
    const contentOf = (/** @type {number} */ id) => (simulation ? messageOf(simulation, id) : weightOf(run, id));
    ofParty.show(party === null ? null : contentOf(party), round);
  };
  return { element: h("div", { class: "run-charts" }, ofRun.element, ofParty.element), show };
}
