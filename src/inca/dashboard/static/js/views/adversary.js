// The adversary's view: what it sees of a run, how well it can guess values, and what each party loses.

/** @import { AdversaryAnswer, AdversaryChoice, Params, RunSettings } from "../lib/types.js" */
/** @import { Guesser } from "../widgets/adversary/guesses_card.js" */
import { ask, wasAborted } from "../lib/api.js";
import { announce, fill, h } from "../lib/dom.js";
import { errorSentence, format } from "../lib/format.js";
import { queryString, replaceParams } from "../lib/navigation.js";
import { describeParams } from "../lib/parameter_words.js";
import { fitAdversary, fitSettings, readAdversary, readIds, readSettings } from "../lib/run_settings.js";
import { debounce, LatestRequest } from "../lib/timing.js";
import { AdversaryFields, everyTenth } from "../widgets/adversary/adversary_fields.js";
import { conditionsCard } from "../widgets/adversary/conditions_card.js";
import { GuessesCard } from "../widgets/adversary/guesses_card.js";
import { PartyCard } from "../widgets/adversary/party_card.js";
import { fileRunCard, simulatedRunCard } from "../widgets/adversary/run_fields.js";
import { seenMessagesCard } from "../widgets/adversary/seen_messages.js";
import { SufficientNoiseCard } from "../widgets/adversary/sufficient_noise_card.js";
import { describeLosses, summary } from "../widgets/adversary/summary.js";
import { VariantsCard } from "../widgets/adversary/variants_card.js";
import { errorLine, statusLine } from "../widgets/elements.js";
import { numberField } from "../widgets/fields.js";
import { hint } from "../widgets/hint.js";
import { byLoss, lossChart } from "../widgets/loss_chart.js";
import { saveButton, shareButton } from "../widgets/picture_buttons.js";

const QUIET_MS = 300; // without a change until the server is asked
const SLOW_MESSAGES = 5000;
const DEFAULT_DELTA = 1e-5;
const OUTDATED = "What is shown below is for the settings before.";

/**
 * What of the view is kept in its address besides the run and the adversary; "" is left out.
 * @typedef {object} Choices
 * @property {string} focus the party that is looked at
 * @property {string} zoom
 * @property {string} compare
 * @property {string} guess
 * @property {string} epsilon
 */

class AdversaryView {
  /** @type {AdversaryAnswer | null} */
  #answer = null;
  #problem = errorLine();
  #busy = statusLine();
  #summary = h("section", { class: "card", "aria-label": "Summary" });
  #lossWords = h("p");
  #conditions = conditionsCard();

