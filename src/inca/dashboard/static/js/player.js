// Going through the rounds: play and pause, steps, a slider, and the speed.

import { h } from "./dom.js";

const PACE = 1400; // milliseconds a round takes at normal speed
const calmly = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * `show(t, progress)` draws a round; progress below 1 means that its shares are still on their way.
 * `moving()` says whether there is any use in drawing between rounds.
 */
export function player({ show, moving, onplay }) {
  let rounds = 1, t = 0, progress = 1, playing = false, frame = 0, last = 0, speed = 1;
  const button = (label, sign, act) => h("button", { type: "button", "aria-label": label, title: label, onclick: act }, sign);
  const play = h("button", { type: "button", class: "main run-play", onclick: () => (playing ? pause() : start()) }, "▶\ufe0e Play");
  const slider = h("input", { type: "range", min: 0, max: 1, step: 1, value: 0, "aria-label": "Round", oninput: () => go(Number(slider.value)) });
  const pace = h("select", { "aria-label": "Speed", title: "Speed", onchange: () => { speed = Number(pace.value); } },
    ...[[0.5, "½ ×"], [1, "1 ×"], [2, "2 ×"], [4, "4 ×"]].map(([value, words]) => h("option", { value, selected: value === 1 }, words)));
  const buttons = {
    first: button("To the start", "|◀\ufe0e", () => go(0)), back: button("One round back", "◀\ufe0e", () => go(t - 1)),
    on: button("One round on", "▶\ufe0e", () => go(t + 1)), last: button("To the last round", "▶\ufe0e|", () => go(rounds)),
  };

  function put() {
    slider.value = t;
    slider.setAttribute("aria-valuetext", t ? `round ${t} of ${rounds}` : "the start");
    buttons.first.disabled = buttons.back.disabled = t === 0;
    buttons.on.disabled = buttons.last.disabled = t === rounds;
  }

  function set(to, part) {
    t = Math.max(0, Math.min(rounds, to));
    progress = t === 0 ? 1 : part;
    put();
    show(t, progress);
  }

  /** Show a round as a whole, and stop playing. */
  function go(to) {
    pause();
    set(to, 1);
  }

  function start() {
    playing = true;
    play.textContent = "❚❚ Pause";
    onplay(true);
    last = performance.now();
    if (t === rounds) set(0, 1);
    else set(t + 1, moving() && !calmly.matches ? 0 : 1);
    // What is shown as a whole stays for as long as shares would have been on their way.
    waited = 0;
    frame = requestAnimationFrame(tick);
  }

  let waited = 0;

  function tick(now) {
    if (!playing) return;
    waited += ((now - last) * speed) / PACE;
    last = now;
    if (waited < 1) {
      if (progress < 1) {
        progress = waited;
        show(t, progress);
      }
    } else if (t === rounds) {
      pause();
      set(t, 1);
    } else {
      waited = 0;
      set(t + 1, moving() && !calmly.matches ? 0 : 1);
    }
    if (playing) frame = requestAnimationFrame(tick);
  }

  function pause() {
    if (!playing) return;
    playing = false;
    cancelAnimationFrame(frame);
    play.textContent = "▶\ufe0e Play";
    onplay(false);
    if (progress < 1) set(t, 1);
  }

  const element = h("div", { class: "row run-player", role: "group", "aria-label": "Player" },
    buttons.first, buttons.back, play, buttons.on, buttons.last, slider, h("label", { class: "note" }, "Speed ", pace));
  return {
    element,
    go,
    on: (steps) => go(t + steps),
    toggle: () => (playing ? pause() : start()),
    pause,
    get t() { return t; },
    /** Take another run; the round that is shown stays if there is one. */
    take(count, wanted) {
      rounds = count;
      slider.max = rounds;
      t = Math.max(0, Math.min(rounds, wanted));
      put();
    },
  };
}
