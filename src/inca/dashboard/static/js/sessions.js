// Sessions of this machine's nodes, followed while they go on.

import { ask, gaveUp } from "./api.js";
import { certificateView, facts } from "./certificate.js";
import { h, tell, text } from "./dom.js";
import { shareButton } from "./picture.js";
import { resultView } from "./result.js";
import { sentence } from "./sentence.js";

const EVERY = 2000;
const STAGES = {
  gathering: "waiting for the start", asking: "asking what it missed", rounds: "in the rounds", settling: "ending: settling open messages",
    digests: "ending: comparing records", assessing: "ending: working out the loss",
  finals: "ending: final messages", agreeing: "ending: agreeing on the result", serving: "done, and helping others to end", over: "done", left: "has left",
};

/** Where a session is, in words; one whose process has gone without an end can be taken up again. */
const stage = (status) => (STAGES[status.stage] ?? status.stage) + (!status.running && !status.ended ? ", but its process is not running" : "");
const kind = (status) => (status.stage === "left" || (!status.running && !status.ended) ? "warn" : ["over", "serving"].includes(status.stage) ? "good" : "");
const ago = (updated) => {
  const seconds = Math.max(Math.round(Date.now() / 1000 - updated), 0);
  return seconds < 90 ? `${seconds} s ago` : seconds < 5400 ? `${Math.round(seconds / 60)} min ago` : seconds < 129600 ? `${Math.round(seconds / 3600)} h ago`
    : new Date(1000 * updated).toLocaleDateString("en");
};
const some = (number, one, many) => `${text(number)} ${number === 1 ? one : many}`;
const bar = (status) => h("progress", { max: status.rounds, value: status.round, "aria-label": `Round ${status.round} of ${status.rounds}` });

const notWatching = () => h("section", { class: "card" }, h("h2", {}, "No folder is watched"),
  h("p", {}, "A node keeps its sessions in a folder, the one that is given to inca node run by --state. Start the dashboard with it:"),
    h("pre", { class: "command" }, "inca dashboard --sessions FOLDER"),
  h("p", { class: "note" }, "To try it without partners: inca demo --keep holds a session of several processes on this machine and keeps their folders; " +
    "then watch a party's folder \"sessions\" below."));

const waiting = (folders) => h("section", { class: "card" }, h("p", {}, "No session yet. As soon as a node starts one with this folder, it appears here."),
  h("ul", {}, folders.map((each) => h("li", {}, h("code", {}, each)))));

const HEAD = ["Party", "Session", "Where it is", "Round", "Took part in", "Open offers", "Connected to", "Last news"];

const cells = (each) => [h("td", { title: each.folder }, h("code", {}, each.id)),
  h("td", {}, h("span", { class: `pill ${kind(each)}` }, stage(each)), each.reason ? h("div", { class: "note" }, each.reason) : null),
  h("td", {}, `${each.round} of ${each.rounds}`, bar(each)), h("td", {}, some(each.attended, "round", "rounds")), h("td", {}, text(each.open_offers)),
  h("td", {}, some(each.connected, "party", "parties")), h("td", { "data-updated": each.updated }, ago(each.updated))];

/** A table whose rows stay where they are, with their links, while the rest of them changes: a link must not go away under a click. */
function table() {
  const rows = new Map(), body = h("tbody");
  const element = h("section", { class: "card sessions" }, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Sessions" },
    h("table", {}, h("thead", {}, h("tr", {}, HEAD.map((each) => h("th", { scope: "col" }, each)))), body)));
  element.set = (sessions) => {
    const keys = sessions.map((each) => each.folder + each.id), fresh = [];
    for (const [key, row] of rows) if (!keys.includes(key)) { row.remove(); rows.delete(key); }
    sessions.forEach((each, i) => {
      const known = rows.get(keys[i]);
      const row = known ?? h("tr", {}, h("th", { scope: "row", "data-label": HEAD[0] }, h("a", { href: `/sessions?session=${each.id}` }, each.party)));
      const made = cells(each);
      // On a narrow screen every cell stands on its own line, behind the name of its column.
      made.forEach((cell, k) => cell.setAttribute("data-label", HEAD[k + 1]));
      row.replaceChildren(row.firstChild, ...made);
      rows.set(keys[i], row);
      if (!known) fresh.push(row);
    });
    body.prepend(...fresh);
  };
  return element;
}

