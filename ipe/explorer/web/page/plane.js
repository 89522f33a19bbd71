/* The plane of values: axes, the polytope with its deterministic policies, and room for what else is drawn on it. */

import { isAchievable } from "../math/values.js";
import { set, svg } from "../../../pages/web/dom.js";
import { placeLabels } from "./labels.js";
import { labelAt, ticks } from "./view.js";

const MAX_LABELS = 16;
const LAYERS = ["axes", "fill", "map", "edge", "trace", "arrows", "marks", "targets", "handle"];

/** An empty picture with its layers, from back to front. */
export function makePlane(root) {
  const picture = svg("svg", { role: "group", "aria-label": "Value polytope" });
  const clip = svg("clipPath", { id: "frame" }, svg("rect"));
  const wide = svg("clipPath", { id: "frame-wide" }, svg("rect")); // V at the edge of the frame is whole
  const heads = ["ipe", "greedy"].map((name) =>
    svg(
      "marker",
      { id: `head-${name}`, viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 9, markerHeight: 9, orient: "auto",
        markerUnits: "userSpaceOnUse" },
      svg("path", { d: "M0 0.8L10 5L0 9.2z", class: `head ${name}` }),
    ),
  );
  picture.append(svg("defs", {}, clip, wide, ...heads));
  const layers = {};
  for (const name of LAYERS) {
    layers[name] = svg("g", { class: name });
    const wider = name === "handle" || name === "targets";
    if (name !== "axes") set(layers[name], { "clip-path": `url(#frame${wider ? "-wide" : ""})` });
    if (name !== "handle" && name !== "marks") set(layers[name], { "aria-hidden": "true" });
    picture.append(layers[name]);
  }
  root.append(picture);
  return { picture, clips: [clip.firstChild, wide.firstChild], ...layers };
}

/** Everything that changes with the view and the MDP, and not with V. */
export function drawGround(plane, view, model, polytope) {
  set(plane.picture, { viewBox: `0 0 ${view.width} ${view.height}` });
  const { x, y, width, height } = view.frame;
  set(plane.clips[0], view.frame);
  set(plane.clips[1], { x: x - 14, y: y - 14, width: width + 28, height: height + 28 });
  plane.axes.replaceChildren(...axes(view, model));
  const line = (points) => `M${points.map((v) => view.at(v).map(short).join(" ")).join("L")}`;
  const outline = polytope.polygons.map((polygon) => `${line(polygon)}Z`);
  plane.fill.replaceChildren(svg("path", { d: outline.join("") || "M0 0", class: "polytope" }));
  plane.edge.replaceChildren(svg("path", { d: polytope.segments.map(line).join(""), class: "boundary" }));
  const { parts, boxes } = marks(view, model, polytope);
  plane.marks.replaceChildren(...parts);
  plane.taken = boxes;
}

export const short = (x) => x.toFixed(1);

function axes(view, model) {
  const { x, y, width, height } = view.frame;
  const parts = [svg("rect", { x, y, width, height, class: "paper" })];
  for (const { value, text } of ticks(view.low[0], view.high[0], width)) {
    const at = short(view.x(value));
    parts.push(svg("path", { d: `M${at} ${y}V${y + height}`, class: "grid" }));
    const middle = short(labelAt(view.x(value), text, view.width));
    parts.push(svg("text", { x: middle, y: y + height + 15, class: "tick middle" }, text));
  }
  for (const { value, text } of ticks(view.low[1], view.high[1], height)) {
    const at = view.y(value);
    parts.push(svg("path", { d: `M${x} ${short(at)}H${x + width}`, class: "grid" }));
    parts.push(svg("text", { x: x - 6, y: short(at + 4), class: "tick end" }, text));
  }
  parts.push(svg("path", { d: `M${x} ${y}V${y + height}H${x + width}`, class: "axis" }));
  const name = (s) => [svg("tspan", { class: "italic" }, "V"), `(${model.states[s]})`];
  parts.push(svg("text", { x: x + width / 2, y: view.height - 5, class: "title middle" }, ...name(0)));
  const turn = `rotate(-90 12 ${y + height / 2})`;
  parts.push(svg("text", { x: 12, y: y + height / 2, class: "title middle", transform: turn }, ...name(1)));
  return parts;
}

/** The deterministic policies with their names, and the boxes that these cover; equal values share a mark. */
function marks(view, model, polytope) {
  const places = [];
  polytope.vertices.forEach((value, k) => {
    const [x, y] = view.at(value);
    const name = polytope.policies[k].map((a, s) => model.actions[s][a].name).join(", ");
    const twin = places.find((place) => Math.hypot(place.x - x, place.y - y) < 0.5);
    if (twin) twin.names.push(name);
    else places.push({ x, y, names: [name] });
  });
  const diamonds = places.map(({ x, y, names }) =>
    svg("path", { d: `M${short(x)} ${short(y - 5)}l5 5l-5 5l-5 -5z`, class: "vertex" },
      svg("title", {}, `policy ${names.join("; ")}`)),
  );
  const boxes = places.map((place) => ({ x: place.x, y: place.y, width: 10, height: 10 }));
  if (polytope.vertices.length > MAX_LABELS) return { parts: diamonds, boxes };
  const { x, y, width, height } = view.frame;
  const visible = places.filter((p) => p.x >= x - 1 && p.x <= x + width + 1 && p.y >= y - 1 && p.y <= y + height + 1);
  const labels = visible.map((place) => {
    const text = place.names.length > 2 ? `${place.names[0]}; +${place.names.length - 1}` : place.names.join("; ");
    return { x: place.x, y: place.y, text, width: 6.6 * text.length + 6 };
  });
  const covered = (px, py) => isAchievable(model, view.value(px, py));
  const at = placeLabels(labels, view.frame, boundaryPoints(view, polytope), covered);
  const texts = labels.flatMap(({ text }, k) =>
    at[k] ? [svg("text", { x: short(at[k].x), y: short(at[k].y + 4), class: "name middle" }, text)] : [],
  );
  return { parts: [...diamonds, ...texts], boxes: [...boxes, ...at.filter((box) => box !== null)] };
}

function boundaryPoints(view, polytope) {
  return polytope.segments.flatMap((pair) => {
    const [[x0, y0], [x1, y1]] = pair.map(view.at);
    const count = Math.min(200, Math.ceil(Math.hypot(x1 - x0, y1 - y0) / 8));
    return Array.from({ length: count + 1 }, (_, k) => [
      x0 + (k / Math.max(1, count)) * (x1 - x0),
      y0 + (k / Math.max(1, count)) * (y1 - y0),
    ]);
  });
}
