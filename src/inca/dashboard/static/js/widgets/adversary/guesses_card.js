// The adversary's guesses of all values, as far as values are known: in simulations.

/** @import { AdversaryAnswer, AllGuesses } from "../../lib/types.js" */
/** @import { Guess } from "./guess_chart.js" */
import { h } from "../../lib/dom.js";
import { format } from "../../lib/format.js";
import { blindGuess, rootMeanSquareError } from "../../lib/normal_distribution.js";
import { dataTable } from "../data_table.js";
import { hint } from "../hint.js";
import { saveButton } from "../picture_buttons.js";
import { resizable } from "../resizable.js";
import { guessChart, guessLegend } from "./guess_chart.js";

/** @typedef {"naive" | "informed"} Guesser */

const MAX_SHOWN = 240;
/** @type {[Guesser, string][]} */
const GUESSERS = [
  ["naive", "Knows nothing else"],
  ["informed", "Knows all other values"],
];

/**
 * Guesses in the order of the true values.
 * @param {AllGuesses} all
 * @param {number[]} honest
 * @param {Guesser} guesser
 * @returns {Guess[]}
 */
export const guessesOf = (all, honest, guesser) =>
  honest
    .map((party, i) => ({
      party,
      truth: all.true_values[i],
      guess: all[guesser].estimates[i],
      error: all[guesser].standard_errors[i],
    }))
    .sort((a, b) => a.truth - b.truth || a.party - b.party);

/**
 * How good the guesses are, in words.
 * @param {AllGuesses} all
 * @param {Guesser} guesser
 */
function describe(all, guesser) {
  const { true_values: truth, domain, unit } = all;
  const { middle } = blindGuess(domain);
  const error = rootMeanSquareError(all[guesser].estimates, truth);
  const blind = rootMeanSquareError(
    truth.map(() => middle),
    truth,
  );
  if (error === null || blind === null) return "It has nothing to go by: it cannot guess any value at all.";
  if (error < 1e-6) return "Its guesses are exact: it can compute every value.";
  const start = `Its guesses are off by ${format(error, 2)} ${unit} (root mean square); always saying ${format(middle)}, the middle, is off by ${format(blind, 2)}. `;
  const gain = 1 - error / blind;
  if (guesser === "informed" && gain < -0.02) {
    return `${start}This guesser goes only by what it sees, and there the noise is larger than the values.`;
  }
  if (gain < 0.05) return `${start}So it does no better than guessing.`;
  if (gain < 0.5) return `${start}So it does better than guessing, but not much.`;
  return `${start}So it knows the values rather well: they are not hidden.`;
}

/** The card. */
export class GuessesCard {
  /** @type {{ guesses: Guess[], domain: [number, number], unit: string, title: string } | null} */
  #shown = null;
  #about = h("p");
  #knows = "";
  #table = h("div");
  #why = h("p", { class: "note" });

  /**
   * @param {(guesser: Guesser) => void} choose
   * @param {AbortSignal} viewClosed
   */
  constructor(choose, viewClosed) {
    this.place = resizable((width) => this.#shown && guessChart({ ...this.#shown, width }), viewClosed);
    this.buttons = GUESSERS.map(([name, words]) =>
      h("button", { type: "button", "data-guesser": name, onclick: () => choose(name) }, words),
    );
    const title = () => `Its best guess, and the truth, if the guesser ${this.#knows}`;
    this.save = saveButton(this.place.drawing, "guesses", title);
    this.body = h(
      "div",
      {},
      h(
        "div",
        { class: "row", role: "group", "aria-label": "What the guesser knows besides" },
        h("span", {}, "The guesser:"),
        this.buttons.map((button, i) => [button, hint(GUESSERS[i][0])]),
      ),
      this.#about,
      this.place.element,
      guessLegend(),
      this.#table,
    );
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "guess-title" },
      h("div", { class: "row spread" }, h("h2", { id: "guess-title" }, "Its best guess, and the truth"), this.save),
      this.#why,
      this.body,
    );
  }

  /**
   * @param {AdversaryAnswer} answer
   * @param {Guesser} guesser
   */
  show({ guesses: all, why_no_guesses: why, honest }, guesser) {
    this.#knows = (GUESSERS.find(([name]) => name === guesser)?.[1] ?? "").toLowerCase();
    for (const button of this.buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.guesser === guesser));
    }
    this.body.hidden = this.save.hidden = !all;
    this.#why.textContent = all ? "" : `No guesses here: ${why}.`;
    this.#shown = null;
    if (!all) return;
    const guesses = guessesOf(all, honest, guesser);
    const words = describe(all, guesser);
    const every = Math.ceil(guesses.length / MAX_SHOWN);
    this.#about.textContent = words + (every > 1 ? ` The picture shows one party in ${every}.` : "");
    this.#shown = {
      guesses: guesses.filter((_, i) => i % every === 0),
      domain: all.domain,
      unit: all.unit,
      title: `True values and guesses of ${guesses.length} honest parties. ${words}`,
    };
    const rows = guesses.map(({ party, truth, guess, error }) => [
      String(party),
      truth,
      guess ?? "none",
      error ?? "infinite",
    ]);
    const columns = ["Party", "True value", "Guess", "Standard error"];
    this.#table.replaceChildren(dataTable("True values and best guesses", columns, rows));
    this.place.redraw();
  }
}
