// The first page: private averaging in six steps, every number of which comes from the real engine.

/** @import { AdversaryAnswer, Params, RunAnswer, Simulation } from "../lib/types.js" */
import { ask, wasAborted } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { errorSentence, format } from "../lib/format.js";
import { queryString, replaceParams } from "../lib/navigation.js";
import { blindGuess } from "../lib/normal_distribution.js";
import { DEFAULT_SETTINGS, readIds } from "../lib/run_settings.js";
import { painted } from "../lib/timing.js";
import { errorLine, linkButton } from "../widgets/elements.js";
import { PotBar, truthOf } from "../widgets/pot.js";
import { hospitalsPicture, NAMES } from "../widgets/story/hospitals.js";

/**
 * @typedef {object} Step
 * @property {string} title
 * @property {Params} settings of the run
 * @property {string} [colluding] who works together, and guesses
 * @property {boolean} [rounds] whether one can go through the rounds; otherwise `round` is shown
 * @property {number} [round]
 * @property {boolean} [pot]
 * @property {"run" | "adversary"} view where to try it
 * @property {(run: RunAnswer, guesses: AdversaryAnswer | null) => string[]} words
 */

const RUN = { ...DEFAULT_SETTINGS, parties: 5, rounds: 8, sigma_independent: 8, sigma_cancelling: 80, seed: 2 };
const PLAIN = { ...RUN, injection: "plain", sigma_independent: 0, sigma_cancelling: 0, rounds: 3, quiet: 0 };
const LEAVER = 3;
const PLAY_MS = 900;

/** @param {RunAnswer} run @returns {Simulation} */
const simulationOf = (run) => /** @type {Simulation} */ (run.simulation);

/** @param {RunAnswer} run */
function offBy(run) {
  const { result, domain, unit } = simulationOf(run);
  const truth = truthOf(run, run.rounds);
  if (!result || !truth) return "There is no result.";
  const error = Math.abs(result.estimate - truth.mean);
  return `The result is ${format(result.estimate, 3)} ${unit}; the ${truth.label} is ${format(truth.mean, 3)}. It is off by ${format(error, 2)} of ${format(domain[1] - domain[0])}.`;
}

/**
 * How well an honest party is guessed, in words.
 * @param {AdversaryAnswer | null} answer
 * @param {number} party
 */
function guessOf(answer, party) {
  const at = answer?.honest.indexOf(party) ?? -1;
  const guesses = answer?.guesses;
  if (!guesses || at < 0) return "";
  const [guess, truth] = [guesses.naive.estimates[at], guesses.true_values[at]];
  if (guess === null) return `It cannot guess ${NAMES[party]} at all.`;
  const error = guesses.naive.standard_errors[at] ?? 0;
  const blind = blindGuess(guesses.domain).error;
  const doubt = error > 0.95 * blind ? "no better than guessing" : `give or take ${format(error, 2)}`;
  const verdict = error < 1e-6 ? "exactly" : doubt;
  return `Its best guess for ${NAMES[party]} is ${format(guess, 3)}, where the truth is ${format(truth, 3)}: ${verdict}.`;
}

/** @param {AdversaryAnswer | null} answer */
const lossOf = (answer) =>
  answer?.worst.epsilon
    ? `What any single patient loses, exactly: epsilon ${format(answer.worst.epsilon, 2)} at delta ${format(answer.delta)}.`
    : "";

