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
