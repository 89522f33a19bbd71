import { html, svg } from "../../../pages/web/dom.js";
import { axes, bandPath, linePath, linear, ticks } from "./axes.js";

export const SLOTS = 12;
let charts = 0;

/** A slot (colour and dash) per line: the slot of its behaviour, or a free one where a line before it has that slot. */
export function slotsFor(wanted) {
  const slots = wanted.map((slot, i) => (wanted.indexOf(slot) === i ? slot : null));
  const free = [...Array(SLOTS).keys()].filter((slot) => !slots.includes(slot));
  return slots.map((slot) => slot ?? free.shift() ?? 0);
}

/** The sign of a slot beside a name: its colour and its dash. */
export function swatch(slot) {
  const line = svg("line", { class: "mean", x1: 1, x2: 27, y1: 6, y2: 6 });
  return svg("svg", { class: `swatch slot s${slot % SLOTS}`, viewBox: "0 0 28 12", "aria-hidden": "true" }, line);
}

/**
 * A chart of lines with bands over common x values, with a cursor that pointer and arrow keys move.
 *
 * `describe()` gives what to draw: {x, xLabel, yLabel, formatX, formatY, domain, label, lines}, where a line is
 * {slot, name, values, low, high, runs, runNames, always}. `moved(index, line)` hears where the cursor is.
 */
