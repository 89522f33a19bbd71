import { html } from "../../../pages/web/dom.js";
import { padded } from "./axes.js";
import { lineChart, swatch } from "./chart.js";
import { section } from "./controls.js";
import { shown } from "./curves.js";
import { extent, frames, number } from "./numbers.js";

/** Epsilon and entropy over time of the settings that are shown, with the same colours. */
export function explorationSection(environment) {
  const quantities = [
    ["epsilon", "ε, chance of a random action", "Epsilon"],
    ["entropy", "entropy of π, nats", "Entropy"],
  ].filter(([name]) => environment.settings.some((one) => one[name]));
  if (!quantities.length) return null;
  const drawings = quantities.map(([name, label, heading]) => explorationChart(environment, name, label, heading));
  shown.listeners.push(() => drawings.forEach((chart) => chart.draw()));
  const node = section(
    "exploration",
    "Exploration",
    html("p", {}, "Mean over runs, and the range from the least to the greatest run. Colours as above; a setting without a line did not record it."),
    html("div", { class: "side" }, drawings.map((chart) => chart.node)),
  );
  return { node, draw: () => drawings.forEach((chart) => chart.draw()) };
}

function explorationChart(environment, name, label, heading) {
  const readout = html("p", { class: "readout" });
  let lines = [];
  const describe = () => {
    lines = shown.list
      .filter(({ index }) => environment.settings[index][name])
      .map(({ index, slot }) => {
        const recorded = environment.settings[index][name];
        return { slot, name: environment.settings[index].name, values: recorded.mean, low: recorded.low, high: recorded.high };
      });
    const [low, high] = extent(lines.flatMap((line) => [line.values, line.low ?? [], line.high ?? []]));
    return {
      lines,
      x: environment.grid,
      domain: padded([Math.min(0, low), high], 0.03),
      formatX: frames,
      formatY: (value) => number(value, 3),
      xLabel: "frames",
      yLabel: label,
      label: `${heading} of ${environment.id}: frame`,
      spoken: (index) => `${frames(environment.grid[index])} frames. ${lines.map((line) => `${line.name}: ${number(line.values[index], 3)}`).join(". ")}`,
    };
  };
  const moved = (index) => {
    const at = index ?? environment.grid.length - 1;
    const entries = lines.map((line) => html("span", { class: "entry" }, swatch(line.slot), number(line.values[at], 3)));
    readout.replaceChildren(`at ${frames(environment.grid[at])}: `, ...entries);
  };
  const chart = lineChart(describe, { height: 270, moved });
  return { node: html("figure", {}, html("figcaption", {}, heading), chart.element, readout), draw: chart.draw };
}
