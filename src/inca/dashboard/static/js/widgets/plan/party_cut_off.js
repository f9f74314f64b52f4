// How many rounds of random permutations join a party with enough others: inca.privacy.theorems.party_cut_off, and what
// it takes from _cut_probabilities, where the formulas are explained. tests/dashboard/test_plan_formulas.py compares.

const SPARE_COST = 0.0049;
const LEAST_LOST = 1e-9;
const ROUNDED = 1e-9;
const ALONE = 512; // sizes below this one are summed one by one, larger ones s in blocks of s/64
const FINENESS = 64;
const SMALL = 32; // up to this size a set's probability is a sum, above it a closed form
const TERMS = 20;
const SLACK = 1e-10;

/** @typedef {{ parties: number, honest: number, lost: number }} Setting n, h, and how likely a message is lost */
/** @typedef {{ first: number, last: number }} Block of sizes */

/** @param {number} most @returns {Block[]} */
function sizeBlocks(most) {
  /** @type {number[]} */
  const starts = [];
  for (let start = 1; start <= most; start += start < ALONE ? 1 : Math.floor(start / FINENESS)) starts.push(start);
  return starts.map((first, i) => ({ first, last: (starts[i + 1] ?? most + 1) - 1 }));
}

/**
 * The binomial coefficients C(things, u) for u = 0..most.
 * @param {number} things
 * @param {number} most
 */
function choose(things, most) {
  const all = [1];
  for (let u = 0; u < most; u++) all.push((all[u] * (things - u)) / (u + 1));
  return all;
}

/**
 * How likely a random permutation of so many places fixes none of the marked things among them.
 * @param {number} places
 * @param {number} marked
 */
function noFixedPoint(places, marked) {
  let [term, sum] = [1, 1];
  for (let m = 1; m <= TERMS; m++) {
    term *= (m - 1 - marked) / (m * Math.max(places - m + 1, 1));
    sum += term;
  }
  return sum;
}

/**
 * How likely no hidden message of a round crosses between s honest parties and the rest, by how many send out.
 * @param {Setting} setting
 * @param {number} s
 */
function smallPermutation({ parties: n, honest: h, lost }, s) {
  const [inside, outside, unseen, known] = [choose(s, s), choose(n - s, s), choose(h - s, s), choose(n - h, s)];
  const all = choose(n, s)[s];
  const nothingFixed = noFixedPoint(n, n);
  let sum = 0;
  for (let u = 0; u <= s; u++) {
    let seen = 0;
    for (let j = 0; j <= u; j++) seen += unseen[j] * lost ** j * known[u - j];
    const free = n - s - u;
    const mostApart = Math.min(u, free);
    const none = noFixedPoint(free, free);
    const apart = (noFixedPoint(free, free - mostApart) - none) / Math.max(mostApart, 1);
    const meanApart = u * (1 - u / (lost > 0 ? n - s : Math.max(n - h, 1)));
    const common = (((inside[u] * outside[u]) / all) * noFixedPoint(s, s - u)) / nothingFixed;
    sum += common * (seen / outside[u]) ** 2 * (none + meanApart * apart);
  }
  return sum;
}

/**
 * The log of an upper bound on how likely no hidden message of a round leaves or enters a set of such a size.
 * @param {Setting} setting
 * @param {Block} block
 */
function logCut(setting, { first, last }) {
  const { parties: n, honest: h, lost } = setting;
  if (last >= h || 2 * last > n) return 0;
  if (first <= Math.min(SMALL, Math.floor(n / 2))) return Math.log(Math.min(1, smallPermutation(setting, first)));
  const others = h - first;
  const seen = n - first - others + lost * others;
  const base = (last * Math.exp(-1 / last) + (Math.exp(2 / (n - last)) * seen ** 2) / (n - last)) / n;
  return first * Math.log(Math.min(base * (1 + 1e-14), 1));
}

/**
 * The log of a bound on how often a party is cut off, by the number of rounds.
 * @param {Setting} setting
 * @param {number} spare
 * @returns {(rounds: number) => number}
 */
function unionBound(setting, spare) {
  const h = setting.honest;
  let logChoose = 0;
  const terms = sizeBlocks(Math.floor(h / 2)).map((block) => {
    const { first, last: size } = block;
    if (size < ALONE) logChoose += Math.log((h - size + 1) / size);
    else {
      logChoose = size * Math.log(h / size) - (h - size) * Math.log1p(-size / h);
      logChoose += 0.5 * Math.log(h / (2 * Math.PI * size * (h - size)));
    }
    const forMembers = size <= spare || 2 * first === h;
    const weight = forMembers ? size / h : 1;
    return { number: logChoose + Math.log(size - first + 1) + Math.log(weight), cut: logCut(setting, block) };
  });
  return (rounds) => {
    const logs = terms.map(({ number, cut }) => (1 + SLACK) * number + (1 - SLACK) * rounds * cut + SLACK * rounds);
    const most = logs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
    if (most === Number.NEGATIVE_INFINITY) return most;
    return Math.min(0, most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0)));
  };
}

/**
 * The largest s below h / 2 with h / (h - s) <= 1.0049.
 * @param {number} honest
 */
function spareParties(honest) {
  const limit = 1 + SPARE_COST;
  let spare = Math.min(Math.floor(honest * (1 - 1 / limit)) + 1, Math.floor((honest - 1) / 2));
  while (spare && honest > limit * (honest - spare)) spare -= 1;
  return spare;
}

/**
 * The least number of rounds after which a given party is cut off with no more than this probability; null if `most`
 * are too few.
 * @param {{ parties: number, known: number, failure: number, eavesdropped: number, most: number }} question
 */
export function permutationRounds({ parties, known, failure, eavesdropped, most }) {
  const honest = parties - known;
  const spare = spareParties(honest);
  const lost = Math.max(Math.ceil(eavesdropped * parties - 1e-9) / parties, eavesdropped);
  const logBound = unionBound({ parties, honest, lost: lost && Math.max(lost, LEAST_LOST) }, spare);
  const suffices = (/** @type {number} */ rounds) => logBound(rounds) <= Math.log(failure) - ROUNDED;
  let enough = 1;
  while (!suffices(enough)) {
    if (enough === most) return null;
    enough = Math.min(2 * enough, most);
  }
  let few = Math.floor(enough / 2); // which are too few
  while (enough - few > 1) {
    const middle = Math.floor((few + enough) / 2);
    if (suffices(middle)) enough = middle;
    else few = middle;
  }
  const log = logBound(enough);
  const stated = log === Number.NEGATIVE_INFINITY ? 0 : Math.exp(log) * (1 + ROUNDED) + Number.MIN_VALUE;
  return { rounds: enough, spare, failure: Math.min(failure, stated) };
}
