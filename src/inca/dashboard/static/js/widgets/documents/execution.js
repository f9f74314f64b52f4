// An execution that was read from a file: what is in it, and where to look at it.

/** @import { OpenedFile, RunAnswer } from "../../lib/types.js" */
import { apiAddress, ask, wasAborted } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { errorSentence, format, percent } from "../../lib/format.js";
import { queryString } from "../../lib/navigation.js";

/**
 * @param {number | null} level
 * @param {string} kind
 */
const noise = (level, kind) => (level === null ? `no level of ${kind} noise` : `${kind} noise ${format(level)}`);

/** @param {RunAnswer} run */
function describe(run) {
  const cells = run.present.flat();
  const attendance = cells.reduce((sum, present) => sum + present, 0) / cells.length;
  return [
    `${format(run.parties)} parties in ${format(run.rounds)} rounds;`,
    `a party was present in ${percent(attendance)} of rounds on average,`,
    `${format(run.published.length)} sent a final message,`,
    `${format(run.undelivered.length)} messages did not arrive.`,
    `The file names ${noise(run.sigma_independent, "independent")} and ${noise(run.sigma_cancelling, "cancelling")}.`,
  ].join(" ");
}

/**
 * A card for an execution.
 * @param {OpenedFile} file
 * @param {AbortSignal} viewClosed
 */
export function executionCard(file, viewClosed) {
  const about = h("p", { role: "status" }, "Reading …");
  const params = { file: file.id };
  const query = queryString(params);
  ask("run", params, viewClosed).then(
    (run) => {
      about.textContent = describe(run);
    },
    (error) => {
      if (wasAborted(error)) return;
      about.className = "error";
      about.textContent = errorSentence(error);
    },
  );
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "An execution"),
    h(
      "p",
      {},
      "Who sent to whom, who was present, and how much noise was added: the public record of a run. It holds no values and no messages.",
    ),
    about,
    h(
      "p",
      { class: "row" },
      h("a", { href: `/run${query}` }, "Watch the run"),
      h("a", { href: `/adversary${query}` }, "See the adversary's view"),
      h("a", { href: apiAddress("execution", params), download: "execution.json" }, "Download it"),
    ),
  );
}
