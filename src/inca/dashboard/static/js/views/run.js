// The Run view: an execution, watched round by round.

/** @import { Params, RunAnswer } from "../lib/types.js" */
/** @import { RunChange } from "../widgets/run/run_controls.js" */
import { comeBack, leave } from "../lib/absences.js";
import { apiAddress, ask, wasAborted } from "../lib/api.js";
import { announce, fill, h } from "../lib/dom.js";
import { errorSentence, format } from "../lib/format.js";
import { queryString, replaceParams } from "../lib/navigation.js";
import { describeParams } from "../lib/parameter_words.js";
import { describeRound } from "../lib/round_events.js";
import {
  fitAdversary,
  fitSettings,
  readAdversary,
  readEavesdropped,
  readIds,
  readSettings,
  unknownId,
  writeIds,
} from "../lib/run_settings.js";
import { debounce, LatestRequest } from "../lib/timing.js";
import { errorLine, linkButton, statusLine, swatch } from "../widgets/elements.js";
import { hint } from "../widgets/hint.js";
import { saveButton, shareButton } from "../widgets/picture_buttons.js";
import { PotBar } from "../widgets/pot.js";
import { PartyPanel } from "../widgets/run/party_panel.js";
import { Player } from "../widgets/run/player.js";
import { runCharts } from "../widgets/run/run_charts.js";
import { runControls, runFileCard } from "../widgets/run/run_controls.js";
import { runResult } from "../widgets/run/run_result.js";
import { Stage } from "../widgets/run/stage.js";

const QUIET_MS = 250; // without a change until the server is asked
const ADDRESS_MS = 200; // browsers refuse an address that changes too often
const KEYS =
  "Space plays and pauses, the left and right arrows go through the rounds, up and down through the parties, Home and End to the first and last round, Escape chooses no party.";

/** @param {boolean} fromFile */
const lead = (fromFile) =>
  fromFile
    ? [
        "A run that was written to a file, round by round: who sent a share",
        hint("share"),
        " to whom, who was present, and how much weight",
        hint("weight"),
        " each party held.",
      ]
    : [
        "Parties average their values without a server. In each round everyone sends a share",
        hint("share"),
        " of what it holds to others, mixes what it receives, and adds a portion of its value under noise; in the end nearly all noise is removed again, and the mean is left.",
      ];

/**
 * @param {boolean} simulated
 * @param {boolean} eavesdropped
 */
function legend(simulated, eavesdropped) {
  const sign = (/** @type {string} */ kind, /** @type {string} */ words) =>
    h("span", {}, h("span", { class: `sign sign-${kind}`, "aria-hidden": "true" }), words);
  const holding = simulated
    ? [swatch("own", "value part"), swatch("cancelling", "noise part (pale: negative)"), sign("ring", "weight")]
    : [swatch("own", "weight: the larger, the more")];
  return [
    ...holding,
    sign("sent", "share sent"),
    sign("returned", "share returned"),
    sign("colluder", "colluder"),
    sign("absent", "absent"),
    eavesdropped && sign("eavesdropped", "eavesdropped message"),
  ];
}

/**
 * @param {string | undefined} words
 * @param {number | null} otherwise
 */
const readNumber = (words, otherwise) => (/^\d+$/.test(words ?? "") ? Number(words) : otherwise);

class RunView {
  /** @type {RunAnswer | null} */
  #run = null;
  /** @type {Stage | null} */
  #stage = null;
  #injection = ""; // of the run that is shown
  /** @type {Params} what was asked for it */
  #asked = {};
  #playing = false;
  #controls = /** @type {ReturnType<typeof runControls> | null} */ (null);
  #round = h("p", { id: "round-words", class: "round-words", role: "status" });
  #problem = errorLine();
  #busy = statusLine();
  #leftOut = h("p", { class: "note" });
  #legend = h("div", { class: "legend stage-legend" });
  #side = h("div", {}, h("section", { class: "card awaited" }, h("p", { class: "note" }, "One moment …")));
  #adversaryLink = linkButton("See the adversary's view");
  #download = linkButton("Download the execution");
  #result = runResult();

