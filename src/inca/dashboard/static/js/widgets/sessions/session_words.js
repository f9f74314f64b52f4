// Where a session is, in words.

/** @import { SessionEvent, SessionStatus } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";

/** @type {Record<string, string>} */
const STAGES = {
  drawing: "drawing its noise",
  gathering: "waiting for the start",
  asking: "asking what it missed",
  rounds: "in the rounds",
  digests: "ending: comparing what was sent",
  agreeing: "ending: agreeing",
  assessing: "ending: working out what was given away",
  opening: "ending: opening the sealed final messages",
  serving: "done, and helping others to end",
  over: "done",
  left: "has left",
};

/**
 * Whether the process of a session has gone before the session ended: started again, it resumes.
 * @param {SessionStatus} status
 */
export const isInterrupted = ({ running, ended }) => !running && !ended;

/**
 * Where a session is.
 * @param {SessionStatus} status
 */
export const stageWords = (status) =>
  (STAGES[status.stage] ?? status.stage) + (isInterrupted(status) ? ", but its process is not running" : "");

/**
 * The same as a coloured label.
 * @param {SessionStatus} status
 */
export function stagePill(status) {
  const good = status.stage === "over" || status.stage === "serving" ? "good" : "";
  const kind = status.stage === "left" || isInterrupted(status) ? "warn" : good;
  return h("span", { class: `pill ${kind}` }, stageWords(status));
}

/** @type {Record<string, string>} */
const DECISIONS = {
  cohort: "agreed on who settles",
  commit: "agreed to open the sealed final messages",
};

/**
 * What happened, in words; the same for all who saw it.
 * @param {SessionEvent} event
 * @param {string} party whose log it is from
 * @returns {string | null} null for what is not worth a line
 */
export function eventWords({ event, peer, stage = "", what = "", parties, reason }, party) {
  if (event === "down") return `${peer} cannot be reached`;
  if (event === "goodbye") return `${peer} says goodbye`;
  if (event === "comes back") return `${party} comes back, with its journal`;
  if (event === "left") return `${party} has left${reason ? `: ${reason}` : ""}`;
  if (event === "opened") return `the final messages are open: ${parties} parties`;
  if (event === "decided") return `${DECISIONS[what] ?? what}: ${parties} parties`;
  return stage === "digests" ? "the rounds are over" : null;
}

/**
 * How long ago something was, in seconds since 1970.
 * @param {number} time
 */
export function ago(time) {
  const seconds = Math.max(Math.round(Date.now() / 1000 - time), 0);
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(1000 * time).toLocaleDateString("en");
}

/**
 * How far a session is in its rounds.
 * @param {SessionStatus} status
 */
export const roundsBar = ({ round, rounds }) =>
  h("progress", { max: rounds, value: round, "aria-label": `Round ${round} of ${rounds}` });
