// Something long that a button starts and the same button cancels, with its progress and what went wrong.

import { gaveUp, follow } from "./api.js";
import { h } from "./dom.js";
import { spoken } from "./wish.js";

function left(started, done, total) {
  const seconds = ((performance.now() - started) / 1000) * ((total - done) / done);
  if (done < 0.05 * total) return "";
  return seconds < 90 ? `, about ${Math.max(1, Math.round(seconds))} seconds left` : `, about ${Math.round(seconds / 60)} minutes left`;
}

/**
 * A card's long work: `path` is asked with the parameters of `start()`, every answer goes to `take(answer, params)`.
 * `element` holds button, progress and error; `changed()` is called when work starts or ends; `asked` is what is being worked on, or null.
 */
export function longJob({ path, label, kind = "", doing, given, take, changed = () => {} }) {
  let work = null, asked = null;
  const button = h("button", { type: "button", class: kind, onclick: () => (work ? stop("Cancelled.") : start()) }, label);
  const bar = h("progress", { max: 1, "aria-label": doing });
  const where = h("p", { class: "note" });
  const going = h("div", { hidden: true }, bar, where);
  const problem = h("p", { class: "error", role: "alert" });
  const said = h("span", { class: "note", role: "status" });
  const element = h("div", {}, h("div", { class: "row" }, button, said), going, problem);

  function end(words = "") {
    work = asked = null;
    going.hidden = true;
    button.textContent = label;
    said.textContent = words;
    changed();
  }

  function stop(words = "") {
    if (!work) return;
    work.abort();
    end(words);
  }

  async function start() {
    const params = given(), mine = new AbortController(), started = performance.now();
    work = mine;
    asked = params;
    problem.textContent = "";
    said.textContent = "";
    bar.removeAttribute("value");
    where.textContent = `${doing} …`;
    going.hidden = false;
    button.textContent = "Cancel";
    changed();
    try {
      await follow(path, params, (answer) => {
        if (!answer.progress) return take(answer, params);
        const [done, total] = answer.progress;
        Object.assign(bar, { max: total, value: done });
        where.textContent = `${doing}: ${Math.floor((100 * done) / total)} %${left(started, done, total)}`;
      }, mine.signal);
      if (work === mine) end();
    } catch (error) {
      if (gaveUp(error) || work !== mine) return;
      problem.textContent = spoken(error.message);
      end();
    }
  }

  return { element, button, stop, clear: () => { problem.textContent = ""; said.textContent = ""; }, get asked() { return asked; } };
}