/** @type {Step[]} */
const STEPS = [
  {
    title: "Five hospitals, a number each",
    settings: PLAIN,
    round: 0,
    view: "run",
    words: (run) => [
      "Each knows how long its patients wait: a mean of 60 patients, in minutes. They want the mean of all five, and none may show its own number to anyone.",
      `The mean is ${format(simulationOf(run).true_mean, 3)} minutes. There is no server that they all trust.`,
    ],
  },
  {
    title: "Sent plainly, the neighbour knows it",
    settings: PLAIN,
    round: 1,
    colluding: "1",
    view: "adversary",
    words: (run, guesses) => [
      "They could pass on half of what they hold, again and again, until all hold the same: the mean. That is gossip, and it works.",
      `But ${NAMES[1]} receives the half of somebody's number. ${guessOf(guesses, senderTo(run, 1))}`,
    ],
  },
  {
    title: "With noise it is hidden, and the mean is ruined",
    settings: { ...PLAIN, sigma_independent: 150 },
    round: 1,
    colluding: "1",
    pot: true,
    view: "run",
    words: (run, guesses) => [
      "So each adds noise as large as what it wants to hide, and keeps it there.",
      `${guessOf(guesses, senderTo(run, 1))} But five noises do not make a mean: ${offBy(run)}`,
    ],
  },
  {
    title: "Noise that is taken out later",
    settings: RUN,
    rounds: true,
    pot: true,
    view: "run",
    words: (run) => [
      "In each round a hospital adds a small portion of its number under fresh noise, and takes out the noise of the round before. Messages mix meanwhile, so nobody can tell whose noise is where. Watch the pot, which holds everything together: noise swings, and is gone in the end but for a sliver.",
      offBy(run),
    ],
  },
  {
    title: "One vanishes, and is settled",
    settings: { ...RUN, absent: `${LEAVER}:5-` },
    rounds: true,
    pot: true,
    view: "run",
    words: (run) => [
      `${NAMES[LEAVER]} is gone from round 5 on, with noise of the others, while they hold its noise. Before any final message is opened, the four who stayed undo all that they exchanged with it.`,
      offBy(run),
    ],
  },
  {
    title: "Two work together against the rest",
    settings: RUN,
    round: 8,
    colluding: "1 3",
    view: "adversary",
    words: (_, guesses) => [
      `${NAMES[1]} and ${NAMES[3]} share all that they see. ${guessOf(guesses, 0)}`,
      lossOf(guesses),
      "The result itself tells something about its parts, with a server or without one; how much, is what epsilon says.",
    ],
  },
];

/**
 * Who sends to a party in the first round.
 * @param {RunAnswer} run
 * @param {number} receiver
 */
const senderTo = (run, receiver) =>
  Math.max(
    run.receivers[0].findIndex((to) => to.includes(receiver)),
    0,
  );