  /**
   * @param {Record<string, string>} params
   * @param {AbortSignal} viewClosed
   */
  constructor(params, viewClosed) {
    this.file = params.file;
    this.settings = readSettings(params); // as chosen: more parties or rounds may come back, so only questions are fitted
    this.adversary = readAdversary(params);
    this.delta = params.delta ?? String(DEFAULT_DELTA);
    this.sensitivity = params.sensitivity ?? ""; // of a file that does not say it
    const { focus = "", zoom = "", compare = "", guess = "", epsilon = "" } = params;
    /** @type {Choices} */
    this.choices = { focus, zoom, compare, guess, epsilon };
    if (!this.file && !this.adversary.colluding && !this.adversary.eavesdropped) {
      this.adversary.colluding = everyTenth(Number(this.settings.parties) || 0);
    }
    this.request = new LatestRequest(viewClosed);
    this.updateSoon = debounce(QUIET_MS, () => viewClosed.aborted || this.update());
    this.fields = new AdversaryFields((adversary) => this.#changeAdversary(adversary));
    this.seen = seenMessagesCard(viewClosed);
    this.losses = lossChart(viewClosed, (party) => this.#lookAt(party));
    this.guesses = new GuessesCard((guesser) => this.#chooseGuesser(guesser), viewClosed);
    this.party = new PartyCard((party) => this.#lookAt(party), viewClosed);
    this.variants = new VariantsCard(() => this.#choose({ compare: "1" }), viewClosed);
    this.sufficient = new SufficientNoiseCard(
      {
        epsilon: epsilon || "1",
        onepsilon: (value) => this.#choose({ epsilon: value }),
        use: (level) => this.#useLevel(level),
      },
      viewClosed,
    );
  }

  /** @param {HTMLElement} main */
  show(main) {
    const lead =
      "Choose who colludes against the others, or which messages are eavesdropped. You then see the run as this adversary does: which messages it knows, how well it can guess the values of all others, and exactly how much privacy each honest party loses.";
    this.results = h(
      "div",
      { class: "results", hidden: true },
      this.#summary,
      this.seen.element,
      this.#lossCard(),
      this.guesses.element,
      this.party.element,
      this.variants.element,
      this.sufficient.element,
      this.#conditions.element,
    );
    const body = h("div", {}, this.#problem, this.results);
    // Of a file, it is not known before how many parties there are to choose from: nothing is shown until then.
    this.columns = h("div", { class: "columns", hidden: Boolean(this.file) }, this.#side(), body);
    main.append(
      h("div", { class: "row spread" }, h("h1", {}, "The adversary's view"), shareButton()),
      h("p", { class: "lead" }, lead),
      this.#busy,
      this.columns,
    );
    this.#showAdversary();
    this.#remember();
    this.#wait();
    this.update();
  }

  #side() {
    const delta = numberField({
      name: "delta",
      label: "Delta",
      term: "delta",
      value: Number(this.delta) || DEFAULT_DELTA,
      min: 1e-12,
      max: 0.1,
      scale: "log",
      onchange: (now) => {
        this.delta = String(now);
        this.#changed();
        this.updateSoon();
      },
    });
    const ownAdversary = () => this.#changeAdversary({ colluding: "", eavesdropped: "" });
    this.runCard = this.file
      ? { element: fileRunCard(this.file), useCancelling: () => {} }
      : simulatedRunCard(
          this.settings,
          (changed) => this.#changeSettings(changed),
          () => `/run${queryString(this.#question())}`,
        );
    return h(
      "div",
      { class: "side" },
      h(
        "section",
        { class: "card" },
        h("h2", {}, "The adversary", hint("seen")),
        this.fields.element,
        this.file && h("button", { type: "button", onclick: ownAdversary }, "The file's own adversary"),
        delta.element,
        this.file && this.#sensitivityField(),
      ),
      this.runCard.element,
    );
  }

  /** How far one value can move: a file may not say it, and without it no loss is known. */
  #sensitivityField() {
    const id = "field-sensitivity";
    const onchange = (/** @type {Event} */ event) => {
      this.sensitivity = /** @type {HTMLInputElement} */ (event.target).value.trim();
      this.#changed();
      this.update();
    };
    const shown = { id, value: this.sensitivity, placeholder: "as the file says", inputmode: "decimal", onchange };
    return h("div", {}, h("label", { for: id }, "One value can differ by"), h("input", shown));
  }

  #lossCard() {
    const toggle = () => {
      this.#choose({ zoom: this.choices.zoom ? "" : "1" });
      this.#showParty();
    };
    this.zoom = h("button", { type: "button", onclick: toggle }, "Zoom in on the differences");
    const buttons = h("div", { class: "row" }, this.zoom, saveButton(this.losses.drawing, "losses"));
    return h(
      "section",
      { class: "card", "aria-labelledby": "loss-title" },
      h(
        "div",
        { class: "row spread" },
        h("h2", { id: "loss-title" }, "What each party loses", hint("epsilon")),
        buttons,
      ),
      this.#lossWords,
      this.losses.element,
      h("p", { class: "note" }, "Click a party, or choose it below, to look at it closely."),
    );
  }

  /** What the server is asked. @returns {Params} */
  #question() {
    const { delta, sensitivity } = this;
    if (this.file) return { file: this.file, ...this.adversary, delta, sensitivity };
    const settings = fitSettings(this.settings);
    return { ...settings, ...fitAdversary(this.adversary, settings), delta };
  }

  #remember() {
    replaceParams({ ...this.#question(), ...this.choices });
  }

  /** @param {Partial<Choices>} choices */
  #choose(choices) {
    Object.assign(this.choices, choices);
    this.#remember();
  }

  #changed() {
    this.#remember();
    this.#showAdversary();
    this.#wait();
  }

  /** @param {AdversaryChoice} adversary */
  #changeAdversary(adversary) {
    this.adversary = adversary;
    this.#changed();
    this.update();
  }

  /** @param {Partial<RunSettings>} changed */
  #changeSettings(changed) {
    Object.assign(this.settings, changed);
    this.#changed();
    this.updateSoon();
  }

