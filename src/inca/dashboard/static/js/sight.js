// What the adversary sees: all messages, rounds by parties, with those that it sees filled.

import { dataTable } from "./charts.js";
import { h, percent, swatch, text } from "./dom.js";
import { fitted } from "./fit.js";
import { hint } from "./hints.js";
import { saveButton } from "./picture.js";

const NOTIONS = {
  "Collusion DP": ["Parties that take part put together all that they send, receive and know.", "Collusion DP"],
  "Eavesdrop DP": ["Somebody outside reads messages on their way; no party helps.", "Eavesdrop DP"],
  "Eavesdrop and Collusion DP": ["Colluding parties work together with somebody who reads messages on their way.", "Eavesdrop and Collusion DP"],
};

/** Draw onto a canvas; where parties are too many for a column each, a column stands for several, by its share. */
function draw(canvas, seen, colluding, width) {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const rounds = seen.length, parties = seen[0].length, left = 54, top = 20, ratio = window.devicePixelRatio || 1;
  const each = Math.ceil(parties / Math.max(Math.floor((width - left - 4) / 4), 1));
  const columns = Math.ceil(parties / each), wide = Math.min((width - left - 4) / columns, 44);
  const high = Math.max(Math.min(18, Math.floor(420 / rounds)), 3), height = top + rounds * high + 6;
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = canvas.getContext("2d"), bad = new Set(colluding), gap = wide > 6 ? 2 : wide > 4 ? 1 : 0;
  pen.scale(ratio, ratio);
  pen.fillStyle = colour("card");
  pen.fillRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  for (let c = 0; c < columns; c++) {
    const ids = Array.from({ length: Math.min(each, parties - c * each) }, (_, k) => c * each + k), x = left + c * wide;
    const honest = ids.filter((id) => !bad.has(id));
    for (let t = 0; t < rounds; t++) {
      const y = top + t * high, part = (honest.length ? honest : ids).reduce((sum, id) => sum + seen[t][id], 0) / (honest.length || ids.length);
      const size = [x + gap / 2, y + 1, Math.max(wide - gap, 1), Math.max(high - 2, 1)];
      pen.fillStyle = pen.strokeStyle = colour(honest.length ? "ink" : "colluder");
      pen.globalAlpha = 1;
      if (!honest.length) { pen.globalAlpha = 0.45; pen.fillRect(...size); continue; }
      if (part > 0) { pen.globalAlpha = 0.25 + 0.75 * part; pen.fillRect(...size); }
      if (part < 1 && wide > 6) { pen.globalAlpha = 0.25; pen.strokeRect(size[0] + 0.5, size[1] + 0.5, size[2] - 1, size[3] - 1); }
      else if (part === 0) { pen.globalAlpha = 0.08; pen.fillRect(...size); }
    }
    pen.globalAlpha = 1;
    const every = wide >= 18 ? 1 : Math.ceil(34 / wide / 5) * 5;
    if (c % every === 0) {
      pen.fillStyle = colour(honest.length ? "soft" : "colluder");
      pen.textAlign = wide >= 18 ? "center" : "left";
      pen.fillText(`${ids[0]}`, wide >= 18 ? x + wide / 2 : x, 9);
    }
  }
  pen.textAlign = "right";
  pen.fillStyle = colour("soft");
  const step = Math.ceil(14 / high);
  for (let t = 0; t < rounds; t++) {
    const last = t === rounds - 1;
    if (last || (t % step === 0 && t + step <= rounds - 1)) pen.fillText(last ? "final" : t === 0 ? "start" : `${t}`, left - 6, top + (t + 0.5) * high);
  }
  return each;
}

/** The card of what is seen. */
export function sightCard() {
  const canvas = h("canvas", { role: "img" });
  const about = h("div"), table = h("div");
  let shown = null;
  const grouped = h("p", { class: "note" });
  const place = fitted((width) => {
    const each = draw(canvas, shown.seen, shown.colluding, width);
    grouped.textContent = each > 1 ? `A column stands for ${each} parties here; the darker, the more of them are seen.` : "";
    return canvas;
  }, 1100);
  const card = h("section", { class: "card", "aria-labelledby": "sight-title" },
    h("div", { class: "row spread" }, h("h2", { id: "sight-title" }, "What it sees", hint("seen")), saveButton(() => canvas, "what-it-sees")),
    about, place, h("div", { class: "legend" }, h("span", {}, h("span", { class: "swatch box-seen" }), "seen"),
      h("span", {}, h("span", { class: "swatch box-unseen" }), "not seen"),
      swatch("colluder", "colluder (it knows all its own)")), grouped, table);
  card.set = (answer) => {
    shown = answer;
    const among = new Set(answer.colluding), honest = answer.honest, rounds = answer.seen.length;
    const perRound = answer.seen.map((row) => honest.reduce((sum, id) => sum + row[id], 0));
    const sum = perRound.reduce((a, b) => a + b, 0), all = rounds * honest.length;
    const [words, name] = NOTIONS[answer.notion] ?? [answer.notion, answer.notion];
    const nobody = !among.size && !answer.tapped;
    about.replaceChildren(h("p", {}, nobody ? "It sees only the final messages, which are public. " : `${words} `,
      `Of the ${text(all)} messages of honest parties it sees ${text(sum)} (${percent(sum / all)}), of which ${text(perRound.at(-1))} are final messages, ` +
        `which everyone sees. `,
      nobody ? "" : h("span", { class: "note" }, `The paper calls privacy against it ${name}.`)),
    h("p", { class: "note" }, "A row is a round, a column is a party: each box is the message that the party has made by then and sends on in the next round."));
    canvas.setAttribute("aria-label", `Messages by round and party: ${sum} of ${all} messages of honest parties are seen.`);
    table.replaceChildren(dataTable("Messages of honest parties that the adversary sees, by round", ["Made in round", "Seen", "Of"],
      perRound.map((seen, t) => [t === 0 ? "start" : t === rounds - 1 ? `${t} (final)` : `${t}`, seen, honest.length])));
    place.again();
  };
  card.stop = place.stop;
  return card;
}
