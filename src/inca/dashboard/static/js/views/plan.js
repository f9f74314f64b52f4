// The Plan view: requirements, the plan that meets them, and the error of every other mechanism. All of it follows from
// formulas, so that it follows a slider.

/** @import { MechanismEntry, Requirements } from "../lib/types.js" */
import { fill, h } from "../lib/dom.js";
import { errorSentence } from "../lib/format.js";
import { replaceParams } from "../lib/navigation.js";
import { describeParams } from "../lib/parameter_words.js";
import { DEFAULT_REQUIREMENTS, LABELS, readRequirements } from "../lib/requirements.js";
import { errorLine, facts } from "../widgets/elements.js";
import { hint } from "../widgets/hint.js";
import { saveButton, shareButton } from "../widgets/picture_buttons.js";
import { noiseUnit, partyCounts } from "../widgets/plan/closed_forms.js";
import { mechanismChart, mechanismNotes, mechanismTable, OWN } from "../widgets/plan/mechanism_comparison.js";
import { mechanismExplanation } from "../widgets/plan/mechanism_explanation.js";
import { otherMechanisms } from "../widgets/plan/other_mechanisms.js";
import { PlanCard } from "../widgets/plan/plan_card.js";
import { planRows, verdictOn } from "../widgets/plan/plan_words.js";
import { requirementsFields } from "../widgets/plan/requirements_fields.js";
import { settledPlan } from "../widgets/plan/settled_plan.js";
import { SlowMechanisms, slowEntries } from "../widgets/plan/slow_mechanisms.js";

const OWN_PROMISE =
  "colluders and eavesdroppers together, who know who sent to whom, and see their messages and all final ones";

class PlanView {
  #problem = errorLine();
  #verdict = h("p", { class: "card headline", role: "status" });
  #answer = h("section", { class: "card answer", "aria-label": "The answer" });
  #chart = h("div"); // with the parameters that a saved picture names
  #belowChart = h("div");
  #narrow = matchMedia("(max-width: 600px)");

  /**
   * @param {Record<string, string>} params
   * @param {AbortSignal} viewClosed
   */
  constructor(params, viewClosed) {
    const [requirements, problems] = readRequirements(params);
    this.requirements = requirements;
    this.#problem.textContent = problems.join(" ");
    this.fields = requirementsFields(requirements, (name, number) => this.#change({ [name]: number }));
    this.card = new PlanCard(() => this.requirements, viewClosed);
    this.slow = new SlowMechanisms(
      () => this.requirements,
      () => this.#draw(),
      viewClosed,
    );
    this.#narrow.addEventListener("change", () => this.#draw(), { signal: viewClosed });
  }

  /** @param {HTMLElement} main */
  show(main) {
    const startOver = () => {
      this.fields.show(DEFAULT_REQUIREMENTS);
      this.#change(DEFAULT_REQUIREMENTS);
    };
    const button = h("button", { type: "button", onclick: startOver }, "Start over");
    main.append(
      h("h1", {}, "Plan"),
      this.#verdict,
      this.#answer,
      this.#problem,
      h(
        "div",
        { class: "columns" },
        h("div", { class: "card requirements" }, this.fields.element, button),
        h("div", {}, this.#chartCard(), this.card.element, this.slow.element, mechanismExplanation()),
      ),
    );
    replaceParams({ ...this.requirements });
    this.#plan();
  }

  #chartCard() {
    const buttons = [saveButton(() => this.#chart.querySelector("svg"), "errors"), shareButton()];
    const title = h("h2", {}, "About how far off each mechanism is", hint("error"));
    const head = h("div", { class: "row spread" }, title, h("div", { class: "row" }, buttons));
    return h("section", { class: "card comparison" }, head, this.#chart, this.#belowChart);
  }

  /** Work out the plan, and show it. */
  #plan() {
    const plan = settledPlan(this.requirements);
    this.plan = typeof plan === "string" ? null : plan;
    this.card.change(this.plan !== null);
    if (typeof plan === "string") {
      fill(this.#verdict, h("strong", { class: "error" }, "✗ "), "There is no such plan.");
      fill(this.#answer, h("p", { class: "error" }, errorSentence(plan, LABELS)));
    } else {
      const { good, text } = verdictOn(plan);
      const sign = good ? h("strong", { class: "good" }, "✓ OK: ") : h("strong", { class: "warn" }, "⚠ ");
      fill(this.#verdict, sign, text);
      fill(this.#answer, facts(planRows(this.requirements, plan)));
    }
    this.#draw();
  }

  /** @returns {MechanismEntry[]} */
  #entries() {
    const rest = { promise: OWN_PROMISE, weaker: false, why_not: "" };
    const own = this.plan && [{ mechanism: OWN, mse: this.plan.mse, messages: this.plan.messages, ...rest }];
    return [...(own ?? []), ...otherMechanisms(this.requirements), ...slowEntries(this.requirements)];
  }

  /** Show what it is compared with. */
  #draw() {
    const entries = this.#entries();
    const table = mechanismTable(entries, noiseUnit(this.requirements) / this.requirements.parties ** 2);
    table.open = this.#belowChart.querySelector("details")?.open ?? false;
    const { dropout } = partyCounts(this.requirements);
    this.#chart.dataset.parameters = describeParams({ ...this.requirements, dropout });
    fill(this.#chart, mechanismChart(entries, this.#narrow.matches));
    fill(this.#belowChart, mechanismNotes(entries), table);
    this.slow.update();
  }

  /** @param {Partial<Requirements>} changed */
  #change(changed) {
    Object.assign(this.requirements, changed);
    replaceParams({ ...this.requirements });
    this.fields.follow(this.requirements);
    this.slow.cancel();
    this.#problem.textContent = "";
    this.#plan();
  }
}

/**
 * Show the view.
 * @param {HTMLElement} main
 * @param {Record<string, string>} params
 * @param {AbortSignal} viewClosed
 */
export function show(main, params, viewClosed) {
  new PlanView(params, viewClosed).show(main);
}
