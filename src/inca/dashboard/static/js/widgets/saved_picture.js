// A picture as a file that explains itself: with its title, its legend, and the parameters it was drawn with.

import { svg } from "../lib/dom.js";
import { currentParams } from "../lib/navigation.js";
import { describeParams } from "../lib/parameter_words.js";

const KEPT_STYLES = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linejoin",
  "paint-order",
  "opacity",
  "font",
  "text-anchor",
  "dominant-baseline",
];
const FAMILY = "system-ui, sans-serif";
const TITLE = { font: `600 15px ${FAMILY}`, line: 21 };
const WORDS = { font: `12px ${FAMILY}`, line: 17 };
const MARGIN = 14;
const LEAST_WIDTH = 340;
const SIGN = 12; // the size of a sign of the legend
const BETWEEN = 18; // entries of the legend
const PNG_SCALE = 2;

/** @typedef {{ sign: Element | null, words: string }} Entry of a legend */

/** The words of an element without those of its hints. @param {Element | null | undefined} element */
function wordsOf(element) {
  const copy = /** @type {Element | undefined} */ (element?.cloneNode(true));
  for (const extra of copy?.querySelectorAll("button, [popover]") ?? []) extra.remove();
  return (copy?.textContent ?? "").replace(/\s+/g, " ").trim();
}

/** The figure or card that a picture stands in. @param {Element} picture */
const placeOf = (picture) => picture.closest("figure") ?? picture.closest("section");

/** The entries of its legends, and notes that explain an asterisk. @param {Element | null} place @returns {Entry[]} */
function legendOf(place) {
  const entries = [...(place?.querySelectorAll(".legend > *") ?? [])].filter((entry) => entry.checkVisibility());
  const notes = [...(place?.querySelectorAll(".note") ?? [])].filter((note) => note.textContent?.startsWith("*"));
  return [...entries, ...notes].map((entry) => ({
    sign: entry.querySelector(".swatch, .sign"),
    words: wordsOf(entry),
  }));
}

/** With which parameters it was drawn: as its place says, else as the address does. @param {Element} picture */
const parametersOf = (picture) =>
  picture.closest("[data-parameters]")?.getAttribute("data-parameters") ?? describeParams(currentParams());

/** Whether what is shown is about to change, so that its parameters are not those of the page. @param {Element} picture */
export const isOutdated = (picture) => picture.closest(".outdated, [aria-busy='true']") !== null;

const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));

/**
 * @param {string} words
 * @param {string} font
 */
function widthOf(words, font) {
  pen.font = font;
  return pen.measureText(words).width;
}

/**
 * Break words into lines that fit.
 * @param {string} words
 * @param {string} font
 * @param {number} width
 */
