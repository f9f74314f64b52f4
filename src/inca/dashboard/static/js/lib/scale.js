// Axes: where a value lies in pixels, and the round numbers that are written beside it.

/**
 * A map from values to pixels.
 * @param {number} low
 * @param {number} high
 * @param {number} start the pixel of `low`
 * @param {number} end the pixel of `high`
 * @param {boolean} [logarithmic]
 */
export function scale(low, high, start, end, logarithmic = false) {
  const position = logarithmic ? Math.log10 : (/** @type {number} */ value) => value;
  const span = position(high) - position(low) || 1;
  return (/** @type {number} */ value) => start + ((position(value) - position(low)) / span) * (end - start);
}

/**
 * A few round numbers from low to high.
 * @param {number} low
 * @param {number} high
 * @param {number} [most]
 */
export function ticks(low, high, most = 6) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / most));
  const step = power * ([1, 2, 5].find((factor) => span / (factor * power) <= most) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(6)));
}

/**
 * The powers of ten from low to high.
 * @param {number} low
 * @param {number} high
 */
export function powersOfTen(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => 10 ** (first + i));
}

/**
 * Whole numbers from `first` on, below `end`.
 * @param {number} end
 * @param {number} [first]
 * @param {number} [step]
 */
export const range = (end, first = 0, step = 1) =>
  Array.from({ length: Math.max(Math.ceil((end - first) / step), 0) }, (_, i) => first + i * step);
