// Charts as SVG, with a table beside each for those who cannot see them.

import { h, s, text } from "./dom.js";

const WIDTH = 720;

const axis = (x1, y1, x2, y2) => s("line", { class: "axis", x1, y1, x2, y2 });

function ticks(low, high, log) {
  if (log) {
    const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
    return Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
  }
  const span = high - low || 1;
  const step = 10 ** Math.floor(Math.log10(span / 4));
  const best = [1, 2, 5, 10].map((k) => k * step).find((each) => span / each <= 6) ?? 10 * step;
  const found = [];
  for (let at = Math.ceil(low / best) * best; at <= high + 1e-9 * span; at += best) found.push(Math.abs(at) < 1e-12 * span ? 0 : at);
  return found;
}

function place(low, high, from, to, log) {
  const f = log ? Math.log10 : (x) => x;
  const span = f(high) - f(low) || 1;
  return (x) => from + ((f(x) - f(low)) / span) * (to - from);
}

/** The data of a chart as a table that opens. */
export function dataTable(caption, columns, rows) {
  return h("details", {}, h("summary", {}, "The same as a table"), h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "visually-hidden" }, caption),
      h("thead", {}, h("tr", {}, ...columns.map((name, i) => h("th", { scope: "col", class: i ? "number" : null }, name)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell, i) =>
        h(i ? "td" : "th", { class: i ? "number" : null, scope: i ? null : "row" }, typeof cell === "number" ? text(cell) : cell ?? "–"))))))));
}

/**
 * Horizontal bars: entries { label, value, kind, parts: [{kind, value}], note }; parts are stacked by their share.
 * On a logarithmic axis a stack shows shares of the whole, not positions. `width` is in units of letters 12 high: less on a telephone.
 */
export function bars({ title, entries, log = true, unit = "", marks = [], width = WIDTH }) {
  const shown = entries.filter((each) => each.value !== null && each.value !== undefined);
  const left = Math.min(210, 0.38 * width), right = 60, row = 30, height = 24 + row * entries.length + 24;
  const values = [...shown.map((each) => each.value), ...marks.map((each) => each.value)].filter((v) => v > 0);
  const high = Math.max(...values, 1e-300) * (log ? 1.3 : 1.08);
  const low = log ? Math.min(...values, high / 10) / 2 : 0;
  const x = place(low, high, left, width - right, log);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  const at = ticks(low, high, log).filter((t) => t >= low && t <= high);
  const every = Math.ceil((55 * at.length) / (width - left - right)); // labels must not run into each other
  for (const tick of at.filter((_, i) => i % every === 0)) {
    svg.append(axis(x(tick), 16, x(tick), height - 24), s("text", { class: "soft", x: x(tick), y: height - 8, "text-anchor": "middle" }, text(tick, 2) + unit));
  }
  for (const mark of marks) {
    svg.append(s("line", { x1: x(mark.value), x2: x(mark.value), y1: 12, y2: height - 24, stroke: `var(--${mark.kind})`, "stroke-dasharray": "4 3" }),
      s("text", { class: "soft", x: x(mark.value), y: 10, "text-anchor": "middle" }, mark.label));
  }
  entries.forEach((each, i) => {
    const y = 20 + i * row;
    svg.append(s("text", { x: left - 8, y: y + 15, "text-anchor": "end" }, each.label));
    if (each.value === null || each.value === undefined) {
      svg.append(s("text", { class: "soft", x: left + 4, y: y + 15 }, each.note ?? "no answer"));
      return;
    }
    let from = left;
    const end = Math.max(x(each.value), left + 2);
    const parts = each.parts ?? [{ kind: each.kind, value: each.value }];
    const sum = parts.reduce((total, part) => total + part.value, 0) || 1;
    for (const part of parts) {
      const long = ((end - left) * part.value) / sum;
      svg.append(s("rect", { x: from, y: y + 3, width: Math.max(long, 0), height: row - 10, fill: `var(--${part.kind})`, rx: 2 }));
      from += long;
    }
    svg.append(s("text", { x: end + 6, y: y + 15 }, text(each.value, 3) + unit));
  });
  return svg;
}

/**
 * Curves over a common x: series { label, kind, x: [...], y: [...], area }; y null breaks a line.
 * `marks` are vertical lines { at, label, kind }, `levels` horizontal ones.
 */
export function curves({ title, series, xLabel, yLabel, logY = false, marks = [], levels = [], height = 280, width = WIDTH, low, high }) {
  const left = 62, right = 16, top = 18, bottom = 40;
  const xs = series.flatMap((each) => each.x);
  const ys = [...series.flatMap((each) => each.y), ...levels.map((each) => each.at)].filter((v) => v !== null && Number.isFinite(v) && (!logY || v > 0));
  const bound = { low: low ?? (logY ? Math.min(...ys) : Math.min(0, ...ys)), high: high ?? Math.max(...ys) };
  if (bound.low === bound.high) bound.high += 1;
  const x = place(Math.min(...xs), Math.max(...xs), left, width - right, false);
  const y = place(bound.low, bound.high, height - bottom, top, logY);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const at of ticks(bound.low, bound.high, logY).filter((t) => t >= bound.low && t <= bound.high)) {
    svg.append(axis(left, y(at), width - right, y(at)), s("text", { class: "soft", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, text(at, 3)));
  }
  for (const at of ticks(Math.min(...xs), Math.max(...xs), false)) {
    svg.append(s("text", { class: "soft", x: x(at), y: height - bottom + 16, "text-anchor": "middle" }, text(at, 3)));
  }
  svg.append(s("text", { class: "soft", x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, xLabel),
    s("text", { class: "soft", x: 4, y: 12 }, yLabel));
  const clip = (value) => Math.min(Math.max(value, bound.low), bound.high);
  for (const each of series) {
    let path = "", pen = "M";
    each.x.forEach((at, i) => {
      const value = each.y[i];
      if (value === null || !Number.isFinite(value) || (logY && value <= 0)) { pen = "M"; return; }
      path += `${pen}${x(at).toFixed(1)} ${y(clip(value)).toFixed(1)}`;
      pen = "L";
    });
    if (each.area) svg.append(s("path", { d: `${path}L${x(each.x.at(-1))} ${height - bottom}L${x(each.x[0])} ${height - bottom}Z`, fill: `var(--${each.kind})`, opacity: 0.18 }));
    svg.append(s("path", { d: path, fill: "none", stroke: `var(--${each.kind})`, "stroke-width": 2, "stroke-dasharray": each.dashed ? "5 4" : null }));
  }
  for (const each of levels) {
    svg.append(s("line", { x1: left, x2: width - right, y1: y(clip(each.at)), y2: y(clip(each.at)), stroke: `var(--${each.kind})`, "stroke-dasharray": "5 4" }),
      s("text", { class: "soft", x: width - right, y: y(clip(each.at)) - 5, "text-anchor": "end" }, each.label));
  }
  for (const each of marks) {
    svg.append(s("line", { x1: x(each.at), x2: x(each.at), y1: top, y2: height - bottom, stroke: `var(--${each.kind})`, "stroke-dasharray": "3 3" }),
      s("text", { class: "soft", x: x(each.at) + 4, y: top + 10 }, each.label));
  }
  return svg;
}
