// Going through the rounds: play and pause, steps, a slider, and the speed.

import { h } from "../../lib/dom.js";

const ROUND_MS = 1400; // that a round takes at normal speed
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
/** @type {[speed: number, words: string][]} */
const SPEEDS = [
  [0.5, "½ ×"],
  [1, "1 ×"],
  [2, "2 ×"],
  [4, "4 ×"],
];

/**
 * @typedef {object} PlayerEvents
 * @property {(round: number, progress: number) => void} onstep draw a round; progress below 1: its shares are on their way
 * @property {() => boolean} canAnimate whether there is any use in drawing between rounds
 * @property {(playing: boolean) => void} onplay
 */

/** The controls below the stage. */
export class Player {
  round = 0;
  #rounds = 1;
  #progress = 1;
  #playing = false;
  #frame = 0;
  #lastFrame = 0;
  #elapsed = 0; // of the round that plays, from 0 to 1

  /** @param {PlayerEvents} events */
  constructor(events) {
    this.events = events;
    const button = (/** @type {string} */ label, /** @type {string} */ sign, /** @type {() => void} */ onclick) =>
      h("button", { type: "button", "aria-label": label, title: label, onclick }, sign);
    this.first = button("To the start", "|◀\ufe0e", () => this.goTo(0));
    this.back = button("One round back", "◀\ufe0e", () => this.step(-1));
    this.next = button("One round on", "▶\ufe0e", () => this.step(1));
    this.last = button("To the last round", "▶\ufe0e|", () => this.goTo(this.#rounds));
    this.playButton = h("button", { type: "button", class: "main play", onclick: () => this.toggle() }, "▶\ufe0e Play");
    this.slider = h("input", { type: "range", min: 0, max: 1, step: 1, value: 0, "aria-label": "Round" });
    this.slider.addEventListener("input", () => this.goTo(Number(this.slider.value)));
    const options = SPEEDS.map(([value, words]) => h("option", { value, selected: value === 1 }, words));
    this.speed = h("select", { "aria-label": "Speed", title: "Speed" }, options);
    this.element = h(
      "div",
      { class: "row player", role: "group", "aria-label": "Player" },
      this.first,
      this.back,
      this.playButton,
      this.next,
      this.last,
      this.slider,
      h("label", { class: "note" }, "Speed ", this.speed),
    );
  }

  /**
   * Take a run with so many rounds; the round that is shown stays if there is one.
   * @param {number} rounds
   * @param {number} round
   */
  load(rounds, round) {
    this.pause();
    this.#rounds = rounds;
    this.slider.max = String(rounds);
    this.round = Math.max(0, Math.min(rounds, round));
    this.#progress = 1;
    this.#update();
  }

  #update() {
    const { round } = this;
    this.slider.value = String(round);
    this.slider.setAttribute("aria-valuetext", round ? `round ${round} of ${this.#rounds}` : "the start");
    this.first.disabled = this.back.disabled = round === 0;
    this.next.disabled = this.last.disabled = round === this.#rounds;
  }

  /**
   * @param {number} round
   * @param {number} progress
   */
  #show(round, progress) {
    this.round = Math.max(0, Math.min(this.#rounds, round));
    this.#progress = this.round === 0 ? 1 : progress;
    this.#update();
    this.events.onstep(this.round, this.#progress);
  }

  /**
   * Show a round as a whole, and stop playing.
   * @param {number} round
   */
  goTo(round) {
    this.pause();
    this.#show(round, 1);
  }

  /**
   * Go some rounds on or back.
   * @param {number} rounds
   */
  step(rounds) {
    this.goTo(this.round + rounds);
  }

  toggle() {
    if (this.#playing) this.pause();
    else this.#play();
  }

  #play() {
    this.#playing = true;
    this.playButton.textContent = "❚❚ Pause";
    this.events.onplay(true);
    if (this.round === this.#rounds) this.#show(0, 1);
    else this.#startRound(this.round + 1);
    this.#elapsed = 0;
    this.#lastFrame = performance.now();
    this.#frame = requestAnimationFrame((now) => this.#tick(now));
  }

  /**
   * What is shown as a whole stays for as long as shares would have been on their way.
   * @param {number} round
   */
  #startRound(round) {
    this.#elapsed = 0;
    this.#show(round, this.events.canAnimate() && !reducedMotion.matches ? 0 : 1);
  }

  /** @param {number} now */
  #tick(now) {
    if (!this.#playing) return;
    this.#elapsed += ((now - this.#lastFrame) * Number(this.speed.value)) / ROUND_MS;
    this.#lastFrame = now;
    if (this.#elapsed < 1) {
      if (this.#progress < 1) this.#show(this.round, this.#elapsed);
    } else if (this.round === this.#rounds) this.goTo(this.round);
    else this.#startRound(this.round + 1);
    if (this.#playing) this.#frame = requestAnimationFrame((time) => this.#tick(time));
  }

  pause() {
    if (!this.#playing) return;
    this.#playing = false;
    cancelAnimationFrame(this.#frame);
    this.playButton.textContent = "▶\ufe0e Play";
    this.events.onplay(false);
    if (this.#progress < 1) this.#show(this.round, 1);
  }
}
