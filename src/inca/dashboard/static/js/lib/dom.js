// Elements, and sentences for everyone who looks at or listens to the page.

/** @import { Attributes, Content } from "./types.js" */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const ANNOUNCED_FOR_MS = 6000;

/**
 * Give an element its attributes, listeners (names with "on") and children; null, undefined and false are left out.
 * @template {Element} Kind
 * @param {Kind} element
 * @param {Attributes} attributes
 * @param {Content[]} children
 */
function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...present(children));
  return element;
}

/**
 * Make an HTML element: `h("p", { class: "note", onclick: f }, "text", child)`.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {Content[]} children
 */
export const h = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);

/**
 * Make an SVG element in the same way.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {Content[]} children
 */
export const svg = (tag, attributes = {}, ...children) =>
  build(document.createElementNS(SVG_NAMESPACE, tag), attributes, children);

/**
 * Flatten contents and leave out what is absent.
 * @param {Content} contents
 * @returns {(Node | string)[]}
 */
function present(contents) {
  if (Array.isArray(contents)) return contents.flatMap(present);
  return contents === null || contents === undefined || contents === false ? [] : [contents];
}

/**
 * Replace the children of an element.
 * @param {Element} element
 * @param {Content[]} contents
 */
export const fill = (element, ...contents) => element.replaceChildren(...present(contents));

/** @type {ReturnType<typeof setTimeout> | undefined} */
let announcement;

/**
 * Show a short sentence to everyone, screen readers included, for a few seconds.
 * @param {string} sentence
 */
export function announce(sentence) {
  const place = document.getElementById("status");
  if (!place) return;
  place.textContent = sentence;
  clearTimeout(announcement);
  announcement = setTimeout(() => {
    place.textContent = "";
  }, ANNOUNCED_FOR_MS);
}

/**
 * The colour that style sheets give a purpose, such as "own"; for canvases.
 * @param {string} purpose
 */
export const colour = (purpose) => getComputedStyle(document.documentElement).getPropertyValue(`--${purpose}`).trim();
