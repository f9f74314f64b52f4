// The card that makes a plan, shows it, and hands it on: as a file, and to the Run view.

/** @import { KeptPlan, MechanismEntry, PlanAnswer, Requirements } from "../../lib/types.js" */
import { ask } from "../../lib/api.js";
import { announce, fill, h } from "../../lib/dom.js";
import { format } from "../../lib/format.js";
import { goTo } from "../../lib/navigation.js";
import { describeRequirements, keyOf } from "../../lib/requirements.js";
import { RECORD_MOVES_BY } from "../../lib/run_settings.js";
import { contentCard } from "../content_card.js";
import { hint } from "../hint.js";
import { LongJob } from "../long_job.js";
import { download } from "../picture_buttons.js";

/** @typedef {PlanAnswer & { requirements: Requirements }} MadePlan */

const MAX_PARTIES_WATCHED = 200;
/** @type {Map<string, MadePlan>} plans take minutes: the program keeps them, and this page what it knows of them */
const madePlans = new Map();
/** @type {MadePlan | undefined} */
let lastPlan;

/**
 * The plan for these requirements, if it was made.
 * @param {Requirements} requirements
 */
export const planFor = (requirements) => madePlans.get(keyOf(requirements));

/**
 * A button that shows a run of inca's own design, with as many parties as one can look at.
 * @param {string} words
 * @param {MechanismEntry} own
 * @param {Requirements} requirements
 */
function watchButton(words, { design, sigma_independent, sigma_cancelling }, requirements) {
  if (!design || sigma_independent === null || sigma_cancelling === null) return null;
  const { schedule, rounds, receivers, quiet, kind } = design;
  const unrepeated = ["distinct", "circle"].includes(schedule);
  const needed = unrepeated ? rounds * receivers + 1 : 0; // receivers must not run out
  const rounded = (/** @type {number} */ x) => Number(x.toPrecision(6));
  const watch = () =>
    goTo("run", {
      parties: Math.min(requirements.parties, Math.max(MAX_PARTIES_WATCHED, needed)),
      rounds,
      receivers,
      schedule,
      quiet,
      injection: kind,
      sigma_independent: rounded(sigma_independent * RECORD_MOVES_BY),
      sigma_cancelling: rounded(sigma_cancelling * RECORD_MOVES_BY),
    });
  return h("button", { type: "button", onclick: watch }, words);
}

/** @param {Requirements} requirements */
const fewerParties = ({ parties }) =>
  parties > MAX_PARTIES_WATCHED &&
  h(
    "p",
    { class: "note" },
    `The Run view shows ${MAX_PARTIES_WATCHED} of the ${format(parties)} parties with the same noise each, so its mean is noisier.`,
  );

/**
 * A plan that was made, and what to do with it.
 * @param {MadePlan} shown
 * @param {Requirements} current
 * @param {(requirements: Requirements) => void} restore
 */
function planContents({ requirements, entry, plan, content }, current, restore) {
  const other = keyOf(requirements) !== keyOf(current) && [
    h("p", { class: "warn" }, `⚠ This plan was made for other requirements: ${describeRequirements(requirements)}.`),
    h("button", { type: "button", onclick: () => restore(requirements) }, "Back to those requirements"),
  ];
  const file = () => new Blob([`${JSON.stringify(plan, null, 1)}\n`], { type: "application/json" });
  return [
    other && h("div", { class: "other-plan" }, other),
    contentCard(content),
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", onclick: () => download(file(), "plan.json") }, "Download plan.json"),
      watchButton("Watch a run of it", entry, requirements),
    ),
    fewerParties(requirements),
  ];
}

/**
 * The design of the quick estimate.
 * @param {MechanismEntry} own
 * @param {Requirements} current
 */
function quickDesign(own, current) {
  const { design, sigma_independent, sigma_cancelling } = own;
  if (!design || sigma_independent === null || sigma_cancelling === null) return null;
  const noise = `noise ${format(sigma_independent, 3)} independent, ${format(sigma_cancelling, 3)} cancelling`;
  return [
    h(
      "p",
      { class: "note" },
      `Design of the quick estimate: ${design.text}; ${noise}.`,
      hint("sigma"),
      hint("schedule"),
    ),
    watchButton("Watch a run of the quick estimate", own, current),
    fewerParties(current),
  ];
}

/** The card. */
export class PlanCard {
  #place = h("div", { tabindex: -1 });
  #quick = h("div");
  #about = h("p", { class: "note" });
  #drawn = "";

  /**
   * @param {object} context
   * @param {() => Requirements} context.requirements
   * @param {() => MechanismEntry | undefined} context.estimate inca's own, if it is there
   * @param {() => void} context.onplan there is a new plan
   * @param {(requirements: Requirements) => void} context.restore put other requirements into the fields
   * @param {AbortSignal} viewClosed
   */
  constructor(context, viewClosed) {
    this.context = context;
    this.job = new LongJob(
      {
        question: "plan",
        label: "Make the plan",
        buttonClass: "main",
        activity: "Making the plan",
        requirements: context.requirements,
        onchange: () => this.update(),
        take: (answer, requirements) => this.#take({ ...answer, requirements }),
      },
      viewClosed,
    );
    ask("plans", {}, viewClosed).then(
      (kept) => this.#takeKept(kept),
      () => {}, // what cannot be had again can be made again
    );
    this.element = h(
      "section",
      { class: "card", "aria-label": "The plan" },
      h("h2", {}, "The plan", hint("plan")),
      h(
        "p",
        {},
        "The design with the smallest error, and its noise: looked up at once, or, where no table reaches, calibrated on hundreds of sampled views, which takes from half a minute to some minutes.",
      ),
      this.#about,
      this.job.element,
      this.#place,
      this.#quick,
      h("p", { class: "note" }, "Plans that were made here are kept: ", h("a", { href: "/file" }, "see the list"), "."),
    );
  }

  /**
   * Take the plans that the program has kept, as after the page was loaded again.
   * @param {KeptPlan[]} kept the last one first
   */
  #takeKept(kept) {
    if (!kept.length) return;
    for (const plan of kept) madePlans.set(keyOf(plan.requirements), plan);
    lastPlan ??= kept[0];
    this.context.onplan();
  }

  /** @param {MadePlan} newPlan */
  #take(newPlan) {
    lastPlan = newPlan;
    madePlans.set(keyOf(newPlan.requirements), newPlan);
    announce("The plan is made.");
    this.context.onplan();
    if (document.activeElement === this.job.button) this.#place.focus(); // the button is done
  }

  /** @param {MechanismEntry | undefined} own */
  #remark(own) {
    const current = this.context.requirements();
    const { asked } = this.job;
    if (asked && keyOf(asked) !== keyOf(current)) {
      return `The plan being made is for other requirements: ${describeRequirements(asked)}.`;
    }
    if (planFor(current)) return "The plan for these requirements is made.";
    return own?.why_not ? "There is no plan for these requirements: inca cannot meet them, see above." : "";
  }

  /** Show what has changed. */
  update() {
    const current = this.context.requirements();
    const own = this.context.estimate();
    const plan = planFor(current);
    this.#about.textContent = this.#remark(own);
    this.#about.hidden = this.#about.textContent === "";
    this.job.button.disabled = !this.job.asked && Boolean(plan || own?.why_not);
    fill(this.#quick, own && !plan && quickDesign(own, current));
    const shown = plan ?? lastPlan;
    const state = shown ? `${keyOf(shown.requirements)}/${keyOf(current)}` : "";
    if (!shown || state === this.#drawn) return;
    this.#drawn = state;
    fill(this.#place, planContents(shown, current, this.context.restore));
  }
}
