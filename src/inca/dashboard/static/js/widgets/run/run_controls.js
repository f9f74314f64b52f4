// The card in which a run is set up, and the one that stands there instead for a file.

/** @import { Term } from "../../lib/glossary.js" */
/** @import { RunAnswer, RunSettings } from "../../lib/types.js" */
/** @import { Field } from "../fields.js" */
import { h } from "../../lib/dom.js";
import { DEFAULT_SETTINGS, INJECTIONS, NOBODY, SCHEDULES } from "../../lib/run_settings.js";
import { facts } from "../elements.js";
import { choiceField, numberField, seedField, wordsField } from "../fields.js";
import { hint } from "../hint.js";

/** @typedef {{ settings?: Partial<RunSettings>, colluding?: string, all?: boolean }} RunChange */

const FIXED_RECEIVERS = ["circle", "hypercube", "complete"]; // schedules that determine the number of receivers

/**
 * The fields of the settings; only those whose change makes another run.
 * @param {RunSettings} settings
 * @param {(change: RunChange) => void} onchange
 * @returns {Record<keyof RunSettings, Field<any>>}
 */
function settingsFields(settings, onchange) {
  const change = (/** @type {keyof RunSettings} */ name) => (/** @type {string | number} */ value) =>
    onchange({ settings: { [name]: value } });
  /**
   * @param {"parties" | "rounds" | "receivers" | "quiet" | "sigma_independent" | "sigma_cancelling" | "records"} name
   * @param {[label: string, term: Term, min: number, max: number]} words
   * @param {object} [more]
   */
  const number = (name, [label, term, min, max], more = {}) => {
    const value = settings[name];
    return numberField({
      name,
      label,
      term,
      min,
      max: Math.max(max, Number(value) || 0),
      value,
      onchange: change(name),
      ...more,
    });
  };
  /**
   * @param {"schedule" | "injection"} name
   * @param {string} label
   * @param {[string, string][]} choices
   */
  const choice = (name, label, choices) =>
    choiceField({ name, label, term: name, value: settings[name], choices, onchange: change(name) });
  return {
    parties: number("parties", ["Parties", "parties", 2, 5000], { scale: "log", whole: true }),
    rounds: number("rounds", ["Rounds", "rounds", 1, 200]),
    schedule: choice("schedule", "Who sends to whom", SCHEDULES),
    receivers: number("receivers", ["Receivers per round", "receivers", 1, 20]),
    injection: choice("injection", "How value and noise enter", INJECTIONS),
    quiet: number("quiet", ["Quiet rounds at the end", "quiet", 0, 50]),
    sigma_independent: number("sigma_independent", ["Independent noise", "independent", 0, 50], {
      step: 0.1,
      unit: "min",
    }),
    sigma_cancelling: number("sigma_cancelling", ["Cancelling noise", "cancelling", 0, 500], {
      step: 1,
      whole: false,
      unit: "min",
    }),
    records: number("records", ["Patients in each value", "records", 1, 10000], { scale: "log", whole: true }),
    seed: seedField(settings.seed, change("seed")),
    absent: wordsField({
      name: "absent",
      label: "Who is absent",
      term: "absence",
      example: "4:3-5 7:6-",
      value: settings.absent,
      onchange: change("absent"),
    }),
  };
}

/**
 * The card; `show(settings, colluding)` writes what fits into the fields.
 * @param {RunSettings} settings
 * @param {string} colluding
 * @param {(change: RunChange) => void} onchange
 */
export function runControls(settings, colluding, onchange) {
  const fields = settingsFields(settings, onchange);
  const colluders = wordsField({
    name: "colluding",
    label: "Who colludes",
    term: "collusion",
    example: "2 5",
    value: "",
    onchange: (words) => onchange({ colluding: words || NOBODY }),
  });
  const startOver = () => onchange({ settings: { ...DEFAULT_SETTINGS }, all: true });
  // On a narrow screen the stage comes first, and the fields when they are asked for.
  const details = h(
    "details",
    { open: !matchMedia("(max-width: 900px)").matches },
    h("summary", {}, h("h2", {}, "Settings of the run")),
    Object.values(fields).map(({ element }) => element),
    colluders.element,
    h("button", { type: "button", onclick: startOver }, "Start over"),
  );
  const element = h("section", { class: "card run-controls", "aria-label": "Settings of the run" }, details);

  /**
   * @param {RunSettings} now
   * @param {string} ids
   */
  const show = (now, ids) => {
    const active = document.activeElement;
    for (const [name, field] of Object.entries(fields)) {
      const typing = field.element.contains(active) && active?.tagName === "INPUT" && name !== "absent";
      if (!typing) field.set(now[/** @type {keyof RunSettings} */ (name)]);
    }
    colluders.set(ids === NOBODY ? "" : ids);
    fields.receivers.element.hidden = FIXED_RECEIVERS.includes(now.schedule);
    fields.quiet.element.hidden = now.injection !== "incremental";
  };
  show(settings, colluding);
  return { element, show };
}

/**
 * What stands there instead for a file.
 * @param {string} name
 * @param {RunAnswer} run
 */
export function runFileCard(name, run) {
  const level = (/** @type {number | null} */ sigma) => (sigma === null ? "not named" : String(sigma));
  return h(
    "section",
    { class: "card", "aria-label": "The file" },
    h("h2", {}, name),
    h("p", {}, "This run is read from a file, so its settings are fixed."),
    h(
      "p",
      {},
      h("strong", {}, "Nothing private is in the file"),
      ": no values, no noise and no messages. It records who sent to whom, who was present, and how much weight each message carries",
      hint("weight"),
      ".",
    ),
    facts([
      ["Parties", String(run.parties)],
      ["Rounds", String(run.rounds)],
      ["Independent noise", level(run.sigma_independent), hint("independent")],
      ["Cancelling noise", level(run.sigma_cancelling), hint("cancelling")],
    ]),
    h("a", { href: "/run" }, "Watch a simulated run instead"),
  );
}
