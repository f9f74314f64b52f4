// Values as dots on a logarithmic axis, where the length of a bar would mean nothing.

import { svg } from "../lib/dom.js";
import { format } from "../lib/format.js";
import { powersOfTen, scale } from "../lib/scale.js";

/**
 * @typedef {object} Bar
 * @property {string} label
 * @property {number | null} value null shows the note instead
 * @property {boolean} own whether it is inca's: its label is bold and its dot larger, so that colour is not the only sign
 * @property {string} note
 */

const ROW = 27;
const TOP = 20;
const RIGHT = 70;
const BELOW = 24;

/**
 * A dashed line across all rows, and what it is.
 * @param {{ value: number, label: string }} limit
 * @param {(value: number) => number} x
 * @param {{ width: number, floor: number }} size
 */
function limitLine({ value, label }, x, { width, floor }) {
  const at = x(value);
  const late = at > width / 2; // its label must not leave the picture
  return [
    svg("line", { x1: at, x2: at, y1: 14, y2: floor - BELOW, stroke: "var(--warn)", "stroke-dasharray": "5 4" }),
    svg("text", { class: "soft", x: at + (late ? -6 : 6), y: 10, "text-anchor": late ? "end" : "start" }, label),
  ];
}

/**
 * Dots, one below the other. `width` is in units of letters 12 high: less on a telephone. `limit` is drawn as a line.
 * @param {{ title: string, bars: Bar[], width: number, limit?: { value: number, label: string } | null }} chart
 */
export function barChart({ title, bars, width, limit }) {
  const left = Math.min(210, 0.38 * width);
  const floor = TOP + ROW * bars.length + 28;
  const values = [...bars, ...(limit ? [limit] : [])].flatMap(({ value }) => (value ? [value] : []));
  const high = Math.max(...values, 1e-300) * 1.3;
  const low = Math.min(...values, high / 10) / 2;
  const x = scale(low, high, left, width - RIGHT, true);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${floor}`, role: "img", "aria-label": title });
  const powers = powersOfTen(low, high);
  const every = Math.ceil((55 * powers.length) / (width - left - RIGHT)); // labels must not run into each other
  for (const power of powers.filter((_, i) => i % every === 0)) {
    drawing.append(
      svg("line", { class: "axis", x1: x(power), x2: x(power), y1: 16, y2: floor - BELOW }),
      svg("text", { class: "soft", x: x(power), y: floor - 8, "text-anchor": "middle" }, format(power, 2)),
    );
  }
  bars.forEach((bar, i) => {
    const y = TOP + i * ROW;
    const bold = { class: bar.own ? "bold" : null };
    drawing.append(svg("text", { ...bold, x: left - 8, y: y + 14, "text-anchor": "end" }, bar.label));
    if (bar.value === null) {
      drawing.append(svg("text", { class: "soft", x: left + 4, y: y + 14 }, bar.note));
      return;
    }
    const at = x(bar.value);
    const middle = y + ROW / 2 - 4;
    drawing.append(
      svg("line", { class: "axis", x1: left, x2: width - RIGHT, y1: middle, y2: middle }),
      svg("circle", { cx: at, cy: middle, r: bar.own ? 7 : 5, fill: `var(--${bar.own ? "own" : "baseline"})` }),
      svg("text", { class: bar.own ? "bold" : null, x: width - RIGHT + 8, y: y + 14 }, format(bar.value, 3)),
    );
  });
  if (limit) drawing.append(...limitLine(limit, x, { width, floor }));
  return drawing;
}
