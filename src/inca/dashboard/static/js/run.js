// The run view: an execution, watched round by round.

import { comesBack, leaves } from "./absences.js";
import { ask, gaveUp, link } from "./api.js";
import { remember } from "./app.js";
import { calm, h, swatch, tell, text } from "./dom.js";
import { Stage } from "./graph.js";
import { inWords } from "./happened.js";
import { hint } from "./hints.js";
import { saveButton, shareButton } from "./picture.js";
import { player } from "./player.js";
import { runCharts } from "./runcharts.js";
import { controls, fileCard } from "./runcontrols.js";
import { partyPanel } from "./runparty.js";
import { fitted, readIds, readSettings, tapsOf, writeIds } from "./runsettings.js";

const KEYS = "Space plays and pauses, the arrows left and right go through the rounds, up and down through the parties, Home and End to the first and last round, Escape chooses no party.";

const sign = (kind, words) => h("span", {}, h("span", { class: `run-sign run-${kind}`, "aria-hidden": "true" }), words);

function legend(simulated, tapped) {
  const held = simulated ? [swatch("own", "value part"), swatch("cancelling", "noise part (pale: it pulls down)"), sign("ring", "weight")] : [swatch("own", "weight: the larger, the more")];
  return h("div", { class: "legend run-legend" }, ...held, sign("sent", "share sent"), sign("back", "share that came back"), sign("colluder", "colluder"), sign("away", "away"), tapped ? sign("tapped", "tapped message") : null);
}

function lead(file) {
  if (file) return ["A run that was written to a file, round by round: who sent a share", hint("share"), " to whom, who was there, and how much weight", hint("weight"), " each party held."];
  return ["Parties average their values without a server. In each round everyone sends a share", hint("share"), " of what it holds to others, mixes what it gets, and puts in a portion of its value under noise; in the end nearly all noise is taken out again, and the mean is left."];
}