  /**
   * @param {HTMLElement} main
   * @param {Record<string, string>} params
   * @param {AbortSignal} viewClosed
   */
  constructor(main, params, viewClosed) {
    this.main = main;
    this.params = params;
    this.viewClosed = viewClosed;
    this.file = params.file;
    this.settings = readSettings(params);
    this.adversary = readAdversary(params);
    this.party = readNumber(params.party, params.party === undefined ? 0 : null);
    this.request = new LatestRequest(viewClosed);
    this.loadSoon = debounce(QUIET_MS, () => viewClosed.aborted || this.load());
    this.rememberSoon = debounce(ADDRESS_MS, () => viewClosed.aborted || this.#remember());
    this.player = new Player({
      onstep: (round, progress) => this.#draw(round, progress),
      canAnimate: () => this.#stage?.canAnimate ?? false,
      onplay: (playing) => {
        this.#playing = playing;
        this.#round.setAttribute("aria-live", playing ? "off" : "polite");
      },
    });
    this.pot = new PotBar(viewClosed);
    this.charts = runCharts((round) => this.player.goTo(round), viewClosed);
    this.panel = new PartyPanel({
      choose: (party) => this.#choose(party),
      leave: () => this.#changePresence(leave, "is absent from", "on"),
      comeBack: () => this.#changePresence(comeBack, "is present in", "again"),
      collude: () => this.#toggleCollusion(),
    });
    this.canvas = h("canvas", { class: "stage", tabindex: 0, role: "application", "aria-label": "Stage" });
    this.canvas.setAttribute("aria-describedby", "round-words stage-keys");
    this.#download.download = "execution.json";
    viewClosed.addEventListener("abort", () => this.player.pause());
  }

  async show() {
    const name = `inca-run-${this.settings.seed}`;
    const title = () => `A run, round ${this.player.round} of ${this.#run?.rounds}`;
    const save = saveButton(() => (this.#run ? this.canvas : null), name, title);
    this.frame = h("div", { hidden: true }, this.#stageCard(), this.#result.element, this.charts.element);
    this.frame.append(h("p", { class: "row" }, this.#adversaryLink, this.#download));
    this.main.append(
      h("div", { class: "row spread" }, h("h1", {}, "Watch a run"), h("div", { class: "row" }, shareButton(), save)),
      h("p", { class: "lead" }, lead(Boolean(this.file))),
      this.#busy,
      h("div", { class: "columns" }, this.#side, h("div", {}, this.#problem, this.frame)),
    );
    if (!this.file) {
      this.#controls = runControls(this.settings, this.adversary.colluding, (change) => this.#change(change));
      this.#side.replaceChildren(this.#controls.element);
    }
    this.#listen();
    await this.load();
    if (this.file && this.#run) this.#showFile(this.file, this.#run);
  }

  #stageCard() {
    const keys = h("p", { id: "stage-keys", class: "visually-hidden" }, KEYS);
    const left = h("figure", {}, this.canvas, keys, this.player.element, this.#leftOut, this.#legend);
    return h(
      "section",
      { class: "card", "aria-label": "The stage" },
      this.#round,
      h("div", { class: "stage-frame" }, left, h("div", {}, this.pot.element, this.panel.element)),
    );
  }

  /**
   * @param {string} file
   * @param {RunAnswer} run
   */
  async #showFile(file, run) {
    const name = await ask("file", { file }, this.viewClosed).then(
      (answer) => answer.name,
      () => "A file",
    );
    this.#side.replaceChildren(runFileCard(name, run));
  }

  #listen() {
    const { canvas, viewClosed } = this;
    canvas.addEventListener("keydown", (event) => this.#press(event));
    canvas.addEventListener("click", (event) => this.#stage && this.#choose(this.#stage.partyAt(event)));
    canvas.addEventListener("pointermove", (event) => this.#point(event));
    window.addEventListener("themechange", () => this.#stage?.repaint(), { signal: viewClosed });
    const observer = new ResizeObserver(() => {
      if (!this.#stage || canvas.clientWidth === this.#stage.size) return;
      this.#stage.fit();
      this.#stage.draw();
    });
    observer.observe(canvas);
    viewClosed.addEventListener("abort", () => observer.disconnect());
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    const parties = this.#run?.parties;
    if (!parties || event.ctrlKey || event.metaKey || event.altKey) return;
    const { player, party } = this;
    /** @type {Record<string, () => void>} */
    const actions = {
      " ": () => player.toggle(),
      ArrowLeft: () => player.step(-1),
      ArrowRight: () => player.step(1),
      Home: () => player.goTo(0),
      End: () => player.goTo(Number.POSITIVE_INFINITY),
      ArrowDown: () => this.#choose(((party ?? -1) + 1) % parties),
      ArrowUp: () => this.#choose(((party ?? 0) + parties - 1) % parties),
      Escape: () => this.#choose(null),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  }

  /** @param {PointerEvent} event */
  #point(event) {
    const stage = this.#stage;
    if (!stage) return;
    const pointed = stage.partyAt(event);
    if (pointed === stage.look.pointed) return;
    this.canvas.classList.toggle("clickable", pointed !== null);
    if (this.#playing) stage.look.pointed = pointed;
    else stage.draw({ pointed });
  }

  /** What the server is asked about. @returns {Params} */
  #question() {
    return this.file ? { file: this.file } : { ...this.settings };
  }

  /** Who colludes: as chosen, or as the file says. */
  #colluding() {
    const { colluding } = this.adversary;
    return this.file && !colluding ? new Set(this.#run?.colluding) : readIds(colluding);
  }

  #remember() {
    const question = { ...this.#question(), ...this.adversary };
    const { delta, focus } = this.params; // of the adversary's view: kept for the way back
    replaceParams({ ...question, delta, focus, t: this.player.round, party: this.party });
    this.#adversaryLink.href = `/adversary${queryString({ ...question, delta, focus })}`;
    this.#download.href = apiAddress("execution", question);
  }

  /**
   * Draw a round; how long that took is left where a test can read it.
   * @param {number} round
   * @param {number} progress
   */
  #draw(round, progress) {
    const [run, stage, party] = [this.#run, this.#stage, this.party];
    if (!run || !stage) return;
    const began = performance.now();
    const colluding = this.#colluding();
    const isEavesdropped = readEavesdropped(this.adversary.eavesdropped);
    stage.draw({ round, progress, chosen: party, colluding, isEavesdropped });
    if (progress > 0 && progress < 1) return; // only the shares have moved
    this.#round.textContent = describeRound(run, round, this.file ? null : this.#injection);
    const shown = stage.showsColluders ? "the chosen party and of colluders" : "the chosen party";
    const hidden = `${format(stage.hiddenArrows)} shares are too many to draw: only those of ${shown} are shown.`;
    this.#leftOut.textContent = stage.hiddenArrows ? hidden : "";
    const chosen = party === null ? "" : `, party ${party} is chosen`;
    this.canvas.setAttribute("aria-label", `Stage: ${format(run.parties)} parties${chosen}`);
    const absent = this.file ? null : this.settings.absent;
    this.panel.show({ run, round, party, colluding, absent, isEavesdropped });
    this.pot.show(run, round);
    this.#result.show(run, round);
    this.charts.show(run, round, party);
    const parameters = { ...this.#asked, ...this.adversary, t: round, party };
    this.frame?.setAttribute("data-parameters", describeParams(parameters));
    this.main.dataset.stepMs = (performance.now() - began).toFixed(2);
    this.rememberSoon();
  }

  #redraw() {
    this.#draw(this.player.round, 1);
  }

  /** @param {number | null} party */
  #choose(party) {
    if (!this.#run || party === this.party) return;
    this.party = party;
    this.player.pause();
    this.#redraw();
  }

  #toggleCollusion() {
    if (this.party === null) return;
    const ids = this.#colluding();
    if (!ids.delete(this.party)) ids.add(this.party);
    this.adversary.colluding = writeIds(ids);
    this.#controls?.show(this.settings, this.adversary.colluding);
    this.#redraw();
    announce(`Party ${this.party} ${ids.has(this.party) ? "colludes" : "is honest"}.`);
  }

  /**
   * Let the chosen party leave or come back in the next round.
   * @param {typeof leave} edit
   * @param {string} verb
   * @param {string} end
   */
  #changePresence(edit, verb, end) {
    if (this.party === null) return;
    const next = this.player.round + 1;
    this.settings.absent = edit(this.settings.absent, this.party, next);
    this.#controls?.show(this.settings, this.adversary.colluding);
    announce(`Party ${this.party} ${verb} round ${next} ${end}.`);
    this.load();
  }

  /**
   * Take changed settings, make the rest fit, and ask the server; a run is the same whoever colludes.
   * @param {RunChange} change
   */
  #change({ settings, colluding, all }) {
    const unknown = unknownId(colluding ?? "", this.settings.parties);
    this.#problem.textContent = "";
    if (unknown) {
      this.#problem.textContent = `Who colludes must be ids from 0 to ${this.settings.parties - 1}, got ${unknown}.`;
      return;
    }
    if (all) this.adversary = { colluding: "", eavesdropped: "" };
    if (colluding !== undefined) this.adversary.colluding = colluding;
    if (settings) {
      this.settings = fitSettings({ ...this.settings, ...settings });
      this.adversary = fitAdversary(this.adversary, this.settings);
    }
    this.#controls?.show(this.settings, this.adversary.colluding);
    if (!settings) {
      this.#redraw();
      return;
    }
    this.#wait();
    this.loadSoon();
  }

  #wait() {
    const words = "The run is being computed again; the picture still shows the one before …";
    this.#busy.textContent = this.#run ? words : "The run is being computed …";
    this.main.setAttribute("aria-busy", "true");
  }

  async load() {
    const signal = this.request.start();
    const { injection } = this.settings;
    const question = this.#question();
    this.#wait();
    try {
      const run = await ask("run", question, signal);
      if (signal.aborted) return;
      this.#asked = question;
      this.#injection = injection;
      this.#show(run);
      this.#problem.textContent = "";
      this.#busy.textContent = "";
    } catch (error) {
      if (wasAborted(error)) return;
      this.#problem.textContent = errorSentence(error);
      this.#busy.textContent = this.#run ? "The picture still shows the run before." : "";
    }
    this.main.removeAttribute("aria-busy");
  }

  /** @param {RunAnswer} run */
  #show(run) {
    const round = this.#run ? this.player.round : (readNumber(this.params.t, 1) ?? 1);
    this.#run = run;
    if (this.party !== null && this.party >= run.parties) this.party = null;
    this.player.load(run.rounds, round);
    fill(this.#legend, legend(Boolean(run.simulation), Boolean(this.adversary.eavesdropped)));
    if (this.frame) this.frame.hidden = false;
    this.#stage = new Stage(this.canvas, run);
    this.#redraw();
    this.#remember();
  }
}

/**
 * Show the view.
 * @param {HTMLElement} main
 * @param {Record<string, string>} params
 * @param {AbortSignal} viewClosed
 */
export function show(main, params, viewClosed) {
  new RunView(main, params, viewClosed).show();
}
