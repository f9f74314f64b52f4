// Questions to the server. What it refuses comes back as a sentence.

export class Refusal extends Error {}

const address = (path, params) => `/api/${path}?${new URLSearchParams(params)}`;

async function checked(response) {
  if (response.ok) return response;
  const type = response.headers.get("content-type") ?? "";
  const answer = type.includes("json") ? (await response.json()).error : await response.text();
  throw new Refusal(answer || `the server answered ${response.status}`);
}

/** Ask, and get an object; `signal` gives up. */
export async function ask(path, params = {}, signal = undefined) {
  return (await checked(await fetch(address(path, params), { signal }))).json();
}

/** Ask for something long, and get one object after the other. */
export async function follow(path, params, take, signal) {
  const response = await checked(await fetch(address(path, params), { signal }));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const each = JSON.parse(line);
      if (each.error) throw new Refusal(each.error);
      take(each);
    }
  }
}

/** Hand over a file. */
export async function hand(file) {
  const response = await fetch(address("open", { name: file.name }), { method: "POST", body: file });
  return (await checked(response)).json();
}

export const link = address;

/** Whether an error is only that we gave up ourselves. */
export const gaveUp = (error) => error.name === "AbortError";
