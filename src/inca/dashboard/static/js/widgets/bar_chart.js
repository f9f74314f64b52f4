// Horizontal bars on a logarithmic axis.

/** @import { ErrorParts } from "../lib/types.js" */
import { svg } from "../lib/dom.js";
import { format } from "../lib/format.js";
import { powersOfTen, scale } from "../lib/scale.js";

/**
 * @typedef {object} Bar
 * @property {string} label
 * @property {number | null} value null shows the note instead
 * @property {boolean} own whether it is inca's: its label is bold, so that colour is not the only sign
 * @property {ErrorParts | null} parts stacked by their shares of the value; on a logarithmic axis, not by positions
 * @property {string} note
 */

const ROW = 30;
const TOP = 20;
const RIGHT = 60;
const BELOW = 24;

/**
 * @param {Bar} bar
 * @param {number} left
 * @param {number} end
 * @param {number} y
 */
function pieces({ parts, own, value }, left, end, y) {
  const kinds = parts ? Object.entries(parts) : [[own ? "own" : "baseline", value ?? 0]];
  const sum = kinds.reduce((total, [, part]) => total + Number(part), 0) || 1;
  let start = left;
  return kinds.map(([kind, part]) => {
    const width = ((end - left) * Number(part)) / sum;
    const piece = svg("rect", { x: start, y: y + 3, width, height: ROW - 10, fill: `var(--${kind})`, rx: 2 });
    start += width;
    return piece;
  });
}

/**
 * A dashed line across all bars, and what it is.
 * @param {{ value: number, label: string }} limit
 * @param {(value: number) => number} x
 * @param {{ width: number, height: number }} size
 */
function limitLine({ value, label }, x, { width, height }) {
  const at = x(value);
  const late = at > width / 2; // its label must not leave the picture
  return [
    svg("line", { x1: at, x2: at, y1: 14, y2: height - BELOW, stroke: "var(--warn)", "stroke-dasharray": "5 4" }),
    svg("text", { class: "soft", x: at + (late ? -6 : 6), y: 10, "text-anchor": late ? "end" : "start" }, label),
  ];
}

/**
 * Bars, one below the other. `width` is in units of letters 12 high: less on a telephone. `limit` is drawn as a line.
 * @param {{ title: string, bars: Bar[], width: number, limit?: { value: number, label: string } | null }} chart
 */
export function barChart({ title, bars, width, limit }) {
  const left = Math.min(210, 0.38 * width);
  const height = TOP + ROW * bars.length + 28;
  const values = [...bars, ...(limit ? [limit] : [])].flatMap(({ value }) => (value ? [value] : []));
  const high = Math.max(...values, 1e-300) * 1.3;
  const low = Math.min(...values, high / 10) / 2;
  const x = scale(low, high, left, width - RIGHT, true);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  const powers = powersOfTen(low, high);
  const every = Math.ceil((55 * powers.length) / (width - left - RIGHT)); // labels must not run into each other
  for (const power of powers.filter((_, i) => i % every === 0)) {
    drawing.append(
      svg("line", { class: "axis", x1: x(power), x2: x(power), y1: 16, y2: height - BELOW }),
      svg("text", { class: "soft", x: x(power), y: height - 8, "text-anchor": "middle" }, format(power, 2)),
    );
  }
  bars.forEach((bar, i) => {
    const y = TOP + i * ROW;
    const bold = { class: bar.own ? "bold" : null };
    drawing.append(svg("text", { ...bold, x: left - 8, y: y + 15, "text-anchor": "end" }, bar.label));
    if (bar.value === null) {
      drawing.append(svg("text", { class: "soft", x: left + 4, y: y + 15 }, bar.note));
      return;
    }
    const end = Math.max(x(bar.value), left + 2);
    const value = svg("text", { x: end + 6, y: y + 15 }, format(bar.value, 3));
    drawing.append(...pieces(bar, left, end, y), value);
  });
  if (limit) drawing.append(...limitLine(limit, x, { width, height }));
  return drawing;
}
