// The shapes that a round is drawn with.

/** @import { Layout } from "../../lib/party_layout.js" */
import { arcControl, arcPoint, arcRim } from "../../lib/party_layout.js";

/** @typedef {CanvasRenderingContext2D} Pen */

const FULL_TURN = 2 * Math.PI;

/**
 * The outline of a disc.
 * @param {Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 */
export function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, FULL_TURN);
}

/**
 * The outline of a polygon.
 * @param {Pen} pen
 * @param {[x: number, y: number][]} corners
 */
function polygon(pen, corners) {
  pen.beginPath();
  for (const [x, y] of corners) pen.lineTo(x, y);
  pen.closePath();
}

/**
 * The outline of a diamond: the sign of a colluder.
 * @param {Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 */
export function diamond(pen, x, y, radius) {
  polygon(pen, [
    [x, y - radius],
    [x + radius, y],
    [x, y + radius],
    [x - radius, y],
  ]);
}

/**
 * A cross: the sign of an absent party.
 * @param {Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {number} arm
 */
export function cross(pen, x, y, arm) {
  pen.beginPath();
  pen.moveTo(x - arm, y - arm);
  pen.lineTo(x + arm, y + arm);
  pen.moveTo(x + arm, y - arm);
  pen.lineTo(x - arm, y + arm);
  pen.stroke();
}

/**
 * A part of a ring.
 * @param {Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 * @param {number} part from 0 to 1
 */
export function gauge(pen, x, y, radius, part) {
  pen.beginPath();
  pen.arc(x, y, radius, -FULL_TURN / 4, -FULL_TURN / 4 + FULL_TURN * Math.min(1, Math.max(0, part)));
  pen.stroke();
}

/**
 * A flag at the upper left of a party: the sign of an eavesdropped message.
 * @param {Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {number} radius of the party
 */
export function flag(pen, x, y, radius) {
  const size = Math.max(3, Math.min(9, 0.6 * radius));
  const left = x - 0.7 * radius - size;
  const top = y - 0.7 * radius - size;
  polygon(pen, [
    [left, top],
    [left + 2 * size, top + 0.3 * size],
    [left + 0.6 * size, top + 1.8 * size],
  ]);
  pen.fill();
}

/**
 * The line of an arrow from one party to another. Each is stroked by itself: a browser takes far longer to fill one
 * path of many arrows.
 * @param {Pen} pen
 * @param {Layout} layout
 * @param {number} from
 * @param {number} to
 */
export function arrowLine(pen, layout, from, to) {
  pen.beginPath();
  if (layout.crowd) {
    pen.moveTo(layout.x[from], layout.y[from]);
    pen.lineTo(layout.x[to], layout.y[to]);
  } else {
    pen.moveTo(...arcPoint(layout, from, to, arcRim(layout, from, to, false)));
    const end = arcPoint(layout, from, to, arcRim(layout, from, to, true));
    pen.quadraticCurveTo(...arcControl(layout, from, to), ...end);
  }
  pen.stroke();
}

/**
 * The head of an arrow, at its end or (for a share that was returned) at its start.
 * @param {Pen} pen
 * @param {Layout} layout
 * @param {number} from
 * @param {number} to
 * @param {boolean} atEnd
 */
export function arrowHead(pen, layout, from, to, atEnd) {
  const size = Math.max(4, Math.min(9, 0.55 * layout.radius));
  const tip = arcRim(layout, from, to, atEnd);
  const [x, y] = arcPoint(layout, from, to, tip);
  const [beforeX, beforeY] = arcPoint(layout, from, to, tip + (atEnd ? -0.05 : 0.05));
  const direction = Math.atan2(y - beforeY, x - beforeX);
  polygon(pen, [
    [x, y],
    [x - size * Math.cos(direction - 0.45), y - size * Math.sin(direction - 0.45)],
    [x - size * Math.cos(direction + 0.45), y - size * Math.sin(direction + 0.45)],
  ]);
  pen.fill();
}
