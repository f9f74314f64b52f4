// Values as dots on a logarithmic axis, and what they are made of as bars of 100 % apart: on such an axis neither the
// length of a bar nor that of its parts would mean anything.

/** @import { ErrorParts } from "../lib/types.js" */
import { svg } from "../lib/dom.js";
import { format, percent } from "../lib/format.js";
import { powersOfTen, scale } from "../lib/scale.js";

/**
 * @typedef {object} Bar
 * @property {string} label
 * @property {number | null} value null shows the note instead
 * @property {boolean} own whether it is inca's: its label is bold and its dot larger, so that colour is not the only sign
 * @property {ErrorParts | null} parts of the value, drawn apart by their shares
 * @property {string} note
 */

const ROW = 27;
const TOP = 20;
const RIGHT = 70;
const BELOW = 24;
const SHARES_TITLE = 26; // above the bars of 100 %

/**
 * A bar of 100 %, divided by shares; those that are wide enough say how much they are.
 * @param {Bar} bar
 * @param {number} y
 * @param {number} left
 * @param {number} right
 */
function shareBar({ label, own, parts }, y, left, right) {
  const kinds = Object.entries(parts ?? {});
  const sum = kinds.reduce((total, [, part]) => total + part, 0);
  const name = svg("text", { class: own ? "bold" : null, x: left - 8, y: y + 14, "text-anchor": "end" }, label);
  let start = left;
  const pieces = kinds.map(([kind, part]) => {
    const width = sum > 0 ? ((right - left) * part) / sum : 0;
    const piece = svg("rect", { x: start, y: y + 2, width, height: ROW - 11, fill: `var(--${kind})` });
    start += width;
    return piece;
  });
  const [first] = kinds.sort(([, one], [, other]) => other - one);
  const most = sum > 0 && first ? svg("text", { x: right + 8, y: y + 14 }, percent(first[1] / sum)) : null;
  return [name, ...pieces, ...(most ? [most] : [])];
}

/**
 * The bars of 100 %, with what they are above them.
 * @param {Bar[]} bars
 * @param {number} top
 * @param {number} left
 * @param {number} width
 */
function shareBars(bars, top, left, width) {
  if (!bars.length) return [];
  const words = "What inca's error is made of, 100 % each; the number is the largest share";
  const short = "Shares of inca's error, the largest in %";
  const title = svg("text", { class: "soft", x: 4, y: top + 16 }, width < 500 ? short : words);
  return [title, ...bars.flatMap((bar, i) => shareBar(bar, top + SHARES_TITLE + i * ROW, left, width - RIGHT))];
}

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
  const divided = bars.filter(({ parts, value }) => parts && value);
  const floor = TOP + ROW * bars.length + 28;
  const height = floor + (divided.length ? SHARES_TITLE + ROW * divided.length : 0);
  const values = [...bars, ...(limit ? [limit] : [])].flatMap(({ value }) => (value ? [value] : []));
  const high = Math.max(...values, 1e-300) * 1.3;
  const low = Math.min(...values, high / 10) / 2;
  const x = scale(low, high, left, width - RIGHT, true);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
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
  drawing.append(...shareBars(divided, floor, left, width));
  if (limit) drawing.append(...limitLine(limit, x, { width, floor }));
  return drawing;
}
