// All sessions of this machine's nodes.

/** @import { SessionStatus } from "../../lib/types.js" */
import { h } from "../../lib/dom.js";
import { count, format } from "../../lib/format.js";
import { queryString } from "../../lib/navigation.js";
import { ago, roundsBar, stagePill } from "./session_words.js";

const COLUMNS = ["Party", "Session", "Stage", "Round", "Took part in", "Open offers", "Connected to", "Last update"];

/** @param {SessionStatus} status */
const noteOf = ({ progress, reason }) => (progress || reason ? h("div", { class: "note" }, progress || reason) : null);

/** @param {SessionStatus} status */
const cellsOf = (status) => [
  h("td", { title: status.folder }, h("code", {}, status.id)),
  h("td", {}, stagePill(status), noteOf(status)),
  h("td", {}, `${status.round} of ${status.rounds}`, roundsBar(status)),
  h("td", {}, count(status.attended, "round", "rounds")),
  h("td", {}, format(status.open_offers)),
  h("td", {}, count(status.connected, "party", "parties")),
  h("td", { "data-updated": status.updated }, ago(status.updated)),
];

/** @param {SessionStatus} status */
const rowOf = (status) =>
  h(
    "tr",
    {},
    h(
      "th",
      { scope: "row", "data-label": COLUMNS[0] },
      h("a", { href: `/sessions${queryString({ session: status.id })}` }, status.party),
    ),
  );

/** A table whose rows stay, with their links, while their contents change: a link must not vanish under a click. */
export function sessionTable() {
  /** @type {Map<string, HTMLTableRowElement>} */
  const rows = new Map();
  const body = h("tbody");
  const head = COLUMNS.map((name) => h("th", { scope: "col" }, name));
  const table = h("table", {}, h("thead", {}, h("tr", {}, head)), body);
  const element = h(
    "section",
    { class: "card sessions" },
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Sessions" }, table),
  );

  /** @param {SessionStatus[]} sessions */
  const show = (sessions) => {
    const keys = new Set(sessions.map(({ folder, id }) => folder + id));
    for (const [key, row] of rows) {
      if (keys.has(key)) continue;
      row.remove();
      rows.delete(key);
    }
    /** @type {HTMLTableRowElement[]} */
    const added = [];
    for (const status of sessions) {
      const key = status.folder + status.id;
      const row = rows.get(key) ?? rowOf(status);
      const cells = cellsOf(status);
      // On a narrow screen every cell stands on its own line, behind the name of its column.
      for (const [i, cell] of cells.entries()) cell.setAttribute("data-label", COLUMNS[i + 1]);
      row.replaceChildren(row.cells[0], ...cells);
      if (!rows.has(key)) added.push(row);
      rows.set(key, row);
    }
    body.prepend(...added);
  };
  return { element, show };
}
