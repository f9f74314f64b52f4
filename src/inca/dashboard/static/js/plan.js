// The Plan view: a wish, what error every mechanism has for it, and the plan that meets it.

import { follow, gaveUp } from "./api.js";
import { remember } from "./app.js";
import { calm, h } from "./dom.js";
import { hint } from "./hints.js";
import { longJob } from "./job.js";
import { chart, explanation, isOwn, legend, refusals, table } from "./mechanisms.js";
import { headline, sources, sureness } from "./outcome.js";
import { saveButton, shareButton } from "./picture.js";
import { planCard, planOf } from "./planmaker.js";
import { DEFAULT_WISH, keyOf, readWish, spoken, wishFields } from "./wish.js";

const SETTLED = 150; // milliseconds without a change until the server is asked
const PATIENCE = 500; // after so many, show what is there already
const rivals = new Map(); // slow rivals' entries of each wish: they take long, so they are kept

/** What the server has said about one wish. */
const nothing = () => ({ head: null, entries: [], complete: false });

function counted(head) {
  const { colluders, leavers, wish } = head;
  const some = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
  const honest = some(wish.parties - colluders, "honest party", "honest parties");
  return `That is ${honest}, ${some(colluders, "colluder", "colluders")}, and ${some(leavers, "party that leaves", "parties that leave")}.`;
}

export async function show(main, params) {
  const [wish, misread] = readWish(params);
  let answers = nothing(), stale = true, asking = null, gone = false, drawing = null;
  const narrow = matchMedia("(max-width: 600px)");

  const numbers = h("p", { class: "note counted" });
  const problem = h("p", { class: "error", role: "alert" }, misread.join(" "));
  const remark = h("p", { class: "note remark", role: "status" });
  const big = h("div", { role: "status", class: "outcome" });
  const why = h("div", {});
  const picture = h("div", {});
  const below = h("div", {});
  const shown = h("div", { class: "shown" }, h("section", { class: "card", "aria-label": "How far off" }, big, remark),
    h("section", { class: "card" }, h("div", { class: "row spread" }, h("h2", {}, "Mean squared error of each mechanism", hint("mse")),
      h("div", { class: "row" }, saveButton(() => picture.querySelector("svg"), "errors"), shareButton())), picture, below),
    h("section", { class: "card" }, h("h2", {}, "Where the error comes from"), why));

  const own = () => answers.entries.find(isOwn);
  const plan = planCard({ wish: () => wish, idea: () => (stale ? undefined : own()), changed: draw, restore });
  const slow = longJob({
    path: "rivals", label: "Work them out, too (takes from seconds to minutes)", doing: "Working out slow rivals",
    given: () => ({ ...wish }), changed: offer,
    take: ({ entry }, asked) => { rivals.set(keyOf(asked), [...found(asked).filter((each) => each.mechanism !== entry.mechanism), entry]); draw(); },
  });
  const slowSaid = h("p", { class: "note" });
  const fields = wishFields(wish, (name, number) => { wish[name] = number; change(); });

  main.append(h("h1", {}, "Plan"),
    h("p", { class: "lead" }, "Say how many take part and what may go wrong: see how exact the mean can be while every value stays private, and make a plan for it."),
    h("div", { class: "columns" },
      h("div", { class: "card" }, fields, numbers, h("button", { type: "button", onclick: () => restore(DEFAULT_WISH) }, "Start over")),
      h("div", {}, problem, shown, plan.element,
        h("section", { class: "card" }, h("h2", {}, "Slow rivals", hint("GOPA")),
          h("p", {}, "GOPA needs no server, either; how well it does depends on how many leave too late to be missed in time. Among more than 600 parties Muffliato takes long, too."),
          slow.element, slowSaid),
        explanation())));

  const drawn = () => picture.childElementCount > 0;

  function found(of) {
    return rivals.get(keyOf(of)) ?? [];
  }

  function offer() {
    const there = found(wish).length, all = answers.head?.slow.length ?? 3;
    slow.button.disabled = !slow.asked && there >= all;
    slowSaid.textContent = there >= all ? "They are in the chart above." : slow.asked && there ? `${there} of ${all} are in the chart above.` : "";
    slowSaid.hidden = slowSaid.textContent === "";
  }

  function draw() {
    plan.update();
    offer();
    if (!answers.complete) {
      remark.replaceChildren(!stale ? "Still being worked out …" : `Working it out …${drawn() ? " What is shown is for the settings before." : ""}`);
    }
    shown.classList.toggle("stale", stale && drawn());
    shown.setAttribute("aria-busy", String(!answers.complete));
    if (stale) return;
    const planned = planOf(wish)?.entry, best = planned ?? own();
    const entries = [...(planned ? [planned] : []), ...answers.entries, ...found(wish)];
    if (!answers.complete) {
      const late = answers.head?.slow.some((each) => each.startsWith("Muffliato"));
      for (const name of late ? ["inca, first idea"] : ["Muffliato", "inca, first idea"]) {
        const there = entries.some((each) => each.mechanism.startsWith(name.slice(0, 4)) && each !== planned);
        if (!there) entries.push({ mechanism: name, mse: null, waiting: true });
      }
    }
    numbers.textContent = answers.head ? counted(answers.head) : "";
    big.replaceChildren(...headline(best, entries).filter(Boolean));
    if (answers.complete) remark.replaceChildren(...(best?.mse ? sureness(Boolean(planned)) : []));
    const opened = below.querySelector("details")?.open;
    picture.replaceChildren(chart(entries, narrow.matches));
    below.replaceChildren(...[...legend(entries), refusals(entries), table(entries)].filter(Boolean));
    below.querySelector("details").open = Boolean(opened);
    const none = !best ? "Being worked out …" : best.why_not ? "Nothing to show: inca cannot do this." : "There is no error to divide.";
    why.replaceChildren((best && sources(best)) ?? h("p", { class: "note" }, none));
  }

  async function estimate() {
    if (gone) return;
    asking?.abort();
    const mine = asking = new AbortController(), fresh = nothing();
    let late = false;
    const reveal = () => { answers = fresh; stale = false; draw(); };
    const some = () => { if (late && fresh.entries.length) reveal(); }; // the first few at once would only flicker
    clearTimeout(drawing);
    drawing = setTimeout(() => { late = true; some(); }, PATIENCE);
    try {
      await follow("estimate", wish, (answer) => {
        if (answer.entry) fresh.entries.push(answer.entry);
        else fresh.head = answer;
        some();
      }, mine.signal);
      fresh.complete = true;
      clearTimeout(drawing);
      reveal();
    } catch (error) {
      if (gaveUp(error) || asking !== mine) return;
      clearTimeout(drawing);
      problem.textContent = spoken(error.message);
      remark.replaceChildren(drawn() ? "What is shown is for the settings before." : "");
    }
  }
  const soon = calm(SETTLED, estimate);

  function change() {
    remember(wish);
    asking?.abort();
    clearTimeout(drawing);
    slow.stop("Cancelled, as the settings changed.");
    plan.clear();
    problem.textContent = "";
    answers = { ...answers, complete: false };
    stale = true;
    numbers.textContent = "";
    draw();
    soon();
  }

  function restore(other) {
    Object.assign(wish, Object.fromEntries(Object.keys(wish).map((name) => [name, other[name]])));
    fields.set(wish);
    change();
  }

  remember(wish);
  draw();
  estimate();
  narrow.addEventListener("change", draw);
  return () => {
    gone = true;
    clearTimeout(drawing);
    asking?.abort();
    slow.stop();
    plan.stop();
    narrow.removeEventListener("change", draw);
  };
}
