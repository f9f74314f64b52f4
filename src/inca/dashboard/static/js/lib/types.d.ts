// What the server answers (inca.dashboard), and the shapes that modules hand to each other.
// tests/dashboard/test_javascript.py compares the answers with those of the server.

export type Content = Node | string | null | undefined | false | Content[];
export type Attributes = Record<string, unknown>;
export type Params = Record<string, string | number | null | undefined>;

export interface ErrorParts {
  independent: number;
  cancelling: number;
  data: number;
}

/** What comes of a run: the estimate moved into the domain, its interval, and sentences that belong to it. */
export interface RunResult {
  estimate: number;
  interval: [number, number];
  confidence: number;
  remarks: string[];
}

/**
 * What only a simulation can show; `estimates` are as the noise leaves them, round by round; `settled` are the final
 * messages after those who stayed have undone what they exchanged with those who left, null if nobody has left.
 */
export interface Simulation {
  values: number[];
  messages: number[][];
  noiseless: number[][];
  estimates: (number | null)[];
  settled: { messages: number[]; noiseless: number[]; weight: number } | null;
  result: RunResult | null;
  domain: [number, number];
  unit: string;
  true_mean: number;
  expected_error: ErrorParts | null;
}

/** An execution, round by round; `present` holds 0 and 1, `receivers[t - 1][i]` whom party i sends to in round t. */
export interface RunAnswer {
  parties: number;
  rounds: number;
  receivers: number[][][];
  intended: number[][][];
  present: number[][];
  weights: number[][];
  published: number[];
  undelivered: [number, number, number][];
  sigma_independent: number | null;
  sigma_cancelling: number | null;
  injection: { value: number[]; noise: number[] };
  colluding: number[];
  simulation: Simulation | null;
}

export interface Condition {
  name: string;
  holds: boolean | null;
  why: string;
}

export interface Guesses {
  estimates: (number | null)[];
  standard_errors: (number | null)[];
}

/** The best guesses of honest values in the order of `honest`: by an adversary that knows nothing else, and by one that knows all others. */
export interface AllGuesses {
  domain: [number, number];
  unit: string;
  true_values: number[];
  naive: Guesses;
  informed: Guesses;
}

/** The largest loss; null is infinite. */
export interface WorstLoss {
  party: number;
  mu: number | null;
  epsilon: number | null;
}

export interface AdversaryAnswer {
  colluding: number[];
  eavesdropped: number;
  notion: string;
  seen: number[][];
  honest: number[];
  mu: (number | null)[];
  epsilon: (number | null)[];
  delta: number;
  sensitivity: number;
  worst: WorstLoss;
  epsilon_independent_only: number | null;
  conditions: Condition[];
  guesses: AllGuesses | null;
  why_no_guesses: string;
}

export interface NoiseAnswer {
  sigma_cancelling: number | null;
}

/** What inca.reporting says of a document; the server alone words it. */
export interface DocumentContent {
  title: string;
  about: string;
  verdict: ContentSentence[];
  rows: ContentRow[];
  caveats: string[];
  tables: ContentTable[];
  figures: ContentFigure[];
  assumptions: string[];
  sources: object[];
}

export interface ContentSentence {
  standing: "good" | "bad" | "unknown" | "plain";
  badge: string;
  text: string;
}

export interface ContentRow {
  name: string;
  value: string;
  hint: string;
  detail: boolean;
  group: string;
}

export interface ContentTable {
  heading: string;
  columns: string[];
  rows: string[][];
}

/** `legend`: the class of a colour (figures.css), and what has it. */
export interface ContentFigure {
  title: string;
  svg: string;
  legend: [kind: string, words: string][];
  caption: string;
}

export interface OpenedFile {
  id: string;
  name: string;
  kind: string;
}

/** What the program keeps in its memory, the last one first, and how much at most. */
export interface KeptFiles {
  files: OpenedFile[];
  most: number;
  most_bytes: number;
}

export interface FileAnswer extends OpenedFile {
  content: DocumentContent;
  links: [words: string, href: string][];
}

/** A line of a party's log, as far as it is told. */
export interface SessionEvent {
  time: number;
  event: string;
  peer?: string;
  stage?: string;
  what?: string;
  parties?: number;
  reason?: string;
}

export interface SessionStatus {
  id: string;
  folder: string;
  session: string;
  party: string;
  stage: string;
  round: number;
  rounds: number;
  attended: number;
  open_offers: number;
  connected: number;
  /** what takes long at the moment, in words */
  progress: string;
  reason: string;
  updated: number;
  running: boolean;
  ended: boolean;
  events: SessionEvent[];
}

export interface SessionAnswer {
  status: SessionStatus;
  content: DocumentContent | null;
}

/** Answers to questions, by their name. */
export interface Answers {
  run: RunAnswer;
  adversary: AdversaryAnswer;
  "sufficient-noise": NoiseAnswer;
  files: KeptFiles;
  plan: PlanAnswer;
  file: FileAnswer;
  sessions: { sessions: SessionStatus[]; watching: string[] };
  session: SessionAnswer;
}

/** A mechanism's predicted error; mse null: unbounded, or none, as `why_not` says. */
export interface MechanismEntry {
  mechanism: string;
  mse: number | null;
  messages: number | null;
  promise: string;
  weaker: boolean;
  why_not: string;
}

/** A plan as a file, what is to be said of it, and links to runs of it. */
export interface PlanAnswer {
  plan: object;
  content: DocumentContent;
  links: [words: string, href: string][];
}

/** Lines of answers that come one by one, by the name of the question. */
export interface StreamedAnswers {
  "slow-mechanisms": { entry: MechanismEntry };
}

/** `dropout` null: a tenth, or as many as leave two honest ones; `messages` null: as many as are needed. */
export interface Requirements {
  parties: number;
  epsilon: number;
  delta: number;
  colluding: number;
  eavesdropped: number;
  dropout: number | null;
  messages: number | null;
}

/** The settings of a simulated run, as its address holds them. A number that cannot be read stays a word. */
export interface RunSettings {
  parties: number;
  rounds: number;
  receivers: number;
  schedule: string;
  injection: string;
  quiet: number;
  sigma_independent: number;
  sigma_cancelling: number;
  seed: number;
  records: number;
  absent: string;
}

/** Who colludes and which messages are eavesdropped, as an address writes it; "" is not named, "none" is nobody. */
export interface AdversaryChoice {
  colluding: string;
  eavesdropped: string;
}
