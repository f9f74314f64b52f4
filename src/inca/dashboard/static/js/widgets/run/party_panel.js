// One party: what it holds in the round that is shown, whom it exchanges shares with, and what one can change about it.

/** @import { Term } from "../../lib/glossary.js" */
/** @import { RunAnswer } from "../../lib/types.js" */
import { isAbsent } from "../../lib/absences.js";
import { h } from "../../lib/dom.js";
import { format, partyNames } from "../../lib/format.js";
import { exchangesOf } from "../../lib/round_events.js";
import { hint } from "../hint.js";

/**
 * @typedef {object} PartyShown
 * @property {RunAnswer} run
 * @property {number} round
 * @property {number | null} party
 * @property {Set<number>} colluding
 * @property {string | null} absent who is absent and when; null for a file, which cannot be changed
 * @property {(round: number, party: number) => boolean} isEavesdropped
 */

/**
 * @typedef {object} PartyActions
 * @property {(party: number | null) => void} choose
 * @property {() => void} leave
 * @property {() => void} comeBack
 * @property {() => void} collude
 */

/** @typedef {{ run: RunAnswer, round: number, party: number, exchanges: ReturnType<typeof exchangesOf> }} Known */

const MAX_NAMES = 12;

/** @param {number[]} ids */
const listed = (ids) => (ids.length ? partyNames(ids, MAX_NAMES) : "nobody");

/** @param {Known} known */
const takesPart = ({ run, round, party }) => round > 0 && Boolean(run.present[round][party]);

/**
 * The rows: their name, term of the glossary and colour, and what stands there; null leaves the row out.
 * @type {[name: string, term: Term | null, kind: string | null, words: (known: Known) => string | null][]}
 */
const ROWS = [
  [
    "Its value (made up)",
    null,
    null,
    ({ run: { simulation }, party }) => simulation && format(simulation.values[party]),
  ],
  [
    "Holds",
    "message",
    null,
    ({ run: { simulation }, round, party }) => simulation && format(simulation.messages[round][party]),
  ],
  [
    "of that, value part",
    null,
    "own",
    ({ run: { simulation }, round, party }) => simulation && format(simulation.noiseless[round][party]),
  ],
  [
    "of that, noise part",
    null,
    "cancelling",
    ({ run: { simulation }, round, party }) =>
      simulation && format(simulation.messages[round][party] - simulation.noiseless[round][party]),
  ],
  ["Weight", "weight", null, ({ run, round, party }) => format(run.weights[round][party])],
  ["Sends to", null, null, (known) => (takesPart(known) ? listed(known.exchanges.receivers) : null)],
  ["Receives from", null, null, (known) => (takesPart(known) ? listed(known.exchanges.senders) : null)],
  ["Returned by", "absence", null, ({ exchanges: { returned } }) => (returned.length ? listed(returned) : null)],
];

/** A list whose elements stay, so that an open explanation does not vanish at the next round. */
function partyFacts() {
  const cells = ROWS.map(([name, term, kind]) => ({
    name: h("dt", {}, kind && h("span", { class: `swatch fill-${kind}` }), name, term && hint(term)),
    words: h("dd"),
  }));
  const element = h(
    "dl",
    { class: "run-facts" },
    cells.map(({ name, words }) => [name, words]),
  );

  /**
   * @param {RunAnswer} run
   * @param {number} round
   * @param {number} party
   */
  const show = (run, round, party) => {
    const known = { run, round, party, exchanges: exchangesOf(run, round, party) };
    ROWS.forEach(([, , , describe], i) => {
      const words = describe(known);
      cells[i].name.hidden = cells[i].words.hidden = words === null;
      cells[i].words.textContent = words ?? "";
    });
  };
  return { element, show };
}

/**
 * What can be changed about the presence of a party after the round that is shown.
 * @param {string} absent
 * @param {number} party
 * @param {number} round
 * @returns {["leave" | "comeBack", string]}
 */
function presenceChoice(absent, party, round) {
  const now = round > 0 && isAbsent(absent, party, round);
  const next = isAbsent(absent, party, round + 1);
  if (now) return next ? ["comeBack", "Comes back here"] : ["leave", "Stays absent"];
  return next ? ["comeBack", "Stays after all"] : ["leave", "Leaves here"];
}

/** The panel; its elements stay in place when it changes, so that the focus does. */
export class PartyPanel {
  #state = h("p", { class: "party-state" });
  #facts = partyFacts();
  #note = h("p", { class: "note" });
  #none = h("p", { class: "note" }, "Click a party on the stage, or enter its number here, to see what it holds.");
  /** @type {"leave" | "comeBack"} */
  #presenceAction = "leave";

  /** @param {PartyActions} actions */
  constructor(actions) {
    this.actions = actions;
    this.input = h("input", { type: "number", id: "field-party", min: 0, step: 1, oninput: () => this.#entered() });
    this.presence = h("button", { type: "button", onclick: () => actions[this.#presenceAction]() });
    this.collusion = h("button", { type: "button", onclick: () => actions.collude() });
    const buttons = h("div", { class: "row" }, this.presence, this.collusion);
    this.one = h("div", {}, this.#state, this.#facts.element, buttons, this.#note);
    const field = h("div", { class: "field" }, h("label", { for: "field-party" }, "Party"), this.input);
    this.element = h("section", { class: "party-panel", "aria-label": "One party" }, field, this.#none, this.one);
  }

  #entered() {
    const { value, validity } = this.input;
    this.input.setAttribute("aria-invalid", String(!validity.valid));
    if (validity.valid) this.actions.choose(value === "" ? null : Number(value));
  }

  /** @param {PartyShown} shown */
  show({ run, round, party, colluding, absent, isEavesdropped }) {
    this.input.max = String(run.parties - 1);
    const typed =
      document.activeElement === this.input && this.input.value !== "" && Number(this.input.value) === party;
    if (!typed) this.input.value = String(party ?? "");
    this.#none.hidden = party !== null;
    this.one.hidden = party === null;
    if (party === null) return;
    const colludes = colluding.has(party);
    const presence = run.present[round][party] ? "present" : "absent: it holds what it held before";
    const eavesdropped = isEavesdropped(round, party) ? " This message is eavesdropped." : "";
    this.#state.textContent = `Party ${party} ${colludes ? "colludes" : "is honest"} and is ${presence}.${eavesdropped}`;
    this.#facts.show(run, round, party);
    this.collusion.textContent = colludes ? "Is honest" : "Colludes";
    this.#showPresence(absent, party, round, run.rounds);
  }

  /**
   * @param {string | null} absent
   * @param {number} party
   * @param {number} round
   * @param {number} rounds
   */
  #showPresence(absent, party, round, rounds) {
    this.presence.hidden = absent === null || round >= rounds;
    if (absent === null) this.#note.textContent = "";
    else if (round >= rounds)
      this.#note.textContent = "The run ends here: step back to let a party leave or come back.";
    else {
      [this.#presenceAction, this.presence.textContent] = presenceChoice(absent, party, round);
      this.#note.textContent = "Changes count from the next round on; everything random stays the same.";
    }
  }
}
