/* Which part of the plane of values is shown, and where a value is on the screen. */

import { greatest, least, roundStep } from "../math/numbers.js";

const ZOOM = 1.6;
const LEFT = 46;
const TITLE = 26; // the axis title and the gap between a tick's label and the axis
const CHARACTER = 7.7; // the width of a digit of a tick's label
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
  const view = scales(box, zoom, centre, width, height, LEFT);
  const longest = greatest(ticks(view.low[1], view.high[1], view.frame.height).map(({ text }) => text.length));
  const left = TITLE + CHARACTER * longest;
  return left > LEFT ? scales(box, zoom, centre, width, height, left) : view;
}

function scales(box, zoom, centre, width, height, left) {
  const inner = [Math.max(40, width - left - RIGHT), Math.max(40, height - TOP - BOTTOM)];
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
    frame: { x: left, y: TOP, width: inner[0], height: inner[1] },
    x: (v) => left + (v - low[0]) * scale,
    y: (v) => TOP + (high[1] - v) * scale,
    at: (point) => [left + (point[0] - low[0]) * scale, TOP + (high[1] - point[1]) * scale],
    value: (x, y) => [low[0] + (x - left) / scale, high[1] - (y - TOP) / scale],
  };
}

/** Round numbers between two values, as many as there is room for. */
export function ticks(low, high, room) {
  const step = roundStep((high - low) / Math.max(2, room / 70));
  const from = Math.ceil(low / step);
  const count = Math.floor(high / step) - from + 1;
  const power = (x) => Math.floor(Math.log10(x) + 1e-9);
  const large = Math.max(Math.abs(low), Math.abs(high)) >= 1e5;
  const written = (size) => {
    if (!large || size < step / 2) return size.toFixed(large ? 0 : Math.min(Math.max(0, -power(step)), 8));
    return size.toExponential(Math.min(Math.max(0, power(size) - power(step)), 8)).replace(/\.?0*e\+/, "e");
  };
  return Array.from({ length: Math.max(0, count) }, (_, k) => {
    const value = step * (from + k);
    const text = written(Math.abs(value));
    return { value, text: value < 0 && Number(text) !== 0 ? `−${text}` : text };
  });
}

/** Where a tick's label is centred: within the picture, even at its edge. */
export const labelAt = (x, text, width) => Math.min(x, width - (CHARACTER / 2) * text.length);
