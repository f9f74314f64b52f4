// Mechanisms that take from seconds to minutes: a button starts them and cancels them. This window keeps what they come
// to, by requirements, also when it is loaded again.

/** @import { MechanismEntry, Requirements } from "../../lib/types.js" */
import { stream, wasAborted } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { errorSentence } from "../../lib/format.js";
import { keyOf, LABELS } from "../../lib/requirements.js";
import { LatestRequest } from "../../lib/timing.js";
import { errorLine } from "../elements.js";
import { hint } from "../hint.js";

const NAME = "slow mechanisms";
const MOST = 16; // requirements
const LABEL = "Compute them, too (takes from seconds to minutes)";
const ALL = 6; // of GOPA by how many leave late, and Muffliato

/** @type {Map<string, MechanismEntry[]>} */
const kept = new Map(stored());

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(NAME) ?? "[]");
  } catch {
    return []; // storage may be forbidden, or hold what somebody else wrote
  }
}

/**
 * The entries that were computed for these requirements.
 * @param {Requirements} requirements
 */
export const slowEntries = (requirements) => kept.get(keyOf(requirements)) ?? [];

/**
 * @param {MechanismEntry} entry
 * @param {Requirements} requirements
 */
function keep(entry, requirements) {
  const others = slowEntries(requirements).filter(({ mechanism }) => mechanism !== entry.mechanism);
  kept.set(keyOf(requirements), [...others, entry]);
  try {
    sessionStorage.setItem(NAME, JSON.stringify([...kept].slice(-MOST)));
  } catch {
    // then they are kept until the page is left
  }
}

/** The card with the button. */
export class SlowMechanisms {
  #asked = false;
  #problem = errorLine();
  #state = h("span", { class: "note", role: "status" });

  /**
   * @param {() => Requirements} requirements
   * @param {() => void} onchange there is one more
   * @param {AbortSignal} viewClosed
   */
  constructor(requirements, onchange, viewClosed) {
    this.requirements = requirements;
    this.onchange = onchange;
    this.request = new LatestRequest(viewClosed);
    this.button = h("button", { type: "button", onclick: () => (this.#asked ? this.cancel() : this.start()) }, LABEL);
    const words =
      "GOPA and Muffliato need no server, either. How well GOPA does depends on how many leave too late to be noticed in time.";
    this.element = h(
      "section",
      { class: "card" },
      h("h2", {}, "Slow mechanisms", hint("GOPA")),
      h("p", {}, words),
      h("div", { class: "row" }, this.button, this.#state),
      this.#problem,
    );
  }

  async start() {
    const asked = { ...this.requirements() };
    const signal = this.request.start();
    this.#asked = true;
    this.#problem.textContent = "";
    this.update();
    try {
      const take = (/** @type {{ entry: MechanismEntry }} */ { entry }) => {
        keep(entry, asked);
        this.onchange();
      };
      await stream("slow-mechanisms", asked, take, signal);
    } catch (error) {
      if (wasAborted(error)) return;
      this.#problem.textContent = errorSentence(error, LABELS);
    }
    this.#asked = false;
    this.update();
  }

  cancel() {
    this.request.abort();
    this.#asked = false;
    this.update();
  }

  /** Show how far it is. */
  update() {
    const computed = slowEntries(this.requirements()).length;
    const some = computed ? `${computed} of ${ALL} are in the chart above.` : "Being computed …";
    const done = computed === ALL;
    this.button.textContent = this.#asked ? "Cancel" : LABEL;
    this.button.disabled = !this.#asked && done;
    const unfinished = this.#asked ? some : "";
    this.#state.textContent = done ? "They are in the chart above." : unfinished;
  }
}
