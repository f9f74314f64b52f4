// Buttons to save a picture, and to share the address of a view.

import { announce, h } from "../lib/dom.js";

const KEPT_STYLES = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font",
  "text-anchor",
  "dominant-baseline",
];

/**
 * A drawing as a file: what style sheets say about it is written into it.
 * @param {SVGSVGElement} drawing
 */
function standalone(drawing) {
  const copy = /** @type {SVGSVGElement} */ (drawing.cloneNode(true));
  const copies = [copy, ...copy.querySelectorAll("*")];
  [drawing, ...drawing.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(element);
    const target = /** @type {SVGElement} */ (copies[i]).style;
    for (const name of KEPT_STYLES) target.setProperty(name, style.getPropertyValue(name));
  });
  const { width, height } = drawing.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.style.setProperty("background", getComputedStyle(document.body).backgroundColor);
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

/**
 * Let the browser download something.
 * @param {Blob} content
 * @param {string} name
 */
export function download(content, name) {
  const url = URL.createObjectURL(content);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  announce(`Saved ${name}.`);
}

/**
 * A button that saves a drawing as SVG, or a canvas as PNG.
 * @param {() => SVGSVGElement | HTMLCanvasElement | null} picture
 * @param {string} name
 */
export function saveButton(picture, name) {
  const save = () => {
    const shown = picture();
    if (shown instanceof SVGSVGElement) download(standalone(shown), `${name}.svg`);
    else shown?.toBlob((content) => content && download(content, `${name}.png`));
  };
  return h("button", { type: "button", onclick: save }, "Save picture");
}

/** A button that copies the address of the view. */
export function shareButton() {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      announce("The address of this view is copied.");
    } catch {
      announce(location.href);
    }
  };
  return h("button", { type: "button", onclick: copy }, "Copy address");
}
