import { html, set, svg } from "../../../pages/web/dom.js";
import { axes, linear, padded, ticks } from "./axes.js";
import { slotsFor, swatch } from "./chart.js";
import { savings, section } from "./controls.js";
import { extent, frames, number, plural, scoreFormat, setting } from "./numbers.js";

/** Sensitivity curves: a small chart per hyperparameter, a line per case, one scale for all. */
export function sensitivitySection(report, environment) {
  if (!environment.sensitivity.length) return null;
  const chosen = environment.chosen.map((index) => environment.settings[index]);
  const slots = slotsFor(chosen.map((one) => one.slot));
  const cases = chosen.map((one) => one.case);
  const points = environment.sensitivity.flatMap((panel) => panel.curves.flatMap((curve) => curve.points));
  const domain = padded(extent([points.map((p) => p.mean - (p.error ?? 0)), points.map((p) => p.mean + (p.error ?? 0)), points.map((p) => p.chosen ?? p.mean)]), 0.08);
  const score = scoreFormat(environment.settings.flatMap((one) => [one.mean, one.worst]));
  const legend = cases.length > 1 || cases[0] ? html("p", { class: "readout" }, cases.map((name, i) => html("span", { class: "entry" }, swatch(slots[i]), name))) : null;
  const single = environment.sensitivity[0].curves[0].kind === "one at a time";
  const cut = points.some((point) => point.cut);
  const kind = single
    ? "One at a time: each point is the base setting with this one value changed: what a user gets who tunes nothing else. (The paper's curves are best over the rest.)"
    : "Best over the rest: each point is the best mean AUC over all settings with this value, as the paper draws it. It was chosen by the same runs that it shows: the more settings it was chosen from, the more it overstates.";
  const drawings = environment.sensitivity.map((panel) => sensitivityChart(panel, cases, slots, domain, score));
  const node = section(
    "sensitivity",
    `Sensitivity (${single ? "one at a time" : "best over the rest"})`,
    html("p", {}, kind, ` Mean AUC of runs of ${frames(Math.max(...points.map((point) => point.frames)))} ${environment.measure.steps} ± standard error, in units of return; all panels have the same scale.`),
    cut ? html("p", {}, "A hollow point was cut off by halving: it is the mean AUC over fewer frames, and cannot be compared with the others. The thin line leads to what the chosen setting had over the same frames.") : null,
    legend,
    html("div", { class: "panels" }, drawings.map((chart) => chart.node)),
    savings(report, "sensitivity.csv"),
  );
  return { node, draw: () => drawings.forEach((chart) => chart.draw()) };
}

function sensitivityChart(panel, cases, slots, domain, score) {
  const picture = svg("svg", { class: "chart", role: "group", "aria-label": `AUC against ${panel.hyperparameter}` });
  const readout = html("p", { class: "readout point", role: "status" }, "\u00a0");
  const words = panel.values.map(setting);
  const frame = html("div", { class: "plot still" }, picture);
  const ring = svg("circle", { class: "ring", r: 7 });
  let places = [];

  /** Of points that overlap, the nearest is told, so that each can be reached. */
  function point(event) {
    const box = picture.getBoundingClientRect();
    const scale = picture.viewBox.baseVal.width / box.width;
    const [px, py] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const away = (place) => Math.hypot(place.x - px, place.y - py);
    const nearest = places.reduce((best, place) => (away(place) < away(best) ? place : best));
    say(nearest);
  }

  function say({ point, x, y }) {
    set(ring, { cx: x, cy: y });
    picture.append(ring);
    const off = point.cut ? `; cut off at ${frames(point.cut)} frames, where the chosen setting had ${score(point.chosen)}` : "";
    const best = point.candidates > 1 ? `, best of ${point.candidates}` : "";
    readout.textContent = `${panel.hyperparameter} = ${words[point.x]}: ${score(point.mean)} ± ${score(point.error)} (${plural(point.n, "run")}${best}; ${point.setting}${off})`;
  }

  function draw() {
    const width = Math.max(220, Math.round(frame.clientWidth || 280));
    const long = words.join("").length * 7.5 + words.length * 8 > width - 70;
    const tall = long ? 240 : 210;
    const box = { left: 54, right: width - 10, top: 26, bottom: tall - (long ? 58 : 26), height: tall };
    const x = linear([-0.3, words.length - 0.7], [box.left, box.right]);
    const y = linear(domain, [box.bottom, box.top]);
    picture.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    const yTicks = ticks(domain, 4).map((value) => [value, number(value, 4)]);
    const xTicks = words.map((word, i) => [i, word]);
    picture.replaceChildren(axes(box, { at: x, ticks: xTicks, turned: long }, { at: y, ticks: yTicks, label: "AUC" }));
    places = [];
    for (const curve of panel.curves) {
      const group = svg("g", { class: `slot s${slots[cases.indexOf(curve.case)]}` });
      const shift = 5 * (cases.indexOf(curve.case) - (cases.length - 1) / 2);
      const at = (point) => x(point.x) + shift;
      const path = curve.points.filter((point) => !point.cut).map((point, i) => `${i ? "L" : "M"}${at(point).toFixed(1)},${y(point.mean).toFixed(1)}`);
      group.append(svg("path", { class: "mean", d: path.join("") }));
      for (const point of curve.points) {
        const error = point.error ?? 0;
        group.append(svg("line", { class: "whisker", x1: at(point), x2: at(point), y1: y(point.mean - error), y2: y(point.mean + error) }));
        const name = `${curve.case || "AUC"}, ${panel.hyperparameter} ${words[point.x]}: ${score(point.mean)}`;
        const place = { point, x: at(point), y: y(point.mean) };
        places.push(place);
        if (point.cut) group.append(svg("line", { class: "lead", x1: at(point), x2: at(point), y1: y(point.mean), y2: y(point.chosen) }));
        const dot = { class: point.cut ? "dot hollow" : "dot", r: 4, cx: place.x, cy: place.y, tabindex: 0, role: "img", "aria-label": name };
        group.append(svg("circle", { ...dot, onfocus: () => say(place) }));
      }
      picture.append(group);
    }
  }

  frame.addEventListener("pointermove", point);
  frame.addEventListener("pointerdown", point);
  new ResizeObserver(draw).observe(frame);
  return { node: html("figure", {}, html("figcaption", {}, panel.hyperparameter), frame, readout), draw };
}
