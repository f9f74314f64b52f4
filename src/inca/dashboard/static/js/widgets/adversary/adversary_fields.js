// Who the adversary is: the fields for who colludes and which messages are eavesdropped.

/** @import { AdversaryChoice } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";
import { idRanges } from "../../lib/format.js";
import { NOBODY, writeIds } from "../../lib/run_settings.js";
import { range } from "../../lib/scale.js";
import { labelFor } from "../fields.js";
import { hint } from "../hint.js";

/**
 * @typedef {object} AdversaryShown
 * @property {number} parties
 * @property {number} rounds
 * @property {number[]} colluding
 * @property {string} eavesdropped entries ROUND:PARTY or ROUND:*
 * @property {number} eavesdroppedInFile how many messages a file's own adversary eavesdrops, if it is that one
 */

const MAX_BUTTONS = 60;
const MAX_RANGE = 10_000;

/**
 * Write out ids such as "1 4, 7-9"; words that are no ids are left for the server to refuse.
 * @param {string} words
 */
function expandIds(words) {
  const ids = words.split(/[\s,;]+/).flatMap((word) => {
    const match = /^(\d+)-(\d+)$/.exec(word);
    if (!match || Number(match[2]) - Number(match[1]) > MAX_RANGE) return word ? [word] : [];
    return range(Number(match[2]) + 1, Number(match[1])).map(String);
  });
  return [...new Set(ids)].sort((a, b) => Number(a) - Number(b)).join(" ") || NOBODY;
}

/**
 * Every tenth party, as an address writes it.
 * @param {number} parties
 */
export const everyTenth = (parties) => writeIds(range(parties, 0, 10));

/** @type {[words: string, make: (parties: number, rounds: number) => AdversaryChoice][]} */
const PRESETS = [
  ["Nobody colludes (only final messages)", () => ({ colluding: NOBODY, eavesdropped: "" })],
  ["One party", () => ({ colluding: "0", eavesdropped: "" })],
  ["Every tenth", (parties) => ({ colluding: everyTenth(parties), eavesdropped: "" })],
  ["All but one", (parties) => ({ colluding: writeIds(range(parties, 1)), eavesdropped: "" })],
  [
    "An eavesdropper on every line",
    (_, rounds) => ({
      colluding: NOBODY,
      eavesdropped: range(rounds)
        .map((t) => `${t}:*`)
        .join(" "),
    }),
  ],
];

/**
 * A random tenth of the parties.
 * @param {number} parties
 */
function randomTenth(parties) {
  const shuffled = range(parties).map((id) => ({ id, key: Math.random() }));
  shuffled.sort((a, b) => a.key - b.key);
  return writeIds(shuffled.slice(0, Math.ceil(parties / 10)).map(({ id }) => id));
}

/**
 * @param {string} words
 * @param {() => void} onclick
 */
const button = (words, onclick) => h("button", { type: "button", onclick }, words);

/** The fields. */
export class AdversaryFields {
  /** @type {AdversaryShown} */
  #shown = { parties: 0, rounds: 0, colluding: [], eavesdropped: "", eavesdroppedInFile: 0 };
  #who = h("div", { class: "field" });
  /** @type {HTMLButtonElement[]} */
  #buttons = [];
  #round = h("input", { type: "number", id: "field-eavesdropped-round", min: 0, step: 1, value: 1 });
  #first = h("input", { type: "number", min: 0, step: 1, value: 10, "aria-label": "How many of the first parties" });

