// How much cancelling noise is enough against this adversary.

/** @import { Params } from "../../lib/types.js" */
import { ask, wasAborted } from "../../lib/api.js";
import { fill, h } from "../../lib/dom.js";
import { errorSentence, format } from "../../lib/format.js";
import { LatestRequest } from "../../lib/timing.js";
import { hint } from "../hint.js";

/**
 * Six digits, rounded up, so that it stays enough.
 * @param {number} level
 */
function roundUp(level) {
  const rounded = Number(level.toPrecision(6));
  return rounded < level ? Number((level * (1 + 1e-5)).toPrecision(6)) : rounded;
}

/** The card. */
export class SufficientNoiseCard {
  /** @type {Params} */
  #params = {};
  #result = h("div", { role: "status" });
  #delta = h("span");

  /**
   * @param {object} context
   * @param {string} context.epsilon
   * @param {(epsilon: string) => void} context.onepsilon
   * @param {(level: number) => void} context.use take over a level
   * @param {AbortSignal} viewClosed
   */
  constructor({ epsilon, onepsilon, use }, viewClosed) {
    this.use = use;
    this.request = new LatestRequest(viewClosed);
    this.input = h("input", { type: "number", id: "field-sufficient", min: 0.001, step: "any", value: epsilon });
    this.input.addEventListener("change", () => onepsilon(this.input.value));
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "sufficient-title" },
      h("h2", { id: "sufficient-title" }, "How much cancelling noise would be enough?", hint("cancelling")),
      h("p", {}, "Against this adversary, in this run: the smallest level at which nobody loses more than"),
      h(
        "div",
        { class: "row" },
        h("label", { for: "field-sufficient" }, "epsilon"),
        this.input,
        this.#delta,
        h("button", { type: "button", onclick: () => this.#find() }, "How much is enough?"),
      ),
      this.#result,
    );
  }

  async #find() {
    const epsilon = Number(this.input.value);
    const problem = (/** @type {string} */ words) =>
      fill(this.#result, h("p", { class: "error", role: "alert" }, words));
    if (!(epsilon > 0)) {
      problem("Epsilon must be a number above 0.");
      return;
    }
    const signal = this.request.start();
    fill(this.#result, h("p", { class: "note" }, "Computing …"));
    try {
      const { sigma_cancelling: level } = await ask("sufficient-noise", { ...this.#params, epsilon }, signal);
      if (!signal.aborted) this.#showLevel(level);
    } catch (error) {
      if (!wasAborted(error)) problem(`Cancelling noise alone cannot achieve that. ${errorSentence(error)}`);
    }
  }

  /** @param {number | null} level */
  #showLevel(level) {
    const never = "No level is enough: this adversary sees too much, or there is too little independent noise.";
    if (level === null) {
      fill(this.#result, h("p", { class: "warn" }, never));
      return;
    }
    const rounded = roundUp(level);
    const fixed = "The file keeps its own level; this is what the same run would have needed.";
    fill(
      this.#result,
      h("p", {}, "A standard deviation of ", h("strong", {}, format(rounded, 6)), " is enough, and less is not."),
      this.#params.file
        ? h("p", { class: "note" }, fixed)
        : h("button", { type: "button", class: "main", onclick: () => this.use(rounded) }, "Use it"),
    );
  }

  /**
   * Take the question that is shown.
   * @param {Params} params
   * @param {number} delta
   */
  show(params, delta) {
    this.#params = params;
    this.request.abort();
    fill(this.#result);
    this.#delta.textContent = `at delta ${format(delta)}`;
  }
}
