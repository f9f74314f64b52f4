// The run that the adversary observes: its most important settings, or where it comes from.

/** @import { Term } from "../../lib/glossary.js" */
/** @import { RunSettings } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";
import { queryString } from "../../lib/navigation.js";
import { INJECTIONS, SCHEDULES } from "../../lib/run_settings.js";
import { choiceField, numberField } from "../fields.js";

/**
 * A card for a run from a file.
 * @param {string} file
 */
export function fileRunCard(file) {
  const query = queryString({ file });
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "The run"),
    h("p", {}, "A real run, read from a file."),
    h(
      "p",
      { class: "row" },
      h("a", { href: `/run${query}` }, "Watch the run"),
      h("a", { href: `/file${query}` }, "About the file"),
      h("a", { href: "/adversary" }, "A simulated run instead"),
    ),
  );
}

/**
 * A card for a simulated run; `useCancelling(level)` puts a level of cancelling noise into its field.
 * @param {RunSettings} settings
 * @param {(changed: Partial<RunSettings>) => void} onchange
 * @param {() => string} runAddress of the same run in the Run view
 */
export function simulatedRunCard(settings, onchange, runAddress) {
  /**
   * @param {"parties" | "rounds" | "sigma_independent" | "sigma_cancelling" | "seed"} name
   * @param {[label: string, term: Term, min: number, max: number, step?: number]} words
   */
  const number = (name, [label, term, min, max, step]) =>
    numberField({
      name,
      label,
      term,
      min,
      max,
      step,
      value: settings[name],
      onchange: (now) => onchange({ [name]: now }),
    });
  /**
   * @param {"schedule" | "injection"} name
   * @param {string} label
   * @param {[string, string][]} choices
   */
  const choice = (name, label, choices) =>
    choiceField({
      name,
      label,
      term: name,
      value: settings[name],
      choices,
      onchange: (now) => onchange({ [name]: now }),
    });
  const cancelling = number("sigma_cancelling", ["Cancelling noise", "cancelling", 0, 500, 0.1]);
  const fields = [
    number("parties", ["Parties", "parties", 2, 1000]),
    number("rounds", ["Rounds", "rounds", 1, 200]),
    choice("schedule", "Who sends to whom", SCHEDULES),
    choice("injection", "How value and noise enter", INJECTIONS),
    number("sigma_independent", ["Independent noise", "independent", 0, 50, 0.01]),
    cancelling,
    number("seed", ["Seed", "seed", 0, 1000]),
  ];
  const link = h("a", { href: "/run" }, "Change the run");
  for (const name of ["focus", "pointerenter", "pointerdown"]) {
    link.addEventListener(name, () => {
      link.href = runAddress(); // the address keeps changing
    });
  }
  const element = h(
    "section",
    { class: "card compact" },
    h("div", { class: "row spread" }, h("h2", {}, "The run"), link),
    fields.map((field) => field.element),
  );
  return { element, useCancelling: cancelling.set };
}
