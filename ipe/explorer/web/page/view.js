/* Which part of the plane of values is shown, and where a value is on the screen. */

import { greatest, least, roundStep } from "../math/numbers.js";

const ZOOM = 1.6;
const LEFT = 46;
const BOTTOM = 40;
const TOP = 10;
const RIGHT = 12;

/** The box [low, high] around points, its sides rounded outwards to a step of its grid. */
export function boxAround(points, step) {
  const corner = (pick, round, by) =>
    [0, 1].map((i) => step * (round(pick(points.map((point) => point[i])) / step) + by));
  return [corner(least, Math.floor, -0.5), corner(greatest, Math.ceil, 0.5)];
}

/** Scales for a box in a picture of that size: one unit of value is as long in both directions. */
export function viewOf(box, zoom, centre, width, height) {
  const inner = [Math.max(40, width - LEFT - RIGHT), Math.max(40, height - TOP - BOTTOM)];
  const extent = [box[1][0] - box[0][0], box[1][1] - box[0][1]];
  const scale = Math.min(inner[0] / extent[0], inner[1] / extent[1]) * ZOOM ** zoom;
  const middle = zoom !== 0 && centre ? centre : [(box[0][0] + box[1][0]) / 2, (box[0][1] + box[1][1]) / 2];
  const low = [0, 1].map((i) => middle[i] - inner[i] / scale / 2);
  const high = [0, 1].map((i) => middle[i] + inner[i] / scale / 2);
  return {
    low,
    high,
    scale,
    width,
    height,
    frame: { x: LEFT, y: TOP, width: inner[0], height: inner[1] },
    x: (v) => LEFT + (v - low[0]) * scale,
    y: (v) => TOP + (high[1] - v) * scale,
    at: (point) => [LEFT + (point[0] - low[0]) * scale, TOP + (high[1] - point[1]) * scale],
    value: (x, y) => [low[0] + (x - LEFT) / scale, high[1] - (y - TOP) / scale],
  };
}

/** Round numbers between two values, as many as there is room for. */
export function ticks(low, high, room) {
  const step = roundStep((high - low) / Math.max(2, room / 70));
  const from = Math.ceil(low / step);
  const count = Math.floor(high / step) - from + 1;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Array.from({ length: Math.max(0, count) }, (_, k) => {
    const value = step * (from + k);
    const size = Math.abs(value);
    const text = size >= 1e6 ? size.toExponential(1) : size.toFixed(Math.min(digits, 8));
    return { value, text: value < 0 && Number(text) !== 0 ? `−${text}` : text };
  });
}
