// The mechanisms side by side: their bars, their table, and what each of them is.

import { bars, dataTable } from "./charts.js";
import { h, swatch, text } from "./dom.js";
import { hint } from "./hints.js";
import { spoken } from "./wish.js";

export const PARTS = { independent: "independent noise", cancelling: "cancelling noise left by leavers", data: "lost values" };
const OWN_PROMISE = "colluders and eavesdroppers together, who know who sent to whom, see their messages and all final ones";
const SHORT = { "GOPA, half of the leavers late": "GOPA, half late", "GOPA, a quarter late": "GOPA, a quarter late", "GOPA, one leaver late": "GOPA, one late" };

const EXPLAINED = [
  ["Central DP", "Everyone hands its value to a server that all must trust; it adds noise once. The least error there is, and the greatest trust."],
  ["Secure aggregation", "Cryptography lets a server see the sum only, and every party adds a part of the noise. Needs a server that everyone can reach."],
  ["CorDP-DME", "Every pair of parties shares noise that cancels in the sum. Whoever leaves takes its half along, and the other half stays in the result."],
  ["GOPA", "Shares noise in pairs, too, but with a few others only, and takes back what leavers left if they are missed in time: " +
    "hence the three bars, by how many leave too late for that. Its calibration takes a while, so it is worked out on request only."],
  ["Local DP", "Every party adds enough noise to protect itself and trusts nobody. It needs no messages to hide in, but the error is large."],
  ["Muffliato", "Every party adds noise once, then all gossip on a fixed graph. It promises less: a mean over single observers who do not know the graph."],
  ["inca, first idea", "The noise that four sampled adversaries of up to 60 parties make necessary, for a design that was not searched for. " +
    "It comes quickly, and it is not a promise: the plan's error is usually within half of it or so, and mostly larger where parties leave."],
  ["inca, planned", "What “Make the plan” finds: the design is searched for, " +
    "and the noise is calibrated on hundreds of sampled views of an adversary, so that the wish is met but for the chance of failure that the plan names."],
];

export const isOwn = (entry) => entry.mechanism.startsWith("inca");

/** Those that can do it by their error, then those that cannot, or are not there yet. */
export const sorted = (entries) => [...entries].sort((a, b) => (a.mse ?? Infinity) - (b.mse ?? Infinity));

const label = (entry) => (SHORT[entry.mechanism] ?? entry.mechanism) + (entry.weaker ? " *" : "");

function missing(entry) {
  if (entry.waiting) return "is being worked out …";
  return entry.why_not ? `cannot do this: see ${isOwn(entry) ? "above" : "below"}` : "no end to the error";
}

function bar(entry) {
  const parts = entry.parts && Object.keys(PARTS).map((kind) => ({ kind, value: entry.parts[kind] }));
  return { label: label(entry), value: entry.mse, kind: isOwn(entry) ? "own" : "rival", parts, note: missing(entry) };
}

function described(entries) {
  const said = entries.filter((each) => each.mse !== null).map((each) => `${each.mechanism} ${text(each.mse, 3)}`);
  return `Mean squared error of each mechanism, least first: ${said.join("; ")}.`;
}

/** The bars; `narrow` for a small screen. */
export function chart(entries, narrow) {
  const shown = sorted(entries);
  const svg = bars({ title: described(shown), entries: shown.map(bar), width: narrow ? 400 : 720 });
  for (const words of svg.querySelectorAll("text")) words.classList.toggle("ours", words.textContent.startsWith("inca")); // colour is not the only sign
  return svg;
}

/** What the colours and the asterisk mean. */
export function legend(entries) {
  const shares = h("p", { class: "legend" }, h("span", {}, "inca:"), ...Object.entries(PARTS).map(([kind, words]) => h("span", {}, swatch(kind, words), hint(kind))),
    swatch("rival", "other mechanisms"));
  const note = [h("p", { class: "note" }, "The length of a bar is the error, on a scale by powers of ten; colours divide inca's bars by shares of the error.")];
  const weaker = new Set(entries.filter((each) => each.weaker).map((each) => each.mechanism.split(",")[0]));
  if (weaker.size) note.push(h("p", { class: "note" }, `* promises less than inca: ${[...weaker].join(", ")}. The table says against whom each promise holds.`));
  return [shares, ...note];
}

/** Who cannot do it, and why. */
export function refusals(entries) {
  const unable = entries.filter((each) => each.why_not && !isOwn(each));
  return unable.length ? h("div", {}, h("h3", {}, "Cannot do this"),
    h("ul", { class: "plain" }, ...unable.map((each) => h("li", {}, h("strong", {}, each.mechanism), ": ", spoken(each.why_not))))) : null;
}

/** Everything as a table. */
export function table(entries) {
  const columns = ["Mechanism", "Mean squared error", "About how far off", "Times Central DP, nobody leaving", "Messages per party",
    "The promise holds against", "Where inca's error comes from"];
  const rows = sorted(entries).filter((each) => !each.waiting).map((each) => [
    each.mechanism, ...(each.why_not ? ["cannot"] : [text(each.mse)]), each.mse === null ? null : text(Math.sqrt(each.mse), 3),
    each.relative === null ? null : text(each.relative, 3), each.messages, promise(each), divided(each)]);
  const made = dataTable("Errors and promises of all mechanisms", columns, rows);
  made.classList.add("promises");
  return made;
}

function divided({ parts }) {
  return parts ? Object.entries(PARTS).map(([kind, words]) => `${text(parts[kind], 3)} ${words}`).join(", ") : null;
}

function promise(entry) {
  if (entry.why_not) return entry.why_not;
  if (entry.mechanism === "inca, first idea") return "nobody yet: it is only an idea of what a plan would promise";
  return (isOwn(entry) ? OWN_PROMISE : entry.promise) + (entry.weaker ? " (weaker than inca's)" : "");
}

/** An expandable text about all of them. */
export function explanation() {
  return h("details", { class: "card" }, h("summary", {}, h("h2", {}, "What is compared here?")),
    h("p", {}, "Ways to learn the mean of everyone's values while each value stays private. " +
      "All get the same wish, and all errors count the noise as well as the values that leave with their parties."),
    h("dl", {}, ...EXPLAINED.flatMap(([name, words]) => [h("dt", {}, name), h("dd", {}, words)])));
}
