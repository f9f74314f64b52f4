// The fields in which requirements are set: the four that everyone needs, and the rest, which opens.

/** @import { Requirements } from "../../lib/types.js" */
/** @import { Field } from "../fields.js" */
import { h } from "../../lib/dom.js";
import { FIELDS } from "../../lib/requirements.js";
import { numberField, optionalField } from "../fields.js";
import { partyCounts } from "./closed_forms.js";

/** @typedef {keyof Requirements} Name */

const IN_SIGHT = /** @type {Name[]} */ (["parties", "epsilon", "colluding", "dropout"]);
const MORE = /** @type {Name[]} */ (["delta", "eavesdropped", "messages"]);

/**
 * Without rounding errors: 0.29 * 100 is 28.999999999999996.
 * @param {number} x
 */
const tidy = (x) => Number(x.toPrecision(12));

/**
 * What a field shows: where nothing is said of the dropout, the usual one.
 * @param {Requirements} requirements
 * @param {Name} name
 */
const shown = (requirements, name) => (name === "dropout" ? partyCounts(requirements).dropout : requirements[name]);

/**
 * @param {Name} name
 * @param {number | null} value
 * @param {(number: number | null) => void} onchange
 * @returns {Field<number | null>}
 */
function requirementField(name, value, onchange) {
  const { label, fraction, min, max, scale, whole } = FIELDS[name];
  const about = { name, label, term: name };
  if (name === "messages") return optionalField({ ...about, value, min, max, empty: "as needed", onchange });
  const size = fraction ? 100 : 1;
  const field = numberField({
    ...about,
    value: tidy(size * Number(value)),
    min: size * min,
    max: size * max,
    scale,
    whole: fraction ? false : whole,
    step: fraction ? 0.5 : undefined,
    unit: fraction ? "%" : "",
    onchange: (number) => onchange(tidy(number / size)),
  });
  return { element: field.element, set: (number) => field.set(tidy(size * Number(number))) };
}

/**
 * All fields; `show(requirements)` puts in others, and `follow(requirements)` what is not said but follows from them.
 * @param {Requirements} requirements
 * @param {(name: Name, number: number | null) => void} onchange
 */
export function requirementsFields(requirements, onchange) {
  /** @type {Map<Name, Field<number | null>>} */
  const fields = new Map();
  const elements = (/** @type {Name[]} */ names) =>
    names.map((name) => {
      const field = requirementField(name, shown(requirements, name), (number) => onchange(name, number));
      fields.set(name, field);
      return field.element;
    });
  const open = MORE.some((name) => requirements[name] !== FIELDS[name].value);
  const more = h("details", { open }, h("summary", {}, "More"), elements(MORE));
  const show = (/** @type {Requirements} */ others) => {
    for (const [name, field] of fields) field.set(shown(others, name));
  };
  const follow = (/** @type {Requirements} */ others) => {
    if (others.dropout === null) fields.get("dropout")?.set(shown(others, "dropout"));
  };
  return { element: h("div", {}, elements(IN_SIGHT), more), show, follow };
}
