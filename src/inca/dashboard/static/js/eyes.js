// Through their eyes: a run as an adversary sees it, what it can make of it, and what that means for each party.

import { fitting as fittingAbsences } from "./absences.js";
import { adversaryFields, everyTenth } from "./adversary.js";
import { ask, gaveUp } from "./api.js";
import { remember } from "./app.js";
import { contrastCard, enoughCard } from "./contrast.js";
import { calm, choiceField, h, numberField, percent, tell, text } from "./dom.js";
import { focusCard } from "./focus.js";
import { guessesCard } from "./guesses.js";
import { hint } from "./hints.js";
import { byLoss, lossesChart } from "./losses.js";
import { offBy, rightGuesses } from "./normal.js";
import { saveButton, shareButton } from "./picture.js";
import { DEFAULTS as RUN } from "./runsettings.js";
import { sentence } from "./sentence.js";
import { sightCard } from "./sight.js";

const SCHEDULES = [["permutation", "permutations"], ["random", "at random"], ["distinct", "at random, distinct"], ["hypercube", "hypercube"],
  ["complete", "everyone to everyone"]];
const INJECTIONS = [["incremental", "in shares"], ["early", "at once"], ["single", "one noise term (broken)"], ["plain", "no cancelling noise (broken)"]];
// An adversary of nobody must be told from none given, and empty parameters are not kept in an address.
const NOBODY = " ";

const named = (state, names) => Object.fromEntries(names.filter((name) => state[name] !== undefined && state[name] !== "").map((name) => [name, state[name]]));
const runOf = (state) => (state.file ? { file: state.file } : named(state, Object.keys(RUN)));
const questionOf = (state) => ({ ...runOf(state), ...named(state, ["colluding", "tapped", "delta"]) });
const query = (given) => new URLSearchParams(given).toString();

function settings(state, change) {
  if (state.file) {
    return h("section", { class: "card" }, h("h2", {}, "The run"), h("p", {}, "A run that really happened, from a file."),
      h("p", { class: "row" }, h("a", { href: `/run?${query(runOf(state))}` }, "Watch the run"),
        h("a", { href: `/file?${query(runOf(state))}` }, "About the file"), h("a", { href: "/eyes" }, "A simulated run instead")));
  }
  const value = (name) => state[name] ?? RUN[name];
  const number = (name, label, term, more) => numberField({ name, label, term, value: Number(value(name)), onchange: (now) => change({ [name]: String(now) }),
    ...more });
  const cancelling = number("sigma_cancelling", "Cancelling noise", "cancelling", { least: 0, most: 200, step: 0.1 });
  const way = h("a", { href: "/run" }, "Change the run");
  const aim = () => { way.href = `/run?${query(questionOf(fitting(state)))}`; }; // the address goes on changing
  for (const name of ["focus", "pointerenter", "pointerdown"]) way.addEventListener(name, aim);
  const card = h("section", { class: "card compact" }, h("div", { class: "row spread" }, h("h2", {}, "The run"), way),
    number("parties", "Parties", "parties", { least: 2, most: 1000 }), number("rounds", "Rounds", "rounds", { least: 1, most: 200 }),
    choiceField({ name: "schedule", label: "Who sends to whom", term: "schedule", value: value("schedule"), choices: SCHEDULES,
      onchange: (now) => change({ schedule: now }) }),
    choiceField({ name: "injection", label: "How value and noise go in", term: "injection", value: value("injection"), choices: INJECTIONS,
      onchange: (now) => change({ injection: now }) }),
    number("sigma_independent", "Independent noise", "independent", { least: 0, most: 20, step: 0.01 }), cancelling,
      number("seed", "Seed", "seed", { least: 0, most: 1000 }));
  card.useCancelling = cancelling.set;
  return card;
}

/** What the parties and rounds leave of the wishes; the wishes themselves are kept, for more parties or rounds may come back. */
function fitting(wished) {
  if (wished.file) return { ...wished };
  const state = { ...wished }, n = Number(state.parties ?? RUN.parties), rounds = Number(state.rounds ?? RUN.rounds);
  if (state.colluding) state.colluding = state.colluding.split(" ").filter((id) => !(Number(id) >= n)).join(" ") || NOBODY;
  if (state.tapped) state.tapped = state.tapped.split(" ").filter((each) => !(Number(each.split(":")[0]) > rounds)
    && !(Number(each.split(":")[1]) >= n)).join(" ");
  if (state.absent) state.absent = fittingAbsences(state.absent, n, rounds);
  if (Number(state.receivers ?? RUN.receivers) > n - 1) state.receivers = String(n - 1);
  if (Number(state.quiet ?? RUN.quiet) >= rounds) state.quiet = String(rounds - 1);
  return state;
}

