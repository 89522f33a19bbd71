import { html } from "../../../pages/web/dom.js";
import { padded } from "./axes.js";
import { lineChart, swatch } from "./chart.js";
import { section, table } from "./controls.js";
import { shown } from "./curves.js";
import { extent, frames, number, scoreFormat } from "./numbers.js";

/** Greedy evaluations while training beside the training's returns, on one scale; nothing if no run was evaluated. */
export function evaluationSection(report, environment) {
  const some = environment.settings.filter((one) => one.evaluated);
  if (!some.length) return null;
  const score = scoreFormat(some.flatMap((one) => [one.evaluated.end[0], one.evaluated.trained[0]]));
  const window = report.settings.window;
  const both = [
    ["Greedy evaluation", "return, mean of an evaluation's episodes", (one) => one.evaluated],
    ["Training", `return, mean of the last ${window} episodes`, (one) => one.curve],
  ];
  const charts = both.map(([heading, label, line]) => evaluationChart(environment, heading, label, line, score));
  const ends = html("div", {});
  const draw = () => {
    charts.forEach((chart) => chart.draw());
    ends.replaceChildren(endsTable(environment, score, window));
  };
  shown.listeners.push(draw);
  const node = section(
    "evaluation",
    "Greedy evaluation",
    html("p", {}, "While they trained, the runs were played greedily, in environments of their own: the mean over runs of each run's last evaluation, with its 95% bootstrap interval, beside the returns of the training, in which the agent explores and whose mean is over episodes of earlier frames too. Colours as above; a setting without a line was not evaluated."),
    html("div", { class: "side" }, charts.map((chart) => chart.node)),
    ends,
  );
  return { node, draw };
}

/** Both returns at the last frame, of the settings that are shown. */
function endsTable(environment, score, window) {
  const spread = ([mean, error]) => `${score(mean)}${error === null ? "" : ` ± ${score(error)}`}`;
  const rows = shown.list
    .map(({ index }) => environment.settings[index])
    .filter((one) => one.evaluated)
    .map((one) => [one.name, spread(one.evaluated.end), spread(one.evaluated.trained), String(one.n)]);
  const heads = ["setting", "greedy return at the end ± standard error", `training return at the end (last ${window} episodes) ± standard error`, "runs"];
  return table(heads, rows, "Greedy and training returns at the end");
}

function evaluationChart(environment, heading, label, lineOf, score) {
  const readout = html("p", { class: "readout" });
  let lines = [];
  const describe = () => {
    const here = shown.list.map(({ index, slot }) => ({ one: environment.settings[index], slot })).filter(({ one }) => one.evaluated && lineOf(one));
    lines = here.map(({ one, slot }) => ({ slot, name: one.name, values: lineOf(one).mean, low: lineOf(one).low, high: lineOf(one).high }));
    const all = here.flatMap(({ one }) => [one.evaluated, one.curve].filter(Boolean).flatMap((line) => [line.mean, line.low, line.high]));
    return {
      lines,
      x: environment.grid,
      domain: padded(extent(all)), // the same in both charts
      formatX: frames,
      formatY: (value, exact) => (exact ? score(value) : number(value, 4)),
      xLabel: "frames",
      yLabel: label,
      label: `${heading} of ${environment.id}: frame`,
      spoken: (index) => `${frames(environment.grid[index])} frames. ${lines.map((line) => `${line.name}: ${score(line.values[index])}`).join(". ")}`,
    };
  };
  const moved = (index) => {
    const at = index ?? environment.grid.length - 1;
    const entries = lines.map((line) => html("span", { class: "entry" }, swatch(line.slot), score(line.values[at])));
    readout.replaceChildren(`at ${frames(environment.grid[at])}: `, ...entries);
  };
  const chart = lineChart(describe, { height: 270, moved });
  return { node: html("figure", {}, html("figcaption", {}, heading), chart.element, readout), draw: chart.draw };
}
