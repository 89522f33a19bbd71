/** Epsilon and entropy over time of the settings that are shown, with the same colours. */
function explorationSection(environment) {
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
    h("p", {}, "Mean over runs, and the range from the least to the greatest run. Colours as above; a setting without a line did not record it."),
    h("div", { class: "side" }, drawings.map((chart) => chart.node)),
  );
  return { node, draw: () => drawings.forEach((chart) => chart.draw()) };
}

function explorationChart(environment, name, label, heading) {
  const readout = h("p", { class: "readout" });
  let lines = [];
  const describe = () => {
    lines = shown.list
      .filter(({ index }) => environment.settings[index][name])
      .map(({ index, slot }) => {
        const own = environment.settings[index][name];
        return { slot, name: environment.settings[index].name, values: own.mean, low: own.low, high: own.high };
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
    const entries = lines.map((line) => h("span", { class: "entry" }, swatch(line.slot), number(line.values[at], 3)));
    readout.replaceChildren(`at ${frames(environment.grid[at])}: `, ...entries);
  };
  const chart = lineChart(describe, { height: 270, moved });
  return { node: h("figure", {}, h("figcaption", {}, heading), chart.element, readout), draw: chart.draw };
}
