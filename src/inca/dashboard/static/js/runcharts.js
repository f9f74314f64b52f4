// Under the stage: how the estimate forms, why a message tells no value, and what came of the run.

import { curves, dataTable } from "./charts.js";
import { h, percent, swatch, text } from "./dom.js";
import { hint } from "./hints.js";

const count = (n) => Array.from({ length: n + 1 }, (_, t) => t);

/** Where the rounds lie in a drawing: its first line has a point for every one of them. */
const roundsIn = (svg) => [...svg.querySelector("path").getAttribute("d").matchAll(/[ML](-?[\d.]+) /g)].map((match) => Number(match[1]));

function roundAt(svg, event) {
  const box = svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width, points = roundsIn(svg);
  return points.reduce((best, at, t) => (Math.abs(at - x) < Math.abs(points[best] - x) ? t : best), 0);
}

function chart(go) {
  const place = h("div", { class: "run-drawing" }), words = h("div", {}), table = h("div", {});
  const title = h("h2", {}), element = h("section", { class: "card", hidden: true }, title, words, place, table);
  place.addEventListener("click", (event) => { if (place.firstChild) go(roundAt(place.firstChild, event)); });
  return { element, place, words, table, title };
}

/** What a run shows in curves: [left, right], each { title, words, label, series, columns, rows }. */
function contents(data, party) {
  const rounds = count(data.rounds);
  const line = (label, kind, y, dashed = false) => ({ label, kind, x: rounds, y, dashed });
  if (!data.messages) {
    const there = data.present.map((row) => row.reduce((sum, each) => sum + each, 0));
    const left = { title: ["How many are there"], words: [], yLabel: "parties", series: [line("parties there", "own", there)],
      label: "Parties that are there, by round", columns: ["Round", "Parties there"], rows: rounds.map((t) => [t, there[t]]) };
    if (party === null) return [left, null];
    const weights = data.weights.map((row) => row[party]);
    return [left, { title: [`The weight of party ${party}`, hint("weight")], words: [], yLabel: "weight", series: [line("weight", "own", weights)],
      label: `Weight of what party ${party} holds, by round`, columns: ["Round", "Weight"], rows: rounds.map((t) => [t, weights[t]]) }];
  }
  const left = { title: ["The estimate as it forms", hint("estimate")],
    words: [swatch("own", "estimate from all messages of the round"), swatch("data", "true mean (dashed)")], yLabel: "mean value",
    series: [line("true mean", "data", rounds.map(() => data.truth), true), line("estimate", "own", data.estimates)],
    label: `Estimate of the mean by round: ${describe(data.estimates.at(-1))} in the last round; the true mean is ${text(data.truth)}`,
    columns: ["Round", "Estimate", "True mean"], rows: rounds.map((t) => [t, data.estimates[t], data.truth]) };
  if (party === null) return [left, null];
  const messages = data.messages.map((row) => row[party]), clean = data.clean.map((row) => row[party]);
  return [left, { title: [`What party ${party} holds`, hint("message")],
    words: [swatch("cancelling", "the message others see"), swatch("own", "its value part, which nobody sees (dashed)")], yLabel: "size",
    series: [line("value part", "own", clean, true), line("message", "cancelling", messages)],
    label: `Message of party ${party} by round, beside its value part without any noise`,
    columns: ["Round", "Message", "Value part", "Noise part"], rows: rounds.map((t) => [t, messages[t], clean[t], messages[t] - clean[t]]) }];
}

const describe = (estimate) => (estimate === null ? "none" : text(estimate));

function result(data, t) {
  if (!data.messages) return null;
  const last = data.estimates.at(-1), now = data.estimates[t];
  if (t < data.rounds) {
    return h("p", { class: "run-now" }, now === null ? "Nobody is there in this round, so there is nothing to estimate from." :
      `From the messages of this round the estimate would be ${text(now)}, with noise still in them. The true mean is ${text(data.truth)}.`);
  }
  if (last === null) return h("p", { class: "run-now warn" }, "Nobody is left in the last round, so there is no estimate.");
  const facts = [["Estimate", text(last), "estimate"], ["True mean", text(data.truth)], ["Error", text(Math.abs(last - data.truth))]];
  const parts = data.error ? [["independent", "independent noise"], ["cancelling", "cancelling noise that was left behind"], ["data", "values that left"]] : [];
  const sum = parts.reduce((total, [name]) => total + data.error[name], 0);
  if (data.error) facts.push(["Expected error", `about ${text(Math.sqrt(sum), 3)}`, "expected"]);
  const bar = h("div", { class: "run-bar", role: "presentation" });
  for (const [name] of parts) {
    const piece = h("span", { class: `fill-${name}` });
    piece.style.flexGrow = sum ? data.error[name] / sum : 0;
    bar.append(piece);
  }
  return h("div", {}, h("dl", { class: "run-result" }, ...facts.map(([name, value, term]) => h("div", {}, h("dt", {}, name, term ? hint(term) : null), h("dd", {}, value)))),
    sum > 0 ? h("p", { class: "note" }, "Where the expected error comes from, as parts of its square:") : null, sum > 0 ? bar : null,
    sum > 0 ? h("div", { class: "legend" }, ...parts.map(([name, words]) => h("span", {}, swatch(name, `${words}: ${percent(data.error[name] / sum)}`), hint(name)))) : null);
}

/** The charts and the result; `go(t)` shows another round. */
export function runCharts(go) {
  const charts = [chart(go), chart(go)], outcome = h("section", { class: "card", "aria-label": "The result" });
  const pair = h("div", { class: "run-charts" }, ...charts.map((each) => each.element));
  let known = {}, drawn = [];

  /** Only the mark moves from round to round: drawing anew would take longer. */
  function marks(t) {
    for (const { place, element } of charts) {
      const line = element.hidden ? null : place.querySelector("line[stroke='var(--focus)']");
      if (line) for (const end of ["x1", "x2"]) line.setAttribute(end, roundsIn(place.firstChild)[t]);
    }
  }

  function lines(t) {
    charts.forEach(({ place }, at) => {
      const each = drawn[at];
      if (!each || !place.clientWidth) return;
      place.replaceChildren(curves({ title: each.label, series: each.series, xLabel: "round", yLabel: each.yLabel, width: Math.max(280, place.clientWidth), height: 230,
        marks: [{ at: t, label: "", kind: "focus" }] }));
    });
  }

  return {
    element: h("div", {}, outcome, pair),
    show(data, t, party) {
      if (known.data !== data || known.party !== party) {
        drawn = contents(data, party);
        charts.forEach(({ element, title, words, table }, at) => {
          const each = drawn[at];
          element.hidden = !each;
          if (!each) return;
          title.replaceChildren(...each.title);
          words.replaceChildren(h("div", { class: "legend" }, ...each.words));
          const open = table.querySelector("details")?.open;
          table.replaceChildren(dataTable(each.label, each.columns, each.rows));
          if (open) table.firstChild.open = true;
        });
      }
      if (known.data !== data || known.t !== t) {
        const made = result(data, t);
        outcome.hidden = !made;
        outcome.replaceChildren(h("h2", {}, t === data.rounds ? "What came of it" : "So far"), ...(made ? [made] : []));
      }
      const same = known.data === data && known.party === party;
      known = { data, party, t };
      if (same) marks(t);
      else lines(t);
    },
    fit() { if (known.data) lines(known.t); },
  };
}
