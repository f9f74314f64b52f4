// The privacy loss of every honest party, largest first.

import { h, svg } from "../lib/dom.js";
import { format } from "../lib/format.js";
import { scale, ticks } from "../lib/scale.js";
import { dataTable } from "./data_table.js";
import { resizable } from "./resizable.js";

/** @typedef {{ party: number, epsilon: number | null }} Loss an epsilon of null is infinite */

/**
 * @typedef {object} LossChart
 * @property {Loss[]} losses largest first
 * @property {{ epsilon: number, label: string } | null} reference a horizontal line
 * @property {number} chosen the party that is ringed
 * @property {boolean} zoom whether the axis covers only the losses themselves
 * @property {string} title
 */

const HEIGHT = 270;
const RIGHT = 14;
const TOP = 26;
const FLOOR = HEIGHT - 42;
const INFINITE_BAND = 22; // infinite losses have a band of their own on top
const MAX_STEMS = 300;

/**
 * Sort honest parties by their loss, largest first.
 * @param {number[]} honest
 * @param {(number | null)[]} epsilon
 * @returns {Loss[]}
 */
export const byLoss = (honest, epsilon) =>
  honest
    .map((party, i) => ({ party, epsilon: epsilon[i] }))
    .sort((a, b) => {
      if (a.epsilon === b.epsilon) return a.party - b.party;
      return (b.epsilon ?? Number.POSITIVE_INFINITY) - (a.epsilon ?? Number.POSITIVE_INFINITY);
    });

/**
 * The ends of the axis, and the reference line if it is on it.
 * @param {LossChart} chart
 */
function axisOf({ losses, reference, zoom }) {
  const finite = losses.flatMap(({ epsilon }) => (epsilon === null ? [] : [epsilon]));
  if (!zoom || !finite.length) {
    const high = Math.max(...finite, reference?.epsilon ?? 0, 0.01) * 1.12;
    return { low: 0, high, shown: reference };
  }
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  const spread = Math.max(most - least, 0.01 * most, 1e-12);
  return { low: Math.max(least - 0.15 * spread, 0), high: most + 0.15 * spread, shown: null };
}

/**
 * One party: a stem, a disc or (if infinite) a triangle, and a ring if it is chosen.
 * @param {{ x: number, y: number, step: number, infinite: boolean, stem: boolean, chosen: boolean }} mark
 */
function partyMark({ x, y, step, infinite, stem, chosen }) {
  const fill = infinite ? "var(--bad)" : "var(--honest)";
  const radius = Math.max(Math.min(step / 2.4, 5), 1.5);
  const width = { "stroke-width": Math.min(step / 2, 3), opacity: 0.35 };
  const triangle = `M${x - 5} ${y + 4}L${x + 5} ${y + 4}L${x} ${y - 5}Z`;
  const ring = { r: radius + 4, fill: "none", stroke: "var(--ink)", "stroke-width": 2 };
  return [
    ...(stem ? [svg("line", { x1: x, x2: x, y1: FLOOR, y2: y, stroke: fill, ...width })] : []),
    infinite && step >= 8 ? svg("path", { d: triangle, fill }) : svg("circle", { cx: x, cy: y, r: radius, fill }),
    ...(chosen ? [svg("circle", { cx: x, cy: y, ...ring })] : []),
  ];
}

/**
 * @param {SVGSVGElement} drawing
 * @param {LossChart} chart
 * @param {(epsilon: number) => number} y
 * @param {{ low: number, high: number, shown: LossChart["reference"], left: number, width: number }} axis
 */
function drawAxis(drawing, { losses, zoom }, y, { low, high, shown, left, width }) {
  const across = (/** @type {number} */ at) => ({ x1: left, x2: width - RIGHT, y1: y(at), y2: y(at) });
  const beside = { x: left - 6, "text-anchor": "end" };
  const anyFinite = Boolean(shown) || losses.some(({ epsilon }) => epsilon !== null);
  for (const at of anyFinite ? ticks(low, high, 4) : []) {
    const label = svg("text", { class: "soft", ...beside, y: y(at) + 4 }, format(at, zoom ? 5 : 3));
    drawing.append(svg("line", { class: "axis", ...across(at) }), label);
  }
  if (losses.some(({ epsilon }) => epsilon === null)) {
    drawing.append(svg("text", { ...beside, y: TOP + 9, fill: "var(--bad)" }, "∞"));
  }
  drawing.append(
    svg("text", { class: "soft", x: 4, y: 12 }, "epsilon"),
    svg(
      "text",
      { class: "soft", x: (left + width) / 2, y: HEIGHT - 5, "text-anchor": "middle" },
      "honest parties, largest loss first",
    ),
  );
  if (!shown) return;
  const dashed = { stroke: "var(--baseline)", "stroke-width": 2, "stroke-dasharray": "6 4" };
  const place = { x: width - RIGHT, y: y(shown.epsilon) - 6, "text-anchor": "end" };
  drawing.append(svg("line", { ...across(shown.epsilon), ...dashed }), svg("text", place, shown.label));
}

