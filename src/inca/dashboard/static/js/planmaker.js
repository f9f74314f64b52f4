// The card that makes a plan, shows it, and hands it on: as a file, and to the Run view.

import { go } from "./app.js";
import { h, tell, text } from "./dom.js";
import { hint } from "./hints.js";
import { longJob } from "./job.js";
import { save } from "./picture.js";
import { inWords, keyOf, same } from "./wish.js";

const MOST_WATCHED = 200;
const made = new Map(); // plans take minutes: those of this page are kept while it is open, also when another view is shown
let last = null;

/** The plan of a wish, if it was made: { wish, entry, plan, text }. */
export const planOf = (wish) => made.get(keyOf(wish));

const rounded = (x) => Number(x.toPrecision(6));

/** Show a run of a design in the Run view, with as many parties as one can look at. */
function watch({ design, sigma_independent, sigma_cancelling }, wish) {
  const { schedule, rounds, receivers, quiet, kind } = design;
  const room = schedule === "distinct" ? Math.max(MOST_WATCHED, rounds * receivers + 1) : MOST_WATCHED; // distinct receivers must not run out
  go("run", { parties: Math.min(wish.parties, room), rounds, receivers, schedule, quiet, injection: kind,
    sigma_independent: rounded(sigma_independent), sigma_cancelling: rounded(sigma_cancelling) });
}

/** A button for that. */
const watchButton = (words, idea, wish) => h("button", { type: "button", onclick: () => watch(idea, wish) }, words);

const fewer = (wish) => (wish.parties > MOST_WATCHED
  ? h("p", { class: "note" }, `The Run view shows ${MOST_WATCHED} of the ${text(wish.parties)} parties with the same noise each, so its mean is noisier.`) : null);

const file = (plan) => new Blob([`${JSON.stringify(plan, null, 1)}\n`], { type: "application/json" });

function result(shown, current, restore) {
  const { wish, entry, plan, text: words } = shown;
  const other = same(wish, current) ? null : h("div", { class: "other" },
    h("p", { class: "warn" }, `⚠ This plan was made for other settings: ${inWords(wish)}.`),
    h("button", { type: "button", onclick: () => restore(wish) }, "Back to those settings"));
  const levels = { design: entry.design, sigma_independent: plan.sigma_independent, sigma_cancelling: plan.sigma_cancelling };
  return [other, h("pre", { tabindex: 0, role: "region", "aria-label": "The plan as text" }, words),
    h("div", { class: "row" },
      h("button", { type: "button", onclick: () => save(file(plan), "plan.json") }, "Download plan.json"),
      watchButton("Watch a run of it", levels, wish)),
    fewer(wish)].filter(Boolean);
}

function firstIdea(own, current) {
  const noise = `noise ${text(own.sigma_independent, 3)} independent, ${text(own.sigma_cancelling, 3)} cancelling`;
  return [h("p", { class: "note" }, `First idea of a design: ${own.design.text}; ${noise}.`, hint("sigma"), hint("schedule")),
    watchButton("Watch a run of the first idea", own, current), fewer(current)].filter(Boolean);
}

/**
 * The card. `wish()` is the current wish, `idea()` inca's entry among the estimates, `changed()` is told that there is a new plan,
 * `restore(wish)` puts the fields back. Call `update()` when any of these has changed, `stop()` at the end.
 */
export function planCard({ wish, idea, changed, restore }) {
  const place = h("div", {});
  const ideas = h("div", {});
  const about = h("p", { class: "note" });
  const job = longJob({
    path: "plan", label: "Make the plan", kind: "main", doing: "Making the plan", given: () => ({ ...wish() }), changed: update,
    take: ({ entry, plan, text: words }, params) => {
      last = { wish: params, entry, plan, text: words };
      made.set(keyOf(params), last);
      tell("The plan is made.");
      changed();
      if (document.activeElement === job.button) place.querySelector("pre")?.focus(); // the button has no more to do
    },
  });
  const element = h("section", { class: "card", "aria-label": "The plan" }, h("h2", {}, "The plan", hint("plan")),
    h("p", {}, "Searches for the design with the least error and calibrates its noise on hundreds of sampled views. It takes from half a minute to some minutes."),
    about, job.element, place, ideas);
  let drawn = "";

  function update() {
    const current = wish(), own = idea(), mine = planOf(current), shown = mine ?? last;
    const unable = Boolean(own?.why_not);
    about.textContent = job.asked && !same(job.asked, current) ? `The plan that is being made is for other settings: ${inWords(job.asked)}.`
      : mine ? "The plan for these settings is made." : unable ? "There is no plan for these settings: inca cannot do this, see above." : "";
    about.hidden = about.textContent === "";
    job.button.disabled = !job.asked && (Boolean(mine) || unable);
    ideas.replaceChildren(...(own?.design && !mine ? firstIdea(own, current) : []));
    const state = shown ? `${keyOf(shown.wish)}/${keyOf(current)}` : "";
    if (state === drawn) return;
    drawn = state;
    place.replaceChildren(...(shown ? result(shown, current, restore) : []));
  }
  return { element, update, clear: job.clear, stop: job.stop };
}
