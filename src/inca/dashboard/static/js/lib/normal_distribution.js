// The normal distribution, and what a loss mu (of mu-GDP) means for guesses.

/**
 * The density of the standard normal distribution.
 * @param {number} x
 */
export const density = (x) => Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);

const ERFC = [
  -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
  0.17087277,
];

/**
 * Its distribution function: a Chebyshev fit of erfc (Numerical Recipes), relative error 1.2e-7, also in the tails.
 * @param {number} x
 */
function cumulative(x) {
  const z = Math.abs(x) / Math.SQRT2;
  const t = 1 / (1 + z / 2);
  const tail = 0.5 * t * Math.exp(-z * z + ERFC.reduceRight((sum, coefficient) => sum * t + coefficient, 0));
  return x > 0 ? 1 - tail : tail;
}

/**
 * The exact delta of mu-GDP at an epsilon (Dong, Roth, Su; Balle, Wang).
 * @param {number} mu
 * @param {number} epsilon
 */
export function deltaFor(mu, epsilon) {
  if (mu === 0) return 0;
  return Math.max(cumulative(mu / 2 - epsilon / mu) - Math.exp(epsilon) * cumulative(-mu / 2 - epsilon / mu), 0);
}

/**
 * The probability that the best guess between two equally likely values is right; a mu of null is infinite.
 * @param {number | null} mu
 */
export const correctGuessProbability = (mu) => (mu === null ? 1 : cumulative(mu / 2));

/**
 * What one can say of a value without looking: the middle of its domain, and how far off that is if it may be anywhere.
 * @param {[low: number, high: number]} domain
 */
export const blindGuess = ([low, high]) => ({ middle: (low + high) / 2, error: (high - low) / Math.sqrt(12) });

/**
 * The root mean square error of guesses, over those that there are; null if there is none.
 * @param {(number | null)[]} guesses
 * @param {number[]} truth
 */
export function rootMeanSquareError(guesses, truth) {
  const errors = guesses.flatMap((guess, i) => (guess === null ? [] : [guess - truth[i]]));
  return errors.length ? Math.sqrt(errors.reduce((sum, error) => sum + error ** 2, 0) / errors.length) : null;
}