function summary(answer, injection) {
  const infinite = answer.epsilon.filter((each) => each === null).length, guesses = answer.guesses;
  const tile = (big, words, ...more) => h("div", { class: "tile" }, h("div", { class: "big" }, big), h("div", { class: "note" }, words, ...more));
  const certain = answer.mu.filter((each) => each === null).length;
  const tiles = [tile(infinite ? "∞" : text(answer.worst.epsilon, 3), `worst privacy loss, of party ${answer.worst.party}`, hint("epsilon")),
    tile(percent(rightGuesses(answer.worst.mu)), "of best guesses whether that value is 0 or 1 are right; a coin: 50 %")];
  if (!guesses.why_not) {
    const off = offBy(guesses.naive, guesses.truth);
    tiles.push(tile(off < 1e-6 ? "0" : text(off, 3), `off are its guesses of the values, on average; always saying 0.5 is off by ` +
      `${text(offBy(guesses.truth.map(() => 0.5), guesses.truth), 3)}`));
  }
  const alarm = certain ? h("p", { class: "alarm" },
    certain === answer.honest.length ? "No privacy at all: whoever knows the other values can read off every honest party's value exactly."
    : `No privacy at all for ${text(certain)} of ${text(answer.honest.length)} honest parties: whoever knows the other values can read theirs off exactly.`)
    : infinite ? h("p", { class: "alarm" }, `For ${text(infinite)} parties there is no finite epsilon at this delta: nothing is promised to them.`) : null;
  const broken = ["single", "plain"].includes(injection)
    ? h("p", { class: "warn" }, "This is not the protocol: noise goes in in a way that is broken on purpose.") : null;
  return [alarm, broken, h("div", { class: "tiles" }, tiles)];
}

function lossSentences({ epsilon, worst, local, delta }) {
  const least = text(Math.min(...epsilon.map((each) => each ?? Infinity)), 3), most = text(worst.epsilon, 3), alone = text(local, 3);
  const range = worst.epsilon === null ? h("strong", { class: "error" }, "At least one party has no protection: its loss is infinite. ")
    : `${least === most ? `${most} for everyone` : `Between ${least} and ${most}`}, at delta ${text(delta)}. `;
  if (local === null) return [range, "There is no independent noise, so nobody is protected by noise of its own."];
  if (worst.epsilon !== null && worst.epsilon > 0.999 * local) {
    return [range, h("strong", {}, `That is what independent noise alone gives (${alone}): against this adversary, cancelling noise no longer hides those ` +
      `who lose most.`)];
  }
  return [range, `Its own independent noise alone would leave every party at ${alone}: what is below that line is protection that parties give each other.`];
}

function conditionsCard() {
  const list = h("ul", { class: "conditions" }), count = h("span");
  const card = h("section", { class: "card" }, h("details", {}, h("summary", {}, h("strong", {}, "What the theorems say"), " ", count),
    h("p", { class: "note" }, "Each theorem of the paper has conditions; where they hold, enough cancelling noise makes a bounded independent noise enough",
    hint("rank"), ". The losses above are exact, whether they hold or not."), list));
  card.set = (conditions) => {
    count.textContent = `(${conditions.filter((each) => each.holds).length} of ${conditions.length} hold)`;
    list.replaceChildren(...conditions.map((each) => h("li", {},
      h("span", { class: each.holds ? "good" : "warn" }, each.holds ? "✓ holds" : each.holds === null ? "? unknown" : "✗ does not hold"), " ",
      h("strong", {}, each.name), `: ${each.why}.`)));
  };
  return card;
}

