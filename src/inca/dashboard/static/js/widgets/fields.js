// Labelled fields of forms.

/** @import { Term } from "../lib/glossary.js" */
import { h } from "../lib/dom.js";
import { format } from "../lib/format.js";
import { hint } from "./hint.js";

/**
 * @template Value
 * @typedef {object} Field
 * @property {HTMLElement} element
 * @property {(value: Value) => void} set show another value, without telling anyone
 */

/**
 * @typedef {object} NumberSpec
 * @property {string} name
 * @property {string} label
 * @property {Term} term
 * @property {number} value
 * @property {number} min
 * @property {number} max
 * @property {number} [step]
 * @property {string} [unit]
 * @property {"log" | "linear"} [scale] "log" moves the slider by factors
 * @property {boolean} [whole] only whole numbers, as steps of 1 on a linear scale mean by themselves
 * @property {(number: number) => void} onchange called for numbers within the bounds
 */

/**
 * A label with its hint beside it, not inside: else the button would be part of the field's name.
 * @param {string} id
 * @param {string} words
 * @param {Term} term
 */
export const labelFor = (id, words, term) => h("div", { class: "label" }, h("label", { for: id }, words), hint(term));

/**
 * Mark a field as valid or not.
 * @param {HTMLElement} input
 * @param {boolean} valid
 */
const markValid = (input, valid) => input.setAttribute("aria-invalid", String(!valid));

/**
 * A number with a slider. What is out of bounds is marked, and said.
 * @param {NumberSpec} spec
 * @returns {Field<number>}
 */
export function numberField({ step = 1, scale = "linear", unit = "", ...spec }) {
  const { name, label, term, value, min, max, onchange } = spec;
  const logarithmic = scale === "log";
  const whole = spec.whole ?? (step === 1 && !logarithmic);
  const id = `field-${name}`;
  const toSlider = (/** @type {number} */ x) => (logarithmic ? Math.log10(x) : x);
  const fromSlider = (/** @type {number} */ x) =>
    logarithmic ? Number((10 ** x).toPrecision(whole && x < 1 ? 1 : 2)) : x;
  const slider = h("input", {
    type: "range",
    min: toSlider(min),
    max: toSlider(max),
    step: logarithmic ? 0.01 : step,
    value: toSlider(value),
    "aria-label": `${label}, slider`,
    tabindex: -1,
  });
  const input = h("input", { type: "number", id, name, min, max, step: logarithmic ? "any" : step, value });
  const problem = h("div", { class: "error note", id: `${id}-problem`, role: "alert" });
  input.setAttribute("aria-describedby", problem.id);

  const take = (/** @type {number} */ number) => {
    const valid = number >= min && number <= max && (!whole || Number.isInteger(number));
    markValid(input, valid);
    const kind = whole ? "a whole number" : "a number";
    problem.textContent = valid ? "" : `${label} must be ${kind} from ${format(min)} to ${format(max)}.`;
    if (valid) onchange(number);
  };
  slider.addEventListener("input", () => {
    input.value = String(fromSlider(Number(slider.value)));
    take(Number(input.value));
  });
  input.addEventListener("input", () => {
    const number = input.value === "" ? Number.NaN : Number(input.value);
    if (Number.isFinite(toSlider(number))) slider.value = String(toSlider(number));
    take(number);
  });
  const pair = h("div", { class: "pair" }, slider, input, h("span", { class: "unit" }, unit));
  return {
    element: h("div", { class: "field" }, labelFor(id, label, term), pair, problem),
    set: (number) => {
      input.value = String(number);
      slider.value = String(toSlider(number));
      markValid(input, true);
      problem.textContent = "";
    },
  };
}

/**
 * A whole number, or nothing.
 * @param {{ name: string, label: string, term: Term, value: number | null, min: number, max: number, empty: string, onchange: (number: number | null) => void }} spec
 * @returns {Field<number | null>}
 */
export function optionalField({ name, label, term, value, min, max, empty, onchange }) {
  const id = `field-${name}`;
  const input = h("input", { type: "number", id, name, min, max, step: 1, value, placeholder: empty });
  const problem = h("div", { class: "error note", id: `${id}-problem`, role: "alert" });
  input.setAttribute("aria-describedby", problem.id);
  const say = (/** @type {boolean} */ valid) => {
    markValid(input, valid);
    problem.textContent = valid
      ? ""
      : `${label} must be a whole number from ${format(min)} to ${format(max)}, or empty.`;
  };
  input.addEventListener("input", () => {
    const valid = input.validity.valid;
    say(valid);
    if (valid) onchange(input.value === "" ? null : Number(input.value));
  });
  return {
    element: h("div", { class: "field optional" }, labelFor(id, label, term), input, problem),
    set: (number) => {
      input.value = String(number ?? "");
      say(true);
    },
  };
}

/**
 * A choice among [value, words] pairs.
 * @param {{ name: string, label: string, term: Term, value: string, choices: [string, string][], onchange: (value: string) => void }} spec
 * @returns {Field<string>}
 */
export function choiceField({ name, label, term, value, choices, onchange }) {
  const id = `field-${name}`;
  const options = choices.map(([key, words]) => h("option", { value: key, selected: key === value }, words));
  const select = h("select", { id, name, onchange: () => onchange(select.value) }, options);
  return {
    element: h("div", { class: "field" }, labelFor(id, label, term), select),
    set: (key) => {
      select.value = key;
    },
  };
}

/**
 * Words separated by spaces, commas or semicolons; `onchange` gets them with single spaces.
 * @param {{ name: string, label: string, term: Term, example: string, value: string, onchange: (words: string) => void }} spec
 * @returns {Field<string>}
 */
export function wordsField({ name, label, term, example, value, onchange }) {
  const id = `field-${name}`;
  const input = h("input", {
    type: "text",
    id,
    name,
    value,
    placeholder: example,
    autocomplete: "off",
    spellcheck: "false",
    onchange: () => onchange(input.value.replace(/[\s,;]+/g, " ").trim()),
  });
  return {
    element: h("div", { class: "field wide" }, labelFor(id, label, term), input),
    set: (words) => {
      input.value = words;
    },
  };
}

/**
 * A seed, and a button for another one.
 * @param {number} value
 * @param {(seed: number) => void} onchange
 * @returns {Field<number>}
 */
export function seedField(value, onchange) {
  const input = h("input", { type: "number", id: "field-seed", name: "seed", min: 0, step: 1, value });
  input.max = String(Number.MAX_SAFE_INTEGER);
  const take = () => {
    const valid = input.value !== "" && Number.isSafeInteger(Number(input.value)) && Number(input.value) >= 0;
    markValid(input, valid);
    if (valid) onchange(Number(input.value));
  };
  const another = () => {
    input.value = String(Math.floor(Math.random() * 1e6));
    take();
  };
  input.addEventListener("input", take);
  const button = h("button", { type: "button", onclick: another }, "Another seed");
  return {
    element: h(
      "div",
      { class: "field" },
      labelFor(input.id, "Seed", "seed"),
      h("div", { class: "pair" }, input, button),
    ),
    set: (seed) => {
      input.value = String(seed);
    },
  };
}
