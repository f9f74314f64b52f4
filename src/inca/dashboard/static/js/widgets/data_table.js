// Tables.

/** @import { Content } from "../lib/types.js" */
import { h } from "../lib/dom.js";
import { format } from "../lib/format.js";

/**
 * A table that scrolls on its own; the first column names the rows, the others hold numbers or words.
 * @param {string} caption
 * @param {Content[]} columns
 * @param {(string | number | null | Content)[][]} rows
 */
export function scrollingTable(caption, columns, rows) {
  const cell = (/** @type {string | number | null | Content} */ content) =>
    typeof content === "number" ? format(content) : (content ?? "–");
  const head = columns.map((name, i) => h("th", { scope: "col", class: i ? "number" : null }, name));
  const body = rows.map(([name, ...cells]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, cell(name)),
      ...cells.map((content) => h("td", { class: "number" }, cell(content))),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "visually-hidden" }, caption),
      h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, body),
    ),
  );
}

/**
 * The data of a chart as a table that opens.
 * @param {string} caption
 * @param {Content[]} columns
 * @param {(string | number | null | Content)[][]} rows
 */
export const dataTable = (caption, columns, rows) =>
  h("details", {}, h("summary", {}, "The same as a table"), scrollingTable(caption, columns, rows));
