/* What lies on the plane: the arrows from V, the value map, the trace of a run. */

import { gridAround } from "../math/polytope.js";
import { isAchievable, valueMap } from "../math/values.js";
import { byId, set, svg } from "../../../pages/web/dom.js";
import { overlap } from "./labels.js";
import { short } from "./plane.js";

const path = (points) => (points.length ? `M${points.map((p) => `${short(p[0])} ${short(p[1])}`).join("L")}` : "M0 0");
const dots = (points) => points.map((p) => `M${short(p[0])} ${short(p[1])}h0`).join("") || "M0 0";

/** From V to the true values of its evaluation policy and of its greedy policy, and in a corner what V is. */
export function drawArrows(plane, view, v, result, nearest) {
  const from = view.at(v);
  const parts = [];
  if (!result.achievable) {
    parts.push(svg("path", { d: path([from, view.at(nearest)]), class: "nearest" }));
  }
  for (const [name, values] of [["greedy", result.greedyValues], ["ipe", result.values]]) {
    const to = view.at(values);
    if (Math.hypot(to[0] - from[0], to[1] - from[1]) > 14) {
      parts.push(svg("path", { d: path([from, shortened(from, to, 6)]), class: `arrow ${name}`,
        "marker-end": `url(#head-${name})` }));
    }
  }
  const [gx, gy] = view.at(result.greedyValues);
  const [x, y] = view.at(result.values);
  plane.arrows.replaceChildren(...parts);
  const word = result.achievable ? "achievable" : "not achievable";
  plane.targets.replaceChildren(
    svg("path", { d: `M${short(gx)} ${short(gy - 11)}l10 17.5h-20z`, class: "target greedy" }),
    svg("rect", { x: short(x - 6.5), y: short(y - 6.5), width: 13, height: 13, class: "target ipe" }),
    svg("text", { ...freePlace(view.frame, word, [...plane.taken, around(from, 40), around([x, y], 16)]), class: `state ${result.achievable ? "yes" : "no"}` }, word),
  );
}

const around = ([x, y], size) => ({ x, y, width: size, height: size });

/** A place for a word in the frame that covers none of the boxes: lower right, where values seldom are, or another. */
function freePlace({ x, y, width, height }, word, taken) {
  const box = { width: 8 * word.length, height: 18 };
  const [left, right] = [x + 10 + box.width / 2, x + width - 8 - box.width / 2];
  const at = (middle, row) => ({ ...box, x: middle, y: row });
  const corners = [y + height - 15, y + 15].flatMap((row) => [at(right, row), at(left, row)]);
  const sides = [0.25, 0.75, 0.5].flatMap((share) => [at(left, y + share * height), at(right, y + share * height)]);
  const places = [...corners, ...sides];
  const crossed = (place) => taken.filter((other) => overlap(place, other)).length;
  const free = places.find((place) => crossed(place) === 0) ?? places[0];
  return { x: short(free.x), y: short(free.y + 5), "text-anchor": "middle" };
}

function shortened(from, to, by) {
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  const rest = Math.max(0, length - by) / length;
  return [from[0] + rest * (to[0] - from[0]), from[1] + rest * (to[1] - from[1])];
}

/** Figure 3: each V of a grid, and a line to where acting on it leads, in the colour of the policy; ink for V inside. */
export function drawMap(layer, view, model, polytope, policy) {
  set(byId("map-legend"), { class: `legend ways ${policy}` });
  if (policy === "off") {
    layer.replaceChildren();
    return;
  }
  const sets = { inside: { lines: [], heads: [], dots: [] }, outside: { lines: [], heads: [], dots: [] } };
  for (const v of gridAround(polytope.vertices).points) {
    const part = sets[isAchievable(model, v) ? "inside" : "outside"];
    const from = view.at(v);
    const to = view.at(valueMap(model, v, policy));
    part.dots.push(from);
    if (Math.hypot(to[0] - from[0], to[1] - from[1]) > 8) {
      part.lines.push(path([from, to]));
      part.heads.push(head(from, to));
    }
  }
  const parts = Object.entries(sets).flatMap(([name, part]) => [
    svg("path", { d: part.lines.join("") || "M0 0", class: `way ${name}` }),
    svg("path", { d: part.heads.join("") || "M0 0", class: `way-head ${name}` }),
    svg("path", { d: dots(part.dots), class: `way-dot ${name}` }),
  ]);
  layer.replaceChildren(svg("g", { class: `ways ${policy}` }, parts));
}

function head(from, to) {
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  const [ux, uy] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
  const [bx, by] = [to[0] - 6 * ux, to[1] - 6 * uy];
  return `${path([to, [bx - 2.4 * uy, by + 2.4 * ux], [bx + 2.4 * uy, by - 2.4 * ux]])}Z`;
}

/** Figure 2a: estimates and true values of the behaviour at every step, the starts circled. */
export function drawTrace(layer, view, trace) {
  if (trace === null) {
    layer.replaceChildren();
    return;
  }
  const values = trace.values.map(view.at);
  const estimates = trace.estimates.map(view.at);
  const parts = [];
  for (const [name, points] of [["values", values], ["estimates", estimates]]) {
    parts.push(svg("path", { d: path(points), class: `trace-line ${name}` }));
    parts.push(svg("path", { d: dots(points), class: `trace-dots ${name}` }));
  }
  for (const points of [values, estimates]) {
    parts.push(svg("circle", { cx: short(points[0][0]), cy: short(points[0][1]), r: 8, class: "start" }));
  }
  for (const [name, points] of [["values", values], ["estimates", estimates]]) {
    parts.push(svg("path", { d: dots(points.slice(-1)), class: `trace-now ${name}` }));
  }
  layer.replaceChildren(...parts);
}