  /** @param {(adversary: AdversaryChoice) => void} onchange */
  constructor(onchange) {
    this.onchange = onchange;
    this.ids = h("input", { type: "text", id: "field-colluding", placeholder: "such as 1 4 10-19" });
    this.ids.addEventListener("change", () => this.#change({ colluding: expandIds(this.ids.value) }));
    this.messages = h("input", { type: "text", id: "field-eavesdropped", "aria-describedby": "eavesdropped-note" });
    this.messages.addEventListener("change", () => {
      this.#change({
        eavesdropped: this.messages.value
          .trim()
          .split(/[\s,;]+/)
          .join(" "),
      });
    });
    const presets = PRESETS.map(([words, make]) =>
      button(words, () => onchange(make(this.#shown.parties, this.#shown.rounds))),
    );
    this.element = h(
      "div",
      {},
      h("h3", {}, "Try one of these"),
      h("div", { class: "row presets", role: "group", "aria-label": "Well-known adversaries" }, presets),
      this.#who,
      this.#eavesdroppedField(),
    );
  }

  /** @param {Partial<AdversaryChoice>} changed */
  #change(changed) {
    const { colluding, eavesdropped } = this.#shown;
    this.onchange({ colluding: writeIds(colluding), eavesdropped, ...changed });
  }

  #eavesdroppedField() {
    return h(
      "div",
      { class: "field wide" },
      labelFor("field-eavesdropped", "Eavesdropped messages", "eavesdropped messages"),
      this.messages,
      h("div", { class: "note", id: "eavesdropped-note" }, "ROUND:PARTY, or ROUND:* for all of a round"),
      h(
        "div",
        { class: "row" },
        h("label", { for: "field-eavesdropped-round" }, "All messages of round"),
        this.#round,
        button("Add or remove", () => this.#toggleRound()),
        button("None", () => this.#change({ eavesdropped: "" })),
      ),
    );
  }

  #toggleRound() {
    const entry = `${this.#round.value}:*`;
    const entries = this.#shown.eavesdropped.split(" ").filter(Boolean);
    const others = entries.filter((other) => other !== entry);
    const now = others.length < entries.length ? others : [...entries, entry];
    this.#change({ eavesdropped: now.join(" ") });
  }

  /** @param {number} id */
  #toggleParty(id) {
    const ids = new Set(this.#shown.colluding);
    if (!ids.delete(id)) ids.add(id);
    this.#change({ colluding: writeIds(ids) });
  }

  /** A button for each party. */
  #buttonGrid() {
    this.#buttons = range(this.#shown.parties).map((id) => {
      const attributes = { type: "button", "aria-label": `Party ${id} colludes`, onclick: () => this.#toggleParty(id) };
      return h("button", attributes, String(id));
    });
    return [
      h("div", { class: "label", id: "who-label" }, "Who colludes", hint("colluding")),
      h("div", { class: "party-grid", role: "group", "aria-labelledby": "who-label" }, this.#buttons),
    ];
  }

  /** A text, for parties that are too many for buttons. */
  #idsField() {
    const { parties } = this.#shown;
    this.#buttons = [];
    const choose = (/** @type {string} */ colluding) => this.#change({ colluding });
    return [
      labelFor("field-colluding", "Who colludes", "colluding"),
      this.ids,
      h(
        "div",
        { class: "row" },
        button("The first", () => choose(writeIds(range(Math.min(Number(this.#first.value) || 0, parties))))),
        this.#first,
        button("Random 10 %", () => choose(randomTenth(parties))),
        button("Nobody", () => choose(NOBODY)),
      ),
    ];
  }

  /** @param {AdversaryShown} adversary */
  show(adversary) {
    const sameParties = adversary.parties === this.#shown.parties;
    this.#shown = adversary;
    const { parties, rounds, colluding, eavesdropped, eavesdroppedInFile } = adversary;
    if (!sameParties) {
      const few = parties <= MAX_BUTTONS;
      this.#who.classList.toggle("wide", !few);
      this.#who.replaceChildren(...(few ? this.#buttonGrid() : this.#idsField()));
    }
    const ids = new Set(colluding);
    for (const [id, party] of this.#buttons.entries()) party.setAttribute("aria-pressed", String(ids.has(id)));
    this.ids.value = idRanges(colluding);
    this.messages.value = eavesdropped;
    const inFile = eavesdroppedInFile && !eavesdropped;
    this.messages.placeholder = inFile ? `${eavesdroppedInFile} named in the file` : "such as 2:5 3:*";
    this.#round.max = String(rounds);
    this.#first.max = String(parties);
  }
}