export async function show(main, params) {
  const file = params.file, stop = new AbortController();
  let settings = readSettings(params), adversary = { colluding: params.colluding ?? "", tapped: params.tapped ?? "" };
  let party = /^\d+$/.test(params.party ?? "") ? Number(params.party) : null;
  let data = null, asked = null, gone = false, playing = false, shownAs = settings.injection;

  const canvas = h("canvas", { class: "run-stage", tabindex: 0, role: "application", "aria-label": "Stage", "aria-describedby": "run-words run-keys" });
  const stage = new Stage(canvas);
  const words = h("p", { id: "run-words", class: "run-words-now", role: "status" });
  const problem = h("p", { class: "error", role: "alert" }), busy = h("p", { class: "note run-busy", role: "status" });
  const left = h("p", { class: "note" }), key = h("div", {});
  const panel = partyPanel({
    choose, leave: () => change("absent", leaves(settings.absent, party, line.t + 1), `Party ${party} is away from round ${line.t + 1} on.`),
    back: () => change("absent", comesBack(settings.absent, party, line.t + 1), `Party ${party} is there in round ${line.t + 1} again.`), collude,
  });
  const line = player({ show: step, moving: () => stage.moves, onplay: (now) => { playing = now; words.setAttribute("aria-live", now ? "off" : "polite"); } });
  const charts = runCharts((t) => line.go(t));
  const eyes = h("a", { class: "run-link" }, "Look through the adversary’s eyes"), download = h("a", { class: "run-link", download: "execution.json" }, "Download the execution");
  const side = h("div", {}, h("section", { class: "card" }, h("p", { class: "note" }, "One moment …")));

  /** The settings as the server and an address want them. */
  const wanted = () => (file ? { file } : { ...settings });
  const seen = () => ({ ...adversary, ...(file && params.colluding === undefined && !adversary.colluding ? { colluding: undefined } : {}) });
  const address = () => {
    const rest = Object.fromEntries(Object.entries(params).filter(([name]) => ["delta", "focus"].includes(name)));
    return { ...rest, ...wanted(), ...seen(), t: line.t, party };
  };
  const colluding = () => (file && !adversary.colluding && params.colluding === undefined ? (data?.colluding ? new Set(data.colluding) : null) : readIds(adversary.colluding));
  const clean = (given) => Object.entries(given).filter(([, value]) => value !== "" && value !== null && value !== undefined);

  function keep() {
    if (gone) return;
    remember(address());
    eyes.href = `/eyes?${new URLSearchParams(clean({ ...address(), party: null, t: null }))}`;
    download.href = link("execution", clean({ ...wanted(), ...seen() }));
  }
  const keepSoon = calm(200, keep); // browsers refuse an address that changes too often

  /** Draw a round. Its time is left where a test can read it. */
  function step(t, progress) {
    if (!data) return;
    const begun = performance.now();
    stage.show({ t, progress, chosen: party, colluding: colluding() ?? new Set(), tapped: tapsOf(adversary.tapped) });
    if (progress > 0 && progress < 1) return; // only the shares have moved
    words.textContent = inWords(data, t, file ? null : shownAs);
    left.textContent = stage.leftOut ? `${text(stage.leftOut)} shares are too many to draw: only those of the chosen party${stage.hiddenColluders ? " and of colluders" : ""} are shown.` : "";
    canvas.setAttribute("aria-label", `Stage: ${text(data.parties)} parties${party === null ? "" : `, party ${party} is chosen`}`);
    panel.show({ data, t, party, colluding: colluding(), absent: settings.absent, tapped: tapsOf(adversary.tapped), fixed: Boolean(file) });
    charts.show(data, t, party);
    main.dataset.stepMs = (performance.now() - begun).toFixed(2);
    keepSoon();
  }

  function choose(id) {
    if (!data || id === party) return;
    party = id;
    line.pause();
    step(line.t, 1);
  }

  function collude() {
    const ids = new Set(colluding());
    if (!ids.delete(party)) ids.add(party);
    adversary = { ...adversary, colluding: writeIds(ids) || (file ? " " : "") }; // a space: nobody, not even the file's own
    if (file) params.colluding = adversary.colluding;
    side.firstChild.set?.(settings, adversary.colluding);
    step(line.t, 1);
    tell(ids.has(party) ? `Party ${party} colludes.` : `Party ${party} is honest.`);
  }

  async function load() {
    asked?.abort();
    asked = new AbortController();
    const mine = asked, sent = { ...settings };
    busy.textContent = data ? "The run is being worked out anew; the picture still shows the one before …" : "The run is being worked out …";
    main.setAttribute("aria-busy", "true");
    try {
      const found = await ask("run", clean(wanted()), mine.signal);
      if (gone || mine !== asked) return;
      const first = !data;
      const t = first ? (/^\d+$/.test(params.t ?? "") ? Number(params.t) : 1) : line.t;
      data = found;
      shownAs = sent.injection;
      problem.textContent = "";
      if (party !== null && party >= data.parties) party = null;
      if (first && party === null && params.party === undefined) party = 0;
      line.pause();
      line.take(data.rounds, t);
      key.replaceChildren(legend(data.simulated, Boolean(adversary.tapped)));
      frame.hidden = false;
      stage.take(data);
      step(line.t, 1);
      keep();
      busy.textContent = "";
    } catch (error) {
      if (gaveUp(error) || gone) return;
      problem.textContent = error.message;
      busy.textContent = data ? "The picture still shows the run before." : "";
    } finally {
      if (mine === asked) main.removeAttribute("aria-busy");
    }
  }
  const loadSoon = calm(250, () => { if (!gone) load(); });

  /** Take a changed setting, make the rest fit, and ask the server. */
  function change(name, value, said) {
    // A run is the same whoever colludes, so the server is not asked and cannot refuse.
    const stranger = name === "colluding" && value.split(" ").find((id) => id && !(/^\d+$/.test(id) && Number(id) < settings.parties));
    if (stranger) {
      problem.textContent = `Who colludes names ${stranger}, but ids from 0 to ${settings.parties - 1} were expected.`;
      return undefined;
    }
    if (name === "colluding") problem.textContent = "";
    if (name === "colluding") adversary = { ...adversary, colluding: value };
    else settings = name === "all" ? value : { ...settings, [name]: value };
    if (name === "all") adversary = { colluding: "", tapped: "" };
    if (name === "parties" || name === "rounds") ({ settings, adversary } = fitted(settings, adversary));
    side.firstChild.set(settings, adversary.colluding);
    if (name === "colluding" && data) return step(line.t, 1);
    busy.textContent = "The run is being worked out anew; the picture still shows the one before …";
    main.setAttribute("aria-busy", "true");
    if (said) tell(said);
    return said ? load() : loadSoon();
  }

  const KEYED = {
    " ": () => line.toggle(), ArrowLeft: () => line.on(-1), ArrowRight: () => line.on(1), Home: () => line.go(0), End: () => line.go(data.rounds),
    ArrowDown: () => choose(((party ?? -1) + 1) % data.parties), ArrowUp: () => choose(((party ?? 0) + data.parties - 1) % data.parties), Escape: () => choose(null),
  };
  canvas.addEventListener("keydown", (event) => {
    if (!data || !(event.key in KEYED) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    KEYED[event.key]();
  });
  const pointed = (event) => {
    const box = canvas.getBoundingClientRect();
    return stage.at(event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener("click", (event) => choose(pointed(event)));
  canvas.addEventListener("pointermove", (event) => {
    const id = data ? pointed(event) : null;
    if (id === stage.look.pointed) return;
    canvas.classList.toggle("run-over", id !== null);
    if (playing) stage.look.pointed = id;
    else stage.show({ pointed: id });
  });
  window.addEventListener("repaint", () => stage.repaint(), { signal: stop.signal });

  const frame = h("div", { hidden: true },
    h("section", { class: "card", "aria-label": "The stage" }, words,
      h("div", { class: "run-frame" }, h("div", {}, canvas, h("p", { id: "run-keys", class: "visually-hidden" }, KEYS), line.element, left, key), panel.element)),
    charts.element,
    h("p", { class: "row" }, eyes, download));
  main.append(
    h("div", { class: "row spread run-head" }, h("h1", {}, "Watch a run"), h("div", { class: "row" }, shareButton(), saveButton(() => (data ? canvas : null), `inca-run-${params.seed ?? settings.seed}`))),
    h("p", { class: "lead" }, ...lead(Boolean(file))),
    h("div", { class: "columns" }, side, h("div", {}, problem, busy, frame)));
  if (!file) side.replaceChildren(controls(settings, adversary.colluding, change));

  await load();
  if (file && data) side.replaceChildren(fileCard(await ask("file", { file }).then((found) => found.name, () => "A file"), data));
  const watch = new ResizeObserver(() => {
    if (!data || canvas.clientWidth === stage.size) return;
    stage.fit();
    stage.draw();
    charts.fit();
  });
  watch.observe(canvas);
  return () => {
    gone = true;
    line.pause();
    asked?.abort();
    stop.abort();
    watch.disconnect();
    delete main.dataset.stepMs;
    main.removeAttribute("aria-busy");
  };
}
