// The adversary's best guess of every value beside the truth, as far as both are known: in simulations.

import { dataTable } from "./charts.js";
import { h, s, text } from "./dom.js";
import { fitted, rounds } from "./fit.js";
import { hint } from "./hints.js";
import { offBy } from "./normal.js";
import { saveButton } from "./picture.js";

const MOST_SHOWN = 240;
const KINDS = { naive: "Knows nothing else", informed: "Knows all other values" };

function rows(guesses, honest, kind) {
  const all = honest.map((party, i) => ({ party, truth: guesses.truth[i], guess: guesses[kind][i], error: guesses[`${kind}_error`][i] }));
  return all.sort((a, b) => a.truth - b.truth || a.party - b.party);
}

function picture({ list, title, width }) {
  const left = 46, right = 14, top = 26, bottom = 42, height = 300;
  const every = Math.ceil(list.length / MOST_SHOWN), shown = list.filter((_, i) => i % every === 0);
  const ends = shown.filter((each) => each.guess !== null).flatMap((each) => [each.guess - (each.error ?? 0), each.guess + (each.error ?? 0)]);
  // Wide intervals are cut, so that the values between 0 and 1 stay visible.
  const low = Math.max(Math.min(-0.05, ...ends), -1), high = Math.min(Math.max(1.05, ...ends), 2);
  const y = (value) => top + ((high - Math.min(Math.max(value, low), high)) / (high - low)) * (height - top - bottom);
  const step = (width - left - right) / shown.length, x = (i) => left + (i + 0.5) * step, size = Math.max(Math.min(step / 2.5, 5), 1.8);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  svg.append(s("rect", { x: left, width: width - left - right, y: y(1), height: y(0) - y(1), fill: "var(--line)", opacity: 0.3 }));
  for (const at of rounds(low, high, 5)) svg.append(s("line", { class: "axis", x1: left, x2: width - right, y1: y(at), y2: y(at) }),
    s("text", { class: "soft", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, text(at, 3)));
  svg.append(s("text", { class: "soft", x: 4, y: 12 }, "value"),
    s("text", { class: "soft", x: (left + width) / 2, y: height - 5, "text-anchor": "middle" }, "honest parties, smallest true value first"));
  const labelled = Math.ceil((8 * String(Math.max(...shown.map((each) => each.party))).length + 8) / step);
  shown.forEach((each, i) => {
    if (each.guess !== null) {
      const [from, to] = [each.guess - (each.error ?? 0), each.guess + (each.error ?? 0)];
      svg.append(s("line", { x1: x(i), x2: x(i), y1: y(from), y2: y(to), stroke: "var(--colluder)", "stroke-width": Math.min(Math.max(step / 4, 1), 3),
        opacity: 0.4 }));
      for (const [end, way] of [[from, low], [to, high]]) {
        if ((end < low || end > high) && step > 7) svg.append(s("path",
          { d: `M${x(i) - 4} ${y(way) + (way === low ? -5 : 5)}L${x(i) + 4} ${y(way) + (way === low ? -5 : 5)}L${x(i)} ${y(way)}Z`,
          fill: "var(--colluder)" }));
      }
      if (each.guess >= low && each.guess <= high) svg.append(s("path",
        { d: `M${x(i)} ${y(each.guess) - size - 1}l${size + 1} ${size + 1}l${-size - 1} ${size + 1}l${-size - 1} ${-size - 1}Z`, fill: "var(--card)",
        stroke: "var(--colluder)", "stroke-width": 1.5 }));
    }
    svg.append(s("circle", { cx: x(i), cy: y(each.truth), r: size, fill: "var(--honest)" }));
    if (i % labelled === 0) svg.append(s("text", { class: "soft", x: x(i), y: height - bottom + 16, "text-anchor": "middle" }, `${each.party}`));
  });
  return svg;
}

function sentence(guesses, kind) {
  const off = offBy(guesses[kind], guesses.truth), blind = offBy(guesses.truth.map(() => 0.5), guesses.truth);
  if (off === null) return "It has nothing to go by: it cannot guess any value at all.";
  if (off < 1e-6) return "Its guesses are exact: it can read every value off.";
  const start = `Its guesses are off by ${text(off, 3)} (root mean square, on a scale from 0 to 1); whoever always says 0.5 is off by ${text(blind, 3)}. `;
  const gain = 1 - off / blind;
  if (kind === "informed" && gain < -0.02) return `${start}This guesser goes by what it sees alone, and there the noise is larger than the values.`;
  if (gain < 0.05) return `${start}So it has learned next to nothing from all that it sees.`;
  return start + (gain < 0.5 ? "So it has learned something, but not much." : "So it knows the values rather well: this is bad privacy.");
}

/** The card; `choose(kind)` is told which adversary is looked at. */
export function guessesCard(choose) {
  let shown = null, kind = "naive";
  const about = h("p"), table = h("div"), why = h("p", { class: "note" });
  const place = fitted((width) => (shown ? picture({ ...shown, width }) : h("span")));
  const buttons = Object.entries(KINDS).map(([name, words]) => h("button", { type: "button", "data-kind": name, onclick: () => choose(name) }, words));
  const legend = h("div", { class: "legend" }, h("span", {}, h("span", { class: "swatch round fill-honest" }), "true value"),
    h("span", {}, h("span", { class: "swatch diamond" }), "best guess, with one standard error either way (an arrow: it goes on beyond the picture)"));
  const body = h("div", {}, h("div", { class: "row", role: "group", "aria-label": "What the guesser knows besides" }, h("span", {}, "The guesser:"),
    buttons[0], hint("naive"), buttons[1], hint("informed")), about, place, legend, table);
  const keep = saveButton(() => place.querySelector("svg"), "guesses");
  const card = h("section", { class: "card", "aria-labelledby": "guess-title" },
    h("div", { class: "row spread" }, h("h2", { id: "guess-title" }, "Its best guess, and the truth"), keep), why, body);
  card.set = ({ guesses, honest }, wanted) => {
    kind = wanted;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
    body.hidden = keep.hidden = Boolean(guesses.why_not);
    why.hidden = !guesses.why_not;
    why.textContent = guesses.why_not ? `No guesses here: ${guesses.why_not}.` : "";
    if (guesses.why_not) { shown = null; return; }
    const list = rows(guesses, honest, kind), words = sentence(guesses, kind);
    about.textContent = words + (list.length > MOST_SHOWN ? ` The picture shows one party in ${Math.ceil(list.length / MOST_SHOWN)}.` : "");
    shown = { list, title: `True values and guesses of ${list.length} honest parties. ${words}` };
    table.replaceChildren(dataTable("True values and best guesses", ["Party", "True value", "Guess", "Standard error"],
      list.map((each) => [`${each.party}`, each.truth, each.guess === null ? "none" : each.guess, each.error === null ? "infinite" : each.error])));
    place.again();
  };
  card.stop = place.stop;
  return card;
}
