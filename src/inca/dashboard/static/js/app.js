// The frame: which view is shown for which address, and light or dark.

import { h } from "./dom.js";

const VIEWS = { plan: "Plan", run: "Run", eyes: "Through their eyes", sessions: "Sessions", file: "Files" };
const main = document.getElementById("main");
let leave = () => {};

/** The parameters of the address. */
export const params = () => Object.fromEntries(new URLSearchParams(location.search));

/** Put parameters into the address, without a new entry in the history; empty ones are left out. */
export function remember(given) {
  const kept = Object.entries(given).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(kept).toString();
  history.replaceState(null, "", location.pathname + (query ? `?${query}` : ""));
}

/** Go to a view with parameters. */
export function go(view, given = {}) {
  const kept = Object.entries(given).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  history.pushState(null, "", `/${view}${kept.length ? `?${new URLSearchParams(kept)}` : ""}`);
  return show();
}

async function show() {
  const name = location.pathname.slice(1);
  leave();
  leave = () => {};
  for (const link of document.querySelectorAll("nav a")) {
    if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `inca: ${VIEWS[name] ?? name}`;
  main.replaceChildren(h("p", { class: "note" }, "One moment …"));
  try {
    const view = await import(`./${name}.js`);
    main.replaceChildren();
    leave = (await view.show(main, params())) ?? (() => {});
  } catch (error) {
    console.error(error);
    main.replaceChildren(h("div", { class: "card" }, h("h1", {}, "This view could not be shown"), h("p", { class: "error", role: "alert" }, error.message)));
  }
  document.documentElement.dataset.view = name;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || link.origin !== location.origin || link.download || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (!(link.pathname.slice(1) in VIEWS) || link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  go(link.pathname.slice(1), Object.fromEntries(new URLSearchParams(link.search)));
});
window.addEventListener("popstate", show);

const theme = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = (wanted) => {
  document.documentElement.dataset.theme = wanted;
  theme.setAttribute("aria-label", wanted === "dark" ? "Change to light" : "Change to dark");
  window.dispatchEvent(new Event("repaint"));
};
paint(localStorage.getItem("theme") ?? (dark.matches ? "dark" : "light"));
dark.addEventListener("change", () => { if (!localStorage.getItem("theme")) paint(dark.matches ? "dark" : "light"); });
theme.addEventListener("click", () => {
  const wanted = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", wanted);
  paint(wanted);
});

show();
