// What the words mean, in a sentence or two each.

/** @typedef {keyof typeof GLOSSARY} Term */

export const GLOSSARY = {
  parties: "How many take part. Each holds one value.",
  records:
    "How many records, such as patients, the value of a party is the mean of. One of them moves it by so much less, and it is one of them whose loss is told.",
  epsilon:
    "The largest privacy loss that is allowed. At 0 nobody learns anything; at 0.1, what anyone believes about a party's value changes by about 10 % at most; above 5, little is guaranteed.",
  delta:
    "The probability with which the guarantee on epsilon may fail. It should be much smaller than one over the number of parties.",
  colluding:
    "The fraction of parties that share everything they see with each other, but otherwise follow the protocol.",
  eavesdropped: "The fraction of each round's messages that somebody outside reads.",
  dropout:
    "The fraction of parties that may leave for good, at any time. Unless you say otherwise a tenth, or as many as leave two honest ones.",
  messages: "How many messages a party may send, the final one included. Empty: as many as are needed.",
  error: "The root of the mean squared error: about how far off the estimated mean is. All values lie between 0 and 1.",
  independent: "Independent noise stays in the result: it is what differential privacy needs in the end.",
  cancelling:
    "Cancelling noise hides messages on their way and is removed again by the party that added it. It cancels exactly if nobody leaves.",
  data: "Values, or portions of them, that are missing because their parties left.",
  rounds:
    "In each round every party mixes what it received, adds a portion of its value and noise, and sends a part on.",
  receivers: "How many other parties a party sends to in each round.",
  schedule:
    "Who sends to whom. With permutations and on a circle everyone receives exactly one message per round; at random, a party may receive several or none.",
  quiet:
    "The last rounds, in which no portion of a value enters any more, so that noise added before can cancel and mix.",
  injection:
    "How value and noise enter. In shares and at once are the protocol's two ways; the other two are broken on purpose, to show what goes wrong.",
  weight:
    "How much of the values a message carries. Weights are public; dividing by their sum corrects for parties that left.",
  mu: "The loss of mu-GDP: how many standard deviations of noise lie between two possible values. Epsilon follows from mu and delta.",
  informed:
    "The strongest adversary: it knows all values but one, and makes the best guess of that one. Differential privacy is about this one.",
  naive: "An adversary that knows only the range in which all values lie.",
  seen: "What the adversary sees: all that colluders send and receive, eavesdropped messages, and the final messages, which are public.",
  rank: "Messages that the adversary does not see connect honest parties. If they connect all of them, noise can cancel without revealing anyone's value.",
  seed: "A number that determines everything random here, so that the same address shows the same run.",
  plan: "All that a run needs except the values: who sends to whom, how often, and how much noise. It is a file that all parties can read.",
  GOPA: "Pairs of parties share noise that cancels in the sum. What leavers leave behind is corrected, but only if their absence is noticed in time.",
  "eavesdropped messages":
    "Messages that somebody outside reads. Round 0 is the first message that a party sends; the messages of the last round are public anyway.",
  test: "All that the adversary sees, summarised as well as possible in one number. The more the two curves overlap, the less it reveals.",
  share:
    "A party splits what it holds into equal parts: it keeps one and sends one to each receiver. A share for an absent receiver is returned to its sender.",
  message:
    "What a party holds and sends shares of: portions of many values, and far more noise. Whoever reads it sees only the sum.",
  estimate:
    "The sum of all messages divided by the sum of their weights. Only the estimate of the last round counts: by then the noise has been removed.",
  settlement:
    "Those who stayed take back what they sent to parties that left, and take out what they had received from them. Their own noise then cancels as if the others had never been there.",
  "expected error":
    "How far off the estimate is, on average over many runs with the same parties present: the root of the mean squared error.",
  absence:
    "Who is absent and when, as PARTY:FIRST-LAST in rounds, such as 4:3-5; without a last round, for good. Shares for an absent party are returned.",
  collusion: "Parties that share everything they see with each other, but otherwise follow the protocol.",
};
