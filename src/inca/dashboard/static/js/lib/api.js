// Questions to the server. What it refuses comes back as an error with one sentence.

/** @import { Answers, OpenedFile, Params, StreamedAnswers } from "./types.js" */
import { queryString } from "./navigation.js";

/**
 * The address of a question.
 * @param {string} name
 * @param {Params} [params]
 */
export const apiAddress = (name, params = {}) => `/api/${name}${queryString(params)}`;

/**
 * Send a request; if nobody answers, say what to do about it.
 * @param {string} address
 * @param {RequestInit} [request]
 */
async function send(address, request) {
  try {
    return await checked(await fetch(address, request));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the browser's error if there is no answer at all
    throw new Error("The program behind this page does not answer: start inca dashboard again, and reload the page.");
  }
}

/** @param {Response} response */
async function checked(response) {
  if (response.ok) return response;
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  const refusal = isJson ? (await response.json()).error : await response.text();
  throw new Error(refusal || `the server answered ${response.status}`);
}

/**
 * Ask a question.
 * @template {keyof Answers} Name
 * @param {Name} name
 * @param {Params} params
 * @param {AbortSignal} [signal]
 * @returns {Promise<Answers[Name]>}
 */
export async function ask(name, params, signal) {
  return (await send(apiAddress(name, params), { signal })).json();
}

/**
 * Ask a question that takes long: `take` gets one part of the answer after the other.
 * @template {keyof StreamedAnswers} Name
 * @param {Name} name
 * @param {Params} params
 * @param {(part: StreamedAnswers[Name]) => void} take
 * @param {AbortSignal} signal
 */
export async function stream(name, params, take, signal) {
  const response = await send(apiAddress(name, params), { signal });
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const answer = JSON.parse(line);
      if (answer.error) throw new Error(answer.error);
      take(answer);
    }
  }
}

/**
 * Hand a file to the program on this machine.
 * @param {File} file
 * @returns {Promise<OpenedFile>}
 */
export async function openFile(file) {
  return (await send(apiAddress("open", { name: file.name }), { method: "POST", body: file })).json();
}

/**
 * Whether an error only means that the page stopped waiting.
 * @param {unknown} error
 */
export const wasAborted = (error) => error instanceof DOMException && error.name === "AbortError";