export async function show(main, given) {
  const state = { delta: "1e-5", ...given };
  if (!state.file && state.colluding === undefined && state.tapped === undefined) state.colluding = everyTenth(Number(state.parties ?? RUN.parties) || 0)
    || NOBODY;
  let running = null, shown = null, kind = state.guess === "informed" ? "informed" : "naive";

  const keep = () => remember({ ...fitting(state), guess: kind === "naive" ? "" : kind });
  const later = calm(300, () => update());
  const change = (changed) => {
    Object.assign(state, changed);
    keep();
    showAdversary();
    pending();
    if ("colluding" in changed) update(); else later();
  };

  const problem = h("p", { class: "error", role: "alert" }), busy = h("p", { class: "note busy", role: "status" });
  const adversary = adversaryFields(({ colluding, tapped }) => change({ colluding: colluding || NOBODY, tapped }));
  const run = settings(state, change);
  const own = h("button", { type: "button", onclick: () => { delete state.colluding; delete state.tapped; keep(); pending(); update(); } },
    "The file's own adversary");
  const delta = numberField({ name: "delta", label: "Delta", term: "delta", value: Number(state.delta) || 1e-5, least: 1e-12, most: 0.1, scale: "log",
    onchange: (now) => change({ delta: String(now) }) });

  const tiles = h("section", { class: "card", "aria-label": "In short" });
  const sight = sightCard();
  const pick = (party) => { state.focus = String(party); keep(); look(); tell(`Party ${party} is looked at.`); };
  const zoom = h("button", { type: "button", onclick: () => { state.zoom = state.zoom ? "" : "1"; keep(); look(); } }, "Zoom in on the differences");
  const losses = lossesChart(pick), lossWords = h("p");
  const lossCard = h("section", { class: "card", "aria-labelledby": "loss-title" },
    h("div", { class: "row spread" }, h("h2", { id: "loss-title" }, "What each party loses", hint("epsilon")),
    h("div", { class: "row" }, zoom, saveButton(losses.drawing, "losses"))), lossWords, losses,
    h("p", { class: "note" }, "Click a party, or choose it below, to look at it closely."));
  const guesses = guessesCard((wanted) => { kind = wanted; keep(); guesses.set(shown, kind); });
  const focus = focusCard(pick);
  const contrast = contrastCard(() => { state.compare = "1"; keep(); });
  const conditions = conditionsCard();
  const enough = enoughCard({ epsilon: state.epsilon ?? "1", remembered: (epsilon) => { state.epsilon = epsilon; keep(); },
    use: (level) => { run.useCancelling?.(level); change({ sigma_cancelling: String(level) }); tell(`Cancelling noise is now ${text(level, 6)}.`); } });
  const results = h("div", { class: "results" }, tiles, sight, lossCard, guesses, focus, contrast, enough, conditions);
  results.hidden = true;

  main.append(h("div", { class: "looks" }, h("div", { class: "row spread" }, h("h1", {}, "Through their eyes"), shareButton()),
    h("p", { class: "lead" }, "Pick who works together against the others, or who listens on the lines. You then see the run as they do: which messages " +
      "they know, how well they can guess the values of all others, and exactly how much privacy each honest party loses."),
    h("div", { class: "columns" }, h("div", { class: "side" },
      h("section", { class: "card" }, h("h2", {}, "Who looks on", hint("seen")), adversary, state.file ? own : null, delta), run),
      h("div", {}, problem, busy, results))));

  /** Show who looks on, at once; a file's own adversary and its size are known from the answer only. */
  function showAdversary() {
    if (state.file && !shown) return;
    const wanted = fitting(state), ids = wanted.colluding === undefined ? shown?.colluding ?? [] : wanted.colluding.split(/\s+/).filter(Boolean).map(Number);
    adversary.set({ parties: state.file ? shown.seen[0].length : Number(state.parties ?? RUN.parties),
      rounds: state.file ? shown.seen.length - 1 : Number(state.rounds ?? RUN.rounds),
      colluding: ids, tapped: (wanted.tapped ?? "").trim(), taps: state.file && state.colluding === undefined ? shown.tapped : 0 });
  }

  function pending() {
    const long = Number(state.parties) * Number(state.rounds ?? RUN.rounds) > 5000 ? " (so many messages take a while)" : "";
    busy.textContent = `Working it out${long} …${shown ? " What is shown below is for the settings before." : ""}`;
    results.classList.toggle("stale", shown !== null);
    contrast.stale();
  }

  /** Show the party in focus: the chosen one, or whoever loses most. */
  function look() {
    const wanted = Number(state.focus), party = state.focus !== undefined && shown.honest.includes(wanted) ? wanted : shown.worst.party;
    const levels = shown.local === null ? [] : [{ at: shown.local, kind: "rival", label: `independent noise alone: ${text(shown.local, 3)}` }];
    zoom.setAttribute("aria-pressed", String(Boolean(state.zoom)));
    losses.set({ honest: shown.honest, epsilon: shown.epsilon, levels, focus: party, zoom: Boolean(state.zoom) });
    focus.set(shown, byLoss(shown.honest, shown.epsilon), party);
  }

  function fill(answer, asked) {
    const first = shown === null;
    shown = answer;
    showAdversary();
    results.hidden = false;
    tiles.replaceChildren(...summary(answer, asked.injection).filter(Boolean));
    sight.set(answer);
    lossWords.replaceChildren(...lossSentences(answer));
    guesses.set(answer, kind);
    look();
    conditions.set(answer.conditions);
    enough.set(asked);
    contrast.set(asked, state.file ? null : state.injection ?? RUN.injection, answer, state.compare === "1");
    if (!first) tell(`Worst epsilon ${text(answer.worst.epsilon, 3)}.`);
  }

  async function update() {
    running?.abort();
    const here = running = new AbortController(), asked = questionOf(fitting(state));
    try {
      const answer = await ask("eyes", asked, here.signal);
      if (here.signal.aborted) return;
      fill(answer, asked);
      problem.textContent = "";
      results.classList.remove("stale");
      busy.textContent = "";
    } catch (error) {
      if (gaveUp(error)) return;
      problem.textContent = sentence(error);
      busy.textContent = shown ? "What is shown below is for the settings before." : "";
    }
  }

  showAdversary();
  keep();
  pending();
  update();
  return () => {
    running?.abort();
    for (const each of [sight, losses, guesses, focus, contrast, enough]) each.stop();
  };
}
