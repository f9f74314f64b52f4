// The stage: a canvas on which a round of a run is drawn.

/** @import { RunAnswer } from "../../lib/types.js" */
/** @import { Share } from "../../lib/round_events.js" */
import { colour } from "../../lib/dom.js";
import { arcPoint, nearestParty, placeParties } from "../../lib/party_layout.js";
import { sharesOf } from "../../lib/round_events.js";
import { arrowHead, arrowLine, cross, diamond, disc, flag, gauge } from "./stage_shapes.js";

/**
 * @typedef {object} Look what of a run is shown
 * @property {number} round
 * @property {number} progress below 1, shares of the round are still on their way
 * @property {number | null} chosen
 * @property {number | null} pointed
 * @property {Set<number>} colluding
 * @property {(round: number, party: number) => boolean} isEavesdropped
 */

/** @typedef {{ stroke: string, alpha: number, width: number, dash: number[] }} ArrowStyle */

const MAX_ARROWS = 1600; // of more, only those of the chosen party and of colluders are drawn
const LARGE_QUANTILE = 0.98; // so that one wild number does not shrink all others
const COLOURS = /** @type {const} */ ([
  "paper",
  "card",
  "ink",
  "soft",
  "line",
  "focus",
  "own",
  "cancelling",
  "colluder",
  "absent",
  "warn",
]);

/** @returns {Record<typeof COLOURS[number], string>} */
const palette = () =>
  /** @type {Record<typeof COLOURS[number], string>} */ (
    Object.fromEntries(COLOURS.map((name) => [name, colour(name)]))
  );

const pixelRatio = () => Math.min(window.devicePixelRatio || 1, 2);

/**
 * The size that fills a disc: nearly the largest noise or value part of the run.
 * @param {RunAnswer} run
 */
function largeSize({ simulation }) {
  if (!simulation) return 1;
  const { messages, noiseless } = simulation;
  /** @type {number[]} */
  const sizes = [];
  messages.forEach((row, t) => {
    row.forEach((message, i) => {
      sizes.push(Math.abs(message - noiseless[t][i]), Math.abs(noiseless[t][i]));
    });
  });
  sizes.sort((a, b) => a - b);
  return sizes[Math.floor(LARGE_QUANTILE * (sizes.length - 1))] || 1;
}

/** A run on a canvas. */
export class Stage {
  /** @type {Look} */
  look = { round: 0, progress: 1, chosen: null, pointed: null, colluding: new Set(), isEavesdropped: () => false };
  /** How many arrows of the round are left out for lack of room; of colluders', none if that is possible. */
  hiddenArrows = 0;
  showsColluders = false;
  size = 0;
  /** @type {OffscreenCanvas | null} the arrows, kept while shares are on their way */
  #arrowsKept = null;
  #colours = palette();

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {RunAnswer} run
   */
  constructor(canvas, run) {
    this.canvas = canvas;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.run = run;
    this.largeSize = largeSize(run);
    this.largestWeight = run.weights.flat().reduce((most, weight) => Math.max(most, weight), 1);
    this.layout = placeParties(run.parties, canvas.clientWidth);
    this.fit();
  }

  /** Fit the canvas to its place on the page and to the screen's pixels. */
  fit() {
    this.size = this.canvas.clientWidth;
    this.canvas.width = Math.round(this.size * pixelRatio());
    this.canvas.height = this.canvas.width;
    this.layout = placeParties(this.run.parties, this.size);
    this.#arrowsKept = null;
  }

  /** Take over the colours of another theme. */
  repaint() {
    this.#colours = palette();
    this.#arrowsKept = null;
    this.draw();
  }

  /** Whether there is room for shares that move. */
  get canAnimate() {
    return !this.layout.crowd;
  }

  /**
   * The party under the pointer.
   * @param {MouseEvent} event
   */
  partyAt(event) {
    const box = this.canvas.getBoundingClientRect();
    return nearestParty(this.layout, event.clientX - box.left, event.clientY - box.top);
  }

