// The Plan view: requirements, the error of every mechanism for them, and the plan that meets them.

/** @import { EstimateHead, MechanismEntry, Requirements } from "../lib/types.js" */
import { stream, wasAborted } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { count, errorSentence } from "../lib/format.js";
import { replaceParams } from "../lib/navigation.js";
import { DEFAULT_REQUIREMENTS, keyOf, LABELS, readRequirements } from "../lib/requirements.js";
import { debounce, LatestRequest } from "../lib/timing.js";
import { errorLine } from "../widgets/elements.js";
import { hint } from "../widgets/hint.js";
import { LongJob } from "../widgets/long_job.js";
import { saveButton, shareButton } from "../widgets/picture_buttons.js";
import { certainty, errorSources, headline } from "../widgets/plan/error_summary.js";
import {
  impossibleMechanisms,
  isOwn,
  mechanismChart,
  mechanismLegend,
  mechanismTable,
  QUICK_ESTIMATE,
} from "../widgets/plan/mechanism_comparison.js";
import { mechanismExplanation } from "../widgets/plan/mechanism_explanation.js";
import { PlanCard, planFor } from "../widgets/plan/plan_card.js";
import { requirementsFields } from "../widgets/plan/requirements_fields.js";

const QUIET_MS = 150; // without a change until the server is asked
const PATIENCE_MS = 500; // until what is there already is shown
/** @type {Map<string, MechanismEntry[]>} entries of slow mechanisms by requirements: they take long, so they are kept */
const slowEntries = new Map();

/**
 * @param {EstimateHead} head
 */
function describeParties({ parties, colluders, leavers }) {
  const honest = count(parties - colluders, "honest party", "honest parties");
  const colluding = count(colluders, "colluder", "colluders");
  return `That is ${honest}, ${colluding}, and ${count(leavers, "party that leaves", "parties that leave")}.`;
}

/** What the server has said about the errors so far. */
class Estimates {
  /** @type {EstimateHead | null} */
  head = null;
  /** @type {MechanismEntry[]} */
  entries = [];
  complete = false;
}

class PlanView {
  #estimates = new Estimates();
  #outdated = true; // whether what is shown is for other requirements
  #counts = h("p", { class: "note counts" });
  #problem = errorLine();
  #remark = h("p", { class: "note remark", role: "status" });
  #headline = h("div", { role: "status", class: "outcome" });
  #sources = h("div");
  #chart = h("div");
  #belowChart = h("div");
  #slowRemark = h("p", { class: "note" });
  #narrow = matchMedia("(max-width: 600px)");

  /**
   * @param {Record<string, string>} params
   * @param {AbortSignal} viewClosed
   */
  constructor(params, viewClosed) {
    const [requirements, problems] = readRequirements(params);
    this.requirements = requirements;
    this.#problem.textContent = problems.join(" ");
    this.request = new LatestRequest(viewClosed);
    this.estimateSoon = debounce(QUIET_MS, () => viewClosed.aborted || this.estimate());
    this.fields = requirementsFields(requirements, (name, number) => this.#change({ [name]: number }));
    this.plan = new PlanCard(
      {
        requirements: () => this.requirements,
        estimate: () => (this.#outdated ? undefined : this.#own()),
        onplan: () => this.draw(),
        restore: (others) => this.#restore(others),
      },
      viewClosed,
    );
    this.slow = new LongJob(
      {
        question: "slow-mechanisms",
        label: "Compute them, too (takes from seconds to minutes)",
        activity: "Computing slow mechanisms",
        requirements: () => this.requirements,
        onchange: () => this.#updateSlow(),
        take: ({ entry }, asked) => this.#takeSlow(entry, asked),
      },
      viewClosed,
    );
    this.#narrow.addEventListener("change", () => this.draw(), { signal: viewClosed });
  }

  /** @param {HTMLElement} main */
  show(main) {
    const lead =
      "Say how many take part and what may go wrong: see how accurate the mean can be while every value stays private, and make a plan for it.";
    const startOver = () => this.#restore(DEFAULT_REQUIREMENTS);
    this.shown = h("div", { class: "shown" }, this.#headlineCard(), this.#chartCard(), this.#sourcesCard());
    main.append(
      h("h1", {}, "Plan"),
      h("p", { class: "lead" }, lead),
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          { class: "card requirements" },
          this.fields.element,
          this.#counts,
          h("button", { type: "button", onclick: startOver }, "Start over"),
        ),
        h("div", {}, this.#problem, this.shown, this.plan.element, this.#slowCard(), mechanismExplanation()),
      ),
    );
    replaceParams({ ...this.requirements });
    this.draw();
    this.estimate();
  }

  #headlineCard() {
    return h("section", { class: "card", "aria-label": "How far off" }, this.#headline, this.#remark);
  }

  #chartCard() {
    const buttons = [saveButton(() => this.#chart.querySelector("svg"), "errors"), shareButton()];
    const title = h("h2", {}, "Mean squared error of each mechanism", hint("mse"));
    const head = h("div", { class: "row spread" }, title, h("div", { class: "row" }, buttons));
    return h("section", { class: "card" }, head, this.#chart, this.#belowChart);
  }

  #sourcesCard() {
    return h("section", { class: "card" }, h("h2", {}, "Where the error comes from"), this.#sources);
  }

  #slowCard() {
    const words =
      "GOPA needs no server, either; how well it does depends on how many leave too late to be noticed in time. Among more than 600 parties Muffliato takes long, too.";
    return h(
      "section",
      { class: "card" },
      h("h2", {}, "Slow mechanisms", hint("GOPA")),
      h("p", {}, words),
      this.slow.element,
      this.#slowRemark,
    );
  }

  #own() {
    return this.#estimates.entries.find(isOwn);
  }

  /** @param {Requirements} requirements */
  #slowEntries(requirements) {
    return slowEntries.get(keyOf(requirements)) ?? [];
  }

  /**
   * @param {MechanismEntry} entry
   * @param {Requirements} asked
   */
  #takeSlow(entry, asked) {
    const others = this.#slowEntries(asked).filter(({ mechanism }) => mechanism !== entry.mechanism);
    slowEntries.set(keyOf(asked), [...others, entry]);
    this.draw();
  }

