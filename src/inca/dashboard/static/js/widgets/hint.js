// A small button that explains a term, or a fact.

/** @import { Term } from "../lib/glossary.js" */
import { h } from "../lib/dom.js";
import { GLOSSARY } from "../lib/glossary.js";

let hints = 0;

/**
 * A button that explains a term of the glossary, or something by a text of its own.
 * @param {Term | { name: string, hint: string }} about
 */
export function hint(about) {
  const [name, text] = typeof about === "string" ? [about, GLOSSARY[about]] : [about.name, about.hint];
  hints += 1;
  const id = `hint-${hints}`;
  return h(
    "span",
    {},
    h("button", { type: "button", class: "hint", "aria-label": `What is ${name}?`, popovertarget: id }, "?"),
    h("div", { id, popover: "auto" }, text),
  );
}