function statusCard(status) {
  return h("section", { class: "card" }, h("div", { class: "row spread" }, h("h2", {}, status.party),
    h("span", { class: `pill ${kind(status)}` }, stage(status))),
    h("p", {}, `Round ${text(status.round)} of ${text(status.rounds)}`), bar(status),
    facts([["Took part in", some(status.attended, "round", "rounds")], ["Open offers", `${text(status.open_offers)} (messages that are not yet acknowledged)`],
      ["Connected to", some(status.connected, "other party", "other parties")], status.reason && ["Reason", status.reason],
      ["Session", h("code", {}, status.session)], ["Folder", h("code", {}, status.folder)],
      ["Last news", h("span", { "data-updated": status.updated }, ago(status.updated))]]),
    !status.running && !status.ended ? h("p", { class: "warn" },
      "Its process is not running. Started again with the same folder, the node takes the session up where it was, as long as the others go on.") : null);
}

const noResult = (over) => h("section", { class: "card" }, h("p", { class: "note" },
  over ? "There is no result here: this party did not see the end of the session." : "The result will be shown here when the session has ended."));

/** One session: its status changes all the time, its result and certificate come once and are drawn once. */
function one() {
  const places = [h("div"), h("div"), h("div")], told = ["", "", ""];
  let certificate = null;
  const draw = (i, from, make) => {
    const now = JSON.stringify(from);
    if (now === told[i]) return;
    told[i] = now;
    places[i].replaceChildren(...[make()].filter(Boolean));
  };
  const element = h("div", {}, places);
  element.set = (answer) => {
    const over = answer.status.ended || answer.status.stage === "left";
    draw(0, answer.status, () => statusCard(answer.status));
    draw(1, answer.result ?? over, () => (answer.result ? resultView(answer.result) : noResult(over)));
    draw(2, answer.certificate, () => { certificate?.stop(); certificate = answer.certificate && certificateView(answer.certificate); return certificate; });
  };
  element.stop = () => certificate?.stop();
  return element;
}

export async function show(main, given) {
  const stopped = new AbortController(), problem = h("p", { class: "error", role: "alert" }), body = h("div"), live = h("p", { class: "note" });
  const all = given.session ? one() : table();
  let timer = null, known = false, told = "";
  main.append(h("div", { class: "looks" }, h("div", { class: "row spread" }, h("h1", {}, given.session ? "A session" : "Sessions"),
    h("div", { class: "row" }, given.session ? h("a", { href: "/sessions" }, "All sessions") : null, shareButton())),
    h("p", { class: "lead" }, given.session ? "Where this party's session is, what came of it, and what it gave away."
      : "The sessions of this machine's nodes, followed while they go on: in which round each is, and what came of it.",
      " Private values are never shown: the dashboard reads only a node's public files (status, result, certificate)."), problem, body, live));
  body.append(h("p", { class: "note" }, "One moment …"));

  function fill(answer) {
    known = true;
    const none = !given.session && answer.sessions.length === 0;
    if (!none) all.set(given.session ? answer : answer.sessions);
    const shown = none ? answer.watching.length ? waiting(answer.watching) : notWatching() : all;
    if (none || body.firstChild !== all) body.replaceChildren(shown);
    for (const each of body.querySelectorAll("[data-updated]")) each.textContent = ago(Number(each.dataset.updated));
    live.textContent = none && !answer.watching.length ? "" : "Looked at every 2 seconds while this page is visible.";
    if (!given.session) return;
    const words = `${answer.status.party}: ${stage(answer.status)}.`;
    if (told && words !== told) tell(words);
    told = words;
  }

  async function refresh() {
    clearTimeout(timer);
    if (stopped.signal.aborted) return;
    try {
      fill(await ask("sessions", given.session ? { session: given.session } : {}, stopped.signal));
      problem.textContent = "";
    } catch (error) {
      if (gaveUp(error)) return;
      problem.textContent = sentence(error);
      if (!known) body.replaceChildren();
      live.textContent = known ? "What is shown is the last that was known." : "";
    }
    if (!document.hidden && !stopped.signal.aborted) timer = setTimeout(refresh, EVERY);
  }
  document.addEventListener("visibilitychange", () => { if (document.hidden) clearTimeout(timer); else refresh(); }, { signal: stopped.signal });
  refresh();
  return () => { stopped.abort(); clearTimeout(timer); all.stop?.(); };
}
