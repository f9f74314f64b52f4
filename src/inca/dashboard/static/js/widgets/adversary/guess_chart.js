// The adversary's best guess of every value beside the truth.

import { h, svg } from "../../lib/dom.js";
import { format } from "../../lib/format.js";
import { blindGuess } from "../../lib/normal_distribution.js";
import { scale, ticks } from "../../lib/scale.js";

/** @typedef {{ party: number, truth: number, guess: number | null, error: number | null }} Guess */

const LEFT = 46;
const RIGHT = 14;
const HEIGHT = 300;
const FLOOR = HEIGHT - 42;
const TOP = 26;
/** @param {Guess} guess @returns {[low: number, high: number] | null} */
const interval = ({ guess, error }) => (guess === null ? null : [guess - (error ?? 0), guess + (error ?? 0)]);

/** What its signs mean. */
export const guessLegend = () =>
  h(
    "div",
    { class: "legend" },
    h("span", {}, h("span", { class: "swatch round fill-honest" }), "true value"),
    h(
      "span",
      {},
      h("span", { class: "swatch diamond" }),
      "best guess, plus or minus one standard error (an arrow: it goes on beyond the picture)",
    ),
    h("span", {}, h("span", { class: "sign sign-guessing", "aria-hidden": "true" }), "guessing the middle"),
  );

/**
 * The guess: a diamond on its interval, with an arrow where that goes on beyond the picture.
 * @param {Guess} guess
 * @param {number} x
 * @param {(value: number) => number} y
 * @param {{ low: number, high: number, step: number, size: number }} look
 */
function guessMark(guess, x, y, { low, high, step, size }) {
  const ends = interval(guess);
  if (guess.guess === null || !ends) return [];
  const clip = (/** @type {number} */ value) => Math.min(Math.max(value, low), high);
  const width = { "stroke-width": Math.min(Math.max(step / 4, 1), 3), opacity: 0.4 };
  const [y1, y2] = [y(clip(ends[0])), y(clip(ends[1]))];
  /** @type {SVGElement[]} */
  const marks = [svg("line", { x1: x, x2: x, y1, y2, stroke: "var(--colluder)", ...width })];
  const arrow = (/** @type {number} */ tip, /** @type {number} */ base) =>
    svg("path", { d: `M${x - 4} ${base}L${x + 4} ${base}L${x} ${tip}Z`, fill: "var(--colluder)" });
  if (step > 7 && ends[0] < low) marks.push(arrow(y(low), y(low) - 5));
  if (step > 7 && ends[1] > high) marks.push(arrow(y(high), y(high) + 5));
  if (guess.guess < low || guess.guess > high) return marks;
  const half = size + 1;
  const d = `M${x} ${y(guess.guess) - half}l${half} ${half}l${-half} ${half}l${-half} ${-half}Z`;
  const diamond = svg("path", { d, fill: "var(--card)", stroke: "var(--colluder)", "stroke-width": 1.5 });
  return [...marks, diamond];
}

/**
 * Draw guesses and true values, in this order, and the middle of the domain, which one can say without looking. Intervals
 * that are wide are cut, so that the values stay visible.
 * @param {{ guesses: Guess[], domain: [number, number], unit: string, title: string, width: number }} chart
 */
export function guessChart({ guesses, domain: [least, most], unit, title, width }) {
  const ends = guesses.flatMap((guess) => interval(guess) ?? []);
  const span = most - least;
  const low = Math.max(Math.min(least - 0.05 * span, ...ends), least - span);
  const high = Math.min(Math.max(most + 0.05 * span, ...ends), most + span);
  const y = scale(low, high, FLOOR, TOP);
  const step = (width - LEFT - RIGHT) / guesses.length;
  const size = Math.max(Math.min(step / 2.5, 5), 1.8);
  const digits = String(Math.max(...guesses.map(({ party }) => party))).length;
  const labelled = Math.ceil((8 * digits + 8) / step);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": title });
  const band = { x: LEFT, width: width - LEFT - RIGHT, y: y(most), height: y(least) - y(most) };
  const middle = y(blindGuess([least, most]).middle);
  drawing.append(
    svg("rect", { ...band, fill: "var(--line)", opacity: 0.3 }),
    svg("line", { class: "guessing", x1: LEFT, x2: width - RIGHT, y1: middle, y2: middle }),
  );
  for (const at of ticks(low, high, 5)) {
    drawing.append(
      svg("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) }),
      svg("text", { class: "soft", x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, format(at, 3)),
    );
  }
  const below = { class: "soft", x: width / 2, y: HEIGHT - 5, "text-anchor": "middle" };
  drawing.append(
    svg("text", { class: "soft", x: 4, y: 12 }, unit),
    svg("text", below, "honest parties, smallest true value first"),
  );
  guesses.forEach((guess, i) => {
    const x = LEFT + (i + 0.5) * step;
    const label = { class: "soft", x, y: FLOOR + 16, "text-anchor": "middle" };
    drawing.append(
      ...guessMark(guess, x, y, { low, high, step, size }),
      svg("circle", { cx: x, cy: y(guess.truth), r: size, fill: "var(--honest)" }),
    );
    if (i % labelled === 0) drawing.append(svg("text", label, String(guess.party)));
  });
  return drawing;
}
