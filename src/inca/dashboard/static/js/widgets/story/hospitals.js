// Five hospitals on a circle: what each holds in a round, what it sends to whom, and who is on whose side.

/** @import { RunAnswer } from "../../lib/types.js" */
import { svg } from "../../lib/dom.js";
import { format } from "../../lib/format.js";
import { sharesOf } from "../../lib/round_events.js";

export const NAMES = ["Aachen", "Bergen", "Cork", "Delft", "Espoo"];

/**
 * @typedef {object} Scene
 * @property {RunAnswer} run
 * @property {number} round
 * @property {number[]} numbers one below each name: its value, or what it holds
 * @property {Set<number>} colluding
 * @property {Map<number, string>} notes a second line below some names
 * @property {boolean} arrows
 */

const SIZE = 400;
const MIDDLE = { x: 200, y: 190 };
const DISTANCE = 132;
const RADIUS = 44;

/** @param {number} party */
function place(party) {
  const angle = (2 * Math.PI * party) / NAMES.length - Math.PI / 2;
  return { x: MIDDLE.x + DISTANCE * Math.cos(angle), y: MIDDLE.y + DISTANCE * Math.sin(angle) };
}

/**
 * An arrow from rim to rim, bent a little so that there and back differ.
 * @param {number} from
 * @param {number} to
 */
function arrow(from, to) {
  const [start, end] = [place(from), place(to)];
  const length = Math.hypot(end.x - start.x, end.y - start.y);
  const along = { x: (end.x - start.x) / length, y: (end.y - start.y) / length };
  const side = { x: -along.y * 12, y: along.x * 12 };
  const gap = RADIUS + 6;
  const point = (/** @type {{x: number, y: number}} */ at, /** @type {number} */ by) =>
    `${(at.x + along.x * by + side.x * 0.5).toFixed(1)} ${(at.y + along.y * by + side.y * 0.5).toFixed(1)}`;
  const bend = `${((start.x + end.x) / 2 + side.x * 1.6).toFixed(1)} ${((start.y + end.y) / 2 + side.y * 1.6).toFixed(1)}`;
  return svg("path", {
    class: "story-arrow",
    d: `M${point(start, gap)}Q${bend} ${point(end, -gap)}`,
    "marker-end": "url(#story-head)",
  });
}

/**
 * @param {Scene} scene
 * @param {number} party
 */
function hospital({ run, round, numbers, colluding, notes }, party) {
  const { x, y } = place(party);
  const absent = !run.present[round][party];
  const side = colluding.has(party) ? "colluder" : "honest";
  const kind = absent ? "absent" : side;
  const text = (/** @type {string} */ words, /** @type {number} */ dy, /** @type {string} */ look) =>
    svg("text", { x, y: y + dy, "text-anchor": "middle", class: look }, words);
  const note = notes.get(party);
  return [
    svg("circle", { cx: x, cy: y, r: RADIUS, class: `story-party story-${kind}` }),
    text(absent ? "gone" : format(numbers[party], 3), 16, "story-number"),
    text(NAMES[party], -7, "story-name"),
    note ? text(note, RADIUS + 16, "story-note") : null,
  ];
}

/**
 * Draw a scene.
 * @param {Scene} scene
 * @param {string} title for those who cannot see it
 */
export function hospitalsPicture(scene, title) {
  const head = svg("marker", {
    id: "story-head",
    viewBox: "0 0 8 8",
    refX: 7,
    refY: 4,
    markerWidth: 7,
    markerHeight: 7,
    orient: "auto",
  });
  head.append(svg("path", { d: "M0 0L8 4L0 8Z", class: "story-arrow-head" }));
  const drawing = svg("svg", {
    viewBox: `0 0 ${SIZE} ${SIZE}`,
    role: "img",
    "aria-label": title,
    class: "story-picture",
  });
  drawing.append(svg("defs", {}, head));
  if (scene.arrows) for (const [from, to] of sharesOf(scene.run, scene.round).sent) drawing.append(arrow(from, to));
  for (const party of NAMES.keys()) drawing.append(...hospital(scene, party).filter((part) => part !== null));
  return drawing;
}
