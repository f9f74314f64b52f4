// The Plan view: requirements, the error of every mechanism for them, and the plan that meets them.

/** @import { EstimateHead, MechanismEntry, Requirements } from "../lib/types.js" */
import { ask, stream, wasAborted } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { count, errorSentence } from "../lib/format.js";
import { replaceParams } from "../lib/navigation.js";
import { DEFAULT_REQUIREMENTS, LABELS, readRequirements } from "../lib/requirements.js";
import { afterPaint, debounce, LatestRequest, NewestOnly } from "../lib/timing.js";
import { errorLine } from "../widgets/elements.js";
import { hint } from "../widgets/hint.js";
import { LongJob } from "../widgets/long_job.js";
import { saveButton, shareButton } from "../widgets/picture_buttons.js";
import { certainty, errorSources, headline, shortHeadline } from "../widgets/plan/error_summary.js";
import { keepSlowEntry, slowEntries } from "../widgets/plan/kept_entries.js";
import { LiveEstimates, sameButGuarantee } from "../widgets/plan/live_estimates.js";
import {
  impossibleMechanisms,
  mechanismChart,
  mechanismLegend,
  mechanismTable,
  QUICK_ESTIMATE,
} from "../widgets/plan/mechanism_comparison.js";
import { mechanismExplanation } from "../widgets/plan/mechanism_explanation.js";
import { PlanCard, planFor } from "../widgets/plan/plan_card.js";
import { requirementsFields } from "../widgets/plan/requirements_fields.js";
import { tradeoffChart, tradeoffOf } from "../widgets/plan/tradeoff_chart.js";

const QUIET_MS = 150; // without a change until the server is asked
const RESTING_MS = 60; // without a change until words and tables follow the figures
const PATIENCE_MS = 700; // until what is there already is shown, at first, and a range that rests on no view
const MAX_QUICK_MUFFLIATO_PARTIES = 600; // as in inca.dashboard.estimates

/**
 * @param {EstimateHead} head
 */
function describeParties({ parties, colluders, leavers }) {
  const honest = count(parties - colluders, "honest party", "honest parties");
  const colluding = count(colluders, "colluder", "colluders");
  return `That is ${honest}, ${colluding}, and ${count(leavers, "party that leaves", "parties that leave")}.`;
}

class PlanView {
  #shownOnce = false; // the first few mechanisms alone would only flicker
  #counts = h("p", { class: "note counts" });
  #brief = h("p", { class: "brief", "aria-hidden": "true" }); // the headline says the same
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
    this.live = new LiveEstimates(requirements);
    this.request = new LatestRequest(viewClosed);
    this.tradeoff = tradeoffChart(viewClosed);
    this.tables = new NewestOnly((/** @type {Requirements} */ asked) => this.#askTables(asked, viewClosed));
    this.drawTradeoffSoon = afterPaint(() => viewClosed.aborted || this.#drawTradeoff());
    this.askTablesSoon = afterPaint(() => viewClosed.aborted || this.tables.ask({ ...this.requirements }));
    this.drawSoon = debounce(RESTING_MS, () => viewClosed.aborted || this.draw());
    this.estimateSoon = debounce(QUIET_MS, () => viewClosed.aborted || this.estimate());
    this.fields = requirementsFields(requirements, (name, number) => this.#change({ [name]: number }));
    this.plan = new PlanCard(
      {
        requirements: () => this.requirements,
        estimate: () => this.live.own(),
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
    const cards = [this.#headlineCard(), this.#chartCard(), this.#tradeoffCard(), this.#sourcesCard()];
    this.shown = h("div", { class: "shown" }, cards);
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
          this.#brief,
        ),
        h("div", {}, this.#problem, this.shown, this.plan.element, this.#slowCard(), mechanismExplanation()),
      ),
    );
    replaceParams({ ...this.requirements });
    this.draw();
    this.tables.ask({ ...this.requirements });
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

  #tradeoffCard() {
    const save = saveButton(() => this.tradeoff.drawing(), "tradeoff");
    const title = h("h2", {}, "Error against messages against privacy", hint("messages"));
    return h("section", { class: "card" }, h("div", { class: "row spread" }, title, save), this.tradeoff.element);
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

  /**
   * @param {MechanismEntry} entry
   * @param {Requirements} asked
   */
  #takeSlow(entry, asked) {
    keepSlowEntry(entry, asked);
    this.draw();
  }

  #updateSlow() {
    const computed = slowEntries(this.requirements).length;
    const all = this.live.head.slow.length || 3;
    const done = computed >= all;
    this.slow.button.disabled = !this.slow.asked && done;
    const some = this.slow.asked && computed ? `${computed} of ${all} are in the chart above.` : "";
    this.#slowRemark.textContent = done ? "They are in the chart above." : some;
    this.#slowRemark.hidden = this.#slowRemark.textContent === "";
  }

  /** inca's own figures: the plan's, or those before a plan. */
  #own() {
    return planFor(this.requirements)?.entry ?? this.live.own();
  }

  /** All mechanisms that are known. */
  #entries() {
    const planned = planFor(this.requirements)?.entry;
    return [...(planned ? [planned] : []), ...this.live.entries(), ...slowEntries(this.requirements)];
  }

