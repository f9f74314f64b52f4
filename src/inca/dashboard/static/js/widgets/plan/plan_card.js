// The plan as a file: everything about it, as the program words it, and runs of it.

/** @import { PlanAnswer, Requirements } from "../../lib/types.js" */
import { ask, wasAborted } from "../../lib/api.js";
import { fill, h } from "../../lib/dom.js";
import { errorSentence } from "../../lib/format.js";
import { LABELS } from "../../lib/requirements.js";
import { debounce, LatestRequest } from "../../lib/timing.js";
import { contentCard } from "../content_card.js";
import { errorLine } from "../elements.js";
import { hint } from "../hint.js";
import { download } from "../picture_buttons.js";

const QUIET_MS = 150; // without a change until the program is asked

/** The card; it asks for the plan when nothing has changed for a while. */
export class PlanCard {
  #problem = errorLine();
  #content = h("div");
  /** @type {PlanAnswer["plan"] | null} */
  #file = null;
  #links = h("span", { class: "row" });
  #next = h(
    "div",
    { class: "row next" },
    h("button", { type: "button", class: "main", onclick: () => this.#download() }, "Download plan.json"),
    this.#links,
  );

  /**
   * @param {() => Requirements} requirements
   * @param {AbortSignal} viewClosed
   */
  constructor(requirements, viewClosed) {
    this.requirements = requirements;
    this.request = new LatestRequest(viewClosed);
    this.askSoon = debounce(QUIET_MS, () => viewClosed.aborted || this.#ask());
    this.element = h(
      "section",
      { class: "card", "aria-label": "The plan" },
      h("h2", {}, "The plan", hint("plan")),
      this.#next,
      this.#problem,
      h("p", { class: "note" }, "Next: ", h("code", {}, "inca average VALUES --plan plan.json")),
      h("details", {}, h("summary", {}, "Everything about it"), this.#content),
    );
  }

  /**
   * The requirements have changed.
   * @param {boolean} possible whether there is a plan
   */
  change(possible) {
    this.request.abort();
    this.#file = null;
    this.#next.inert = true; // or it would hand out the plan before
    this.#problem.textContent = "";
    this.element.hidden = !possible;
    if (possible) this.askSoon();
  }

  async #ask() {
    const signal = this.request.start();
    try {
      const { plan, content, links } = await ask("plan", { ...this.requirements() }, signal);
      this.#file = plan;
      this.#next.inert = false;
      fill(
        this.#links,
        links.map(([words, href]) => h("a", { href }, words)),
      );
      fill(this.#content, contentCard(content));
    } catch (error) {
      if (!wasAborted(error)) this.#problem.textContent = errorSentence(error, LABELS);
    }
  }

  #download() {
    if (!this.#file) return;
    download(new Blob([`${JSON.stringify(this.#file, null, 1)}\n`], { type: "application/json" }), "plan.json");
  }
}