  /** @param {number} level */
  #useLevel(level) {
    this.runCard?.useCancelling(level);
    this.#changeSettings({ sigma_cancelling: level });
    announce(`Cancelling noise is now ${format(level, 6)}.`);
  }

  /** @param {number} party */
  #lookAt(party) {
    this.#choose({ focus: String(party) });
    this.#showParty();
    announce(`Party ${party} is shown.`);
  }

  /** @param {Guesser} guesser */
  #chooseGuesser(guesser) {
    this.#choose({ guess: guesser === "naive" ? "" : guesser });
    this.#showGuesses();
  }

  /** Show who the adversary is, at once; that of a file, and its size, are only known from the answer. */
  #showAdversary() {
    const answer = this.#answer;
    if (this.file && answer) {
      const { colluding, eavesdropped } = this.adversary;
      this.fields.show({
        parties: answer.seen[0].length,
        rounds: answer.seen.length - 1,
        colluding: colluding ? [...readIds(colluding)] : answer.colluding,
        eavesdropped,
        eavesdroppedInFile: colluding ? 0 : answer.eavesdropped,
      });
    } else if (!this.file) {
      const { parties, rounds } = this.settings;
      const { colluding, eavesdropped } = fitAdversary(this.adversary, this.settings);
      this.fields.show({ parties, rounds, colluding: [...readIds(colluding)], eavesdropped, eavesdroppedInFile: 0 });
    }
  }

  #wait() {
    const { parties, rounds } = this.settings;
    const slow = !this.file && parties * rounds > SLOW_MESSAGES ? " (so many messages take a while)" : "";
    this.#busy.textContent = `Computing${slow} …${this.#answer ? ` ${OUTDATED}` : ""}`;
    this.results?.classList.toggle("outdated", this.#answer !== null);
    this.variants.invalidate();
  }

  /** Show the chosen party, or the one that loses most. */
  #showParty() {
    const answer = this.#answer;
    if (!answer) return;
    const { honest, epsilon, worst, epsilon_independent_only: alone } = answer;
    const { focus, zoom } = this.choices;
    const party = focus !== "" && honest.includes(Number(focus)) ? Number(focus) : worst.party;
    const losses = byLoss(honest, epsilon);
    const reference = alone === null ? null : { epsilon: alone, label: `independent noise alone: ${format(alone, 3)}` };
    this.zoom?.setAttribute("aria-pressed", String(Boolean(zoom)));
    this.losses.show({ losses, reference, chosen: party, zoom: Boolean(zoom) });
    this.party.show(answer, losses, party);
  }

  #showGuesses() {
    const guesser = this.choices.guess === "informed" ? "informed" : "naive";
    if (this.#answer) this.guesses.show(this.#answer, guesser);
  }

  /**
   * @param {AdversaryAnswer} answer
   * @param {Params} question
   */
  #show(answer, question) {
    const first = this.#answer === null;
    const injection = this.file ? null : this.settings.injection;
    this.#answer = answer;
    this.#showAdversary();
    if (this.results) this.results.hidden = false;
    this.results?.setAttribute("data-parameters", describeParams(question));
    fill(this.#summary, summary(answer, injection));
    fill(this.#lossWords, describeLosses(answer));
    this.seen.show(answer);
    this.#showGuesses();
    this.#showParty();
    this.#conditions.show(answer.conditions);
    this.sufficient.show(question, answer.delta);
    const compared = injection === null ? null : { params: question, injection, answer };
    this.variants.show(compared, this.choices.compare === "1");
    if (!first) announce(`Worst epsilon ${format(answer.worst.epsilon, 3)}.`);
  }

  async update() {
    const signal = this.request.start();
    const question = this.#question();
    try {
      const answer = await ask("adversary", question, signal);
      if (signal.aborted) return;
      this.columns?.removeAttribute("hidden"); // before pictures are drawn, which are as wide as their place
      this.#show(answer, question);
      this.#problem.textContent = "";
      this.#busy.textContent = "";
      this.results?.classList.remove("outdated");
    } catch (error) {
      if (wasAborted(error)) return;
      this.columns?.removeAttribute("hidden");
      this.#problem.textContent = errorSentence(error);
      this.#busy.textContent = this.#answer ? OUTDATED : "";
    }
  }
}

/**
 * Show the view.
 * @param {HTMLElement} main
 * @param {Record<string, string>} params
 * @param {AbortSignal} viewClosed
 */
export function show(main, params, viewClosed) {
  new AdversaryView(params, viewClosed).show(main);
}
