// Error against messages against privacy, and where one is: curves by epsilon, from the tables of drawn views.

import { fill, h, svg } from "../../lib/dom.js";
import { format } from "../../lib/format.js";
import { scale } from "../../lib/scale.js";
import { dataTable } from "../data_table.js";
import { resizable } from "../resizable.js";
/** @import { MechanismEntry, Requirements, TradeoffAnswer } from "../../lib/types.js" */
import { noiseUnit, partyCounts } from "./closed_forms.js";

/**
 * @typedef {object} Point
 * @property {number} messages
 * @property {number} error root of the mean squared error
 * @property {string} words what it is, for those who point at it
 */
/** @typedef {{ label: string, points: Point[], chosen: boolean }} Curve */
/** @typedef {{ label: string, error: number }} Level */
/** @typedef {Point & { low: number | null }} Here */
/** @typedef {{ curves: Curve[], levels: Level[], here: Here | null, why: string }} Tradeoff */

const EPSILONS = [0.3, 1, 3];
const ALIKE = 1.15; // an epsilon this near to the chosen one would only hide it
const HEIGHT = 300;
const LEFT = 52;
const RIGHT = 104;
const TOP = 22;
const FLOOR = HEIGHT - 42;
const LABEL_STEP = 14;
const FINAL_MESSAGES = 1; // as inca.dashboard.estimates counts

/** @param {number} error */
const off = (error) => `${format(error, 2)} off`;

/**
 * @param {TradeoffAnswer} answer
 * @param {Requirements} requirements
 * @returns {Curve[]}
 */
function curvesOf({ points, data }, requirements) {
  if (!points.length || data === null) return [];
  const { epsilon, delta } = requirements;
  const others = EPSILONS.filter((other) => Math.max(other / epsilon, epsilon / other) > ALIKE);
  const curve = (/** @type {number} */ at, /** @type {boolean} */ chosen) => {
    const unit = noiseUnit({ epsilon: at, delta });
    const of = points.map(({ messages, rounds, noise }) => {
      const error = Math.sqrt(unit * noise + data);
      const words = `Epsilon ${format(at, 3)}, ${messages} messages (${rounds} rounds, and the final one): about ${off(error)}.`;
      return { messages, error, words };
    });
    return { label: `epsilon ${format(at, 3)}`, points: of, chosen };
  };
  return [...others.map((other) => curve(other, false)), curve(epsilon, true)];
}

/**
 * @param {Requirements} requirements
 * @param {MechanismEntry[]} entries
 * @returns {Level[]}
 */
function levelsOf({ epsilon }, entries) {
  return ["Local DP", "Central DP"].flatMap((name) => {
    const mse = entries.find(({ mechanism }) => mechanism === name)?.mse;
    return mse ? [{ label: `${name}, epsilon ${format(epsilon, 3)}`, error: Math.sqrt(mse) }] : [];
  });
}

/**
 * @param {MechanismEntry | undefined} own
 * @param {Requirements} requirements
 * @returns {Here | null}
 */
function hereOf(own, { epsilon }) {
  if (!own?.design || own.mse === null) return null;
  const messages = own.design.rounds * own.design.receivers + FINAL_MESSAGES;
  const [error, low] = [Math.sqrt(own.mse), own.low === null ? null : Math.sqrt(own.low)];
  const size = low === null ? off(error) : `${format(low, 2)} to ${off(error)}, an estimate`;
  return {
    messages,
    error,
    low,
    words: `You are here: epsilon ${format(epsilon, 3)}, ${messages} messages: about ${size}.`,
  };
}

/**
 * What is left out, and why.
 * @param {TradeoffAnswer | null} answer
 * @param {Requirements} requirements
 */
function leftOut(answer, requirements) {
  if (!answer) return "";
  if (answer.why_not) return `The curves are left out: ${answer.why_not}.`;
  const { colluders, leavers, parties } = partyCounts(requirements);
  const [first] = answer.points;
  const known = `${format((100 * (colluders + leavers)) / parties, 3)} % colluding or leaving`;
  return first.rounds > 6
    ? `The tables of drawn views do not reach below ${first.messages} messages with ${known}.`
    : "";
}

/**
 * Everything that the chart shows.
 * @param {TradeoffAnswer | null} answer
 * @param {Requirements} requirements
 * @param {MechanismEntry[]} entries
 * @param {MechanismEntry | undefined} own
 * @returns {Tradeoff}
 */
export const tradeoffOf = (answer, requirements, entries, own) => ({
  curves: answer ? curvesOf(answer, requirements) : [],
  levels: levelsOf(requirements, entries),
  here: hereOf(own, requirements),
  why: leftOut(answer, requirements),
});

/**
 * Round numbers between two ends: 1, 2 and 5 times powers of ten, or only the powers where that is too many.
 * @param {number} low
 * @param {number} high
 */
