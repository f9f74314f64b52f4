// What the adversary sees: all messages, rounds by parties, with those that it sees filled.

/** @import { AdversaryAnswer } from "../../lib/types.js" */
import { colour, h } from "../../lib/dom.js";
import { format, percent } from "../../lib/format.js";
import { range } from "../../lib/scale.js";
import { dataTable } from "../data_table.js";
import { swatch } from "../elements.js";
import { hint } from "../hint.js";
import { saveButton } from "../picture_buttons.js";
import { resizable } from "../resizable.js";

/** @type {Record<string, string>} */
const NOTIONS = {
  "Collusion DP": "Parties that take part share all that they send, receive and know.",
  "Eavesdrop DP": "Somebody outside reads messages on their way; no party helps.",
  "Eavesdrop and Collusion DP": "Colluding parties work together with somebody who reads messages on their way.",
};
const LEFT = 54;
const RIGHT = 4;
const TOP = 20;
const MIN_COLUMN_PX = 4;
const MAX_HEIGHT_PX = 420;

/** @typedef {{ group: number, columns: number, columnWidth: number, rowHeight: number, height: number }} Grid */

/**
 * Sizes of the picture: where parties are too many for a column each, a column stands for a group of them.
 * @param {number} rounds
 * @param {number} parties
 * @param {number} width
 * @returns {Grid}
 */
function gridFor(rounds, parties, width) {
  const space = width - LEFT - RIGHT;
  const group = Math.ceil(parties / Math.max(Math.floor(space / MIN_COLUMN_PX), 1));
  const columns = Math.ceil(parties / group);
  const rowHeight = Math.max(Math.min(18, Math.floor(MAX_HEIGHT_PX / rounds)), 3);
  return {
    group,
    columns,
    columnWidth: Math.min(space / columns, 44),
    rowHeight,
    height: TOP + rounds * rowHeight + 6,
  };
}

/**
 * One box: the share of the honest parties of a column that are seen in a round; null if all of them collude.
 * @param {CanvasRenderingContext2D} pen
 * @param {[x: number, y: number, width: number, height: number]} box
 * @param {number | null} share
 */
