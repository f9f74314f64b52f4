// Long work that a button starts and the same button cancels, with its progress and what went wrong.

/** @import { Requirements, StreamedAnswers } from "../lib/types.js" */
import { stream, wasAborted } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { errorSentence } from "../lib/format.js";
import { LABELS } from "../lib/requirements.js";
import { LatestRequest } from "../lib/timing.js";
import { errorLine } from "./elements.js";

/**
 * How long work will still take, in words, once that can be told.
 * @param {number} started
 * @param {number} done
 * @param {number} total
 */
function timeLeft(started, done, total) {
  if (done < 0.05 * total) return "";
  const seconds = ((performance.now() - started) / 1000) * ((total - done) / done);
  if (seconds < 90) return `, about ${Math.max(1, Math.round(seconds))} seconds left`;
  return `, about ${Math.round(seconds / 60)} minutes left`;
}

/**
 * A button for work that takes long, and all that is said about it.
 * @template {keyof StreamedAnswers} Name
 */
export class LongJob {
  /** @type {Requirements | null} what is being worked on */
  asked = null;
  #started = 0;
  #bar = h("progress", { max: 1 });
  #progress = h("p", { class: "note" });
  #working = h("div", { hidden: true }, this.#bar, this.#progress);
  #problem = errorLine();
  #ending = h("span", { class: "note", role: "status" });

  /**
   * @param {object} job
   * @param {Name} job.question
   * @param {string} job.label of the button
   * @param {string} [job.buttonClass]
   * @param {string} job.activity what is going on while it works
   * @param {() => Requirements} job.requirements
   * @param {(answer: StreamedAnswers[Name], asked: Requirements) => void} job.take
   * @param {() => void} job.onchange called when work starts or ends
   * @param {AbortSignal} viewClosed
   */
  constructor(job, viewClosed) {
    this.job = job;
    this.request = new LatestRequest(viewClosed);
    this.#bar.setAttribute("aria-label", job.activity);
    const startOrCancel = () => (this.asked ? this.cancel("Cancelled.") : this.start());
    this.button = h("button", { type: "button", class: job.buttonClass, onclick: startOrCancel }, job.label);
    this.element = h("div", {}, h("div", { class: "row" }, this.button, this.#ending), this.#working, this.#problem);
  }

  async start() {
    const { question, activity, requirements, take } = this.job;
    const asked = { ...requirements() };
    const signal = this.request.start();
    this.asked = asked;
    this.#started = performance.now();
    this.clear();
    this.#bar.removeAttribute("value");
    this.#progress.textContent = `${activity} …`;
    this.#working.hidden = false;
    this.button.textContent = "Cancel";
    this.job.onchange();
    try {
      await stream(
        question,
        asked,
        (answer) => (answer.progress ? this.#showProgress(answer.progress) : take(answer, asked)),
        signal,
      );
      if (!signal.aborted) this.#end();
    } catch (error) {
      if (wasAborted(error)) return;
      this.#problem.textContent = errorSentence(error, LABELS);
      this.#end();
    }
  }

  /** @param {[done: number, total: number]} progress */
  #showProgress([done, total]) {
    Object.assign(this.#bar, { max: total, value: done });
    const percent = Math.floor((100 * done) / total);
    this.#progress.textContent = `${this.job.activity}: ${percent} %${timeLeft(this.#started, done, total)}`;
  }

  /** @param {string} [sentence] */
  #end(sentence = "") {
    this.asked = null;
    this.#working.hidden = true;
    this.button.textContent = this.job.label;
    this.#ending.textContent = sentence;
    this.job.onchange();
  }

  /**
   * Cancel the work, if there is any.
   * @param {string} sentence
   */
  cancel(sentence) {
    if (!this.asked) return;
    this.request.abort();
    this.#end(sentence);
  }

  /** Forget what was said about the last work. */
  clear() {
    this.#problem.textContent = "";
    this.#ending.textContent = "";
  }
}
