// Curves over a common axis.

import { svg } from "../lib/dom.js";
import { format } from "../lib/format.js";
import { powersOfTen, scale, ticks } from "../lib/scale.js";

/**
 * @typedef {object} Curve
 * @property {string} kind the purpose of its colour
 * @property {(number | null)[]} y null breaks the curve
 * @property {boolean} [dashed]
 * @property {boolean} [area] whether the area below it is filled
 */

/**
 * @typedef {object} CurveChart
 * @property {string} title for those who cannot see it
 * @property {number[]} x
 * @property {Curve[]} curves
 * @property {string} xLabel
 * @property {string} yLabel
 * @property {number} width
 * @property {number} height
 * @property {[low: number, high: number]} [limits] curves are cut there, so that one wild value does not flatten the rest
 * @property {number} [logFrom] a logarithmic axis from here to 1
 * @property {{ at: number, label?: string, kind: string }} [mark] a vertical line
 */

const LEFT = 62;
const RIGHT = 16;
const TOP = 26;
const BOTTOM = 40;

/**
 * @param {Curve[]} curves
 * @param {number} [logFrom]
 * @returns {[low: number, high: number]}
 */
function bounds(curves, logFrom) {
  if (logFrom !== undefined) return [logFrom, 1];
  const values = curves.flatMap(({ y }) => y.filter((value) => value !== null));
  const low = Math.min(0, ...values);
  const high = Math.max(...values);
  return [low, high > low ? high : low + 1];
}

/**
 * @param {(number | null)[]} values
 * @param {[low: number, high: number]} limits
 */
const cut = (values, [low, high]) =>
  values.map((value) => (value === null ? null : Math.min(Math.max(value, low), high)));

/**
 * The path of a curve, in pieces where values are missing.
 * @param {(number | null)[]} values
 * @param {(i: number) => number} x
 * @param {(value: number) => number} y
 */
const path = (values, x, y) =>
  values
    .map((value, i) => {
      const start = i === 0 || values[i - 1] === null;
      return value === null ? "" : `${start ? "M" : "L"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
    })
    .join("");

/**
 * Draw curves; `x` maps values to pixels, and the mark has the class "mark".
 * @param {CurveChart} chart
 */
export function curveChart({ title, x: xs, curves: whole, xLabel, yLabel, width, height, limits, logFrom, mark }) {
  const floor = height - BOTTOM;
  const curves = limits ? whole.map((curve) => ({ ...curve, y: cut(curve.y, limits) })) : whole;
  const [low, high] = bounds(curves, logFrom);
  const [first, last] = [xs[0], xs[xs.length - 1]];
  const x = scale(first, last, LEFT, width - RIGHT);
  const y = scale(low, high, floor, TOP, logFrom !== undefined);
  const label = (/** @type {string} */ words, /** @type {object} */ place) =>
    svg("text", { class: "soft", ...place }, words);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const at of logFrom === undefined ? ticks(low, high) : powersOfTen(low, high)) {
    const line = svg("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) });
    drawing.append(line, label(format(at, 3), { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }));
  }
  for (const at of ticks(first, last)) {
    drawing.append(label(format(at, 3), { x: x(at), y: floor + 16, "text-anchor": "middle" }));
  }
  drawing.append(
    label(xLabel, { x: (LEFT + width) / 2, y: height - 6, "text-anchor": "middle" }),
    label(yLabel, { x: 4, y: 12 }),
  );
  for (const { kind, y: values, dashed, area } of curves) {
    const d = path(values, (i) => x(xs[i]), y);
    const stroke = { stroke: `var(--${kind})`, "stroke-width": 2, "stroke-dasharray": dashed ? "5 4" : null };
    if (area) drawing.append(svg("path", { d: `${d}V${floor}H${LEFT}Z`, fill: `var(--${kind})`, opacity: 0.18 }));
    drawing.append(svg("path", { d, fill: "none", ...stroke }));
  }
  if (mark) {
    const place = { x1: x(mark.at), x2: x(mark.at), y1: TOP, y2: floor };
    drawing.append(
      svg("line", { class: "mark", ...place, stroke: `var(--${mark.kind})`, "stroke-dasharray": "3 3" }),
      label(mark.label ?? "", { x: x(mark.at) + 4, y: TOP + 10 }),
    );
  }
  return { drawing, x };
}
