/* What the marks in the plane mean: below it those that are always there, the others beside what brings them. */

import { byId, html, svg } from "../../../pages/web/dom.js";

const arrow = (name, target) => [
  svg("path", { d: "M2 8H16", class: `arrow ${name}` }),
  svg("path", { d: target, class: `target ${name}` }),
];
const trace = (name) => [
  svg("path", { d: "M2 8H26", class: `trace-line ${name}` }),
  svg("path", { d: "M6 8h0M14 8h0M22 8h0", class: `trace-dots ${name}` }),
];
const way = (name) => [
  svg("path", { d: "M4 8H24", class: `way ${name}` }),
  svg("path", { d: "M4 8h0", class: `way-dot ${name}` }),
];
const ring = (cx, r, name) => svg("circle", { cx, cy: 8, r, class: name });

/** What it is called, and how it is drawn. */
const ENTRIES = {
  legend: [
    ["V, filled where achievable", () => [ring(7, 5, "v"), ring(20, 5, "v out")]],
    ["value of its evaluation policy", () => arrow("ipe", "M17 3.5h9v9h-9z")],
    ["value of its greedy policy", () => arrow("greedy", "M20.5 2.5l5.5 10h-11z")],
    ["to the nearest achievable", () => [svg("path", { d: "M2 8H26", class: "nearest" })]],
    ["values of all policies", () => [svg("rect", { x: 3, y: 3, width: 20, height: 10, class: "polytope boundary" })]],
    ["deterministic policy", () => [svg("path", { d: "M13 3l5 5l-5 5l-5 -5z", class: "vertex" })]],
  ],
  "map-legend": [
    ["from V inside", () => way("inside")],
    ["from V outside", () => way("outside")],
  ],
  "run-legend": [
    ["estimate maxₐ Q(s, a)", () => trace("estimates")],
    ["value of the behaviour", () => trace("values")],
    ["start of each", () => [ring(13, 6, "start")]],
  ],
};

/** Fill the lists. */
export function makeLegends() {
  for (const [id, entries] of Object.entries(ENTRIES)) {
    const size = { viewBox: "0 0 28 16", width: 28, height: 16 };
    const picture = (draw) => svg("svg", { ...size, "aria-hidden": "true" }, ...draw());
    byId(id).append(...entries.map(([text, draw]) => html("li", {}, picture(draw), text)));
  }
}
