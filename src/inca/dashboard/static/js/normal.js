// The normal distribution, and what a distance mu between two cases means for privacy.

/** The density of the standard normal distribution. */
export const density = (x) => Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);

/** Its distribution function; Chebyshev fit of erfc (Numerical Recipes), relative error 1.2e-7 in the tails, too. */
export function phi(x) {
  const z = Math.abs(x) / Math.SQRT2, t = 1 / (1 + z / 2);
  const fit = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277];
  const tail = 0.5 * t * Math.exp(-z * z + fit.reduceRight((sum, each) => sum * t + each, 0));
  return x > 0 ? 1 - tail : tail;
}

/** The delta of the exact Gaussian promise at an epsilon, for two cases that are mu apart. */
export const deltaFor = (mu, epsilon) => (mu === 0 ? 0 : Math.max(phi(mu / 2 - epsilon / mu) - Math.exp(epsilon) * phi(-mu / 2 - epsilon / mu), 0));

/** How often the best guess between two equally likely cases is right. */
export const rightGuesses = (mu) => (mu === null ? 1 : phi(mu / 2));

/** The root of the mean squared difference, over the pairs where both are known; null if there is none. */
export function offBy(guesses, truth) {
  const known = guesses.map((each, i) => [each, truth[i]]).filter(([a]) => a !== null);
  return known.length ? Math.sqrt(known.reduce((sum, [a, b]) => sum + (a - b) ** 2, 0) / known.length) : null;
}
