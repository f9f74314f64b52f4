// The card in which a run is set up.

import { choiceField, h, labelFor, numberField } from "./dom.js";
import { hint } from "./hints.js";
import { DEFAULTS } from "./runsettings.js";

const SCHEDULES = [["permutation", "by permutations"], ["random", "at random"], ["distinct", "at random, all different"], ["hypercube", "along a hypercube"], ["complete", "everyone to everyone"]];
const INJECTIONS = [["incremental", "value in shares (the protocol)"], ["early", "value at once"], ["single", "broken: one noise term"], ["plain", "broken: no cancelling noise"]];
const FIXED = ["hypercube", "complete"]; // schedules that settle the number of receivers by themselves

function wordsField({ name, label, term, example, value, onchange }) {
  const id = `field-${name}`;
  const input = h("input", { type: "text", id, name, value, placeholder: example, autocomplete: "off", spellcheck: "false", onchange: () => onchange(input.value.replace(/[\s,;]+/g, " ").trim()) });
  const field = h("div", { class: "field run-words" }, labelFor(id, label, term), input);
  field.set = (words) => { input.value = words; };
  return field;
}

function seedField(value, onchange) {
  const input = h("input", { type: "number", id: "field-seed", name: "seed", min: 0, max: Number.MAX_SAFE_INTEGER, step: 1, value, oninput: () => {
    const fits = input.value !== "" && Number.isSafeInteger(Number(input.value)) && Number(input.value) >= 0;
    input.setAttribute("aria-invalid", String(!fits));
    if (fits) onchange(Number(input.value));
  } });
  const another = h("button", { type: "button", onclick: () => {
    input.value = Math.floor(Math.random() * 1e6);
    input.setAttribute("aria-invalid", "false");
    onchange(Number(input.value));
  } }, "Another seed");
  const field = h("div", { class: "field" }, labelFor("field-seed", "Seed", "seed"), h("div", { class: "pair" }, input, another));
  field.set = (seed) => { input.value = seed; };
  return field;
}

/** The card; `onchange(name, value)` is called for every change, and `set(settings, colluding)` writes what fits into the fields. */
export function controls(settings, colluding, onchange) {
  const change = (name) => (value) => onchange(name, value);
  const number = (name, label, term, least, most, more = {}) =>
    numberField({ name, label, term, least, most: Math.max(most, Number(settings[name]) || 0), value: settings[name], onchange: change(name), ...more });
  const fields = {
    parties: number("parties", "Parties", "parties", 2, 5000, { scale: "log", whole: true }),
    rounds: number("rounds", "Rounds", "rounds", 1, 200),
    schedule: choiceField({ name: "schedule", label: "Who sends to whom", term: "schedule", value: settings.schedule, choices: SCHEDULES, onchange: change("schedule") }),
    receivers: number("receivers", "Receivers per round", "receivers", 1, 20),
    injection: choiceField({ name: "injection", label: "How values go in", term: "injection", value: settings.injection, choices: INJECTIONS, onchange: change("injection") }),
    quiet: number("quiet", "Quiet rounds at the end", "quiet", 0, 50),
    sigma_independent: number("sigma_independent", "Independent noise", "independent", 0, 10, { step: 0.01 }),
    sigma_cancelling: number("sigma_cancelling", "Cancelling noise", "cancelling", 0, 100, { step: 0.1 }),
    seed: seedField(settings.seed, change("seed")),
  };
  const words = {
    absent: wordsField({ name: "absent", label: "Who is away", term: "absence", example: "4:3-5 7:6-", value: settings.absent, onchange: change("absent") }),
    colluding: wordsField({ name: "colluding", label: "Who colludes", term: "collusion", example: "2 5", value: colluding, onchange: change("colluding") }),
  };
  const reset = h("button", { type: "button", onclick: () => onchange("all", { ...DEFAULTS }) }, "Back to the beginning");
  // On a narrow screen the stage comes first to the eye, and the fields when they are asked for.
  const folded = h("details", { open: !matchMedia("(max-width: 900px)").matches }, h("summary", {}, h("h2", {}, "Settings of the run")),
    ...Object.values(fields), ...Object.values(words), reset);
  const card = h("section", { class: "card run-controls", "aria-label": "Settings of the run" }, folded);
  card.set = (now, ids) => {
    for (const [name, field] of Object.entries(fields)) if (!field.contains(document.activeElement) || document.activeElement.tagName === "BUTTON") field.set(now[name]);
    words.absent.set(now.absent);
    words.colluding.set(ids);
    fields.receivers.hidden = FIXED.includes(now.schedule);
    fields.quiet.hidden = now.injection !== "incremental";
  };
  card.set(settings, colluding);
  return card;
}

/** What stands there instead for a file: it is as it was. */
export function fileCard(name, data) {
  const level = (sigma) => (sigma === null ? "not named" : String(sigma));
  return h("section", { class: "card", "aria-label": "The file" }, h("h2", {}, name),
    h("p", {}, "This run is read from a file, so its settings are fixed."),
    h("p", {}, h("strong", {}, "Nothing private is in the file"), ": no values, no noise and no messages. It tells who sent to whom, who was there, and how much weight each message carries", hint("weight"), "."),
    h("dl", { class: "run-facts" },
      h("dt", {}, "Parties"), h("dd", {}, String(data.parties)), h("dt", {}, "Rounds"), h("dd", {}, String(data.rounds)),
      h("dt", {}, "Independent noise", hint("independent")), h("dd", {}, level(data.sigma_independent)),
      h("dt", {}, "Cancelling noise", hint("cancelling")), h("dd", {}, level(data.sigma_cancelling))),
    h("a", { href: "/run" }, "Watch a made-up run instead"));
}
