// Drawings as wide as their place, so that their words stay readable on a small screen.

import { h } from "../lib/dom.js";

/**
 * A place that shows what `draw(width)` returns, drawn again whenever its width or the colours change.
 * @param {(width: number) => Element | null} draw
 * @param {AbortSignal} viewClosed
 * @param {number} [maxWidth]
 */
export function resizable(draw, viewClosed, maxWidth = 1000) {
  const element = h("div", { class: "resizable" });
  element.style.maxWidth = `${maxWidth}px`; // wider, its letters would grow
  let width = 0;
  const measured = () => Math.min(Math.floor(element.clientWidth), maxWidth);
  const redraw = () => {
    width ||= Math.max(measured(), 0); // at once if it can be told: drawn later, it would push away what is below
    if (width) element.replaceChildren(...[draw(width)].filter((drawing) => drawing !== null));
  };
  const observer = new ResizeObserver(() => {
    const now = measured();
    if (now <= 0 || now === width) return;
    width = now;
    redraw();
  });
  observer.observe(element);
  viewClosed.addEventListener("abort", () => observer.disconnect());
  window.addEventListener("themechange", redraw, { signal: viewClosed });
  return { element, redraw, drawing: () => element.querySelector("svg") };
}
