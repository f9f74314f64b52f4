// What happens in a round of a run: which shares are sent, which are returned, and all of it in words.

/** @import { RunAnswer } from "./types.js" */
import { count, format, partyNames } from "./format.js";

/** @typedef {[sender: number, receiver: number]} Share */

/** @typedef {{ sent: Share[], returned: Share[], senders: number }} RoundShares */

/** @type {{ run: RunAnswer, round: number, shares: RoundShares } | null} those asked for last: several ask for the same */
let latest = null;

/**
 * The shares of a round. A share is returned if its receiver was absent, or offered and not accepted.
 * @param {RunAnswer} run
 * @param {number} round
 */
export function sharesOf(run, round) {
  if (latest?.run !== run || latest.round !== round) latest = { run, round, shares: collectShares(run, round) };
  return latest.shares;
}

/**
 * @param {RunAnswer} run
 * @param {number} round
 * @returns {RoundShares}
 */
function collectShares(run, round) {
  /** @type {Share[]} */
  const sent = [];
  /** @type {Share[]} */
  const returned = [];
  if (round < 1) return { sent, returned, senders: 0 };
  const senders = run.present[round].flatMap((present, party) => (present ? [party] : []));
  for (const sender of senders) {
    run.receivers[round - 1][sender].forEach((receiver, slot) => {
      const intended = run.intended[round - 1][sender][slot];
      if (receiver >= 0 && receiver !== sender) sent.push([sender, receiver]);
      else if (receiver === sender && intended !== sender && intended >= 0) returned.push([sender, intended]);
    });
  }
  for (const [at, sender, receiver] of run.undelivered) if (at === round) returned.push([sender, receiver]);
  return { sent, returned, senders: senders.length };
}

/**
 * Whom a party sends to in a round, whom it receives from, and who its returned shares were meant for.
 * @param {RunAnswer} run
 * @param {number} round
 * @param {number} party
 */
export function exchangesOf(run, round, party) {
  const { sent, returned } = sharesOf(run, round);
  const receivers = (/** @type {Share[]} */ shares) =>
    shares.filter(([sender]) => sender === party).map(([, to]) => to);
  return {
    receivers: receivers(sent),
    senders: sent.filter(([, receiver]) => receiver === party).map(([sender]) => sender),
    returned: receivers(returned),
  };
}

/**
 * A portion as people write it: 1/9 rather than 0.1111.
 * @param {number} value
 */
function portion(value) {
  const parts = Math.round(1 / value);
  return Math.abs(value * parts - 1) < 1e-4 ? `1/${parts}` : format(value, 3);
}

/**
 * What enters in a round, in words.
 * @param {RunAnswer} run
 * @param {number} round
 * @param {string | null} injection how value and noise enter; null if that is not known
 */
function describeInjection(run, round, injection) {
  const value = run.injection.value[round];
  const whole = value === 1;
  const portions = value > 0 ? `portions of ${portion(value)} of each value` : "";
  const part = whole ? "each whole value" : portions;
  const enters = part && `${part} enter${whole ? "s" : ""}`;
  if (run.sigma_cancelling === null) return enters || "no part of any value enters";
  const size = run.sigma_cancelling * run.injection.noise[round];
  const noise = `noise of size ${format(size, 2)}`;
  if (size === 0) return enters ? `${enters}, without any cancelling noise` : "nothing enters";
  const removes = round === run.rounds || (round > 0 && (injection === "early" || injection === "single"));
  if (removes) return `${enters || "no part of any value enters"}, and ${noise} is removed again`;
  return part
    ? `${part} and ${noise} enter`
    : `no part of any value enters any more, and ${noise} replaces the noise before`;
}

/**
 * Who is absent in a round, and how many shares were returned, in words.
 * @param {RunAnswer} run
 * @param {number} round
 * @param {number} returned
 */
function describeAbsence(run, round, returned) {
  const absent = run.present[round].flatMap((present, party) => (present ? [] : [party]));
  const shares = returned ? `${count(returned, "share was", "shares were")} returned` : "";
  if (!absent.length) return shares;
  return `${partyNames(absent)} ${absent.length === 1 ? "is" : "are"} absent${shares && `, so ${shares}`}`;
}

/**
 * A round in words.
 * @param {RunAnswer} run
 * @param {number} round
 * @param {string | null} injection how value and noise enter; null if that is not known
 */
export function describeRound(run, round, injection) {
  const enters = describeInjection(run, round, injection);
  if (round === 0) return `The start, before round 1: nothing has been sent yet; ${enters}.`;
  const { sent, returned, senders } = sharesOf(run, round);
  const several = run.receivers[round - 1][0].length > 1 && sent.length ? ` ${format(sent.length)} shares` : "";
  const sending = senders ? `${count(senders, "party sends", "parties send")}${several}` : "nobody sends anything";
  const late = run.present.slice(0, round).some((row) => row.includes(0));
  const entering = senders ? enters + (late ? " (parties that were absent are behind with theirs)" : "") : "";
  const parts = [sending, describeAbsence(run, round, returned.length), entering].filter(Boolean);
  return `Round ${round} of ${run.rounds}: ${parts.join("; ")}.`;
}