  #updateSlow() {
    const computed = this.#slowEntries(this.requirements).length;
    const all = this.#estimates.head?.slow.length ?? 3;
    const done = computed >= all;
    this.slow.button.disabled = !this.slow.asked && done;
    const some = this.slow.asked && computed ? `${computed} of ${all} are in the chart above.` : "";
    this.#slowRemark.textContent = done ? "They are in the chart above." : some;
    this.#slowRemark.hidden = this.#slowRemark.textContent === "";
  }

  /** All mechanisms that are known. */
  #entries() {
    const planned = planFor(this.requirements)?.entry;
    return [...(planned ? [planned] : []), ...this.#estimates.entries, ...this.#slowEntries(this.requirements)];
  }

  /** The names of mechanisms that are still being computed. */
  #waiting() {
    const { head, entries, complete } = this.#estimates;
    if (complete) return [];
    const slow = head?.slow.some((name) => name.startsWith("Muffliato"));
    return [...(slow ? [] : ["Muffliato"]), QUICK_ESTIMATE].filter(
      (name) => !entries.some(({ mechanism }) => mechanism.startsWith(name.slice(0, 4))),
    );
  }

  /** Show everything that is known. */
  draw() {
    this.plan.update();
    this.#updateSlow();
    const { complete, head } = this.#estimates;
    const drawn = this.#chart.childElementCount > 0;
    if (!complete) {
      const before = drawn ? " What is shown is for the requirements before." : "";
      this.#remark.textContent = this.#outdated ? `Computing …${before}` : "Still computing …";
    }
    this.shown?.classList.toggle("outdated", this.#outdated && drawn);
    this.shown?.setAttribute("aria-busy", String(!complete));
    if (this.#outdated) return;
    const planned = planFor(this.requirements)?.entry;
    const own = planned ?? this.#own();
    const entries = this.#entries();
    this.#counts.textContent = head ? describeParties(head) : "";
    fill(this.#headline, headline(own, entries));
    if (complete) fill(this.#remark, own?.mse ? certainty(Boolean(planned)) : null);
    this.#drawMechanisms(entries);
    const nothing = own?.why_not ? "Nothing to show: see above." : "There is no error to divide.";
    const none = own ? nothing : "Being computed …";
    fill(this.#sources, (own && errorSources(own)) ?? h("p", { class: "note" }, none));
  }

  /** @param {MechanismEntry[]} entries */
  #drawMechanisms(entries) {
    const { head } = this.#estimates;
    const table = mechanismTable(entries, head);
    table.open = this.#belowChart.querySelector("details")?.open ?? false;
    fill(this.#chart, mechanismChart(entries, head, this.#waiting(), this.#narrow.matches));
    fill(this.#belowChart, mechanismLegend(entries), impossibleMechanisms(entries), table);
  }

  async estimate() {
    const signal = this.request.start();
    const estimates = new Estimates();
    let impatient = false;
    const reveal = () => {
      this.#estimates = estimates;
      this.#outdated = false;
      this.draw();
    };
    const revealSome = () => {
      if (impatient && estimates.entries.length && !signal.aborted) reveal(); // earlier, the first few would only flicker
    };
    const patience = setTimeout(() => {
      impatient = true;
      revealSome();
    }, PATIENCE_MS);
    try {
      await stream(
        "estimate",
        { ...this.requirements },
        (part) => {
          if (part.progress) return;
          if (part.entry) estimates.entries.push(part.entry);
          else estimates.head = part.head;
          revealSome();
        },
        signal,
      );
      estimates.complete = true;
      if (!signal.aborted) reveal();
    } catch (error) {
      if (wasAborted(error)) return;
      this.#problem.textContent = errorSentence(error, LABELS);
      const drawn = this.#chart.childElementCount > 0;
      this.#remark.textContent = drawn ? "What is shown is for the requirements before." : "";
    } finally {
      clearTimeout(patience);
    }
  }

  /** @param {Partial<Requirements>} changed */
  #change(changed) {
    Object.assign(this.requirements, changed);
    replaceParams({ ...this.requirements });
    this.request.abort();
    this.slow.cancel("Cancelled, as the requirements changed.");
    this.plan.job.clear();
    this.#problem.textContent = "";
    this.#counts.textContent = "";
    this.#estimates.complete = false;
    this.#outdated = true;
    this.draw();
    this.estimateSoon();
  }

  /** @param {Requirements} others */
  #restore(others) {
    this.fields.show(others);
    this.#change(others);
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