  /** @param {Partial<Look>} look */
  draw(look = {}) {
    Object.assign(this.look, look);
    const { pen, size } = this;
    const { round, progress } = this.look;
    if (!size) return;
    const shares = sharesOf(this.run, round);
    pen.setTransform(pixelRatio(), 0, 0, pixelRatio(), 0, 0);
    pen.globalAlpha = 1;
    if (progress > 0 && progress < 1 && this.#arrowsKept) pen.drawImage(this.#arrowsKept, 0, 0, size, size);
    else {
      pen.fillStyle = this.#colours.card;
      pen.fillRect(0, 0, size, size);
      this.#drawArrows(shares);
      this.#keepArrows();
    }
    this.#drawParties();
    if (progress < 1) this.#drawTravellers(shares);
    this.#drawLabels();
  }

  #keepArrows() {
    this.#arrowsKept = null;
    if (this.look.progress > 0) return;
    this.#arrowsKept = new OffscreenCanvas(this.canvas.width, this.canvas.height);
    this.#arrowsKept.getContext("2d")?.drawImage(this.canvas, 0, 0);
  }

  /** @param {Share} share */
  #isChosen([from, to]) {
    return from === this.look.chosen || to === this.look.chosen;
  }

  /** @param {Share} share */
  #isShown(share) {
    const [from, to] = share;
    const { colluding } = this.look;
    if (!this.hiddenArrows || this.#isChosen(share)) return true;
    return this.showsColluders && (colluding.has(from) || colluding.has(to));
  }

  /**
   * How arrows look: the more there are, the fainter.
   * @param {Share[]} sent
   * @param {number} arrows
   * @returns {Record<"sent" | "returned" | "chosen", ArrowStyle>}
   */
  #arrowStyles(sent, arrows) {
    const { soft, warn, focus } = this.#colours;
    const { crowd } = this.layout;
    const many = sent.filter(([from]) => from === this.look.chosen).length > 40;
    const faint = Math.max(0.3, Math.min(0.75, 10 / Math.sqrt(arrows + 1)));
    return {
      sent: { stroke: soft, alpha: crowd ? 0.2 : faint, width: crowd ? 0.7 : 1.1, dash: [] },
      returned: { stroke: warn, alpha: crowd ? 0.7 : 1, width: crowd ? 0.8 : 1.5, dash: [5, 4] },
      chosen: { stroke: focus, alpha: many ? 0.5 : 1, width: many ? 0.8 : 2, dash: [] },
    };
  }

  /** @param {{ sent: Share[], returned: Share[] }} shares */
  #drawArrows({ sent, returned }) {
    const { pen, layout } = this;
    const arrows = sent.length + returned.length;
    this.hiddenArrows = arrows > (layout.crowd ? 2 : 1) * MAX_ARROWS ? arrows : 0;
    const colluders = this.look.colluding.size;
    this.showsColluders = colluders > 0 && (2 * colluders * sent.length) / this.run.parties < MAX_ARROWS;
    const styles = this.#arrowStyles(sent, arrows);
    /**
     * @param {Share[]} shares
     * @param {ArrowStyle} style
     * @param {boolean} chosen
     */
    const drawAll = (shares, { stroke, alpha, width, dash }, chosen) => {
      Object.assign(pen, { globalAlpha: alpha, strokeStyle: stroke, fillStyle: stroke, lineWidth: width });
      pen.setLineDash(dash);
      for (const share of shares) {
        if (this.#isChosen(share) !== chosen || !this.#isShown(share)) continue;
        arrowLine(pen, layout, ...share);
        if (!layout.crowd || chosen) arrowHead(pen, layout, ...share, shares === sent);
      }
    };
    drawAll(sent, styles.sent, false);
    drawAll(returned, styles.returned, false);
    drawAll(sent, styles.chosen, true);
    drawAll(returned, styles.returned, true);
    pen.globalAlpha = 1;
    pen.setLineDash([]);
  }

  /**
   * What a party holds at this moment: between two rounds while shares are on their way.
   * @param {number} party
   */
  #holding(party) {
    const { simulation, weights } = this.run;
    const { round, progress } = this.look;
    const before = Math.max(round - 1, 0);
    const mix = (/** @type {number[][]} */ rows) =>
      rows[before][party] + (rows[round][party] - rows[before][party]) * progress;
    const value = simulation ? mix(simulation.noiseless) : 0;
    return { value, noise: simulation ? mix(simulation.messages) - value : 0, weight: mix(weights) };
  }

  #drawParties() {
    const { pen, layout, run } = this;
    const { round, chosen, colluding, isEavesdropped } = this.look;
    for (let party = 0; party < run.parties; party += 1) {
      if (layout.crowd) this.#drawDot(party);
      else this.#drawParty(party);
      if (!isEavesdropped(round, party)) continue;
      pen.fillStyle = this.#colours.colluder;
      flag(pen, layout.x[party], layout.y[party], layout.radius);
    }
    if (chosen === null) return;
    disc(pen, layout.x[chosen], layout.y[chosen], layout.radius + (colluding.has(chosen) ? 11 : 7));
    Object.assign(pen, { strokeStyle: this.#colours.focus, lineWidth: 3 });
    pen.stroke();
  }

  /** @param {number} party */
  #drawParty(party) {
    const { pen, run } = this;
    const { paper, colluder, line, absent, ink, soft } = this.#colours;
    const { x, y, radius } = this.layout;
    const at = /** @type {const} */ ([x[party], y[party]]);
    const colludes = this.look.colluding.has(party);
    const present = run.present[this.look.round][party];
    if (colludes) diamond(pen, ...at, 1.15 * radius + 4.5);
    else disc(pen, ...at, radius);
    pen.fillStyle = paper;
    const rim = present ? line : absent;
    pen.strokeStyle = colludes ? colluder : rim;
    pen.lineWidth = colludes ? 2.5 : 1.2;
    pen.fill();
    pen.stroke();
    const width = Math.max(1.5, 0.14 * radius);
    if (!present) {
      Object.assign(pen, { strokeStyle: absent, lineWidth: width });
      cross(pen, ...at, 0.55 * radius);
      return;
    }
    const holding = this.#holding(party);
    this.#drawHolding(...at, holding, radius - 1);
    if (!run.simulation || radius < 5) return;
    Object.assign(pen, { strokeStyle: radius > 11.5 ? ink : soft, lineWidth: width });
    gauge(pen, ...at, radius + 2.5, holding.weight / this.largestWeight);
  }

  /** @param {number} party */
  #drawDot(party) {
    const { pen } = this;
    const { x, y, radius } = this.layout;
    if (this.run.present[this.look.round][party]) {
      this.#drawHolding(x[party], y[party], this.#holding(party), radius);
    } else {
      Object.assign(pen, { strokeStyle: this.#colours.absent, lineWidth: 1 });
      cross(pen, x[party], y[party], 0.8 * radius);
    }
    if (!this.look.colluding.has(party)) return;
    diamond(pen, x[party], y[party], radius + 3);
    Object.assign(pen, { strokeStyle: this.#colours.colluder, lineWidth: 1.5 });
    pen.stroke();
  }

  /**
   * What is held: in a simulation its noise and value, the smaller on top, else its weight. Areas are sizes.
   * @param {number} x
   * @param {number} y
   * @param {{ value: number, noise: number, weight: number }} holding
   * @param {number} most the radius of the largest size
   */
  #drawHolding(x, y, { value, noise, weight }, most) {
    const radius = (/** @type {number} */ part) => most * Math.sqrt(Math.min(1, Math.abs(part)));
    if (!this.run.simulation) {
      disc(this.pen, x, y, Math.max(0.7, radius(weight / this.largestWeight)));
      this.pen.fillStyle = this.#colours.own;
      this.pen.fill();
      return;
    }
    const valueOnTop = Math.abs(value) <= Math.abs(noise);
    if (!valueOnTop) this.#drawValue(x, y, radius(value / this.largeSize), most > 6);
    this.#drawNoise(x, y, radius(noise / this.largeSize), noise < 0);
    if (valueOnTop) this.#drawValue(x, y, radius(value / this.largeSize), most > 6);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} radius
   * @param {boolean} negative noise that pulls down is pale
   */
  #drawNoise(x, y, radius, negative) {
    const { pen } = this;
    disc(pen, x, y, Math.max(0.5, radius));
    pen.fillStyle = this.#colours.cancelling;
    pen.globalAlpha = negative ? 0.25 : 1;
    pen.fill();
    pen.globalAlpha = 1;
    if (!negative) return;
    Object.assign(pen, { strokeStyle: this.#colours.cancelling, lineWidth: 1.2 });
    pen.stroke();
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} radius
   * @param {boolean} large
   */
  #drawValue(x, y, radius, large) {
    const { pen } = this;
    disc(pen, x, y, Math.max(large ? 1.5 : 0.7, radius));
    pen.fillStyle = this.#colours.own;
    pen.fill();
    if (!large) return;
    Object.assign(pen, { strokeStyle: this.#colours.paper, lineWidth: 0.8 });
    pen.stroke();
  }

  /**
   * Shares on their way, as small copies of what their senders held; one that is returned turns round halfway.
   * @param {{ sent: Share[], returned: Share[] }} shares
   */
  #drawTravellers({ sent, returned }) {
    const { layout, run } = this;
    const { round, progress } = this.look;
    const small = Math.max(3, 0.5 * layout.radius);
    const before = round - 1;
    /**
     * @param {Share[]} shares
     * @param {number} part
     */
    const drawAll = (shares, part) => {
      for (const share of shares) {
        if (!this.#isShown(share)) continue;
        const [from] = share;
        const value = run.simulation?.noiseless[before][from] ?? 0;
        const noise = (run.simulation?.messages[before][from] ?? 0) - value;
        const holding = { value, noise, weight: run.weights[before][from] };
        this.#drawHolding(...arcPoint(layout, ...share, part), holding, small);
      }
    };
    drawAll(sent, progress);
    drawAll(returned, progress < 0.5 ? progress : 1 - progress);
  }

  #drawLabels() {
    const { layout, run } = this;
    const { chosen, pointed, colluding } = this.look;
    Object.assign(this.pen, { textAlign: "center", textBaseline: "middle" });
    if (layout.named) {
      for (let party = 0; party < run.parties; party += 1) {
        this.#drawLabel(party, party === chosen || colluding.has(party));
      }
    } else for (const party of new Set([pointed, chosen])) if (party !== null) this.#drawLabel(party, true);
  }

  /**
   * @param {number} party
   * @param {boolean} bold
   */
  #drawLabel(party, bold) {
    const { pen } = this;
    const { x, y, middle, radius, named } = this.layout;
    const [dx, dy] = [x[party] - middle, y[party] - middle];
    const distance = Math.hypot(dx, dy) || 1;
    const gap = radius + (named ? 15 : 13) + (named && this.look.colluding.has(party) ? 3 : 0);
    const out = named || distance + gap < middle - 8 ? gap : -gap;
    const labelX = x[party] + (dx / distance) * out;
    const labelY = y[party] + (dy / distance) * out;
    pen.font = `${bold ? "bold " : ""}${named && this.run.parties <= 40 ? 13 : 11}px system-ui, sans-serif`;
    if (!named) {
      const width = pen.measureText(String(party)).width + 8;
      pen.fillStyle = this.#colours.card;
      pen.fillRect(labelX - width / 2, labelY - 8, width, 16);
    }
    pen.fillStyle = bold ? this.#colours.ink : this.#colours.soft;
    pen.fillText(String(party), labelX, labelY);
  }
}
