// Small pieces that several views are made of.

/** @import { Content } from "../lib/types.js" */
import { h } from "../lib/dom.js";

/**
 * A coloured sign and what it means; the kinds are the purposes of colours in base.css, such as "independent".
 * @param {string} kind
 * @param {string} words
 */
export const swatch = (kind, words) => h("span", {}, h("span", { class: `swatch fill-${kind}` }), words);

/**
 * A large number or word, and what it says.
 * @param {string} big
 * @param {Content[]} words
 */
export const tile = (big, ...words) =>
  h("div", { class: "tile" }, h("div", { class: "big" }, big), h("div", { class: "note" }, words));

/**
 * A list of names and what they are; null and false are left out.
 * @param {([name: Content, ...description: Content[]] | null | false | undefined | "" | 0)[]} pairs
 */
export function facts(pairs) {
  const cells = pairs.map((pair) => pair && [h("dt", {}, pair[0]), h("dd", {}, pair.slice(1))]);
  return h(
    "dl",
    { class: "facts" },
    cells.flat().filter((cell) => cell instanceof HTMLElement),
  );
}

/**
 * A link that looks like a button.
 * @param {string} words
 * @param {string} [href]
 */
export const linkButton = (words, href) => h("a", { class: "link-button", href }, words);

/**
 * The head of a figure: what it shows, and its button.
 * @param {Content} title
 * @param {Element} button
 */
export const figureHead = (title, button) => h("div", { class: "row spread" }, h("figcaption", {}, title), button);

/** A sentence about what went wrong: read aloud as soon as it is there. */
export const errorLine = () => h("p", { class: "error", role: "alert" });

/** A sentence about what is going on; its room is there before it is, so that nothing moves when it comes. */
export const statusLine = () => h("p", { class: "note going-on", role: "status" });
