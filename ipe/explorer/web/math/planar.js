/* Plane geometry: closed walks cut into simple polygons, the nearest point of segments. */

import { clip } from "./numbers.js";

const gap = (x, y) => Math.max(Math.abs(x[0] - y[0]), Math.abs(x[1] - y[1]));

/** A closed walk as polygons that visit no point twice; if it has none, as one segment or point. */
export function simpleLoops(walk, blur) {
  const stack = [];
  const loops = [];
  for (const point of walk) {
    const k = walk.findIndex((other) => gap(other, point) <= blur);
    const start = stack.indexOf(k);
    if (start >= 0) loops.push(stack.splice(start));
    stack.push(k);
  }
  loops.push(stack);
  const polygons = loops.filter((loop) => loop.length > 2); // beside these, a there-and-back is a trace of rounding
  const longest = loops.reduce((best, loop) => (loop.length > best.length ? loop : best));
  return (polygons.length ? polygons : [longest]).map((loop) => loop.map((k) => walk[k]));
}

/** The sides of a polygon as pairs of points; of a segment or a point, one. */
export function sides(loop) {
  const around = loop.map((point, i) => [point, loop[(i + 1) % loop.length]]);
  return loop.length > 2 ? around : around.slice(0, 1);
}

/** The nearest point on any of the segments, and the distance to it; norm "l2" or "linf". */
export function nearestOnSegments(point, segments, norm) {
  let best = { point: null, distance: Infinity };
  for (const [start, end] of segments) {
    for (const t of kinks(point, start, end, norm)) {
      const at = t < 1 ? along(start, end, clip(t, 0, 1)) : end;
      const distance = norm === "l2" ? Math.hypot(point[0] - at[0], point[1] - at[1]) : gap(point, at);
      if (distance < best.distance) best = { point: at, distance };
    }
  }
  return best;
}

const along = (start, end, t) => [start[0] + t * (end[0] - start[0]), start[1] + t * (end[1] - start[1])];

/** Where the distance along a segment can have its minimum, if not at an end: it is convex. */
function kinks(point, start, end, norm) {
  const u = [point[0] - start[0], point[1] - start[1]];
  const d = [end[0] - start[0], end[1] - start[1]];
  const ratio = (x, y) => (y === 0 ? 0 : x / y);
  if (norm === "l2") return [ratio(u[0] * d[0] + u[1] * d[1], d[0] * d[0] + d[1] * d[1])];
  return [ratio(u[0] - u[1], d[0] - d[1]), ratio(u[0] + u[1], d[0] + d[1])]; // the two coordinates are equally far
}
