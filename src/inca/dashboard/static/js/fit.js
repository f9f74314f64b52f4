// Drawings as wide as their place, so that their words stay readable on a small screen.

import { h } from "./dom.js";

/** A place that calls draw(width) for its content, now and whenever its width or the colours change. `stop` ends that. */
export function fitted(draw, most = 1000) {
  const place = h("div", { class: "fitted" });
  let width = 0;
  const again = () => { if (width) place.replaceChildren(draw(width)); };
  const watch = new ResizeObserver(() => {
    const now = Math.min(Math.floor(place.clientWidth), most);
    if (now > 0 && now !== width) { width = now; again(); }
  });
  watch.observe(place);
  window.addEventListener("repaint", again);
  place.again = again;
  place.stop = () => { watch.disconnect(); window.removeEventListener("repaint", again); };
  return place;
}

/** A few round numbers between two bounds, for an axis. */
export function rounds(low, high, wanted = 5) {
  const raw = (high - low || 1) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((each) => each >= raw);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + 1e-9 * step; at += step) found.push(Number(at.toPrecision(6)));
  return found;
}
