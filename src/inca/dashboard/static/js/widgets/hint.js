// A small button that explains a term.

/** @import { Term } from "../lib/glossary.js" */
import { h } from "../lib/dom.js";
import { GLOSSARY } from "../lib/glossary.js";

let hints = 0;

/**
 * A button that explains a term of the glossary.
 * @param {Term} term
 */
export function hint(term) {
  hints += 1;
  const id = `hint-${hints}`;
  return h(
    "span",
    {},
    h("button", { type: "button", class: "hint", "aria-label": `What is ${term}?`, popovertarget: id }, "?"),
    h("div", { id, popover: "auto" }, GLOSSARY[term]),
  );
}
