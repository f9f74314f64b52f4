// What the words mean, one sentence or two each, behind a small button.

export const TERMS = {
  parties: "How many take part. Each holds one value; here every value lies between 0 and 1.",
  epsilon: "The largest privacy loss that is allowed. At 0 nobody learns anything; at 0.1 what anyone believes about a party's value changes by about 10 % at most; above 5 little is promised.",
  delta: "The chance that the promise on epsilon may fail with. It should be much smaller than one over the number of people.",
  colluding: "The part of the parties that put together all they see, keep quiet about it, and otherwise follow the protocol.",
  eavesdropped: "The part of each round's messages that somebody outside reads.",
  dropout: "The part of the parties that leave for good at a random moment and do not come back.",
  messages: "How many messages a party sends in all: rounds times receivers.",
  mse: "Mean squared error of the estimated mean. Its root is about how far off the estimate is; values lie between 0 and 1.",
  central: "Central DP: a trusted server sees all values and adds the least noise that the promise needs. Nothing without a server can be better.",
  local: "Local DP: every party adds so much noise to its own value that it need not trust anyone.",
  independent: "Independent noise stays in the result: it is what differential privacy needs in the end.",
  cancelling: "Cancelling noise hides messages on the way and is taken out again by the party that put it in. It cancels exactly if nobody leaves.",
  data: "Values, or portions of them, that left with their parties.",
  rounds: "In each round every party mixes what it was sent, adds a portion of its value and noise, and sends a part on.",
  receivers: "To how many others a party sends in each round.",
  schedule: "Who sends to whom: by permutations everyone gets exactly one message a round; at random someone may get several or none.",
  quiet: "Last rounds in which no portion of a value goes in any more, so that the noise that went in before can be cancelled and mixed.",
  injection: "How value and noise go in. In shares and at once are the protocol's two ways; the other two are broken on purpose, to show what goes wrong.",
  weight: "How much of the values a message carries. Weights are public; dividing by their sum corrects for those who left.",
  mu: "The privacy loss as a distance: how many standard deviations of noise lie between the two cases of one value. Epsilon follows from mu and delta.",
  informed: "The strongest adversary: it knows all values but one, and makes the best guess at that one. Differential privacy is about this one.",
  naive: "An adversary that knows only that values lie anywhere between 0 and 1.",
  seen: "What the adversary sees: all that colluders send and receive, what is tapped, and the final messages, which are public.",
  rank: "Messages that the adversary does not see tie honest parties together. If they tie all of them, noise can cancel without showing anyone's value.",
  certificate: "What a session gave away: the exact loss of every honest party against one adversary, worked out from who sent what to whom.",
  sigma: "The standard deviation of the noise, on the scale of the values (0 to 1).",
  seed: "A number that decides all that is random here, so that the same address shows the same run.",
  "first idea": "What inca would do, worked out from four sampled adversaries of up to 60 parties. It shows about what to expect, but promises nothing.",
  plan: "All that a run needs but the values: who sends to whom, how often, and how much noise. It is a file that all parties can read.",
  GOPA: "Pairs of parties share noise that cancels in the sum. What leavers leave behind is taken back, but only if they are missed in time.",
  tapped: "Messages that somebody reads on their way. Round 0 is the first message that a party sends; the messages of the last round are public anyway.",
  test: "The best that anyone can make of all that is seen, put into one number. The more the two curves overlap, the less it tells.",
  share: "A party splits what it holds into equal parts: it keeps one and sends one to each receiver. A share that finds nobody comes back to its sender.",
  message: "What a party holds and sends shares of: portions of many values, and far more noise. Whoever reads it sees the sum only.",
  estimate: "The sum of all messages divided by the sum of their weights. Only the one of the last round counts: by then the noise has been taken out.",
  expected: "How far off the estimate is on average over many runs with the same parties there: the root of the mean squared error.",
  absence: "Who is away and when, as PARTY:FIRST-LAST in rounds, such as 4:3-5; without a last round it is for good. Shares for someone who is away come back.",
  collusion: "Parties that put together all they see, keep quiet about it, and otherwise follow the protocol.",
};

let count = 0;

/** A button that explains a term. */
export function hint(term) {
  const id = `hint-${term}-${count++}`;
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "hint", textContent: "?" });
  button.setAttribute("aria-label", `What is ${term}?`);
  button.setAttribute("popovertarget", id);
  const bubble = document.createElement("div");
  bubble.id = id;
  bubble.setAttribute("popover", "auto");
  bubble.textContent = TERMS[term] ?? term;
  const both = document.createElement("span");
  both.append(button, bubble);
  return both;
}
