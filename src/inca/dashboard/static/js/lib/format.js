// Numbers, ids and refusals as people write them.

/**
 * Write a number: four digits, and a power of ten only where it is needed; null is infinite.
 * @param {number | null} value
 * @param {number} [digits]
 */
export function format(value, digits = 4) {
  if (value === null) return "infinite";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.min(digits - 1, 2)).replace(/\.?0*e\+?/, "e");
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
}

/** @param {number} fraction */
export const percent = (fraction) => `${format(100 * fraction, 3)} %`;

/**
 * A number of things: "1 party", "3 parties".
 * @param {number} number
 * @param {string} one
 * @param {string} many
 */
export const count = (number, one, many) => `${format(number)} ${number === 1 ? one : many}`;

/**
 * Ids in ascending order, runs of them shortened: "0-3 7".
 * @param {number[]} ids
 */
export function idRanges(ids) {
  /** @type {[number, number][]} */
  const ranges = [];
  for (const id of ids) {
    const last = ranges.at(-1);
    if (last && last[1] === id - 1) last[1] = id;
    else ranges.push([id, id]);
  }
  const write = (/** @type {[number, number]} */ [first, last]) =>
    first === last ? `${first}` : `${first}${last === first + 1 ? " " : "-"}${last}`;
  return ranges.map(write).join(" ");
}

/**
 * Parties in words: all of them if they are few, else how many.
 * @param {number[]} ids
 * @param {number} [most]
 */
export function partyNames(ids, most = 6) {
  if (ids.length === 1) return `party ${ids[0]}`;
  if (ids.length > most) return `${format(ids.length)} parties`;
  return `parties ${ids.slice(0, -1).join(", ")} and ${ids.at(-1)}`;
}

/**
 * What went wrong as a sentence: a capital at its start, unless that is a name such as sigma_independent, and a full
 * stop at its end. `labels` names the fields of a form, by the names that the server uses.
 * @param {unknown} error
 * @param {Record<string, string>} [labels]
 */
export function errorSentence(error, labels = {}) {
  const words = (error instanceof Error ? error.message : String(error)).trim();
  const [first = ""] = words.split(/[ :]/);
  const label = Object.hasOwn(labels, first) ? labels[first] : undefined;
  const capital = /^[a-z]+$/.test(first) ? first.charAt(0).toUpperCase() + first.slice(1) : first;
  return (label ?? capital) + words.slice(first.length) + (/[.!?]$/.test(words) ? "" : ".");
}

/**
 * A whole number with commas.
 * @param {number} number
 */
export const whole = (number) => number.toLocaleString("en");

/**
 * A number as Python's format "g" writes it, which words of the program itself have: 0.0796, 1e-05.
 * @param {number} value
 * @param {number} [digits]
 */
export function general(value, digits = 6) {
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  if (value !== 0 && (exponent < -4 || exponent >= digits)) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${Number(mantissa)}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  return String(Number(value.toPrecision(digits)));
}

/**
 * A probability in a few digits, never below what it is.
 * @param {number} value
 * @param {number} digits
 */
export function roundedUp(value, digits) {
  const [mantissa, power] = value.toExponential(15).split("e");
  const all = mantissa.replace(".", "");
  const up = Number(all.slice(0, digits)) + (/[1-9]/.test(all.slice(digits)) ? 1 : 0);
  return general(Number(`${up}e${Number(power) - digits + 1}`), digits);
}
