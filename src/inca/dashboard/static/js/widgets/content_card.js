// A card for all that is to be said of a document. The server words it (inca.reporting): nothing is decided here.

/** @import { ContentFigure, ContentRow, ContentSentence, DocumentContent } from "../lib/types.js" */
import { h } from "../lib/dom.js";
import { scrollingTable } from "./data_table.js";
import { facts, figureHead } from "./elements.js";
import { hint } from "./hint.js";
import { saveButton } from "./picture_buttons.js";

/** @type {Record<ContentSentence["standing"], [sign: string, look: string]>} */
const STANDINGS = { good: ["✓ ", "good"], bad: ["✗ ", "error"], unknown: ["? ", "warn"], plain: ["", "note"] };

/** @param {ContentSentence} sentence */
function finding({ standing, badge, text }) {
  const [sign, look] = STANDINGS[standing];
  const pill = h("span", { class: `pill ${look}` }, sign && h("span", { "aria-hidden": "true" }, sign), badge);
  return h("li", {}, pill, h("span", {}, text));
}

/** @param {ContentRow[]} rows */
const factsOf = (rows) => facts(rows.map((row) => [[row.name, row.hint && hint(row)], row.value]));

/** @param {string} text */
const item = (text) => h("li", {}, text);

/**
 * @param {string} heading
 * @param {Element} inside
 * @param {boolean} [open]
 */
const folded = (heading, inside, open = false) => h("details", { open }, h("summary", {}, heading), inside);

/**
 * A picture as the server has drawn it, with its legend, its caption, and a button to save it with both.
 * @param {ContentFigure} figure
 * @param {DocumentContent} content
 */
function drawnFigure({ title, svg, legend, caption }, { title: whose, about }) {
  const picture = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  const drawing = () => (picture instanceof SVGSVGElement ? picture : null);
  const name = title.toLowerCase().replaceAll(/\W+/g, "-");
  const save = saveButton(drawing, name, () => `${whose}: ${title}`);
  const signs = legend.map(([kind, words]) => h("span", {}, h("span", { class: `swatch ${kind}` }), words));
  const parts = [figureHead(title, save), h("div", { class: "legend" }, signs), picture];
  const place = { class: "figure", "data-parameters": `${caption} ${about}` };
  return h("figure", place, parts, h("p", { class: "note" }, caption));
}

/**
 * @param {DocumentContent} content
 * @param {[words: string, href: string][]} [links] to other views of it
 */
export function contentCard(content, links = []) {
  const { title, about, verdict, rows, caveats, tables, figures, assumptions } = content;
  const groups = Map.groupBy(rows, ({ detail, group }) => (detail ? group : ""));
  const pictures = figures.map((figure) => drawnFigure(figure, content));
  const leads = links.map(([words, href]) => h("a", { href }, words));
  return h(
    "section",
    { class: "card content", "aria-label": title },
    h("h2", {}, title),
    h("p", { class: "note" }, about),
    h("ul", { class: "plain-list findings" }, verdict.map(finding)),
    factsOf(groups.get("") ?? []),
    leads.length > 0 && h("p", { class: "row" }, leads),
    h("div", { class: "figures" }, pictures),
    caveats.length > 0 && folded("To keep in mind", h("ul", {}, caveats.map(item)), true),
    [...groups].map(([group, members]) => group && folded(group, factsOf(members))),
    tables.map((table) => folded(table.heading, scrollingTable(table.heading, table.columns, table.rows))),
    assumptions.length > 0 && folded("Assumptions", h("ul", {}, assumptions.map(item))),
  );
}
