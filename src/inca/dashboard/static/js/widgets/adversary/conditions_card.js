// Which conditions of the paper's theorems hold.

/** @import { Condition } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";
import { hint } from "../hint.js";

/** @param {Condition} condition */
function conditionItem({ name, holds, why }) {
  const fails = holds === null ? "? unknown" : "✗ does not hold";
  const verdict = holds ? "✓ holds" : fails;
  return h("li", {}, h("span", { class: holds ? "good" : "warn" }, verdict), " ", h("strong", {}, name), `: ${why}.`);
}

/** The card. */
export function conditionsCard() {
  const list = h("ul", { class: "conditions" });
  const holding = h("span");
  const element = h(
    "section",
    { class: "card" },
    h(
      "details",
      {},
      h("summary", {}, h("strong", {}, "What the theorems say"), " ", holding),
      h(
        "p",
        { class: "note" },
        "Each theorem of the paper has conditions; where they hold, with enough cancelling noise a bounded independent noise suffices",
        hint("rank"),
        ". The losses above are exact, whether they hold or not.",
      ),
      list,
    ),
  );

  /** @param {Condition[]} conditions */
  const show = (conditions) => {
    holding.textContent = `(${conditions.filter(({ holds }) => holds).length} of ${conditions.length} hold)`;
    list.replaceChildren(...conditions.map(conditionItem));
  };
  return { element, show };
}
