// Elements, numbers with units, and the fields that all views share.

import { hint } from "./hints.js";

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Make an HTML element: h("p", { class: "note", onclick: f }, "text", child). */
export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);

/** Make an SVG element in the same way. */
export const s = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

/** Write a number for people: four digits, and a power of ten only where it is needed. */
export function text(value, digits = 4) {
  if (value === null || value === undefined) return "infinite";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.min(digits - 1, 2)).replace(/\.?0*e\+?/, "e");
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
}

export const percent = (fraction) => `${text(100 * fraction, 3)} %`;

/** Show something short to everyone, screen readers included. */
let telling;
export function tell(sentence) {
  const place = document.getElementById("status");
  place.textContent = sentence;
  clearTimeout(telling);
  telling = setTimeout(() => { place.textContent = ""; }, 6000);
}

/** Call f when nothing has happened for so many milliseconds. */
export function calm(milliseconds, f) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...given), milliseconds);
  };
}

/** A label with its hint beside it, not inside: else the button would be part of the field's name. */
export const labelFor = (id, words, term) => h("div", { class: "label" }, h("label", { for: id }, words), term ? hint(term) : null);

/**
 * A labelled number with a slider. `scale` "log" moves the slider by factors; `unit` stands behind the number;
 * `whole` allows whole numbers only, as steps of 1 do on a linear scale.
 * Calls onchange(number) for what is a number within the bounds, and marks what is not.
 */
export function numberField({ name, label, term, value, least, most, step = 1, unit = "", scale = "linear", whole = step === 1 && scale !== "log", onchange }) {
  const id = `field-${name}`;
  const toSlider = (x) => (scale === "log" ? Math.log10(x) : x);
  const fromSlider = (x) => (scale === "log" ? Number((10 ** x).toPrecision(whole && x < 1 ? 1 : 2)) : x);
  const bounds = { min: toSlider(least), max: toSlider(most), step: scale === "log" ? 0.01 : step };
  const slider = h("input", { type: "range", ...bounds, value: toSlider(value), "aria-label": `${label}, slider`, tabindex: -1 });
  const input = h("input", { type: "number", id, name, min: least, max: most, step: scale === "log" ? "any" : step, value });
  const take = (number) => {
    const fits = Number.isFinite(number) && number >= least && number <= most && (!whole || Number.isInteger(number));
    input.setAttribute("aria-invalid", String(!fits));
    problem.textContent = fits ? "" : `${label} must be ${whole ? "a whole number" : "a number"} from ${text(least)} to ${text(most)}.`;
    if (fits) onchange(number);
  };
  const problem = h("div", { class: "error note", id: `${id}-problem`, role: "alert" });
  input.setAttribute("aria-describedby", `${id}-problem`);
  slider.addEventListener("input", () => { input.value = fromSlider(Number(slider.value)); take(Number(input.value)); });
  input.addEventListener("input", () => {
    const number = input.value === "" ? NaN : Number(input.value);
    if (Number.isFinite(number) && number > 0 - Number(scale !== "log")) slider.value = toSlider(number);
    take(number);
  });
  const field = h("div", { class: "field" }, labelFor(id, label, term),
    h("div", { class: "pair" }, slider, input, h("span", { class: "unit" }, unit)), problem);
  field.set = (number) => { input.value = number; slider.value = toSlider(number); input.setAttribute("aria-invalid", "false"); problem.textContent = ""; };
  return field;
}

/** A labelled choice among [value, words] pairs. */
export function choiceField({ name, label, term, value, choices, onchange }) {
  const id = `field-${name}`;
  const select = h("select", { id, name, onchange: () => onchange(select.value) },
    ...choices.map(([key, words]) => h("option", { value: key, selected: key === value }, words)));
  const field = h("div", { class: "field" }, labelFor(id, label, term), select);
  field.set = (key) => { select.value = key; };
  return field;
}

/** A coloured word: the classes are those of style.css, such as "independent". */
export const swatch = (kind, words) => h("span", {}, h("span", { class: `swatch fill-${kind}` }), words);
