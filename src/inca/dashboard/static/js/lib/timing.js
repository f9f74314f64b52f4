// Questions that follow each other quickly: wait until things are calm, and keep only the newest.

/**
 * Call `action` once nothing has happened for so many milliseconds.
 * @param {number} milliseconds
 * @param {() => void} action
 */
export function debounce(milliseconds, action) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

/**
 * Call `action` once a frame has been painted since: asked for again before that, it is called once.
 * @param {() => void} action
 */
export function afterPaint(action) {
  let asked = false;
  return async () => {
    if (asked) return;
    asked = true;
    await painted();
    asked = false;
    action();
  };
}

/** Wait until the page as it is now has been painted. */
export const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/** The newest request of its kind: a new one aborts the one before, and the end of the view aborts the last. */
export class LatestRequest {
  #controller = new AbortController();

  /** @param {AbortSignal} viewClosed */
  constructor(viewClosed) {
    viewClosed.addEventListener("abort", () => this.abort());
  }

  /** Abort the request before, and return the signal of a new one. */
  start() {
    this.abort();
    this.#controller = new AbortController();
    return this.#controller.signal;
  }

  abort() {
    this.#controller.abort();
  }
}

/**
 * Work that is asked for more often than it can be done: one at a time, and after it only the newest that was asked for.
 * @template Question
 */
export class NewestOnly {
  /** @type {Question | null} */
  #next = null;
  #busy = false;

  /** @param {(question: Question) => Promise<void>} work */
  constructor(work) {
    this.work = work;
  }

  /** @param {Question} question */
  async ask(question) {
    this.#next = question;
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#next !== null) {
        const newest = this.#next;
        this.#next = null;
        await this.work(newest);
      }
    } finally {
      this.#busy = false;
    }
  }
}
