// A session as it happens: its parties on this machine by name, how far each is, and what was noticed last.

/** @import { SessionStatus } from "../../lib/types.js" */
import { h, svg } from "../../lib/dom.js";
import { queryString } from "../../lib/navigation.js";
import { ago, eventWords, isInterrupted, stageWords } from "./session_words.js";

const SIZE = 380;
const MIDDLE = SIZE / 2;
const MAX_LINES = 10;
const MAX_PARTIES = 40; // more names than that have no room
const ENDED = ["serving", "over"];

/** @param {SessionStatus} status */
function kindOf(status) {
  if (isInterrupted(status) || status.stage === "left") return "gone";
  return ENDED.includes(status.stage) ? "done" : "going";
}

/**
 * @param {SessionStatus} status
 * @param {number} i
 * @param {number} parties
 */
function node(status, i, parties) {
  const angle = (2 * Math.PI * i) / parties - Math.PI / 2;
  const distance = MIDDLE - 78;
  const radius = Math.max(9, Math.min(26, (2.2 * distance) / parties));
  const [x, y] = [MIDDLE + distance * Math.cos(angle), MIDDLE + distance * Math.sin(angle)];
  const out = distance + radius + 10;
  const side = Math.cos(angle) > 0 ? "start" : "end";
  const anchor = Math.abs(Math.cos(angle)) < 0.3 ? "middle" : side;
  const [nameX, nameY] = [MIDDLE + out * Math.cos(angle), MIDDLE + out * Math.sin(angle) + 4];
  const kind = kindOf(status);
  const sign = { gone: "×", done: "✓", going: String(status.round) }[kind];
  const circle = svg("circle", { cx: x, cy: y, r: radius, class: `session-node session-${kind}` });
  const inside = svg(
    "text",
    { x, y: y + 5, "text-anchor": "middle", class: `session-sign session-sign-${kind}` },
    sign,
  );
  const name = svg("text", { x: nameX, y: nameY, "text-anchor": anchor, class: "session-name" }, status.party);
  const link = svg("a", {
    href: `/sessions${queryString({ session: status.id })}`,
    "aria-label": `${status.party}: ${stageWords(status)}`,
  });
  link.append(circle, inside, name);
  return link;
}

/**
 * What the parties noticed last, each thing once, with how many noticed it.
 * @param {SessionStatus[]} group
 */
function feed(group) {
  /** @type {Map<string, { first: number, seen: Set<string> }>} */
  const lines = new Map();
  for (const { party, events } of group) {
    for (const event of events) {
      const words = eventWords(event, party);
      if (!words) continue;
      const line = lines.get(words) ?? { first: event.time, seen: new Set() };
      lines.set(words, { first: Math.min(line.first, event.time), seen: line.seen.add(party) });
    }
  }
  const latest = [...lines].sort(([, a], [, b]) => b.first - a.first).slice(0, MAX_LINES);
  return latest.map(([words, { first, seen }]) =>
    h(
      "li",
      {},
      `${words}${seen.size > 1 ? `, say ${seen.size} of ${group.length}` : ""} `,
      h("span", { class: "note", "data-updated": first }, ago(first)),
    ),
  );
}

/**
 * A card for each session that several parties of this machine take part in.
 * @param {SessionStatus[]} sessions
 */
export function sessionCircles(sessions) {
  /** @type {Map<string, SessionStatus[]>} */
  const groups = new Map();
  for (const status of sessions) groups.set(status.session, [...(groups.get(status.session) ?? []), status]);
  const shown = [...groups.values()].filter((group) => group.length > 1 && group.length <= MAX_PARTIES);
  return shown.map((group) => {
    const parties = group.toSorted((a, b) => a.party.localeCompare(b.party));
    const round = Math.max(...parties.map((status) => status.round));
    const drawing = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "session-circle", role: "group" });
    drawing.setAttribute("aria-label", `The ${parties.length} parties of the session on this machine`);
    drawing.append(
      ...parties.map((status, i) => node(status, i, parties.length)),
      svg("text", { x: MIDDLE, y: MIDDLE - 4, "text-anchor": "middle", class: "session-round" }, `round ${round}`),
      svg(
        "text",
        { x: MIDDLE, y: MIDDLE + 18, "text-anchor": "middle", class: "session-name" },
        `of ${parties[0].rounds}`,
      ),
    );
    const legend = h(
      "p",
      { class: "note" },
      "A number is the round that a party is in; × one whose process has gone or that has left, ✓ one that has the result.",
    );
    const events = feed(parties);
    return h(
      "section",
      { class: "card session-live" },
      h("div", {}, drawing, legend),
      h(
        "div",
        {},
        h("h2", {}, "What happened"),
        events.length ? h("ul", {}, events) : h("p", { class: "note" }, "Nothing yet."),
      ),
    );
  });
}
