// Sessions of this machine's nodes, followed while they go on.

import { ask, wasAborted } from "../lib/api.js";
import { announce, h } from "../lib/dom.js";
import { errorSentence } from "../lib/format.js";
import { errorLine } from "../widgets/elements.js";
import { shareButton } from "../widgets/picture_buttons.js";
import { sessionCircles } from "../widgets/sessions/session_circle.js";
import { sessionDetails } from "../widgets/sessions/session_details.js";
import { sessionTable } from "../widgets/sessions/session_table.js";
import { ago, stageWords } from "../widgets/sessions/session_words.js";

const REFRESH_MS = 2000;
const PRIVATE =
  "Private values are never shown: the dashboard reads only a node's public files (status, result, certificate, log).";

const notWatching = () =>
  h(
    "section",
    { class: "card" },
    h("h2", {}, "No folder is watched"),
    h(
      "p",
      {},
      "A node keeps its sessions in the folder given to inca node run as --state. Start the dashboard with it:",
    ),
    h("pre", { class: "command" }, "inca dashboard --sessions FOLDER"),
    h(
      "p",
      { class: "note" },
      "To try it without partners: inca demo --dashboard runs a session of several processes on this machine, and shows it here.",
    ),
  );

/** @param {string[]} folders */
const noSessions = (folders) =>
  h(
    "section",
    { class: "card" },
    h("p", {}, "No session yet. As soon as a node starts one in this folder, it appears here."),
    h(
      "ul",
      {},
      folders.map((folder) => h("li", {}, h("code", {}, folder))),
    ),
  );

/** A view that asks again every few seconds while it is visible. */
class FollowingView {
  #problem = errorLine();
  #body = h("div", {}, h("p", { class: "note" }, "One moment …"));
  #following = h("p", { class: "note" });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #known = false;

  /**
   * @param {() => Promise<Element>} load ask, and return what is to be shown
   * @param {AbortSignal} viewClosed
   */
  constructor(load, viewClosed) {
    this.load = load;
    this.viewClosed = viewClosed;
    document.addEventListener("visibilitychange", () => this.refresh(), { signal: viewClosed });
    viewClosed.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /**
   * @param {HTMLElement} main
   * @param {string} title
   * @param {string} lead
   * @param {Element | null} link
   */
  show(main, title, lead, link) {
    const buttons = h("div", { class: "row" }, link, shareButton());
    main.append(
      h("div", { class: "row spread" }, h("h1", {}, title), buttons),
      h("p", { class: "lead" }, `${lead} ${PRIVATE}`),
      this.#problem,
      this.#body,
      this.#following,
    );
    this.refresh();
  }

  async refresh() {
    clearTimeout(this.#timer);
    if (document.hidden || this.viewClosed.aborted) return;
    try {
      const element = await this.load();
      if (this.#body.firstChild !== element) this.#body.replaceChildren(element);
      for (const updated of this.#body.querySelectorAll("[data-updated]")) {
        updated.textContent = ago(Number(updated.getAttribute("data-updated")));
      }
      this.#known = true;
      this.#problem.textContent = "";
      this.#following.textContent = "Updated every 2 seconds while this page is visible.";
    } catch (error) {
      if (wasAborted(error)) return;
      this.#problem.textContent = errorSentence(error);
      if (!this.#known) this.#body.replaceChildren();
      this.#following.textContent = this.#known ? "What is shown is the last that was known." : "";
    }
    if (!this.viewClosed.aborted) this.#timer = setTimeout(() => this.refresh(), REFRESH_MS);
  }
}

/**
 * @param {HTMLElement} main
 * @param {AbortSignal} viewClosed
 */
function showAll(main, viewClosed) {
  const table = sessionTable();
  const circles = h("div");
  const all = h("div", {}, circles, table.element);
  const load = async () => {
    const { sessions, watching } = await ask("sessions", {}, viewClosed);
    if (!sessions.length) return watching.length ? noSessions(watching) : notWatching();
    table.show(sessions);
    circles.replaceChildren(...sessionCircles(sessions));
    return all;
  };
  const lead =
    "The sessions of this machine's nodes, followed while they go on: in which round each is, and what came of it.";
  new FollowingView(load, viewClosed).show(main, "Sessions", lead, null);
}

/**
 * @param {HTMLElement} main
 * @param {string} session
 * @param {AbortSignal} viewClosed
 */
function showOne(main, session, viewClosed) {
  const details = sessionDetails();
  let announced = "";
  const load = async () => {
    const answer = await ask("session", { session }, viewClosed);
    details.show(answer);
    const words = `${answer.status.party}: ${stageWords(answer.status)}.`;
    if (announced && words !== announced) announce(words);
    announced = words;
    return details.element;
  };
  const lead = "Where this party's session is, what came of it, and what it revealed.";
  const link = h("a", { href: "/sessions" }, "All sessions");
  new FollowingView(load, viewClosed).show(main, "A session", lead, link);
}

/**
 * Show the view.
 * @param {HTMLElement} main
 * @param {Record<string, string>} params
 * @param {AbortSignal} viewClosed
 */
export function show(main, params, viewClosed) {
  if (params.session) showOne(main, params.session, viewClosed);
  else showAll(main, viewClosed);
}
