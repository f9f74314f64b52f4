// One session: its status changes all the time, what came of it comes once.

/** @import { SessionAnswer, SessionStatus } from "../../lib/types.js" */
import { fill, h } from "../../lib/dom.js";
import { count, format } from "../../lib/format.js";
import { contentCard } from "../content_card.js";
import { facts } from "../elements.js";
import { ago, isInterrupted, roundsBar, stagePill } from "./session_words.js";

/** @param {SessionStatus} status */
function statusCard(status) {
  const resumes =
    "Its process is not running. Started again with the same folder, the node resumes the session where it was, as long as the others continue.";
  return h(
    "section",
    { class: "card" },
    h("div", { class: "row spread" }, h("h2", {}, status.party), stagePill(status)),
    h("p", {}, `Round ${format(status.round)} of ${format(status.rounds)}`),
    roundsBar(status),
    facts([
      ["Took part in", count(status.attended, "round", "rounds")],
      ["Open offers", `${format(status.open_offers)} (messages that are not acknowledged yet)`],
      ["Connected to", count(status.connected, "other party", "other parties")],
      status.progress && ["Now", status.progress],
      status.reason && ["Reason", status.reason],
      ["Session", h("code", {}, status.session)],
      ["Folder", h("code", {}, status.folder)],
      ["Last update", h("span", { "data-updated": status.updated }, ago(status.updated))],
    ]),
    isInterrupted(status) ? h("p", { class: "warn" }, resumes) : null,
  );
}

/** @param {boolean} over */
const noResult = (over) =>
  h(
    "section",
    { class: "card" },
    h(
      "p",
      { class: "note" },
      over
        ? "There is no result here: this party did not see the end of the session."
        : "The result will be shown here when the session has ended.",
    ),
  );

/** A session and what came of it; each part is drawn again only if it changed. */
export function sessionDetails() {
  const places = { status: h("div"), outcome: h("div") };
  /** @type {Record<string, string>} */
  const drawn = {};

  /**
   * @param {keyof typeof places} part
   * @param {unknown} content
   * @param {() => Element} make
   */
  const draw = (part, content, make) => {
    const now = JSON.stringify(content);
    if (drawn[part] === now) return;
    drawn[part] = now;
    fill(places[part], make());
  };

  /** @param {SessionAnswer} answer */
  const show = ({ status, content }) => {
    const over = status.ended || status.stage === "left";
    draw("status", status, () => statusCard(status));
    draw("outcome", content ?? over, () => (content ? contentCard(content) : noResult(over)));
  };
  return { element: h("div", {}, Object.values(places)), show };
}
