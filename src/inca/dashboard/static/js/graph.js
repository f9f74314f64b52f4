// The stage: a canvas on which a round of a run is drawn.

import { shares } from "./happened.js";
import { along, nearest, places } from "./layout.js";

const MANY = 1600; // arrows; of more only those of the chosen party and of colluders are drawn
const NAMES = ["paper", "card", "ink", "soft", "line", "focus", "own", "cancelling", "colluder", "absent", "warn"];
const TURN = 2 * Math.PI;

function palette() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** The size that fills a disc: nearly the greatest noise part or value part of the run, so that one wild number does not shrink all others. */
function fullDisc(data) {
  const sizes = [];
  data.messages.forEach((row, t) => row.forEach((y, i) => sizes.push(Math.abs(y - data.clean[t][i]), Math.abs(data.clean[t][i]))));
  sizes.sort((a, b) => a - b);
  return sizes[Math.floor(0.98 * (sizes.length - 1))] || 1;
}

export class Stage {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.look = { t: 0, progress: 1, chosen: null, pointed: null, colluding: new Set(), tapped: () => false };
    this.colours = palette();
  }

  /** Take another run. */
  take(data) {
    this.data = data;
    this.full = data.messages ? fullDisc(data) : 1;
    let most = 1;
    for (const row of data.weights) for (const each of row) if (each > most) most = each;
    this.fullWeight = most;
    this.fit();
  }

  /** Fit the canvas to its place on the page and to the screen's pixels. */
  fit() {
    const size = this.canvas.clientWidth, scale = Math.min(window.devicePixelRatio || 1, 2);
    if (!this.data || !size) return;
    this.size = size;
    this.scale = scale;
    this.canvas.width = this.canvas.height = Math.round(size * scale);
    this.layout = places(this.data.parties, size);
    this.below = null;
  }

  repaint() {
    this.colours = palette();
    this.below = null;
    this.draw();
  }

  /** Whether there is room for shares that move. */
  get moves() { return Boolean(this.layout) && !this.layout.crowd; }

  /** How many arrows of the round are left out for lack of room. */
  get leftOut() { return this.hidden ?? 0; }

  at(x, y) { return this.layout ? nearest(this.layout, x, y) : null; }

  show(look) {
    Object.assign(this.look, look);
    this.draw();
  }

  draw() {
    if (!this.layout) return;
    const { pen, colours, size } = this;
    const key = this.look.t;
    if (this.known?.data !== this.data || this.known.t !== key) this.known = { data: this.data, t: key, ...shares(this.data, key) };
    pen.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    pen.globalAlpha = 1;
    if (this.look.progress > 0 && this.look.progress < 1 && this.below) pen.drawImage(this.below, 0, 0, size, size);
    else {
      pen.fillStyle = colours.card;
      pen.fillRect(0, 0, size, size);
      this.arrows();
      this.keep();
    }
    this.parties();
    if (this.look.progress < 1) this.travellers();
    this.labels();
  }

  /** Keep the arrows for the time that shares are on their way: they stay the same from picture to picture. */
  keep() {
    this.below = null;
    if (this.look.progress > 0) return;
    this.below = new OffscreenCanvas(this.canvas.width, this.canvas.height);
    this.below.getContext("2d").drawImage(this.canvas, 0, 0);
  }

  /** Whether arrows of this share are to be seen. */
  shown(from, to) {
    const { chosen, colluding } = this.look;
    return !this.hidden || from === chosen || to === chosen || ((colluding.has(from) || colluding.has(to)) && this.hiddenColluders);
  }

  arrows() {
    const { pen, colours, layout, known } = this, { chosen } = this.look;
    const count = (known.sent.length + known.back.length) / 2;
    this.hidden = count > MANY && !(layout.crowd && count <= 2 * MANY) ? count : 0;
    this.hiddenColluders = this.hidden && this.look.colluding.size > 0 && this.look.colluding.size * (known.sent.length / this.data.parties) < MANY;
    const mine = known.sent.filter((id) => id === chosen).length;
    const crowded = Math.max(0.3, Math.min(0.75, 10 / Math.sqrt(count + 1)));
    const kinds = {
      sent: [colours.soft, layout.crowd ? 0.2 : crowded, layout.crowd ? 0.7 : 1.1, []],
      back: [colours.warn, layout.crowd ? 0.7 : 1, layout.crowd ? 0.8 : 1.5, [5, 4]],
      own: mine > 40 ? [colours.focus, 0.5, 0.8, []] : [colours.focus, 1, 2, []],
    };
    const each = (pairs, kind, chosenOnes, end) => {
      const [colour, alpha, width, dash] = kinds[kind];
      Object.assign(pen, { globalAlpha: alpha, strokeStyle: colour, fillStyle: colour, lineWidth: width });
      pen.setLineDash(dash);
      for (let k = 0; k < pairs.length; k += 2) {
        const from = pairs[k], to = pairs[k + 1];
        if ((from === chosen || to === chosen) === chosenOnes && this.shown(from, to)) this.arrow(from, to, end, !layout.crowd || chosenOnes);
      }
    };
    each(known.sent, "sent", false, 1);
    each(known.back, "back", false, 0);
    each(known.sent, "own", true, 1);
    each(known.back, "back", true, 0);
    pen.globalAlpha = 1;
    pen.setLineDash([]);
  }

  /** How far along an arc its visible end lies, so that it stops at the rim of a disc. */
  rim(from, to, end) {
    const { x, y, radius } = this.layout;
    const far = Math.hypot(x[to] - x[from], y[to] - y[from]) || 1, off = Math.min(0.32, (radius + 5) / far);
    return end ? 1 - off : off;
  }

  /** One arrow with its tip at one end. Each is stroked by itself: one path of many arrows takes a browser far longer to fill. */
  arrow(from, to, end, tip) {
    const { layout, pen } = this;
    pen.beginPath();
    if (layout.crowd) {
      pen.moveTo(layout.x[from], layout.y[from]);
      pen.lineTo(layout.x[to], layout.y[to]);
    } else {
      const [, , cx, cy] = along(layout, from, to, 0.5), [x0, y0] = along(layout, from, to, this.rim(from, to, 0)), [x1, y1] = along(layout, from, to, this.rim(from, to, 1));
      pen.moveTo(x0, y0);
      pen.quadraticCurveTo(cx, cy, x1, y1);
    }
    pen.stroke();
    if (tip) this.head(from, to, end);
  }

  head(from, to, end) {
    const { layout, pen } = this, size = Math.max(4, Math.min(9, 0.55 * layout.radius)), bend = layout.crowd ? null : 0.16;
    const near = this.rim(from, to, end), [x, y] = along(layout, from, to, near, bend), [bx, by] = along(layout, from, to, near + (end ? -0.05 : 0.05), bend);
    const turn = Math.atan2(y - by, x - bx);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x - size * Math.cos(turn - 0.45), y - size * Math.sin(turn - 0.45));
    pen.lineTo(x - size * Math.cos(turn + 0.45), y - size * Math.sin(turn + 0.45));
    pen.closePath();
    pen.fill();
  }

  /** Value part, noise part and weight of a party at this moment, between two rounds while shares are on their way. */
  holds(i) {
    const { data } = this, { t, progress } = this.look, past = Math.max(t - 1, 0);
    const mix = (rows) => rows[past][i] + (rows[t][i] - rows[past][i]) * progress;
    if (!data.messages) return { value: 0, noise: 0, weight: mix(data.weights) };
    const value = mix(data.clean);
    return { value, noise: mix(data.messages) - value, weight: mix(data.weights) };
  }

  disc(x, y, radius) {
    this.pen.beginPath();
    this.pen.arc(x, y, radius, 0, TURN);
  }

  diamond(x, y, radius) {
    const { pen } = this;
    pen.beginPath();
    pen.moveTo(x, y - radius);
    pen.lineTo(x + radius, y);
    pen.lineTo(x, y + radius);
    pen.lineTo(x - radius, y);
    pen.closePath();
  }

  parties() {
    const { layout, data } = this, here = data.present[this.look.t];
    for (let i = 0; i < data.parties; i += 1) {
      const x = layout.x[i], y = layout.y[i];
      if (layout.crowd) this.dot(i, x, y, here[i]);
      else this.party(i, x, y, here[i]);
      if (this.look.tapped(this.look.t, i)) this.tap(x, y);
    }
    if (this.look.chosen !== null && this.look.chosen < data.parties) this.ring(this.look.chosen);
  }

  party(i, x, y, there) {
    const { pen, colours, layout } = this, r = layout.radius, colludes = this.look.colluding.has(i);
    if (colludes) this.diamond(x, y, 1.15 * r + 4.5);
    else this.disc(x, y, r);
    pen.fillStyle = colours.paper;
    pen.strokeStyle = colludes ? colours.colluder : there ? colours.line : colours.absent;
    pen.lineWidth = colludes ? 2.5 : 1.2;
    pen.fill();
    pen.stroke();
    if (!there) {
      this.cross(x, y, 0.55 * r, Math.max(1.5, 0.14 * r));
      return;
    }
    const { value, noise, weight } = this.holds(i);
    this.parts(x, y, value, noise, r - 1);
    if (!this.data.messages) this.plainWeight(x, y, weight, r - 1);
    else if (r >= 5) this.gauge(x, y, r + 2.5, weight, Math.max(1.5, 0.14 * r));
  }

  /** Noise and value as discs whose areas are their sizes; noise that pulls down is hollow. The smaller one lies on top. */
  parts(x, y, value, noise, most) {
    if (!this.data.messages) return;
    const { pen, colours } = this, radius = (size) => most * Math.sqrt(Math.min(1, Math.abs(size) / this.full));
    const draw = { noise: () => {
      this.disc(x, y, Math.max(0.5, radius(noise)));
      pen.fillStyle = pen.strokeStyle = colours.cancelling;
      pen.globalAlpha = noise < 0 ? 0.25 : 1;
      pen.fill();
      pen.globalAlpha = 1;
      pen.lineWidth = 1.2;
      if (noise < 0) pen.stroke();
    }, value: () => {
      this.disc(x, y, Math.max(most > 6 ? 1.5 : 0.7, radius(value)));
      pen.fillStyle = colours.own;
      pen.fill();
      pen.strokeStyle = colours.paper;
      pen.lineWidth = 0.8;
      if (most > 6) pen.stroke();
    } };
    for (const part of Math.abs(value) > Math.abs(noise) ? ["value", "noise"] : ["noise", "value"]) draw[part]();
  }

  plainWeight(x, y, weight, most) {
    this.disc(x, y, Math.max(0.7, most * Math.sqrt(Math.min(1, weight / this.fullWeight))));
    this.pen.fillStyle = this.colours.own;
    this.pen.fill();
  }

  /** The weight as a part of a ring; a full ring is a weight of 1, or the greatest one if that is more. */
  gauge(x, y, radius, weight, width) {
    const { pen, colours } = this;
    pen.beginPath();
    pen.arc(x, y, radius, -TURN / 4, -TURN / 4 + TURN * Math.min(1, Math.max(0, weight / this.fullWeight)));
    pen.strokeStyle = radius > 14 ? colours.ink : colours.soft;
    pen.lineWidth = width;
    pen.stroke();
  }

  cross(x, y, arm, width) {
    const { pen, colours } = this;
    pen.beginPath();
    pen.moveTo(x - arm, y - arm);
    pen.lineTo(x + arm, y + arm);
    pen.moveTo(x + arm, y - arm);
    pen.lineTo(x - arm, y + arm);
    pen.strokeStyle = colours.absent;
    pen.lineWidth = width;
    pen.stroke();
  }

  dot(i, x, y, there) {
    const { pen, colours, layout } = this, r = layout.radius;
    if (!there) this.cross(x, y, 0.8 * r, 1);
    else if (this.data.messages) {
      const { value, noise } = this.holds(i);
      this.parts(x, y, value, noise, r);
    } else this.plainWeight(x, y, this.holds(i).weight, r);
    if (!this.look.colluding.has(i)) return;
    this.diamond(x, y, r + 3);
    pen.strokeStyle = colours.colluder;
    pen.lineWidth = 1.5;
    pen.stroke();
  }

  /** A small flag on a party whose message is tapped. */
  tap(x, y) {
    const { pen, colours, layout } = this, size = Math.max(3, Math.min(9, 0.6 * layout.radius)), left = x - 0.7 * layout.radius - size, top = y - 0.7 * layout.radius - size;
    pen.beginPath();
    pen.moveTo(left, top);
    pen.lineTo(left + 2 * size, top + 0.3 * size);
    pen.lineTo(left + 0.6 * size, top + 1.8 * size);
    pen.closePath();
    pen.fillStyle = colours.colluder;
    pen.fill();
  }

  ring(i) {
    const { pen, colours, layout } = this;
    this.disc(layout.x[i], layout.y[i], layout.radius + (this.look.colluding.has(i) ? 11 : 7));
    pen.strokeStyle = colours.focus;
    pen.lineWidth = 3;
    pen.stroke();
  }

  /** Shares on their way, as small copies of what their senders held; one that comes back turns round halfway. */
  travellers() {
    const { layout, known, data } = this, { t, progress } = this.look, small = Math.max(3, 0.5 * layout.radius);
    const move = (pairs, where) => {
      for (let k = 0; k < pairs.length; k += 2) {
        const from = pairs[k], to = pairs[k + 1];
        if (!this.shown(from, to)) continue;
        const [x, y] = along(layout, from, to, where);
        if (data.messages) this.parts(x, y, data.clean[t - 1][from], data.messages[t - 1][from] - data.clean[t - 1][from], small);
        else this.plainWeight(x, y, data.weights[t - 1][from], small);
      }
    };
    move(known.sent, progress);
    move(known.back, progress < 0.5 ? progress : 1 - progress);
  }

  labels() {
    const { pen, colours, layout, data } = this, { chosen, pointed } = this.look;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const font = (bold) => `${bold ? "bold " : ""}${layout.named && data.parties <= 40 ? 13 : 11}px system-ui, sans-serif`;
    const write = (i, bold) => {
      const dx = layout.x[i] - layout.middle, dy = layout.y[i] - layout.middle, far = Math.hypot(dx, dy) || 1;
      const off = layout.radius + (layout.named ? 15 : 13) + (this.look.colluding.has(i) && layout.named ? 3 : 0);
      const out = layout.named || far + off < layout.middle - 8 ? off : -off;
      const x = layout.x[i] + (dx / far) * out, y = layout.y[i] + (dy / far) * out;
      pen.font = font(bold);
      if (!layout.named) {
        const wide = pen.measureText(String(i)).width + 8;
        pen.fillStyle = colours.card;
        pen.fillRect(x - wide / 2, y - 8, wide, 16);
      }
      pen.fillStyle = bold ? colours.ink : colours.soft;
      pen.fillText(String(i), x, y);
    };
    if (layout.named) for (let i = 0; i < data.parties; i += 1) write(i, i === chosen || this.look.colluding.has(i));
    else for (const i of [pointed, chosen]) if (i !== null && i < data.parties) write(i, true);
  }
}