  /** The names of mechanisms that are being computed for the first time. */
  #waiting() {
    if (this.live.complete) return [];
    const known = this.live.entries();
    const slow = this.requirements.parties > MAX_QUICK_MUFFLIATO_PARTIES;
    return [...(slow ? [] : ["Muffliato"]), QUICK_ESTIMATE].filter(
      (name) => !known.some(({ mechanism }) => mechanism.startsWith(name.slice(0, 4))),
    );
  }

  /** Show everything that is known. */
  draw() {
    this.plan.update();
    this.#updateSlow();
    this.#drawFigures();
    if (!this.#shownOnce) return;
    this.#drawTradeoff();
    const own = this.#own();
    const entries = this.#entries();
    const table = mechanismTable(entries, this.live.head);
    table.open = this.#belowChart.querySelector("details")?.open ?? false;
    fill(this.#belowChart, mechanismLegend(entries), impossibleMechanisms(entries), table);
    this.tradeoff.updateTable();
    const nothing = own?.why_not ? "Nothing to show: see above." : "There is no error to divide.";
    const none = own ? nothing : "Being computed …";
    fill(this.#sources, (own && errorSources(own)) ?? h("p", { class: "note" }, none));
  }

  /** Show what one looks at while a slider moves; words and tables below it can wait until it rests. */
  #drawFigures() {
    const { complete, head } = this.live;
    this.shown?.setAttribute("aria-busy", String(!complete));
    this.#counts.textContent = describeParties(head);
    if (!this.#shownOnce) {
      this.#remark.textContent = "Computing …";
      return;
    }
    const planned = planFor(this.requirements)?.entry;
    const own = this.#own();
    const entries = this.#entries();
    const before = !own && this.#headline.childElementCount > 0;
    this.shown?.classList.toggle("outdated", before);
    if (!before) fill(this.#headline, headline(own, entries));
    fill(this.#remark, this.#remarkOn(own, Boolean(planned), before));
    this.#brief.textContent = before ? `${this.#brief.textContent?.replace(/ …$/, "")} …` : shortHeadline(own);
    fill(this.#chart, mechanismChart(entries, head, this.#waiting(), this.#narrow.matches));
  }

  #drawTradeoff() {
    if (!this.#shownOnce) return;
    this.tradeoff.show(tradeoffOf(this.live.tradeoff, this.requirements, this.#entries(), this.#own()));
  }

  /**
   * @param {MechanismEntry | undefined} own
   * @param {boolean} planned
   * @param {boolean} before whether the figure above is for other requirements
   */
  #remarkOn(own, planned, before) {
    if (before) return "Computing … The figure above is for the requirements before.";
    if (own?.mse) return certainty(own, planned, this.live.complete);
    return this.live.complete ? null : "Still computing …";
  }

  /**
   * Ask the tables, which answer in milliseconds, so this follows a slider; epsilon and delta change nothing there.
   * @param {Requirements} asked
   * @param {AbortSignal} viewClosed
   */
  async #askTables(asked, viewClosed) {
    if (this.live.tradeoff) return;
    try {
      const answer = await ask("tradeoff", { ...asked }, viewClosed);
      if (!sameButGuarantee(asked, this.requirements)) return;
      this.live.takeTradeoff(answer, asked);
      this.#drawFigures();
      this.drawTradeoffSoon();
      this.drawSoon();
    } catch {
      // what is refused is said by the estimate, which is asked for besides
    }
  }

  /** Ask for everything that has no formula: what it brings is shown as it comes. */
  async estimate() {
    const signal = this.request.start();
    const asked = { ...this.requirements };
    const reveal = () => {
      this.#shownOnce = true;
      if (!signal.aborted) this.draw();
    };
    /** @type {MechanismEntry | null} */
    let rough = null; // a range that rests on no view
    const patience = setTimeout(() => {
      if (rough && !signal.aborted) this.live.take(rough, asked);
      rough = null;
      reveal();
    }, PATIENCE_MS);
    try {
      await stream(
        "estimate",
        asked,
        (part) => {
          if (part.progress || signal.aborted) return;
          if (part.head) this.live.takeSlow(part.head.slow);
          if (!part.entry) return;
          rough = part.entry.views === 0 ? part.entry : rough;
          if (part.entry !== rough) this.live.take(part.entry, asked);
          if (this.#shownOnce) this.draw();
        },
        signal,
      );
      if (!signal.aborted) this.live.finish();
      reveal();
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
    this.live.change(this.requirements);
    this.#drawFigures(); // what has a formula is painted first
    this.drawTradeoffSoon();
    this.askTablesSoon();
    this.drawSoon();
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
