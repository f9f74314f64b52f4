// Who is absent and when, as an address writes it: PARTY:ROUND, PARTY:FIRST-LAST or PARTY:FIRST- (for good).

/** @typedef {[first: number, last: number]} Span rounds of absence; a last round of Infinity is for good */

const ENTRY = /^(\d+):(\d+)(?:(-)(\d*))?$/;

/**
 * Join spans that overlap or touch, in ascending order.
 * @param {Span[]} spans
 */
function merged(spans) {
  /** @type {Span[]} */
  const joined = [];
  for (const [first, last] of [...spans].sort((a, b) => a[0] - b[0])) {
    const before = joined.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

/**
 * Read the spans of each party; words that are no entry are left out.
 * @param {string} words
 */
function read(words) {
  /** @type {Map<number, Span[]>} */
  const absences = new Map();
  for (const entry of words.split(/\s+/)) {
    const match = ENTRY.exec(entry);
    if (!match) continue;
    const [, party, first, dash, last] = match;
    const open = dash ? Number.POSITIVE_INFINITY : Number(first);
    const end = last ? Number(last) : open;
    if (Number(first) > end) continue;
    absences.set(Number(party), merged([...(absences.get(Number(party)) ?? []), [Number(first), end]]));
  }
  return absences;
}

/** @param {Span} span */
function writeSpan([first, last]) {
  if (last === first) return `${first}`;
  return last === Number.POSITIVE_INFINITY ? `${first}-` : `${first}-${last}`;
}

/** @param {Map<number, Span[]>} absences */
const write = (absences) =>
  [...absences]
    .sort((a, b) => a[0] - b[0])
    .flatMap(([party, spans]) => merged(spans).map((span) => `${party}:${writeSpan(span)}`))
    .join(" ");

/**
 * @param {string} words
 * @param {number} party
 * @param {(spans: Span[]) => Span[]} change
 */
function changed(words, party, change) {
  const absences = read(words);
  absences.set(party, change(absences.get(party) ?? []));
  return write(absences);
}

/**
 * Whether a party is absent in a round.
 * @param {string} words
 * @param {number} party
 * @param {number} round
 */
export const isAbsent = (words, party, round) =>
  (read(words).get(party) ?? []).some(([first, last]) => first <= round && round <= last);

/**
 * Let a party leave for good, from a round on.
 * @param {string} words
 * @param {number} party
 * @param {number} from
 */
export const leave = (words, party, from) =>
  changed(words, party, (spans) => [...spans, [from, Number.POSITIVE_INFINITY]]);

/**
 * Let a party that is absent in a round be present from then on, until its next absence if it has another.
 * @param {string} words
 * @param {number} party
 * @param {number} from
 */
export const comeBack = (words, party, from) =>
  changed(words, party, (spans) =>
    spans.flatMap(([first, last]) => {
      if (from < first || from > last) return [/** @type {Span} */ ([first, last])];
      return from > first ? [/** @type {Span} */ ([first, from - 1])] : [];
    }),
  );

/**
 * Leave out what so many parties and rounds have no place for.
 * @param {string} words
 * @param {number} parties
 * @param {number} rounds
 */
export function fitAbsences(words, parties, rounds) {
  /** @type {Map<number, Span[]>} */
  const kept = new Map();
  for (const [party, spans] of read(words)) {
    if (party >= parties) continue;
    const inside = spans.filter(([first]) => first >= 1 && first <= rounds);
    kept.set(
      party,
      inside.map(([first, last]) => [first, Number.isFinite(last) ? Math.min(last, rounds) : last]),
    );
  }
  return write(kept);
}
