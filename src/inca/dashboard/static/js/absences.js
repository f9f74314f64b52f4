// Who is away and when, as the address writes it: entries PARTY:ROUND, PARTY:FIRST-LAST or PARTY:FIRST- (for good).

const ENTRY = /^(\d+):(\d+)(?:(-)(\d*))?$/;

/** Join spans that overlap or touch; they come out sorted. */
function merged(spans) {
  const joined = [];
  for (const [first, last] of [...spans].sort((a, b) => a[0] - b[0])) {
    const before = joined.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

/** Read into a map from party to its spans [first, last], where a last of Infinity means for good. What is no entry is left out. */
export function read(words) {
  const found = new Map();
  for (const entry of words.split(/\s+/)) {
    const match = ENTRY.exec(entry);
    if (!match) continue;
    const [party, first] = [Number(match[1]), Number(match[2])];
    const last = match[4] ? Number(match[4]) : match[3] ? Infinity : first;
    if (first <= last) found.set(party, [...(found.get(party) ?? []), [first, last]]);
  }
  for (const [party, spans] of found) found.set(party, merged(spans));
  return found;
}

/** Write a map of spans, by party and round. */
export function write(absences) {
  const span = ([first, last]) => (last === first ? `${first}` : last === Infinity ? `${first}-` : `${first}-${last}`);
  return [...absences].sort((a, b) => a[0] - b[0]).flatMap(([party, spans]) => merged(spans).map((each) => `${party}:${span(each)}`)).join(" ");
}

function changed(words, party, change) {
  const absences = read(words);
  const spans = change(absences.get(party) ?? []);
  if (spans.length) absences.set(party, spans);
  else absences.delete(party);
  return write(absences);
}

/** Whether a party is away in a round. */
export function away(words, party, round) {
  return (read(words).get(party) ?? []).some(([first, last]) => first <= round && round <= last);
}

/** A party is away from this round on, for good. */
export function leaves(words, party, from) {
  return changed(words, party, (spans) => [...spans, [from, Infinity]]);
}

/** A party that is away in this round is there from it on, until its next absence if it has another. */
export function comesBack(words, party, from) {
  return changed(words, party, (spans) => spans.flatMap(([first, last]) => {
    if (from < first || from > last) return [[first, last]];
    return from > first ? [[first, from - 1]] : [];
  }));
}

/** Leave out what fewer parties or rounds have no place for. */
export function fitting(words, parties, rounds) {
  const kept = new Map();
  for (const [party, spans] of read(words)) {
    const inside = spans.filter(([first]) => first >= 1 && first <= rounds).map(([first, last]) => [first, last < Infinity ? Math.min(last, rounds) : last]);
    if (party < parties && inside.length) kept.set(party, inside);
  }
  return write(kept);
}
