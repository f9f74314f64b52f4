// Files: executions, certificates, plans and results that were opened here.

import { ask, gaveUp, hand } from "./api.js";
import { go } from "./app.js";
import { certificateView } from "./certificate.js";
import { h, percent, tell, text } from "./dom.js";
import { shareButton } from "./picture.js";
import { planView } from "./planfile.js";
import { resultView } from "./result.js";
import { sentence } from "./sentence.js";

const KINDS = { execution: "an execution", certificate: "a certificate", plan: "a plan", result: "a result" };
// The server forgets all but the last files; these are the ones that this page knows of.
const handed = new Map();

function executionView(file, signal) {
  const about = h("p", { class: "note", role: "status" }, "Reading …"), given = `file=${encodeURIComponent(file.id)}`;
  ask("run", { file: file.id }, signal).then((run) => {
    const cells = run.present.flat(), there = cells.reduce((sum, each) => sum + each, 0) / cells.length;
    const level = (value, word) => (value === null ? `no level of ${word} noise` : `${word} noise ${text(value)}`);
    about.className = "";
    about.textContent = `${text(run.parties)} parties in ${text(run.rounds)} rounds; a party was there in ${percent(there)} of rounds on average, ` +
      `${text(run.published.length)} sent a final message, ${text(run.undelivered.length)} messages did not arrive. It names ` +
      `${level(run.sigma_independent, "independent")} and ${level(run.sigma_cancelling, "cancelling")}.`;
  }).catch((error) => { if (!gaveUp(error)) { about.className = "error"; about.textContent = sentence(error); } });
  return h("section", { class: "card" }, h("h2", {}, "An execution"),
    h("p", {}, "Who sent to whom, who was there, and how much noise went in: the public record of a run. There is no value in it, and no message."), about,
    h("p", { class: "row" }, h("a", { href: `/run?${given}` }, "Watch the run"), h("a", { href: `/eyes?${given}` }, "See it through an adversary's eyes"),
      h("a", { href: `/api/execution?${given}`, download: "execution.json" }, "Download it")));
}

function view(file, signal) {
  if (file.kind === "execution") return executionView(file, signal);
  return { certificate: certificateView, plan: planView, result: resultView }[file.kind](file.fields);
}

export async function show(main, given) {
  const stopped = new AbortController(), problem = h("p", { class: "error", role: "alert" }), list = h("ul", { class: "plain-list" }), shown = h("div");
  let open = null;

  async function take(files) {
    problem.textContent = "";
    let last = null;
    for (const file of files) {
      tell(`Reading ${file.name} …`);
      try {
        last = await hand(file);
        handed.set(last.id, last);
      } catch (error) {
        tell("");
        problem.textContent = sentence(error);
      }
    }
    if (stopped.signal.aborted || !last) return;
    tell(`${last.name} is ${KINDS[last.kind]}.`);
    if (!problem.textContent) go("file", { file: last.id });
    else entries();
  }

  const input = h("input", { type: "file", id: "field-file", accept: ".json,.npz", multiple: true, onchange: () => take([...input.files]) });
  const drop = h("div", { class: "drop" }, h("label", { for: "field-file" }, "Drop a file here, or choose one"), input,
    h("p", { class: "note" }, "Executions (.json, .npz), certificates, plans and results of inca. They go to the program on this machine only, and stay " +
      "in its memory."));
  for (const name of ["dragover", "dragenter"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); take([...event.dataTransfer.files]); });
  // A file that misses the zone must not replace the whole page.
  const miss = (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); };
  for (const name of ["dragover", "drop"]) window.addEventListener(name, miss, { signal: stopped.signal });

  function entries(opened = []) {
    for (const each of opened) if (!handed.has(each.id)) handed.set(each.id, each);
    list.replaceChildren(...[...handed.values()].map((each) => h("li", {},
      h("a", { href: `/file?file=${encodeURIComponent(each.id)}`, "aria-current": each.id === given.file ? "true" : null }, each.name),
      h("span", { class: "note" }, ` ${KINDS[each.kind]}${each.id === given.file ? ", shown here" : ""}`))));
    if (!handed.size) list.replaceChildren(h("li", { class: "note" }, "None yet. Try examples/consortium.json, or start with: inca dashboard FILE"));
  }

  const title = h("h1", {}, "Files"), name = h("p", { class: "note" });
  main.append(h("div", { class: "looks" }, h("div", { class: "row spread" }, title, shareButton()),
    h("p", { class: "lead" }, "Open what inca writes, and read it: the record of a run, the certificate of what it gave away, a plan, or a result."),
    h("div", { class: "columns" }, h("div", {}, h("section", { class: "card", "aria-label": "Open a file" }, drop, problem),
      h("section", { class: "card" }, h("h2", {}, "Open files"), list)), h("div", {}, name, shown))));

  entries();
  ask("about", {}, stopped.signal).then(({ opened }) => entries(opened)).catch((error) => { if (!gaveUp(error)) problem.textContent = sentence(error); });
  if (given.file) {
    shown.replaceChildren(h("p", { class: "note" }, "Reading …"));
    ask("file", { file: given.file }, stopped.signal).then((file) => {
      handed.set(file.id, file);
      title.textContent = file.name;
      name.textContent = `This file is ${KINDS[file.kind]}.`;
      try {
        open = view(file, stopped.signal);
      } catch (error) {
        console.warn(error);
        open = h("section", { class: "card" }, h("p", { class: "error", role: "alert" },
          `${file.name} says that it is ${KINDS[file.kind]}, but parts of it are missing or not as expected.`));
      }
      shown.replaceChildren(open);
    }).catch((error) => {
      if (gaveUp(error)) return;
      handed.delete(given.file);
      entries();
      shown.replaceChildren(h("section", { class: "card" }, h("p", { class: "error", role: "alert" }, sentence(error)),
        h("p", {}, "The program on this machine keeps opened files in its memory only, and only the last few. Drop the file into the zone to open it again.")));
    });
  } else {
    shown.replaceChildren(h("section", { class: "card" }, h("h2", {}, "What can be opened"), h("dl", { class: "facts" },
      ["Execution", "who sent to whom, and who was there: watch the run again, and look at it through an adversary's eyes", "Certificate",
        "what a run gave away, exactly, to one adversary (inca audit RUN --certificate FILE)", "Plan",
        "parameters for a wish, and what to expect of them (inca plan --out FILE)", "Result", "what came of a session (result.json in a node's folder)"]
        .map((words, i) => h(i % 2 ? "dd" : "dt", {}, words)))));
  }
  return () => { stopped.abort(); open?.stop?.(); };
}