export function lineChart(describe, { height, moved }) {
  const picture = svg("svg", { class: "chart", "aria-hidden": "true" });
  const frame = html("div", { class: "plot", tabindex: 0, role: "slider" }, picture);
  const state = { index: null, line: 0, run: null };
  const clip = `clip-${++charts}`;
  let drawn = null;

  function draw() {
    const spec = describe();
    const width = Math.max(240, Math.round(frame.clientWidth || 640));
    const tall = Math.round(Math.min(height, Math.max(0.62 * height, 0.62 * width)));
    const box = { left: 54, right: width - 18, top: 26, bottom: tall - 42, height: tall };
    const x = linear([spec.x[0], spec.x[spec.x.length - 1]], [box.left, box.right]);
    const y = linear(spec.domain, [box.bottom, box.top]);
    const at = (i) => x(spec.x[i]);
    const many = Math.max(2, Math.floor(width / 110));
    picture.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    const xTicks = ticks([spec.x[0], spec.x[spec.x.length - 1]], many).map((value) => [value, spec.formatX(value)]);
    const yTicks = ticks(spec.domain, Math.floor(tall / 48)).map((value) => [value, spec.formatY(value)]);
    const body = svg("g", { "clip-path": `url(#${clip})` });
    const overlay = svg("g", {});
    const area = { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top };
    picture.replaceChildren(
      svg("defs", {}, svg("clipPath", { id: clip }, svg("rect", area))),
      axes(box, { at: x, ticks: xTicks, label: spec.xLabel }, { at: y, ticks: yTicks, label: spec.yLabel }),
      body,
      overlay,
    );
    for (const line of spec.lines) {
      const parts = [];
      if (line.always) for (const run of line.runs ?? []) parts.push(svg("path", { class: "run", d: linePath(at, y, run) }));
      if (line.low) parts.push(svg("path", { class: "band", d: bandPath(at, y, line.low, line.high) }));
      parts.push(svg("path", { class: "mean", d: linePath(at, y, line.values) }));
      body.append(svg("g", { class: `slot s${line.slot % SLOTS}` }, parts));
    }
    drawn = { spec, box, x, y, at, overlay, width };
    frame.setAttribute("aria-label", spec.label);
    frame.setAttribute("aria-valuemin", spec.x[0]);
    frame.setAttribute("aria-valuemax", spec.x[spec.x.length - 1]);
    if (state.index !== null && state.index >= spec.x.length) state.index = null;
    mark();
  }

  /** The cursor: a rule, a dot on each line, and the single runs of the line that it is nearest to. */
  function mark() {
    const { spec, box, y, at, overlay, width } = drawn;
    const index = state.index ?? spec.x.length - 1;
    frame.setAttribute("aria-valuenow", spec.x[index]);
    frame.setAttribute("aria-valuetext", spec.spoken(index));
    overlay.replaceChildren();
    moved(state.index === null ? null : index);
    if (state.index === null) return;
    overlay.append(svg("line", { class: "rule", x1: at(index), x2: at(index), y1: box.top, y2: box.bottom }));
    const near = spec.lines[state.line];
    if (near?.runs && spec.hover) overlay.append(runsOf(near, index));
    for (const line of spec.lines) {
      const value = line.values[index];
      if (value === null) continue;
      const dot = svg("circle", { class: "dot", r: 3.5, cx: at(index), cy: y(value) });
      overlay.append(svg("g", { class: `slot s${line.slot % SLOTS}` }, dot));
    }
    const side = at(index) > width / 2 ? { "text-anchor": "end", x: at(index) - 6 } : { x: at(index) + 6 };
    overlay.append(svg("text", { class: "note", y: box.top + 10, ...side }, spec.formatX(spec.x[index])));
  }

  function runsOf(line, index) {
    const { box, y, at, width } = drawn;
    const group = svg("g", { class: `slot s${line.slot % SLOTS}`, "clip-path": `url(#${clip})` });
    for (const run of line.runs) group.append(svg("path", { class: "run", d: linePath(at, y, run) }));
    if (state.run === null || !line.runs[state.run]) return group;
    group.append(svg("path", { class: "run near", d: linePath(at, y, line.runs[state.run]) }));
    const value = line.runs[state.run][index];
    if (value === null) return group;
    const right = at(index) > width / 2;
    const place = { x: at(index) + (right ? -8 : 8), y: Math.min(box.bottom - 6, Math.max(box.top + 24, y(value) - 8)) };
    const words = `${line.runNames[state.run]}: ${drawn.spec.formatY(value, true)}`;
    group.append(svg("text", { class: "note run-name", "text-anchor": right ? "end" : "start", ...place }, words));
    return group;
  }

  function nearestIndex(value) {
    const { x } = drawn.spec;
    let best = 0;
    for (let i = 1; i < x.length; i++) if (Math.abs(x[i] - value) < Math.abs(x[best] - value)) best = i;
    return best;
  }

  /** The entry of `lists` whose value at the index is nearest to a height in pixels. */
  function nearest(lists, index, height) {
    let best = null;
    let distance = Infinity;
    lists.forEach((list, i) => {
      const value = list[index];
      const away = value === null ? Infinity : Math.abs(drawn.y(value) - height);
      if (away < distance) [best, distance] = [i, away];
    });
    return best;
  }

  function point(event) {
    const place = picture.getBoundingClientRect();
    const scale = drawn.width / place.width;
    const { spec, box } = drawn;
    const [px, py] = [(event.clientX - place.left) * scale, (event.clientY - place.top) * scale];
    const share = (px - box.left) / (box.right - box.left);
    const [first, last] = [spec.x[0], spec.x[spec.x.length - 1]];
    state.index = nearestIndex(first + share * (last - first));
    state.line = nearest(spec.lines.map((line) => line.values), state.index, py) ?? 0;
    const runs = spec.lines[state.line]?.runs;
    state.run = runs ? nearest(runs, state.index, py) : null;
    mark();
  }

  function key(event) {
    const last = drawn.spec.x.length - 1;
    const index = state.index ?? last;
    const step = event.shiftKey ? 10 : 1;
    const many = drawn.spec.lines.length;
    if (event.key === "ArrowRight") state.index = Math.min(last, index + step);
    else if (event.key === "ArrowLeft") state.index = Math.max(0, index - step);
    else if (event.key === "Home") state.index = 0;
    else if (event.key === "End") state.index = last;
    else if (event.key === "ArrowUp" && many) [state.line, state.index] = [(state.line + many - 1) % many, index];
    else if (event.key === "ArrowDown" && many) [state.line, state.index] = [(state.line + 1) % many, index];
    else if (event.key === "Escape") state.index = null;
    else return;
    state.run = null;
    event.preventDefault();
    mark();
  }

  /** A finger that is lifted leaves the cursor where it was, until it touches elsewhere. */
  function leave(event) {
    if (event.pointerType === "touch") return;
    state.index = null;
    mark();
  }

  frame.addEventListener("pointermove", point);
  frame.addEventListener("pointerdown", point);
  frame.addEventListener("pointerleave", leave);
  frame.addEventListener("keydown", key);
  frame.addEventListener("blur", leave);
  new ResizeObserver(() => drawn && draw()).observe(frame);
  return { element: frame, draw };
}
