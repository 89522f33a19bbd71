/*
 * The value polytope of a model of two states: m_s <= V(s) <= M_s, the least and the largest of the lines of each
 * state. Its boundary consists of arcs of m_0, m_1, M_0 and M_1 between the values of four games.
 */

import { greatest, least, roundStep } from "./numbers.js";
import { nearestOnSegments, sides, simpleLoops } from "./planar.js";
import { linesOf, meet } from "./values.js";

/** The deterministic policies with their values, the boundary as segments, and the polygons that it encloses. */
export function valuePolytope(model) {
  const lines = [linesOf(model, 0), linesOf(model, 1)];
  const values = lines[0].map((first) => lines[1].map((second) => meet(first, second)));
  const size = greatest(lines.flat().map(({ intercept }) => Math.abs(intercept)));
  // Values that differ by less than this differ by rounding.
  const blur = (64 * Number.EPSILON * size) / (1 - model.gamma);
  const loops = simpleLoops(boundaryWalk(lines, values, blur), blur);
  return {
    policies: values.flatMap((row, a) => row.map((_, b) => [a, b])),
    vertices: values.flat(),
    segments: loops.flatMap(sides),
    polygons: loops.filter((loop) => loop.length > 2),
  };
}

/** The nearest achievable values to V and their distance; V itself if `inside`. */
export function nearestAchievable(polytope, v, inside, norm) {
  return inside ? { point: v, distance: 0 } : nearestOnSegments(v, polytope.segments, norm);
}

/** A grid of round numbers whose outermost points lie beyond all the given ones; on Switch-Stay, Figure 3's. */
export function gridAround(points, steps = 12) {
  const axes = [0, 1].map((i) => {
    const x = points.map((point) => point[i]);
    return [least(x), greatest(x)];
  });
  const extent = Math.max(axes[0][1] - axes[0][0], axes[1][1] - axes[1][0]);
  const size = extent || Math.max(1, Math.abs(axes[0][0]), Math.abs(axes[1][0]));
  const step = roundStep(size / steps);
  const [first, second] = axes.map(([low, high]) => {
    const from = Math.ceil(low / step - 1e-9) - 1; // a point on the grid up to rounding is on it: one step further
    const to = Math.floor(high / step + 1e-9) + 1;
    return Array.from({ length: to - from + 1 }, (_, k) => step * (from + k));
  });
  return { step, points: first.flatMap((x) => second.map((y) => [x, y])) };
}

function boundaryWalk(lines, values, blur) {
  const all = values.flat();
  const both = (pick) => [0, 1].map(pick);
  const low = both((i) => least(all.map((v) => v[i])));
  const high = both((i) => greatest(all.map((v) => v[i])));
  const upperLeft = both((i) => least(values.map((row) => greatest(row.map((v) => v[i])))));
  const lowerRight = both((i) => greatest(values.map((row) => least(row.map((v) => v[i])))));
  const same = (x, y) => Math.max(Math.abs(x[0] - y[0]), Math.abs(x[1] - y[1])) <= blur;
  for (const [one, other] of [[upperLeft, lowerRight], [lowerRight, upperLeft]]) {
    if (same(one, low) && same(other, high)) return [low, high]; // one state has, in effect, one action
  }
  const ties = lines.map((rows) => tie(rows, blur));
  const walk = (i, sign, start, end) => arc(lines[i], i, ties[i], sign, start, end);
  return [
    walk(0, -1, low, upperLeft).reverse(),
    walk(1, -1, low, lowerRight),
    walk(0, 1, lowerRight, high),
    walk(1, 1, upperLeft, high).reverse(),
  ].flatMap((points) => points.slice(0, -1));
}

/** The curve M (sign 1) or m (-1) of state i from corner to corner: its break points. */
function arc(lines, i, tied, sign, start, end) {
  const signed = lines.map(({ intercept, slope }) => ({ intercept: sign * intercept, slope: sign * slope }));
  const lo = start[1 - i];
  const hi = end[1 - i];
  let breaks = breakPoints(signed, lo, hi);
  if (tied !== null) breaks = lo < tied && tied < hi ? [tied] : []; // both arcs turn in the very same point
  const between = breaks.map((t) => {
    const extreme = sign * greatest(signed.map(({ intercept, slope }) => intercept + t * slope));
    return i === 0 ? [extreme, t] : [t, extreme];
  });
  return [start, ...between, end];
}

/** Where the highest of the lines changes between lo and hi, in increasing order. */
function breakPoints(lines, lo, hi) {
  const at = (line) => line.intercept + line.slope * lo;
  let current = lines.reduce((best, line) =>
    at(line) > at(best) || (at(line) === at(best) && line.slope >= best.slope) ? line : best,
  );
  const points = [];
  let t = lo;
  for (;;) {
    const from = current;
    const crossing = (line) => (from.intercept - line.intercept) / (line.slope - from.slope);
    const steeper = lines.filter((line) => line.slope > from.slope);
    if (!steeper.length) return points;
    t = Math.max(t, least(steeper.map(crossing)));
    if (t >= hi) return points;
    if (t > lo) points.push(t);
    const reached = t;
    current = steeper
      .filter((line) => crossing(line) <= reached)
      .reduce((best, line) => (line.slope > best.slope ? line : best));
  }
}

/** The other state's value at which all actions of a state are equally good, or null. */
function tie(lines, blur) {
  const flat = lines.reduce((best, line) => (line.slope < best.slope ? line : best));
  const steep = lines.reduce((best, line) => (line.slope > best.slope ? line : best));
  if (flat.slope === steep.slope) return null;
  const t = (flat.intercept - steep.intercept) / (steep.slope - flat.slope);
  const heights = lines.map(({ intercept, slope }) => intercept + slope * t);
  return greatest(heights) - least(heights) <= blur ? t : null;
}
