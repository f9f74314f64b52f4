// The protocol beside variants that are broken, against the same adversary.

import { ask, wasAborted } from "../../lib/api.js";
import { announce, fill, h } from "../../lib/dom.js";
import { errorSentence, format } from "../../lib/format.js";
import { rootMeanSquareError } from "../../lib/normal_distribution.js";
import { describeParams } from "../../lib/parameter_words.js";
import { INJECTIONS } from "../../lib/run_settings.js";
import { LatestRequest } from "../../lib/timing.js";
import { scrollingTable } from "../data_table.js";
import { errorLine, figureHead } from "../elements.js";
import { hint } from "../hint.js";
import { saveButton } from "../picture_buttons.js";
/** @import { AdversaryAnswer, AllGuesses, Params, WorstLoss } from "../../lib/types.js" */
/** @import { Guesser } from "./guesses_card.js" */
import { resizable } from "../resizable.js";
import { guessChart, guessLegend } from "./guess_chart.js";
import { guessesOf } from "./guesses_card.js";

/** @typedef {{ params: Params, injection: string, answer: AdversaryAnswer }} Compared */

const MAX_SHOWN = 60;
/** @type {Record<string, string>} */
const SIDE_BY_SIDE = { incremental: "The protocol", single: "One noise term for all rounds" };

/** @param {WorstLoss} worst */
const lossCell = ({ epsilon }) =>
  epsilon === null ? h("strong", { class: "error" }, "infinite: values can be computed") : format(epsilon);

/**
 * @param {AllGuesses | null} guesses
 * @param {Guesser} guesser
 */
const errorCell = (guesses, guesser) =>
  guesses ? format(rootMeanSquareError(guesses[guesser].estimates, guesses.true_values), 3) : "–";

/** The card; only simulated runs can be compared. */
export class VariantsCard {
  /** @type {Compared | null} */
  #compared = null;
  #problem = errorLine();
  #alone = h("p", { class: "note" });
  /** @type {number[]} */
  #honest = [];
  #names = INJECTIONS.map(([, words]) => h("span", {}, words));
  #cells = INJECTIONS.map(() => [h("span"), h("span"), h("span")]);
  /** @type {Record<string, AllGuesses | null>} */
  #guesses = {};

  /**
   * @param {() => void} oncompare the comparison was asked for
   * @param {AbortSignal} viewClosed
   */
  constructor(oncompare, viewClosed) {
    this.request = new LatestRequest(viewClosed);
    this.table = scrollingTable(
      "Comparison of the variants",
      [
        "How value and noise enter",
        "Worst epsilon",
        ["Guess off by", hint("naive")],
        ["… if informed", hint("informed")],
      ],
      this.#names.map((name, i) => [name, ...this.#cells[i]]),
    );
    this.table.hidden = true;
    this.charts = Object.entries(SIDE_BY_SIDE).map(([injection, title]) => {
      const draw = (/** @type {number} */ width) => this.#drawGuesses(injection, title, width);
      return { injection, title, name: `guesses-${injection}`, ...resizable(draw, viewClosed) };
    });
    this.sides = h(
      "div",
      { class: "two", hidden: true },
      this.charts.map(({ title, name, element, drawing }) =>
        h(
          "figure",
          {},
          figureHead(
            title,
            saveButton(drawing, name, () => `${title}: best guesses, and the truth`),
          ),
          element,
          guessLegend(),
        ),
      ),
    );
    const compare = () => {
      oncompare();
      this.#compare();
    };
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "variants-title" },
      h("h2", { id: "variants-title" }, "What about a simpler way?", hint("injection")),
      h(
        "p",
        {},
        "With one noise term for all rounds, each message seen of a party is one more equation, but there are only two unknowns: its noise and its value. Whoever sees enough messages solves for both, and only the independent noise is left to hide behind. The protocol adds fresh noise in every round: as long as enough messages stay hidden, there are more unknowns than equations.",
      ),
      h("button", { type: "button", onclick: compare }, "Compare with one noise term, and without cancelling noise"),
      this.#problem,
      this.table,
      this.#alone,
      this.sides,
    );
  }

  async #compare() {
    if (!this.#compared) return;
    const { params, injection: known, answer: knownAnswer } = this.#compared;
    const signal = this.request.start();
    this.#problem.textContent = "";
    this.table.hidden = false;
    this.#setAll("…");
    try {
      for (const [i, [injection]] of INJECTIONS.entries()) {
        const answer = injection === known ? knownAnswer : await ask("adversary", { ...params, injection }, signal);
        if (signal.aborted) return;
        this.#showVariant(i, answer);
        this.#guesses[injection] = answer.guesses;
      }
      this.#honest = knownAnswer.honest;
      this.sides.hidden = !knownAnswer.guesses;
      for (const { injection, element, redraw } of this.charts) {
        element.setAttribute("data-parameters", describeParams({ ...params, injection }));
        redraw();
      }
      announce("All four variants are computed.");
    } catch (error) {
      if (wasAborted(error)) return;
      this.#problem.textContent = errorSentence(error);
      for (const cell of this.#cells.flat()) if (cell.textContent === "…") cell.textContent = "–";
    }
  }

  /**
   * @param {number} i
   * @param {AdversaryAnswer} answer
   */
  #showVariant(i, { worst, guesses, epsilon_independent_only: alone }) {
    const contents = [lossCell(worst), errorCell(guesses, "naive"), errorCell(guesses, "informed")];
    for (const [k, content] of contents.entries()) fill(this.#cells[i][k], content);
    this.#alone.textContent =
      alone === null
        ? ""
        : `Independent noise alone, without any help from others, would give everyone epsilon ${format(alone)}. Errors of guesses are root mean squares${guesses ? `, in ${guesses.unit}` : ""}.`;
  }

  /**
   * The guesses of one that knows nothing else: with one noise term they snap onto the truth.
   * @param {string} injection
   * @param {string} title
   * @param {number} width
   */
  #drawGuesses(injection, title, width) {
    const all = this.#guesses[injection];
    if (!all) return null;
    const guesses = guessesOf(all, this.#honest, "naive").slice(0, MAX_SHOWN);
    return guessChart({
      guesses,
      domain: all.domain,
      unit: all.unit,
      title: `${title}: true values and guesses`,
      width,
    });
  }

  /** @param {string} words */
  #setAll(words) {
    for (const cell of this.#cells.flat()) cell.textContent = words;
  }

  /**
   * Take what is shown, and compare at once if that was asked for before; null for a file.
   * @param {Compared | null} compared
   * @param {boolean} atOnce
   */
  show(compared, atOnce) {
    this.#compared = compared;
    this.element.hidden = !compared;
    INJECTIONS.forEach(([injection, words], i) => {
      this.#names[i].textContent = words + (injection === compared?.injection ? " ← shown above" : "");
    });
    this.request.abort();
    this.table.hidden = this.sides.hidden = true;
    this.#alone.textContent = "";
    if (atOnce) this.#compare();
  }

  /** What is shown is about to change. */
  invalidate() {
    this.request.abort();
    this.#setAll("…");
    this.#alone.textContent = "";
  }
}
