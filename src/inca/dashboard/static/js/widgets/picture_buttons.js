// Buttons to save a picture, and to share the address of a view.

import { announce, h } from "../lib/dom.js";
import { asPng, asSvg, isOutdated, selfExplained } from "./saved_picture.js";

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
 * A button that saves a drawing as SVG, or a canvas as PNG, with title, legend and parameters.
 * @param {() => SVGSVGElement | HTMLCanvasElement | null} picture
 * @param {string} name
 * @param {() => string} [title] else that of the figure or card in which the picture stands
 */
export function saveButton(picture, name, title) {
  const save = async () => {
    const shown = picture();
    if (!shown || isOutdated(shown)) {
      announce("The picture is being computed: save it when it is there.");
      return;
    }
    const drawing = selfExplained(shown, title?.());
    if (shown instanceof SVGSVGElement) download(asSvg(drawing), `${name}.svg`);
    else {
      const content = await asPng(drawing);
      if (content) download(content, `${name}.png`);
    }
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
