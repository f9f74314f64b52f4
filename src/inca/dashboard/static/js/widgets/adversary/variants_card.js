// The protocol beside variants that are broken, against the same adversary.

/** @import { AdversaryAnswer, AllGuesses, Params, WorstLoss } from "../../lib/types.js" */
/** @import { Guesser } from "./guesses_card.js" */
import { ask, wasAborted } from "../../lib/api.js";
import { announce, fill, h } from "../../lib/dom.js";
import { errorSentence, format } from "../../lib/format.js";
import { rootMeanSquareError } from "../../lib/normal_distribution.js";
import { INJECTIONS } from "../../lib/run_settings.js";
import { LatestRequest } from "../../lib/timing.js";
import { scrollingTable } from "../data_table.js";
import { errorLine } from "../elements.js";
import { hint } from "../hint.js";

/** @typedef {{ params: Params, injection: string, answer: AdversaryAnswer }} Compared */

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
  #names = INJECTIONS.map(([, words]) => h("span", {}, words));
  #cells = INJECTIONS.map(() => [h("span"), h("span"), h("span")]);

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
    this.table.hidden = true;
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
