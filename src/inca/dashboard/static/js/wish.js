// What is wished for: its fields, its defaults, and how it stands in an address and in words.

import { h, numberField, percent, text } from "./dom.js";

// The same as DEFAULTS in estimates.py. Fractions are shown as percent.
const FIELDS = {
  parties: { label: "Parties", value: 200, least: 2, most: 1e6, scale: "log", whole: true },
  epsilon: { label: "Epsilon", value: 0.5, least: 0.01, most: 20, scale: "log" },
  delta: { label: "Delta", value: 1e-5, least: 1e-12, most: 0.1, scale: "log" },
  colluding: { label: "Colluding", value: 0.1, least: 0, most: 0.9, fraction: true },
  eavesdropped: { label: "Eavesdropped", value: 0, least: 0, most: 0.9, fraction: true },
  dropout: { label: "Dropping out", value: 0.1, least: 0, most: 0.8, fraction: true },
  messages: { label: "Messages per party", value: 20, least: 1, most: 60 },
};
const GROUPS = [
  ["Who takes part", ["parties", "messages"]],
  ["The promise", ["epsilon", "delta"]],
  ["What may go wrong", ["colluding", "eavesdropped", "dropout"]],
];

// 0.29 * 100 is 28.999999999999996: nobody wants to see that.
const tidy = (x) => Number(x.toPrecision(12));

const fits = (name, number) => {
  const { least, most, whole, fraction, scale } = FIELDS[name];
  return Number.isFinite(number) && number >= least && number <= most && (!(whole || (!fraction && scale !== "log")) || Number.isInteger(number));
};

/** Read a wish from an address: [wish, sentences about what was not understood]. */
export function readWish(params) {
  const wish = {}, problems = [];
  for (const [name, { label, value }] of Object.entries(FIELDS)) {
    const given = params[name];
    const ok = given !== undefined && given !== "" && fits(name, Number(given));
    wish[name] = ok ? Number(given) : value;
    if (given !== undefined && !ok) problems.push(`${label} is “${given}” in the address, which is not possible here: ${text(value)} is taken instead.`);
  }
  return [wish, problems];
}

/** Whether two wishes are the same. */
export const same = (one, other) => Object.keys(FIELDS).every((name) => one[name] === other[name]);

/** A wish as a key. */
export const keyOf = (wish) => Object.keys(FIELDS).map((name) => wish[name]).join(" ");

/** A wish in one sentence's worth of words. */
export function inWords(wish) {
  const parts = [`${text(wish.parties)} parties`, `epsilon ${text(wish.epsilon)}`, `delta ${wish.delta}`, `${percent(wish.colluding)} colluding`];
  if (wish.eavesdropped) parts.push(`${percent(wish.eavesdropped)} eavesdropped`);
  parts.push(`${percent(wish.dropout)} dropping out`, wish.messages === 1 ? "1 message each" : `${text(wish.messages)} messages each`);
  return parts.join(", ");
}

/** A refusal as a sentence that calls the fields by their labels. */
export function spoken(refusal) {
  const [first] = refusal.split(" ");
  return `${first in FIELDS ? FIELDS[first].label : first}${refusal.slice(first.length)}.`.replace(/\.\.$/, ".");
}

/** All fields, in groups; `change(name, number)` is called for what is allowed. `set(wish)` puts in another one. */
export function wishFields(wish, change) {
  const made = {};
  for (const [name, { label, fraction, least, most, scale, whole }] of Object.entries(FIELDS)) {
    const common = { name, label, term: name };
    made[name] = fraction
      ? numberField({ ...common, value: tidy(100 * wish[name]), least: 100 * least, most: 100 * most, step: 0.5, unit: "%",
        onchange: (x) => change(name, tidy(x / 100)) })
      : numberField({ ...common, value: wish[name], least, most, scale, whole, onchange: (x) => change(name, x) });
  }
  const all = h("div", {}, ...GROUPS.map(([title, names]) => h("fieldset", {}, h("legend", {}, title), ...names.map((name) => made[name]))));
  all.set = (other) => {
    for (const [name, field] of Object.entries(made)) field.set(FIELDS[name].fraction ? tidy(100 * other[name]) : other[name]);
  };
  return all;
}

export const DEFAULT_WISH = Object.fromEntries(Object.entries(FIELDS).map(([name, { value }]) => [name, value]));