/** One step: its words beside its picture. */
class StepSection {
  #words = h("div", { class: "story-words" }, h("p", { class: "note" }, "One moment …"));
  #picture = h("div", { class: "story-frame" });
  #problem = errorLine();
  #slider = h("input", {
    type: "range",
    min: 0,
    step: 1,
    "aria-label": "Round",
    oninput: () => this.#goTo(Number(this.#slider.value)),
  });
  #play = h("button", { type: "button", onclick: () => (this.#timer ? this.#pause() : this.#start()) }, "▶ Play");
  #round = h("span", { class: "note", role: "status" });
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  /** @type {RunAnswer | null} */
  #run = null;
  /** @type {AdversaryAnswer | null} */
  #guesses = null;

  /**
   * @param {Step} step
   * @param {number} number
   * @param {AbortSignal} viewClosed
   */
  constructor(step, number, viewClosed) {
    this.step = step;
    this.viewClosed = viewClosed;
    this.pot = new PotBar(viewClosed);
    viewClosed.addEventListener("abort", () => this.#pause());
    const question = { ...step.settings, colluding: step.colluding };
    const at = step.view === "run" ? { t: step.rounds ? 0 : step.round } : {};
    const link = linkButton("Try it yourself", `/${step.view}${queryString({ ...question, ...at })}`);
    const id = `step-${number}`;
    this.element = h(
      "section",
      { class: "card story-step", id, tabindex: -1, "aria-labelledby": `${id}-title` },
      h(
        "div",
        {},
        h("p", { class: "note" }, `Step ${number} of ${STEPS.length}`),
        h("h2", { id: `${id}-title` }, step.title),
        this.#words,
        this.#problem,
        link,
      ),
      h(
        "div",
        {},
        this.#picture,
        step.rounds && h("div", { class: "row" }, this.#play, this.#slider, this.#round),
        step.pot && this.pot.element,
      ),
    );
  }

  async load() {
    const { settings, colluding } = this.step;
    try {
      this.#run = await ask("run", { ...settings, colluding }, this.viewClosed);
      if (colluding) this.#guesses = await ask("adversary", { ...settings, colluding }, this.viewClosed);
    } catch (error) {
      if (!wasAborted(error)) this.#problem.textContent = errorSentence(error);
      return;
    }
    const words = this.step.words(this.#run, this.#guesses).filter(Boolean);
    fill(
      this.#words,
      words.map((sentences) => h("p", {}, sentences)),
    );
    this.#slider.max = String(this.#run.rounds);
    this.#goTo(this.step.round ?? this.#run.rounds);
  }

  #start() {
    const run = this.#run;
    if (!run) return;
    if (Number(this.#slider.value) >= run.rounds) this.#goTo(0);
    this.#play.textContent = "❚❚ Pause";
    this.#timer = setInterval(() => {
      const next = Number(this.#slider.value) + 1;
      if (next > run.rounds) this.#pause();
      else this.#goTo(next);
    }, PLAY_MS);
  }

  #pause() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#play.textContent = "▶ Play";
  }

  /** @param {number} round */
  #goTo(round) {
    const run = this.#run;
    if (!run) return;
    this.#slider.value = String(round);
    const last = round === run.rounds;
    this.#round.textContent = `Round ${round} of ${run.rounds}${last && simulationOf(run).settled ? ", settled" : ""}`;
    const { values, messages, settled } = simulationOf(run);
    const held = last && settled ? settled.messages : messages[round];
    const shown = this.step.round === 0 ? values : held;
    const colluding = readIds(this.step.colluding ?? "");
    const scene = { run, round, numbers: shown, colluding, notes: this.#notes(), arrows: round > 0 };
    const spoken = NAMES.map((name, i) => `${name} ${run.present[round][i] ? format(shown[i], 3) : "gone"}`).join(", ");
    this.#picture.replaceChildren(hospitalsPicture(scene, `Round ${round}: ${spoken}.`));
    if (this.step.pot) this.pot.show(run, round);
  }

  /** What the colluders think of whom. */
  #notes() {
    /** @type {Map<number, string>} */
    const notes = new Map();
    if (this.step.round !== this.#run?.rounds || !this.#guesses?.guesses) return notes;
    const { honest, guesses } = this.#guesses;
    honest.forEach((party, i) => {
      notes.set(party, `guess ${format(guesses.naive.estimates[i], 3)}, truth ${format(guesses.true_values[i], 3)}`);
    });
    return notes;
  }
}

/**
 * Show the view; the arrow keys go from step to step, as scrolling does.
 * @param {HTMLElement} main
 * @param {Record<string, string>} params
 * @param {AbortSignal} viewClosed
 */
export function show(main, params, viewClosed) {
  const sections = STEPS.map((step, i) => new StepSection(step, i + 1, viewClosed));
  let current = 0;
  const goTo = (/** @type {number} */ step) => {
    current = Math.min(Math.max(step, 0), sections.length - 1);
    const { element } = sections[current];
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "start" });
    replaceParams({ step: current + 1 });
  };
  document.addEventListener(
    "keydown",
    (event) => {
      const typing = event.target instanceof HTMLInputElement;
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by === undefined || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      goTo(current + by);
    },
    { signal: viewClosed },
  );
  const start = h("button", { type: "button", class: "primary", onclick: () => goTo(0) }, "Begin");
  main.append(
    h("h1", {}, "A mean that nobody's number gives away"),
    h(
      "p",
      { class: "lead" },
      "How several parties learn the mean of their numbers without a server, and without learning each other's. Six steps, with the arrow keys or by scrolling; all numbers are computed as you look, by the library itself.",
    ),
    h("p", { class: "row" }, start, linkButton("Plan a run of your own", "/plan")),
    ...sections.map(({ element }) => element),
  );
  const ready = Promise.all(sections.map((section) => section.load()));
  ready.then(async () => {
    if (/^[1-6]$/.test(params.step ?? "")) {
      await painted(); // else what has grown above would be seen to push the step away
      if (!viewClosed.aborted) goTo(Number(params.step) - 1);
    }
    main.dataset.ready = "";
  });
}