/**
 * @param {LossChart} chart
 * @param {number} width
 * @param {((party: number) => void) | null} choose
 */
function draw(chart, width, choose) {
  const { losses, chosen, zoom, title } = chart;
  const axis = axisOf(chart);
  const left = zoom ? 58 : 46;
  const top = losses.some(({ epsilon }) => epsilon === null) ? TOP + INFINITE_BAND : TOP;
  const y = scale(axis.low, axis.high, FLOOR, top);
  const step = (width - left - RIGHT) / losses.length;
  const labelled = step >= 20 ? 1 : Math.ceil(40 / step);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": title });
  drawAxis(drawing, chart, y, { ...axis, left, width });
  losses.forEach(({ party, epsilon }, i) => {
    const x = left + (i + 0.5) * step;
    const infinite = epsilon === null;
    const stem = losses.length <= MAX_STEMS && axis.low === 0; // from elsewhere a length says nothing
    const at = infinite ? TOP + 5 : y(epsilon);
    drawing.append(...partyMark({ x, y: at, step, infinite, stem, chosen: party === chosen }));
    const label = { class: party === chosen ? "bold" : "soft", x, y: FLOOR + 16, "text-anchor": "middle" };
    if (i % labelled === 0) drawing.append(svg("text", label, String(party)));
  });
  if (!choose) return drawing;
  drawing.classList.add("clickable");
  drawing.addEventListener("click", (event) => {
    const box = drawing.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    choose(losses[Math.min(Math.max(Math.floor((at - left) / step), 0), losses.length - 1)].party);
  });
  return drawing;
}

/** @param {Loss[]} losses */
function describe(losses) {
  const infinite = losses.filter(({ epsilon }) => epsilon === null).length;
  const range = `from ${format(losses[losses.length - 1].epsilon)} to ${format(losses[0].epsilon)}`;
  const rest = infinite ? `; ${infinite} of them infinite.` : ".";
  return `Privacy loss epsilon of ${losses.length} honest parties, ${range}${rest}`;
}

/**
 * The chart with its table; `choose(party)` is called on a click.
 * @param {AbortSignal} viewClosed
 * @param {((party: number) => void) | null} [choose]
 */
export function lossChart(viewClosed, choose = null) {
  /** @type {LossChart | null} */
  let shown = null;
  const place = resizable((width) => shown && draw(shown, width, choose), viewClosed);
  place.element.style.minHeight = `${HEIGHT}px`; // it is drawn when its width is known, and must not push away what is below
  const table = h("div");
  const infinite = h("span", {}, h("span", { class: "sign sign-infinite" }), "infinite: nothing hides its value");
  const legend = h(
    "div",
    { class: "legend" },
    h("span", {}, h("span", { class: "swatch round fill-honest" }), "loss of an honest party"),
    h("span", {}, h("span", { class: "sign sign-chosen" }), "the party that is looked at"),
    infinite,
  );
  let tableOf = "";

  /** @param {Omit<LossChart, "title">} chart */
  const show = (chart) => {
    shown = { ...chart, title: describe(chart.losses) };
    infinite.hidden = chart.losses.every(({ epsilon }) => epsilon !== null);
    place.redraw();
    const content = JSON.stringify(chart.losses);
    if (content === tableOf) return; // it stays open while another party is chosen
    tableOf = content;
    const rows = chart.losses.map(({ party, epsilon }) => [String(party), format(epsilon)]);
    table.replaceChildren(dataTable("Privacy loss of every honest party", ["Party", "Epsilon"], rows));
  };
  return { element: h("div", {}, place.element, legend, table), show, drawing: place.drawing };
}
