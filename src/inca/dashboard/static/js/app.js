// The frame: which view is shown for which address, and light or dark.

import { h } from "./lib/dom.js";
import { errorSentence } from "./lib/format.js";
import { currentParams, goTo } from "./lib/navigation.js";

/** @type {Record<string, string>} titles of the views, by their address */
const VIEWS = {
  story: "How it works",
  plan: "Plan",
  run: "Run",
  adversary: "Adversary's view",
  sessions: "Sessions",
  file: "Files",
};

/** Views of one and the same run: what one of them is set to, holds for the other. */
const OF_A_RUN = ["run", "adversary"];
/** @type {Map<string, Record<string, string>>} the settings with which a view was left */
const leftWith = new Map();

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
let viewClosed = new AbortController();

/** Show the view of the address, and end the one before. */
async function showView() {
  const name = location.pathname.slice(1);
  viewClosed.abort();
  viewClosed = new AbortController();
  const { signal } = viewClosed;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === location.pathname) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `inca: ${VIEWS[name]}`;
  main.removeAttribute("aria-busy");
  delete main.dataset.stepMs;
  delete main.dataset.ready;
  main.replaceChildren(h("p", { class: "note" }, "One moment …"));
  try {
    const view = await import(`./views/${name}.js`);
    if (signal.aborted) return;
    main.replaceChildren();
    view.show(main, currentParams(), signal);
  } catch (error) {
    console.error(error);
    const problem = h("p", { class: "error", role: "alert" }, errorSentence(error));
    main.replaceChildren(h("div", { class: "card" }, h("h1", {}, "This view could not be shown"), problem));
  }
}

/**
 * Links between views do not load the page again.
 * @param {MouseEvent} event
 */
function followLink(event) {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.origin !== location.origin || link.download || event.ctrlKey || event.metaKey || event.shiftKey)
    return;
  const name = link.pathname.slice(1);
  if (!(name in VIEWS) || link.getAttribute("href")?.startsWith("#")) return;
  event.preventDefault();
  const here = location.pathname.slice(1);
  leftWith.set(here, currentParams());
  const asked = Object.fromEntries(new URLSearchParams(link.search));
  const fromMenu = link.closest("nav") !== null && name !== here; // the view's own link starts over
  goTo(name, fromMenu ? settingsOf(name, here) : asked);
}

/**
 * The settings that a view had, and those of the run that is shown now.
 * @param {string} name
 * @param {string} here
 * @returns {Record<string, string>}
 */
function settingsOf(name, here) {
  const source = OF_A_RUN.includes(name) && OF_A_RUN.includes(here) ? here : name;
  return leftWith.get(source) ?? {};
}

/** Light or dark: as the system says, until the button is used. */
function setUpTheme() {
  const button = /** @type {HTMLElement} */ (document.getElementById("theme"));
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const apply = (/** @type {string} */ theme) => {
    document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", theme === "dark" ? "Change to light" : "Change to dark");
    window.dispatchEvent(new Event("themechange"));
  };
  const current = () => localStorage.getItem("theme") ?? (systemDark.matches ? "dark" : "light");
  systemDark.addEventListener("change", () => apply(current()));
  button.addEventListener("click", () => {
    localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    apply(current());
  });
  apply(current());
}

document.addEventListener("click", followLink);
window.addEventListener("popstate", showView);
setUpTheme();
showView();
