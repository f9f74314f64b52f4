// Files that were opened here.

/** @import { KeptFiles, OpenedFile } from "../lib/types.js" */
import { ask, openFile, wasAborted } from "../lib/api.js";
import { announce, fill, h } from "../lib/dom.js";
import { errorSentence } from "../lib/format.js";
import { goTo, queryString } from "../lib/navigation.js";
import { contentCard } from "../widgets/content_card.js";
import { errorLine, facts, statusLine } from "../widgets/elements.js";
import { shareButton } from "../widgets/picture_buttons.js";

/**
 * @param {string} words
 * @param {Element[]} more
 */
const errorCard = (words, ...more) =>
  h("section", { class: "card" }, h("p", { class: "error", role: "alert" }, words), more);

/** @param {string} words */
const command = (words) => h("code", { class: "unbroken" }, words);

const whatCanBeOpened = () =>
  h(
    "section",
    { class: "card" },
    h("h2", {}, "What can be opened"),
    facts([
      ["Execution", "who sent to whom, and who was present: watch the run again, and see the adversary's view of it"],
      ["Certificate", "what a run revealed, exactly, to one adversary: ", command("inca audit RUN --certificate FILE")],
      ["Plan", "parameters that meet requirements, and what to expect of them: ", command("inca plan --out FILE")],
      ["Result", "the outcome of a session (result.json in a node's folder)"],
      ["Average", "a private mean of one run: ", command("inca average VALUES --json")],
    ]),
  );

class FileView {
  #problem = errorLine();
  #list = h("ul", { class: "plain-list" });
  #bounds = h("p", { class: "note" });
  #shown = h("div");
  #title = h("h1", {}, "Files");
  #kind = statusLine();

  /**
   * @param {string | undefined} id of the file that is shown
   * @param {AbortSignal} viewClosed
   */
  constructor(id, viewClosed) {
    this.id = id;
    this.viewClosed = viewClosed;
  }

  /** @param {HTMLElement} main */
  show(main) {
    const lead =
      "Open what inca writes, and read it: the record of a run, the certificate of what it revealed, a plan, or a result.";
    main.append(
      h("div", { class: "row spread" }, this.#title, shareButton()),
      h("p", { class: "lead" }, lead),
      this.#kind,
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          {},
          h("section", { class: "card", "aria-label": "Open a file" }, this.#dropZone(), this.#problem),
          h(
            "section",
            { class: "card recently", "aria-label": "Recently" },
            h("h2", {}, "Recently"),
            this.#list,
            this.#bounds,
          ),
        ),
        this.#shown,
      ),
    );
    this.#start();
  }

  /** First the file, which thereby is the last one that was looked at, then the list. */
  async #start() {
    if (this.id) await this.#load(this.id);
    else fill(this.#shown, whatCanBeOpened());
    await this.#loadList();
  }

  #dropZone() {
    const input = h("input", { type: "file", id: "field-file", accept: ".json,.npz", multiple: true });
    input.addEventListener("change", () => this.#open([...(input.files ?? [])]));
    const zone = h(
      "div",
      { class: "drop" },
      h("label", { for: "field-file" }, "Drop a file here, or choose one"),
      input,
      h(
        "p",
        { class: "note" },
        "Executions (.json, .npz), certificates, plans, results and averages of inca. They go only to the program on this machine, which keeps them in its memory and writes nothing to disk.",
      ),
    );
    const over = (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      zone.classList.toggle("over", event.type !== "drop");
    };
    for (const name of /** @type {const} */ (["dragover", "dragenter", "drop"])) zone.addEventListener(name, over);
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => this.#open([...(event.dataTransfer?.files ?? [])]));
    // A file that misses the zone must not replace the whole page.
    const miss = (/** @type {DragEvent} */ event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    for (const name of /** @type {const} */ (["dragover", "drop"])) {
      window.addEventListener(name, miss, { signal: this.viewClosed });
    }
    return zone;
  }

  /** @param {File[]} files */
  async #open(files) {
    this.#problem.textContent = "";
    /** @type {OpenedFile | null} */
    let last = null;
    for (const file of files) {
      announce(`Reading ${file.name} …`);
      try {
        last = await openFile(file);
      } catch (error) {
        announce("");
        this.#problem.textContent = errorSentence(error);
      }
    }
    if (this.viewClosed.aborted || !last) return;
    announce(`${last.name} is ${last.kind}.`);
    if (this.#problem.textContent) this.#loadList();
    else goTo("file", { file: last.id });
  }

  async #loadList() {
    try {
      this.#showList(await ask("files", {}, this.viewClosed));
    } catch (error) {
      if (!wasAborted(error)) this.#problem.textContent = errorSentence(error);
    }
  }

  /** @param {KeptFiles} kept */
  #showList({ files, most, most_bytes: bytes }) {
    const items = files.map(({ id, name, kind }) => {
      const current = id === this.id;
      const link = h("a", { href: `/file${queryString({ file: id })}`, "aria-current": current && "true" }, name);
      return h("li", {}, link, h("span", { class: "note" }, ` ${kind}${current ? ", shown here" : ""}`));
    });
    const none =
      "Nothing yet: files that you open here. Try examples/consortium.json, or start with: inca dashboard FILE";
    fill(this.#list, items.length ? items : h("li", { class: "note" }, none));
    this.#bounds.textContent = `The program on this machine keeps the last ${most}, with at most ${bytes / 2 ** 20} MiB together, in its memory until it ends. The least recently viewed is removed first.`;
  }

  /** @param {string} id */
  async #load(id) {
    this.#kind.textContent = "Reading …";
    try {
      const file = await ask("file", { file: id }, this.viewClosed);
      this.#title.textContent = file.name;
      this.#kind.textContent = `This is ${file.kind}.`;
      fill(this.#shown, contentCard(file.content, file.links));
    } catch (error) {
      if (wasAborted(error)) return;
      this.#kind.textContent = "";
      const again = "Drop the file into the zone to open it again.";
      fill(this.#shown, errorCard(errorSentence(error), h("p", {}, again)));
    }
  }
}

/**
 * Show the view.
 * @param {HTMLElement} main
 * @param {Record<string, string>} params
 * @param {AbortSignal} viewClosed
 */
export function show(main, params, viewClosed) {
  new FileView(params.file, viewClosed).show(main);
}
