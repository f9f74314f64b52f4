// The loss of every honest party, largest first, in one picture.

import { dataTable } from "./charts.js";
import { h, s, text } from "./dom.js";
import { fitted, rounds } from "./fit.js";

const MOST_STEMS = 300;

/** Sort honest parties by their loss, largest first; null is infinite. */
export const byLoss = (honest, epsilon) => honest.map((party, i) => ({ party, epsilon: epsilon[i] }))
  .sort((a, b) => (b.epsilon ?? Infinity) - (a.epsilon ?? Infinity) || a.party - b.party);

function picture({ sorted, levels: given, zoom, focus, pick, title, width }) {
  const left = zoom ? 58 : 46, right = 14, top = 26, bottom = 42, height = 270;
  const own = sorted.map((each) => each.epsilon).filter((value) => value !== null), levels = zoom && own.length ? [] : given;
  const finite = [...sorted.map((each) => each.epsilon), ...levels.map((each) => each.at)].filter((value) => value !== null);
  const spread = zoom && own.length ? Math.max(Math.max(...own) - Math.min(...own), 0.01 * Math.max(...own), 1e-12) : null;
  const low = spread === null ? 0 : Math.max(Math.min(...own) - 0.15 * spread, 0),
    high = spread === null ? Math.max(...finite, 0.01) * 1.12 : Math.max(...own) + 0.15 * spread;
  const unbounded = sorted.some((each) => each.epsilon === null);
  const floor = unbounded ? top + 22 : top; // infinite losses have a band of their own on top
  const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - bottom - floor);
  const step = (width - left - right) / sorted.length, x = (i) => left + (i + 0.5) * step, radius = Math.max(Math.min(step / 2.4, 5), 1.5);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: pick ? "pickable" : null });
  if (finite.length) for (const at of rounds(low, high, 4)) svg.append(s("line", { class: "axis", x1: left, x2: width - right, y1: y(at), y2: y(at) }),
    s("text", { class: "soft", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, text(at, zoom ? 5 : 3)));
  if (unbounded) svg.append(s("text", { x: left - 6, y: top + 9, "text-anchor": "end", fill: "var(--bad)" }, "∞"));
  svg.append(s("text", { class: "soft", x: 4, y: 12 }, "epsilon"),
    s("text", { class: "soft", x: (left + width) / 2, y: height - 5, "text-anchor": "middle" }, "honest parties, largest loss first"));
  for (const level of levels) {
    svg.append(s("line", { x1: left, x2: width - right, y1: y(level.at), y2: y(level.at), stroke: `var(--${level.kind})`, "stroke-width": 2,
      "stroke-dasharray": "6 4" }),
      s("text", { x: width - right, y: y(level.at) - 6, "text-anchor": "end" }, level.label));
  }
  const labelled = step >= 20 ? 1 : Math.ceil(40 / step);
  sorted.forEach((each, i) => {
    const chosen = each.party === focus, at = each.epsilon === null ? top + 5 : y(each.epsilon), kind = each.epsilon === null ? "bad" : "honest";
    if (sorted.length <= MOST_STEMS) svg.append(s("line",
      { x1: x(i), x2: x(i), y1: height - bottom, y2: at, stroke: `var(--${kind})`, "stroke-width": Math.min(step / 2, 3), opacity: 0.35 }));
    if (each.epsilon === null && step >= 8) svg.append(s("path", { d: `M${x(i) - 5} ${at + 4}L${x(i) + 5} ${at + 4}L${x(i)} ${at - 5}Z`, fill: "var(--bad)" }));
    else svg.append(s("circle", { cx: x(i), cy: at, r: radius, fill: `var(--${kind})` }));
    if (chosen) svg.append(s("circle", { cx: x(i), cy: at, r: radius + 4, fill: "none", stroke: "var(--ink)", "stroke-width": 2 }));
    if (i % labelled === 0) {
      svg.append(s("text", { class: chosen ? null : "soft", x: x(i), y: height - bottom + 16, "text-anchor": "middle", "font-weight": chosen ? 700 : null },
        `${each.party}`));
    }
  });
  if (pick) svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * width;
    pick(sorted[Math.min(Math.max(Math.floor((at - left) / step), 0), sorted.length - 1)].party);
  });
  return svg;
}

/** The picture with its table; `set({ honest, epsilon, levels, focus, zoom })` draws; zoomed, the axis covers the parties only. `pick(party)` is called on a click. */
export function lossesChart(pick = null) {
  let shown = null;
  const place = fitted((width) => picture({ ...shown, pick, width })), table = h("div");
  const both = h("div", {}, place, table);
  both.set = ({ honest, epsilon, levels = [], focus = null, zoom = false }) => {
    const sorted = byLoss(honest, epsilon), infinite = epsilon.filter((each) => each === null).length;
    const title = `Privacy loss epsilon of ${honest.length} honest parties, from ${text(sorted.at(-1).epsilon)} to ${text(sorted[0].epsilon)}` + (infinite
      ? `; ${infinite} of them infinite.` : ".");
    const only = shown !== null && shown.sorted.length === sorted.length
      && shown.sorted.every((each, i) => each.party === sorted[i].party && each.epsilon === sorted[i].epsilon);
    shown = { sorted, levels, focus, title, zoom };
    // The table stays open while only another party is looked at.
    if (!only) table.replaceChildren(dataTable("Privacy loss of every honest party", ["Party", "Epsilon"],
      sorted.map((each) => [`${each.party}`, text(each.epsilon)])));
    place.again();
  };
  both.drawing = () => place.querySelector("svg");
  both.stop = place.stop;
  return both;
}