function wrapped(words, font, width) {
  /** @type {string[]} */
  const lines = [];
  let line = "";
  for (const word of words.split(" ")) {
    const longer = line ? `${line} ${word}` : word;
    if (line && widthOf(longer, font) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return line ? [...lines, line] : lines;
}

/**
 * A sign of a legend as the style sheet draws it: a filled or empty box, disc, diamond or triangle, a line, a letter.
 * @param {Element} sign
 * @param {number} x
 * @param {number} y of its middle
 */
function drawnSign(sign, x, y) {
  const style = getComputedStyle(sign);
  const [half, middle] = [SIGN / 2 - 1, x + SIGN / 2];
  const letter = getComputedStyle(sign, "::before").content.match(/^"(.)"$/)?.[1];
  if (letter) return [svg("text", { x: middle, y: y + 4, "text-anchor": "middle", fill: style.color }, letter)];
  const sides = [style.borderTopStyle, style.borderBottomStyle].filter((side) => side !== "none");
  const stroke = style.borderTopStyle === "none" ? style.borderBottomColor : style.borderTopColor;
  if (sides.length === 1) {
    const dashes = { dashed: "4 3", dotted: "2 3" }[sides[0]] ?? null;
    return [svg("line", { x1: x, x2: x + SIGN, y1: y, y2: y, stroke, "stroke-width": 2, "stroke-dasharray": dashes })];
  }
  const empty = style.backgroundColor === "rgba(0, 0, 0, 0)";
  const border = sides.length ? { stroke, "stroke-width": 2 } : {};
  const look = { fill: empty ? "none" : style.backgroundColor, ...border };
  const corners = (/** @type {number[]} */ ...offsets) =>
    `M${offsets.map((offset, i) => (i % 2 ? y : middle) + offset).join(" ")}Z`;
  if (style.clipPath !== "none") {
    const percents = [...style.clipPath.matchAll(/-?[\d.]+/g)].map(([number]) => Number(number));
    return [svg("path", { d: corners(...percents.map((at) => (at / 50 - 1) * half)), ...look })];
  }
  if (style.transform !== "none") return [svg("path", { d: corners(0, -half, half, 0, 0, half, -half, 0), ...look })];
  if (!style.borderRadius.startsWith("50%")) {
    return [svg("rect", { x: middle - half, y: y - half, width: 2 * half, height: 2 * half, rx: 2, ...look })];
  }
  const cross = [1, -1].map((way) =>
    svg("line", { x1: middle - 4, x2: middle + 4, y1: y - 4 * way, y2: y + 4 * way, stroke, "stroke-width": 1.5 }),
  );
  const crossed = style.backgroundImage !== "none";
  return [
    svg("circle", { cx: middle, cy: y, r: half, ...look, fill: crossed ? "none" : look.fill }),
    ...(crossed ? cross : []),
  ];
}

/**
 * Lines of words; returns them and where they end.
 * @param {string} words
 * @param {{ font: string, line: number }} look
 * @param {{ y: number, width: number, fill: string }} place
 * @returns {[elements: SVGElement[], end: number]}
 */
function paragraph(words, { font, line }, { y, width, fill }) {
  const lines = wrapped(words, font, width - 2 * MARGIN);
  const elements = lines.map((text, i) => {
    const element = svg("text", { x: MARGIN, y: y + (i + 0.75) * line, fill }, text);
    element.style.font = font;
    return element;
  });
  return [elements, y + lines.length * line];
}

/**
 * The entries side by side, as many as fit into a line.
 * @param {Entry[]} entries
 * @param {{ y: number, width: number, fill: string }} place
 * @returns {[elements: SVGElement[], end: number]}
 */
function legend(entries, { y: top, width, fill }) {
  /** @type {SVGElement[]} */
  const elements = [];
  let [x, y] = [MARGIN, top];
  for (const { sign, words } of entries) {
    const before = sign ? SIGN + 6 : 0;
    const room = widthOf(words, WORDS.font) + before;
    if (x > MARGIN && x + room > width - MARGIN) [x, y] = [MARGIN, y + WORDS.line];
    if (sign) elements.push(...drawnSign(sign, x, y + WORDS.line / 2));
    const lines = wrapped(words, WORDS.font, width - MARGIN - x - before);
    for (const [i, line] of lines.entries()) {
      const element = svg("text", { x: x + before, y: y + (i + 0.72) * WORDS.line, fill }, line);
      element.style.font = WORDS.font;
      elements.push(element);
    }
    y += (lines.length - 1) * WORDS.line;
    x += room + BETWEEN;
  }
  return [elements, entries.length ? y + WORDS.line : y];
}

/**
 * A copy of a drawing with what style sheets say about it, or of a canvas as an image.
 * @param {SVGSVGElement | HTMLCanvasElement} picture
 * @returns {{ copy: SVGElement, width: number, height: number }}
 */
function copyOf(picture) {
  if (picture instanceof HTMLCanvasElement) {
    const { clientWidth: width, clientHeight: height } = picture;
    return { copy: svg("image", { href: picture.toDataURL(), width, height }), width, height };
  }
  const copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  const copies = [copy, ...copy.querySelectorAll("*")];
  [picture, ...picture.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(element);
    const target = /** @type {SVGElement} */ (copies[i]).style;
    for (const name of KEPT_STYLES) target.setProperty(name, style.getPropertyValue(name));
  });
  const { width, height } = picture.viewBox.baseVal;
  for (const [name, size] of Object.entries({ width, height })) copy.setAttribute(name, String(size));
  return { copy, width, height };
}

/**
 * The picture with its title above, and its legend and parameters below, in the colours that the page has now.
 * @param {SVGSVGElement | HTMLCanvasElement} picture
 * @param {string} [title] else that of the figure or card it stands in
 */
export function selfExplained(picture, title) {
  const place = placeOf(picture);
  const { copy, width: own, height } = copyOf(picture);
  const width = Math.max(own + MARGIN, LEAST_WIDTH);
  const style = getComputedStyle(picture);
  const [ink, soft, ground] = ["ink", "soft", "card"].map((name) => style.getPropertyValue(`--${name}`).trim());
  const heading = title ?? wordsOf(place?.querySelector("figcaption, h2"));
  const [above, top] = paragraph(heading, TITLE, { y: MARGIN, width, fill: ink });
  copy.setAttribute("x", String((width - own) / 2));
  copy.setAttribute("y", String(top + 4));
  const [signs, below] = legend(legendOf(place), { y: top + height + 10, width, fill: ink });
  const [caption, end] = paragraph(parametersOf(picture), WORDS, { y: below + 4, width, fill: soft });
  const all = end + MARGIN;
  const size = { width, height: all, viewBox: `0 0 ${width} ${all}` };
  const labelled = { role: "img", "aria-label": heading };
  const paper = svg("rect", { width, height: all, fill: ground });
  return svg("svg", { ...size, ...labelled }, paper, above, copy, signs, caption);
}

/** @param {SVGSVGElement} drawing */
export const asSvg = (drawing) => new Blob([new XMLSerializer().serializeToString(drawing)], { type: "image/svg+xml" });

/**
 * Twice as many pixels as the page has, so that words stay sharp in print.
 * @param {SVGSVGElement} drawing
 * @returns {Promise<Blob | null>}
 */
export async function asPng(drawing) {
  const url = URL.createObjectURL(asSvg(drawing));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const { width, height } = drawing.viewBox.baseVal;
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: width * PNG_SCALE, height: height * PNG_SCALE });
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done));
  } finally {
    URL.revokeObjectURL(url);
  }
}
