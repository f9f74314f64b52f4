// What happened in a round of a run: which shares were sent, which came back, and all of it in words.

import { text } from "./dom.js";

/**
 * The shares of a round: `sent` and `back` are flat lists sender, receiver, sender, receiver ...; a share is back
 * when it was meant for someone who was not there, or was offered and not taken.
 */
export function shares(data, t) {
  const sent = [], back = [];
  let senders = 0;
  if (t < 1) return { sent, back, senders };
  const here = data.present[t], real = data.receivers[t - 1], meant = data.intended[t - 1];
  for (let i = 0; i < data.parties; i += 1) {
    if (!here[i]) continue;
    senders += 1;
    for (let k = 0; k < real[i].length; k += 1) {
      const to = real[i][k];
      if (to < 0) continue;
      if (to !== i) sent.push(i, to);
      else if (meant[i][k] !== i && meant[i][k] >= 0) back.push(i, meant[i][k]);
    }
  }
  for (const [round, sender, receiver] of data.undelivered) if (round === t) back.push(sender, receiver);
  return { sent, back, senders };
}

/** Who is away in a round. */
export function absentees(data, t) {
  const found = [];
  data.present[t].forEach((there, i) => { if (!there) found.push(i); });
  return found;
}

/** Whom a party sends to in a round, whom it hears from, and who its returned shares were meant for. */
export function dealings(data, t, party) {
  const { sent, back } = shares(data, t);
  const seconds = (pairs, of) => pairs.filter((_, at) => at % 2 === 1 - of && pairs[at % 2 ? at - 1 : at + 1] === party);
  return { to: seconds(sent, 0), from: seconds(sent, 1), back: seconds(back, 0) };
}

/** Some ids as words: all of them if they are few. */
export function names(ids, most = 6) {
  if (ids.length === 1) return `party ${ids[0]}`;
  if (ids.length > most) return `${text(ids.length)} parties`;
  return `parties ${ids.slice(0, -1).join(", ")} and ${ids.at(-1)}`;
}

/** A portion as people write it: 1/9 rather than 0.1111. */
export function portion(value) {
  const parts = Math.round(1 / value);
  if (value === 1) return "all";
  return Math.abs(value * parts - 1) < 1e-4 ? `1/${parts}` : text(value, 3);
}

function entering(data, t, kind) {
  const value = data.injection.value[t], size = data.sigma_cancelling === null ? null : data.sigma_cancelling * data.injection.noise[t];
  const part = value === 1 ? "each whole value" : value > 0 ? `portions of ${portion(value)} of each value` : "";
  if (size === null) return part ? `${part} go${value === 1 ? "es" : ""} in` : "nothing of any value goes in";
  const noise = `noise of size ${text(size, 2)}`;
  const out = t === data.rounds || (t > 0 && (kind === "early" || kind === "single"));
  if (size === 0) return part ? `${part} go${value === 1 ? "es" : ""} in, without any noise that cancels` : "nothing goes in";
  if (out) return `${part ? `${part} go in, and ` : "nothing of any value goes in, and "}${noise} is taken out again`;
  if (!part) return `nothing of any value goes in any more, and ${noise} is exchanged for the noise before`;
  return `${part} and ${noise} go in`;
}

/** A round in words; `kind` is how value and noise go in. */
export function inWords(data, t, kind) {
  const missed = data.present.slice(0, t).some((row) => row.includes(0)) ? " (those who were away are behind with theirs)" : "";
  if (t === 0) return `The start, before round 1: nothing has been sent yet; ${entering(data, 0, kind)}.`;
  const { sent, back, senders } = shares(data, t);
  const gone = absentees(data, t), count = sent.length / 2, returned = back.length / 2;
  const many = data.receivers[t - 1][0].length > 1 && count ? ` ${text(count)} shares` : "";
  const said = [senders ? `${text(senders)} ${senders === 1 ? "party sends" : "parties send"}${many}` : "nobody sends anything"];
  const cause = returned ? `${gone.length ? ", so" : ""} ${text(returned)} ${returned === 1 ? "share" : "shares"} came back` : "";
  if (gone.length) said.push(`${names(gone)} ${gone.length === 1 ? "is" : "are"} away${cause}`);
  else if (cause) said.push(cause.trim());
  if (senders) said.push(entering(data, t, kind) + missed);
  return `Round ${t} of ${data.rounds}: ${said.join("; ")}.`;
}