function logTicks(low, high) {
  const first = Math.floor(Math.log10(low));
  const powers = Array.from({ length: Math.ceil(Math.log10(high)) - first + 1 }, (_, i) => 10 ** (first + i));
  const all = powers.flatMap((power) => [power, 2 * power, 5 * power]).filter((at) => at >= low && at <= high);
  return all.length > 7 ? powers.filter((at) => at >= low && at <= high) : all;
}

/**
 * Move labels apart that would lie on each other, from the top down and back up from the floor.
 * @param {number[]} places in pixels
 */
function apart(places) {
  const order = places.map((y, i) => ({ y, i })).sort((a, b) => a.y - b.y);
  for (let i = 1; i < order.length; i++) order[i].y = Math.max(order[i].y, order[i - 1].y + LABEL_STEP);
  let ceiling = FLOOR + 4;
  for (const place of order.reverse()) {
    place.y = Math.min(place.y, ceiling);
    ceiling = place.y - LABEL_STEP;
  }
  const moved = [...places];
  for (const { y, i } of order) moved[i] = y;
  return moved;
}

/**
 * @param {Tradeoff} shown
 * @param {number} width
 */
function axesOf({ curves, levels, here }, width) {
  const points = [...curves.flatMap((curve) => curve.points), ...(here ? [here] : [])];
  const errors = [...points, ...levels].map(({ error }) => error).concat(here?.low ?? []);
  const messages = points.map((point) => point.messages);
  const [few, many] = [Math.min(...messages), Math.max(...messages)];
  const [low, high] = [Math.min(...errors) / 1.25, Math.max(...errors) * 1.25];
  const spread = few === many ? 2 : 1.12;
  return {
    low,
    high,
    messages: [...new Set(messages)].sort((a, b) => a - b),
    x: scale(few / spread, many * spread, LEFT, width - RIGHT, true),
    y: scale(low, high, FLOOR, TOP, true),
  };
}

/** @param {string} words @param {object} place */
const soft = (words, place) => svg("text", { class: "soft", ...place }, words);

/**
 * @param {SVGSVGElement} drawing
 * @param {ReturnType<typeof axesOf>} axes
 * @param {number} width
 */
