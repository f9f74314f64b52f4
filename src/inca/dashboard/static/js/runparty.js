// One party: what it holds in the round that is shown, whom it deals with, and what one can do to it.

import { away } from "./absences.js";
import { h, text } from "./dom.js";
import { dealings, names } from "./happened.js";
import { hint } from "./hints.js";

const listed = (ids) => (ids.length ? names(ids, 12) : "nobody");

/** The rows of the panel: a name, a term to explain, a colour, and what stands there; undefined leaves the row out. */
const ROWS = [
  ["Its value (made up)", null, null, ({ data, party }) => data.values && text(data.values[party])],
  ["Holds", "message", null, ({ data, t, party }) => data.messages && text(data.messages[t][party])],
  ["of that, value part", null, "own", ({ data, t, party }) => data.messages && text(data.clean[t][party])],
  ["of that, noise part", null, "cancelling", ({ data, t, party }) => data.messages && text(data.messages[t][party] - data.clean[t][party])],
  ["Weight", "weight", null, ({ data, t, party }) => text(data.weights[t][party])],
  ["Sends to", null, null, ({ t, here, to }) => (t > 0 && here ? listed(to) : null)],
  ["Hears from", null, null, ({ t, here, from }) => (t > 0 && here ? listed(from) : null)],
  ["Came back from", "absence", null, ({ back }) => (back.length ? listed(back) : null)],
];

/** A list of facts whose elements stay, so that an explanation that is open does not vanish at the next round. */
function factList() {
  const cells = ROWS.map(([label, term, kind]) => [h("dt", {}, kind ? h("span", { class: `swatch fill-${kind}` }) : null, label, term ? hint(term) : null), h("dd", {})]);
  const element = h("dl", { class: "run-facts" }, ...cells.flat());
  return { element, show(data, t, party) {
    const known = { data, t, party, here: data.present[t][party], ...dealings(data, t, party) };
    ROWS.forEach(([, , , tell], at) => {
      const words = tell(known);
      for (const cell of cells[at]) cell.hidden = !words;
      cells[at][1].textContent = words || "";
    });
  } };
}

/** What can be done about the presence of a party after the round that is shown; null where there is nothing more to change. */
export function presenceChoice(absent, party, t, rounds) {
  if (t >= rounds) return null;
  const [now, next] = [t > 0 && away(absent, party, t), away(absent, party, t + 1)];
  if (!now) return next ? { act: "back", label: "Stays after all" } : { act: "leave", label: "Leaves here" };
  return next ? { act: "back", label: "Comes back here" } : { act: "leave", label: "Stays away" };
}

/**
 * The panel. `acts` has choose(id or null), leave(id), back(id) and collude(id); those for presence are left out for a file.
 * The elements stay in place when it changes, so that the focus does.
 */
export function partyPanel(acts) {
  const input = h("input", { type: "number", id: "field-party", min: 0, step: 1, oninput: () => {
    if (input.value === "") acts.choose(null);
    else if (Number.isInteger(Number(input.value)) && Number(input.value) >= 0 && Number(input.value) <= Number(input.max)) acts.choose(Number(input.value));
    input.setAttribute("aria-invalid", String(!input.validity.valid));
  } });
  const state = h("p", { class: "run-state" }), details = factList(), note = h("p", { class: "note" });
  const presence = h("button", { type: "button", onclick: () => acts[presence.dataset.act]() });
  const collusion = h("button", { type: "button", onclick: () => acts.collude() });
  const none = h("p", { class: "note" }, "Click a party on the stage, or write its number here, to see what it holds.");
  const one = h("div", {}, state, details.element, h("div", { class: "row" }, presence, collusion), note);
  const element = h("section", { class: "run-party", "aria-label": "One party" },
    h("div", { class: "field" }, h("label", { for: "field-party" }, "Party"), h("div", { class: "pair" }, input)), none, one);

  function show({ data, t, party, colluding, absent, tapped, fixed }) {
    input.max = data.parties - 1;
    if (document.activeElement !== input || Number(input.value) !== party) input.value = party ?? "";
    none.hidden = party !== null;
    one.hidden = party === null;
    if (party === null) return;
    const here = Boolean(data.present[t][party]), colludes = colluding?.has(party);
    const kind = colluding ? `${colludes ? "colludes" : "is honest"} and ` : "";
    state.textContent = `Party ${party} ${kind}is ${here ? "there" : "away: it holds what it held before"}.${tapped?.(t, party) ? " This message is tapped." : ""}`;
    details.show(data, t, party);
    collusion.hidden = !colluding;
    collusion.textContent = colludes ? "Is honest" : "Colludes";
    const choice = fixed ? null : presenceChoice(absent, party, t, data.rounds);
    presence.hidden = !choice;
    presence.textContent = choice?.label ?? "";
    presence.dataset.act = choice?.act ?? "";
    note.textContent = fixed ? "" : choice ? "Changes count from the next round on; everything random stays the same." : "The run ends here: step back to let a party leave or come back.";
  }
  return { element, show };
}
