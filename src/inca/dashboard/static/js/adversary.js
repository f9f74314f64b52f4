// Who looks on: the fields for who colludes and which messages are tapped.

import { h, labelFor } from "./dom.js";
import { hint } from "./hints.js";

const MOST_BUTTONS = 60;

/** Read ids from a text such as "1 4, 7-9"; what is no id is left for the server to refuse. */
export function readIds(words) {
  const found = new Set();
  for (const word of words.split(/[\s,;]+/).filter(Boolean)) {
    const [, from, to] = word.match(/^(\d+)-(\d+)$/) ?? [];
    if (from === undefined || Number(to) - Number(from) > 10000) found.add(word);
    else for (let id = Number(from); id <= Number(to); id++) found.add(String(id));
  }
  return [...found].sort((a, b) => a - b).join(" ");
}

/** Write ids shortly: "0-3 7". */
export function shortIds(ids) {
  const runs = [];
  for (const id of ids) {
    if (runs.length && runs.at(-1)[1] === id - 1) runs.at(-1)[1] = id;
    else runs.push([id, id]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : to === from + 1 ? `${from} ${to}` : `${from}-${to}`)).join(" ");
}

const count = (n, step = 1, from = 0) => Array.from({ length: Math.max(Math.ceil((n - from) / step), 0) }, (_, i) => from + i * step);
export const everyTenth = (parties) => count(parties, 10).join(" ");

/** Well-known adversaries: [words, what it is for so many parties and rounds]. */
const PRESETS = [
  ["Nobody colludes (only final messages)", () => ({ colluding: "", tapped: "" })],
  ["One party", () => ({ colluding: "0", tapped: "" })],
  ["Every tenth", (n) => ({ colluding: everyTenth(n), tapped: "" })],
  ["All but one", (n) => ({ colluding: count(n, 1, 1).join(" "), tapped: "" })],
  ["An eavesdropper on every line", (n, rounds) => ({ colluding: "", tapped: count(rounds).map((t) => `${t}:*`).join(" ") })],
];

/** The fields; `change({ colluding, tapped })` is called with what the address holds. `set` shows an adversary. */
export function adversaryFields(change) {
  let now = { parties: 0, rounds: 0, colluding: [], tapped: "" };
  const who = h("div", { class: "field" });
  const presets = h("div", { class: "row presets", role: "group", "aria-label": "Well-known adversaries" },
    PRESETS.map(([words, make]) => h("button", { type: "button", onclick: () => change(make(now.parties, now.rounds)) }, words)));
  const buttons = [];

  const toggle = (id) => {
    const ids = now.colluding.includes(id) ? now.colluding.filter((each) => each !== id) : [...now.colluding, id].sort((a, b) => a - b);
    change({ colluding: ids.join(" "), tapped: now.tapped });
  };
  const buildGrid = () => {
    buttons.push(...count(now.parties).map((id) => h("button",
      { type: "button", class: "party", "aria-label": `Party ${id} colludes`, onclick: () => toggle(id) }, `${id}`)));
    who.append(h("div", { class: "label", id: "who-label" }, "Who colludes", hint("colluding")),
      h("div", { class: "grid-parties", role: "group", "aria-labelledby": "who-label" }, buttons));
  };
  const ids = h("input", { type: "text", id: "field-colluding", class: "wide", placeholder: "such as 1 4 10-19",
    onchange: () => change({ colluding: readIds(ids.value), tapped: now.tapped }) });
  const first = h("input", { type: "number", min: 0, step: 1, value: 10, "aria-label": "How many of the first parties" });
  const buildText = () => {
    const some = () => count(now.parties).map((id) => [Math.random(), id]).sort((a, b) => a[0] - b[0]).slice(0,
      Math.ceil(now.parties / 10)).map(([, id]) => id).sort((a, b) => a - b);
    const send = (list) => change({ colluding: list.join(" "), tapped: now.tapped });
    who.append(labelFor("field-colluding", "Who colludes", "colluding"), ids,
      h("div", { class: "row" }, h("button", { type: "button", onclick: () => send(count(Math.min(Number(first.value) || 0, now.parties))) }, "The first"),
        first,
        h("button", { type: "button", onclick: () => send(some()) }, "Random 10 %"), h("button", { type: "button", onclick: () => send([]) }, "Nobody")));
  };

  const taps = h("input", { type: "text", id: "field-tapped", class: "wide", placeholder: "such as 2:5 3:*", "aria-describedby": "tapped-note",
    onchange: () => change({ colluding: now.colluding.join(" "), tapped: taps.value.trim().split(/[\s,;]+/).join(" ") }) });
  const round = h("input", { type: "number", id: "field-tap-round", min: 0, step: 1, value: 1 });
  const tapRound = () => {
    const entry = `${round.value}:*`, has = now.tapped.split(" ").filter(Boolean);
    change({ colluding: now.colluding.join(" "), tapped: (has.includes(entry) ? has.filter((each) => each !== entry) : [...has, entry]).join(" ") });
  };
  const tapped = h("div", { class: "field" }, labelFor("field-tapped", "Tapped messages", "tapped"), taps,
    h("div", { class: "note", id: "tapped-note" }, "ROUND:PARTY, or ROUND:* for all of a round"),
    h("div", { class: "row" }, h("label", { for: "field-tap-round", class: "inline" }, "All messages of round"), round,
      h("button", { type: "button", onclick: tapRound }, "Tap, or not"),
        h("button", { type: "button", onclick: () => change({ colluding: now.colluding.join(" "), tapped: "" }) }, "Tap none")));

  const element = h("div", {}, h("h3", {}, "Try one of these"), presets, who, tapped);
  element.set = (adversary) => {
    const before = now.parties;
    now = { ...adversary };
    if (now.parties !== before) {
      buttons.length = 0;
      who.replaceChildren();
      if (now.parties <= MOST_BUTTONS) buildGrid(); else buildText();
    }
    const among = new Set(now.colluding);
    buttons.forEach((button, id) => button.setAttribute("aria-pressed", String(among.has(id))));
    ids.value = shortIds(now.colluding);
    taps.value = now.tapped;
    taps.placeholder = now.taps && !now.tapped ? `${now.taps} named in the file` : "such as 2:5 3:*";
    round.max = now.rounds;
    first.max = now.parties - 1;
  };
  return element;
}