function drawAxes(drawing, { low, high, messages, x, y }, width) {
  for (const at of logTicks(low, high)) {
    drawing.append(
      svg("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) }),
      soft(format(at, 2), { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }),
    );
  }
  let free = 0;
  for (const at of messages) {
    if (x(at) < free) continue; // else two numbers would lie on each other
    free = x(at) + 22;
    drawing.append(soft(format(at), { x: x(at), y: FLOOR + 16, "text-anchor": "middle" }));
  }
  drawing.append(
    soft("root of the mean squared error", { x: 4, y: 12 }),
    soft(`messages per party${width < 420 ? "" : ": rounds × receivers, and the final one"}`, { x: 4, y: HEIGHT - 5 }),
  );
}

/**
 * @param {Tradeoff} shown
 * @param {number} width
 * @param {string} title
 */
function draw(shown, width, title) {
  const { curves, levels, here } = shown;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": title });
  if (!here && !curves.length) return { drawing, places: [] };
  const axes = axesOf(shown, width);
  const { x, y } = axes;
  drawAxes(drawing, axes, width);
  const grey = { stroke: "var(--baseline)", "stroke-width": 1.5 };
  for (const { error } of levels) {
    const across = { x1: LEFT, x2: width - RIGHT, y1: y(error), y2: y(error) };
    drawing.append(svg("line", { ...across, ...grey, "stroke-dasharray": "6 4" }));
  }
  for (const { points, chosen } of curves) {
    const d = points.map((at, i) => `${i ? "L" : "M"}${x(at.messages).toFixed(1)} ${y(at.error).toFixed(1)}`).join("");
    const own = { stroke: "var(--own)", "stroke-width": 2.5 };
    drawing.append(svg("path", { d, fill: "none", ...(chosen ? own : grey) }));
    const dot = { r: 2.5, fill: chosen ? "var(--own)" : "var(--baseline)" };
    for (const at of points) drawing.append(svg("circle", { cx: x(at.messages), cy: y(at.error), ...dot }));
  }
  const named = [
    ...levels.map(({ label, error }) => ({ label: label.split(",")[0], error, chosen: false })),
    ...curves.flatMap(({ label, points, chosen }) => {
      const last = points.at(-1);
      return last ? [{ label, error: last.error, chosen }] : [];
    }),
  ];
  apart(named.map(({ error }) => y(error) + 4)).forEach((at, i) => {
    const { label, chosen } = named[i];
    drawing.append(svg("text", { class: chosen ? "bold" : "soft", x: width - RIGHT + 8, y: at }, label));
  });
  if (here) {
    const near = curves.flatMap(({ points }) => points.filter(({ messages }) => messages === here.messages));
    drawHere(
      drawing,
      here,
      x(here.messages),
      y,
      [...near, ...levels].map(({ error }) => y(error)),
    );
  }
  const places = [...curves.flatMap((curve) => curve.points), ...(here ? [here] : [])];
  return { drawing, places: places.map((at) => ({ x: x(at.messages), y: y(at.error), words: at.words })) };
}

/**
 * @param {SVGSVGElement} drawing
 * @param {Here} here
 * @param {number} x
 * @param {(error: number) => number} y
 * @param {number[]} lines where lines are that its label must not lie on
 */
function drawHere(drawing, { error, low }, x, y, lines) {
  const ring = { fill: "none", stroke: "var(--ink)", "stroke-width": 2 };
  if (low !== null) {
    const thick = { stroke: "var(--own)", "stroke-width": 7, opacity: 0.45 };
    drawing.append(svg("line", { class: "range", x1: x, x2: x, y1: y(low), y2: y(error), ...thick }));
  }
  const words = low === null ? "you are here" : "you are here, at worst";
  const clear = (/** @type {number} */ at) => Math.min(...lines.map((line) => Math.abs(line - (at - 4))));
  const [above, below] = [y(error) - 15, Math.max(y(error), y(low ?? error)) + 24];
  drawing.append(
    svg("circle", { class: "here", cx: x, cy: y(error), r: 5, fill: "var(--own)" }),
    svg("circle", { cx: x, cy: y(error), r: 9, ...ring }),
    svg("text", { class: "bold", x, y: clear(above) >= clear(below) ? above : below, "text-anchor": "middle" }, words),
  );
}

/**
 * The same numbers as a table.
 * @param {Tradeoff} shown
 */
function tableOf({ curves, levels, here }) {
  const messages = [...new Set(curves.flatMap(({ points }) => points.map((point) => point.messages)))];
  const rows = messages.map((number) => [
    String(number),
    ...curves.map(({ points }) => {
      const point = points.find((at) => at.messages === number);
      return point ? format(point.error, 3) : null;
    }),
  ]);
  const blank = curves.map(() => null);
  const beside = levels.map(({ label, error }) => [label, ...(curves.length ? blank.slice(1) : []), format(error, 3)]);
  const own = here && ["you are here", ...(curves.length ? blank.slice(1) : []), here.words];
  const columns = ["Messages per party", ...(curves.length ? curves.map(({ label }) => label) : ["error"])];
  return dataTable("About how far off, by messages and epsilon", columns, [...rows, ...beside, ...(own ? [own] : [])]);
}

/**
 * The chart: a point is read in words where one points at it, or by the arrow keys.
 * @param {AbortSignal} viewClosed
 */
export function tradeoffChart(viewClosed) {
  /** @type {Tradeoff | null} */
  let shown = null;
  /** @type {{ x: number, y: number, words: string }[]} */
  let places = [];
  let read = -1;
  const words = h("p", { class: "note tradeoff-words", role: "status" });
  const left = h("p", { class: "note" });
  const table = h("div");
  const place = resizable((width) => {
    if (!shown) return null;
    const chart = draw(shown, width, `${shown.here?.words ?? ""} ${shown.why} The table below has all numbers.`.trim());
    places = chart.places;
    return chart.drawing;
  }, viewClosed);
  const say = (/** @type {number} */ at) => {
    read = at;
    words.textContent = places[at]?.words ?? shown?.here?.words ?? "";
  };
  const label = "Error by messages and epsilon: the arrow keys read its points";
  const area = h("div", { class: "tradeoff", tabindex: 0, role: "group", "aria-label": label }, place.element);
  area.addEventListener("pointermove", (event) => {
    const box = place.drawing()?.getBoundingClientRect();
    if (!box) return;
    const distance = (/** @type {{ x: number, y: number }} */ at) =>
      Math.hypot(at.x - (event.clientX - box.left), at.y - (event.clientY - box.top));
    const near = places.reduce((best, at, i) => (distance(at) < distance(places[best]) ? i : best), 0);
    if (places.length) say(near);
  });
  area.addEventListener("pointerleave", () => say(-1));
  area.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || !places.length) return;
    event.preventDefault();
    const start = read < 0 && step < 0 ? 0 : read;
    say((start + step + places.length) % places.length);
  });

  /** @param {Tradeoff} tradeoff */
  const show = (tradeoff) => {
    shown = tradeoff;
    place.redraw();
    say(-1);
    left.textContent = tradeoff.why;
  };
  const updateTable = () => {
    if (!shown) return;
    const details = tableOf(shown);
    details.open = table.querySelector("details")?.open ?? false;
    fill(table, details);
  };
  return { element: h("div", {}, area, words, left, table), show, updateTable, drawing: place.drawing };
}
