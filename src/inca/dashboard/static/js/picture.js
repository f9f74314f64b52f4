// Pictures that can be saved: drawings as SVG, canvases as PNG.

import { h, tell } from "./dom.js";

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "text-anchor", "dominant-baseline"];

function standalone(svg) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of KEPT) to[i].style.setProperty(name, style.getPropertyValue(name));
  });
  const box = svg.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.style.setProperty("background", getComputedStyle(document.body).backgroundColor);
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  tell(`Saved ${name}.`);
}

/** A button that saves what `get` returns: an SVG element or a canvas. */
export function saveButton(get, name) {
  return h("button", { type: "button", onclick: () => {
    const drawing = get();
    if (!drawing) return;
    if (drawing instanceof HTMLCanvasElement) drawing.toBlob((blob) => save(blob, `${name}.png`));
    else save(standalone(drawing), `${name}.svg`);
  } }, "Save picture");
}

/** A button that copies the address of the view. */
export function shareButton() {
  return h("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      tell("The address of this view is copied.");
    } catch {
      tell(location.href);
    }
  } }, "Copy address");
}
