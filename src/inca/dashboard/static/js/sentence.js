// What the server refuses, as a sentence.

/** With a capital at its start, unless that is a name such as sigma_independent, and a full stop at its end. */
export function sentence({ message }) {
  const words = message.trim();
  const start = /^[a-z]+ /.test(words) ? words.charAt(0).toUpperCase() + words.slice(1) : words;
  return start + (/[.!?]$/.test(words) ? "" : ".");
}
