import { svg } from "../../../pages/web/dom.js";

/** From a domain to pixels. */
export function linear([low, high], [from, to]) {
  const factor = high > low ? (to - from) / (high - low) : 0;
  return (value) => from + (value - low) * factor;
}

/** About `count` round numbers in the domain: steps of 1, 2 or 5 times a power of ten. */
export function ticks([low, high], count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => rough <= factor * power) ?? 10);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push(i * step);
  return out;
}

/** A domain with a little room at both ends. */
export function padded([low, high], share = 0.04) {
  const room = (high - low) * share || Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
}

/** Axes with grid lines and labels. `x` and `y` are {at, ticks: [[value, words]], label}. */
export function axes(box, x, y) {
  const parts = [];
  for (const [value, words] of y.ticks) {
    const at = y.at(value);
    parts.push(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: at, y2: at }));
    parts.push(svg("text", { class: "tick", x: box.left - 6, y: at + 4, "text-anchor": "end" }, words));
  }
  for (const [value, words] of x.ticks) {
    const at = x.at(value);
    parts.push(svg("line", { class: "axis", x1: at, x2: at, y1: box.bottom, y2: box.bottom + 4 }));
    const turned = x.turned ? { transform: `rotate(-35 ${at} ${box.bottom + 17})`, "text-anchor": "end" } : {};
    parts.push(
      svg("text", { class: "tick", x: at, y: box.bottom + 17, "text-anchor": "middle", ...turned }, words),
    );
  }
  parts.push(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  parts.push(svg("text", { class: "label", x: 0, y: 13 }, y.label));
  const end = { class: "label", x: box.right, y: box.height - 3, "text-anchor": "end" };
  if (x.label) parts.push(svg("text", end, x.label));
  return svg("g", { class: "axes" }, parts);
}

/** A line through points, broken where a value is null. */
export function linePath(x, y, values) {
  let path = "";
  let open = false;
  values.forEach((value, i) => {
    if (value === null) {
      open = false;
      return;
    }
    path += `${open ? "L" : "M"}${x(i).toFixed(1)},${y(value).toFixed(1)}`;
    open = true;
  });
  return path;
}

/** The area between two lines, piece by piece where they are defined. */
export function bandPath(x, y, low, high) {
  let path = "";
  let start = 0;
  while (start < low.length) {
    if (low[start] === null || high[start] === null) {
      start++;
      continue;
    }
    let end = start;
    while (end < low.length && low[end] !== null && high[end] !== null) end++;
    const there = [];
    const back = [];
    for (let i = start; i < end; i++) {
      there.push(`${x(i).toFixed(1)},${y(high[i]).toFixed(1)}`);
      back.unshift(`${x(i).toFixed(1)},${y(low[i]).toFixed(1)}`);
    }
    path += `M${there.join("L")}L${back.join("L")}Z`;
    start = end;
  }
  return path;
}