function drawBox(pen, box, share) {
  const [x, y, width, height] = box;
  const large = width > 4;
  pen.globalAlpha = share === null ? 0.45 : 0.25 + 0.75 * share;
  if (share === null || share > 0) pen.fillRect(...box);
  if (share === null || share === 1) return;
  pen.globalAlpha = large ? 0.25 : 0.08;
  if (large) pen.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  else if (share === 0) pen.fillRect(...box);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {AdversaryAnswer} answer
 * @param {Grid} grid
 */
function drawColumns(pen, { seen, colluding }, { group, columns, columnWidth, rowHeight }) {
  const parties = seen[0].length;
  const colluders = new Set(colluding);
  const gap = Number(columnWidth > 4) + Number(columnWidth > 6);
  const wide = columnWidth >= 18;
  const labelled = wide ? 1 : Math.ceil(34 / columnWidth / 5) * 5;
  const [ink, soft, bad] = [colour("ink"), colour("soft"), colour("colluder")];
  for (let column = 0; column < columns; column += 1) {
    const first = column * group;
    const honest = range(Math.min(first + group, parties), first).filter((id) => !colluders.has(id));
    const x = LEFT + column * columnWidth;
    pen.fillStyle = pen.strokeStyle = honest.length ? ink : bad;
    seen.forEach((row, t) => {
      const share = honest.length ? honest.reduce((sum, id) => sum + row[id], 0) / honest.length : null;
      const width = Math.max(columnWidth - gap, 1);
      drawBox(pen, [x + gap / 2, TOP + t * rowHeight + 1, width, Math.max(rowHeight - 2, 1)], share);
    });
    if (column % labelled !== 0) continue;
    Object.assign(pen, { globalAlpha: 1, fillStyle: honest.length ? soft : bad, textAlign: wide ? "center" : "left" });
    pen.fillText(String(first), wide ? x + columnWidth / 2 : x, 9);
  }
}

/**
 * @param {number} round
 * @param {number} last
 */
function roundLabel(round, last) {
  if (round === last) return "final";
  return round === 0 ? "start" : String(round);
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {AdversaryAnswer} answer
 * @param {number} width
 * @param {Grid} grid
 */
function draw(canvas, answer, width, grid) {
  const { rowHeight, height } = grid;
  const ratio = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.scale(ratio, ratio);
  pen.fillStyle = colour("card");
  pen.fillRect(0, 0, width, height);
  Object.assign(pen, { font: "12px system-ui, sans-serif", textBaseline: "middle" });
  drawColumns(pen, answer, grid);
  Object.assign(pen, { globalAlpha: 1, textAlign: "right", fillStyle: colour("soft") });
  const last = answer.seen.length - 1;
  const step = Math.ceil(14 / rowHeight);
  for (const round of [...range(last - step + 1, 0, step), last]) {
    pen.fillText(roundLabel(round, last), LEFT - 6, TOP + (round + 0.5) * rowHeight);
  }
}

/**
 * The picture in words.
 * @param {AdversaryAnswer} answer
 * @param {number[]} perRound
 * @param {number} messages
 */
function describe({ colluding, eavesdropped, notion }, perRound, messages) {
  const sum = perRound.reduce((a, b) => a + b, 0);
  const nobody = !colluding.length && !eavesdropped;
  const final = perRound[perRound.length - 1];
  return [
    h(
      "p",
      {},
      nobody ? "It sees only the final messages, which are public. " : `${NOTIONS[notion] ?? notion} `,
      `Of the ${format(messages)} messages of honest parties it sees ${format(sum)} (${percent(sum / messages)}), of which ${format(final)} are final messages, which everyone sees. `,
      !nobody && h("span", { class: "note" }, `The paper calls privacy against it ${notion}.`),
    ),
    h(
      "p",
      { class: "note" },
      "A row is a round, a column is a party: each box is the message that the party has made by then and sends on in the next round.",
    ),
  ];
}

/**
 * The card.
 * @param {AbortSignal} viewClosed
 */
export function seenMessagesCard(viewClosed) {
  /** @type {AdversaryAnswer | null} */
  let shown = null;
  const canvas = h("canvas", { role: "img" });
  const about = h("div");
  const table = h("div");
  const grouped = h("p", { class: "note" });
  const place = resizable(
    (width) => {
      if (!shown) return null;
      const grid = gridFor(shown.seen.length, shown.seen[0].length, width);
      draw(canvas, shown, width, grid);
      const words = `A column stands for ${grid.group} parties here; the darker, the more of them are seen.`;
      grouped.textContent = grid.group > 1 ? words : "";
      return canvas;
    },
    viewClosed,
    1100,
  );
  const element = h(
    "section",
    { class: "card", "aria-labelledby": "seen-title" },
    h(
      "div",
      { class: "row spread" },
      h("h2", { id: "seen-title" }, "What it sees", hint("seen")),
      saveButton(() => canvas, "what-it-sees"),
    ),
    about,
    place.element,
    h(
      "div",
      { class: "legend" },
      h("span", {}, h("span", { class: "swatch box-seen" }), "seen"),
      h("span", {}, h("span", { class: "swatch box-unseen" }), "not seen"),
      swatch("colluder", "colluder (it knows all its own)"),
    ),
    grouped,
    table,
  );

  /** @param {AdversaryAnswer} answer */
  const show = (answer) => {
    shown = answer;
    const { seen, honest } = answer;
    const perRound = seen.map((row) => honest.reduce((sum, id) => sum + row[id], 0));
    const messages = seen.length * honest.length;
    const sum = perRound.reduce((a, b) => a + b, 0);
    about.replaceChildren(...describe(answer, perRound, messages));
    canvas.setAttribute(
      "aria-label",
      `Messages by round and party: ${sum} of ${messages} messages of honest parties are seen.`,
    );
    const rows = perRound.map((messagesSeen, t) => [roundLabel(t, seen.length - 1), messagesSeen, honest.length]);
    const caption = "Messages of honest parties that the adversary sees, by round";
    table.replaceChildren(dataTable(caption, ["Made in round", "Seen", "Of"], rows));
    place.redraw();
  };
  return { element, show };
}
