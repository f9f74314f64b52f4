// The fields in which requirements are set.

/** @import { Requirements } from "../../lib/types.js" */
/** @import { Field } from "../fields.js" */
import { h } from "../../lib/dom.js";
import { FIELDS } from "../../lib/requirements.js";
import { numberField } from "../fields.js";

/** @type {[title: string, names: (keyof Requirements)[]][]} */
const GROUPS = [
  ["Who takes part", ["parties", "messages"]],
  ["The guarantee", ["epsilon", "delta"]],
  ["What may go wrong", ["colluding", "eavesdropped", "dropout"]],
];

/**
 * Without rounding errors: 0.29 * 100 is 28.999999999999996.
 * @param {number} x
 */
const tidy = (x) => Number(x.toPrecision(12));

/**
 * @param {keyof Requirements} name
 * @param {number} value
 * @param {(number: number) => void} onchange
 * @returns {Field<number>}
 */
function requirementField(name, value, onchange) {
  const { label, fraction, min, max, scale, whole } = FIELDS[name];
  if (!fraction) return numberField({ name, label, term: name, value, min, max, scale, whole, onchange });
  const field = numberField({
    name,
    label,
    term: name,
    value: tidy(100 * value),
    min: 100 * min,
    max: 100 * max,
    step: 0.5,
    unit: "%",
    onchange: (percent) => onchange(tidy(percent / 100)),
  });
  return { element: field.element, set: (number) => field.set(tidy(100 * number)) };
}

/**
 * All fields, in groups; `show(requirements)` puts in others.
 * @param {Requirements} requirements
 * @param {(name: keyof Requirements, number: number) => void} onchange
 */
export function requirementsFields(requirements, onchange) {
  /** @type {[keyof Requirements, Field<number>][]} */
  const fields = [];
  const groups = GROUPS.map(([title, names]) => {
    const group = names.map((name) => {
      const field = requirementField(name, requirements[name], (number) => onchange(name, number));
      fields.push([name, field]);
      return field.element;
    });
    return h("fieldset", {}, h("legend", {}, title), group);
  });
  const show = (/** @type {Requirements} */ others) => {
    for (const [name, field] of fields) field.set(others[name]);
  };
  return { element: h("div", {}, groups), show };
}
