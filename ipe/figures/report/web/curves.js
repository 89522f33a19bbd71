/** The settings that are shown, each with a slot (its colour and dash) that it keeps while it is. */
const shown = {
  list: [],
  listeners: [],
  start(settings) {
    this.list = settings.map((index, slot) => ({ index, slot }));
    this.listeners = [];
  },
  has(index) {
    return this.list.some((entry) => entry.index === index);
  },
  slot(index) {
    return this.list.find((entry) => entry.index === index)?.slot;
  },
  toggle(index) {
    if (this.has(index)) this.list = this.list.filter((entry) => entry.index !== index);
    else if (this.list.length < SLOTS) {
      const used = new Set(this.list.map((entry) => entry.slot));
      const free = [...Array(SLOTS).keys()].find((slot) => !used.has(slot));
      this.list = [...this.list, { index, slot: free }];
    }
    this.listeners.forEach((listener) => listener());
  },
};

/** The sign of a slot beside a name: its colour and its dash. */
function swatch(slot) {
  const line = g("line", { class: "mean", x1: 1, x2: 27, y1: 6, y2: 6 });
  return g("svg", { class: `swatch slot s${slot % SLOTS}`, viewBox: "0 0 28 12", "aria-hidden": "true" }, line);
}

/** What few runs do to bootstrap intervals (measured by simulation; see `ipe.analysis.bootstrap_interval`). */
function fewRuns(environment) {
  const least = Math.min(...environment.settings.map((one) => one.n));
  if (least >= 20) return "";
  return ` With few runs (here ${least === 1 ? "one" : `as few as ${least}`}) bootstrap intervals are too narrow: of normal scores a nominal 95% covers the mean in about 84% of cases at 5 runs, 90% at 10, 94% at 30.`;
}

/** Learning curves with their controls and a legend that says the values at the cursor. */
function curvesSection(report, environment) {
  const view = { statistic: "mean", band: "interval", runs: "hover" };
  const score = scoreFormat(environment.settings.flatMap((one) => [one.mean, one.worst]));
  const legend = h("tbody", {});
  const when = h("th", { scope: "col" });
  const heading = h("th", { scope: "col" });
  let values = [];

  const ends = (curve) => {
    if (view.band === "none") return [null, null];
    if (view.statistic === "iqm") return [curve.iqm_low, curve.iqm_high];
    if (view.band === "interval") return [curve.low, curve.high];
    const error = (sign) => curve.mean.map((m, i) => (m === null || curve.error[i] === null ? null : m + sign * curve.error[i]));
    return [error(-1), error(1)];
  };

  function describe() {
    const lines = shown.list.filter(({ index }) => environment.settings[index].curve).map(({ index, slot }) => {
      const one = environment.settings[index];
      const [low, high] = ends(one.curve);
      const runs = view.runs === "never" ? null : one.runs?.map((run) => run.curve) ?? null;
      const runNames = one.runs?.map((run) => `seed ${run.seed}${run.status === "done" ? "" : `, ${run.status}`}`);
      return { slot, name: one.name, values: one.curve[view.statistic], low, high, runs, runNames, always: view.runs === "always" };
    });
    const wide = lines.flatMap((line) => (line.low ? [line.values, line.low, line.high] : [line.values]));
    const singles = lines.flatMap((line) => line.runs ?? []);
    // One unlucky run must not squeeze all curves while runs are only shown on hover.
    if (singles.length) wide.push(view.runs === "always" ? extent(singles) : quantiles(singles, [0.01, 0.99]));
    return {
      lines,
      x: environment.grid,
      domain: padded(extent(wide)),
      hover: view.runs === "hover",
      formatX: frames,
      formatY: (value, exact) => (exact ? score(value) : number(value, 4)),
      xLabel: "frames",
      yLabel: `return, mean of the last ${report.settings.window} episodes`,
      label: `Learning curves of ${environment.id}: frame`,
      spoken: (index) => `${frames(environment.grid[index])} frames. ${lines.map((line) => `${line.name}: ${score(line.values[index])}`).join(". ")}`,
    };
  }

  const chart = lineChart(describe, { height: 400, moved: fill });

  /** The values at the cursor, in place: only they change while it moves. */
  function fill(index) {
    const at = index ?? environment.grid.length - 1;
    const error = view.band === "error" && view.statistic === "mean";
    const band = view.band === "none" ? "" : error ? " ± standard error" : " [95% interval]";
    heading.textContent = `${view.statistic === "iqm" ? "IQM" : "mean"}${band}`;
    when.textContent = `at ${frames(environment.grid[at])} frames`;
    for (const { one, cell } of values) {
      const [low, high] = one.curve ? ends(one.curve) : [null, null];
      let spread = "";
      if (low && low[at] !== null) spread = error ? ` ± ${score(one.curve.error[at])}` : ` [${score(low[at])}, ${score(high[at])}]`;
      cell.textContent = one.curve ? `${score(one.curve[view.statistic][at])}${spread}` : NONE;
    }
  }

  function legendRows() {
    values = shown.list.map(({ index, slot }) => ({ one: environment.settings[index], index, slot, cell: h("td", { class: "number" }) }));
    legend.replaceChildren(...values.map(legendRow));
    if (!values.length) legend.append(h("tr", {}, h("td", { colspan: 4 }, "No setting is shown. Tick some in the ranking.")));
  }

  function legendRow({ one, index, slot, cell }) {
    const hide = () => {
      shown.toggle(index);
      (legend.querySelector("button") ?? chart.element).focus();
    };
    const count = `${one.n}${one.runs ? "" : " (single runs are not in this page)"}`;
    return h(
      "tr",
      {},
      h("td", { class: "name" }, h("div", { class: "sign" }, swatch(slot), h("span", {}, one.name))),
      cell,
      h("td", { class: "number" }, count),
      h("td", { class: "number no-print" }, h("button", { type: "button", class: "small", "aria-label": `Hide ${one.name}`, onclick: hide }, "×")),
    );
  }

  const change = (name) => (value) => {
    view[name] = value;
    chart.draw();
  };
  const names = h("datalist", { id: "setting-names" }, environment.settings.map((one) => h("option", { value: one.name })));
  const adding = h("input", { type: "text", list: "setting-names", placeholder: "name of a setting", autocomplete: "off" });
  adding.addEventListener("change", () => {
    const index = environment.settings.findIndex((one) => one.name === adding.value);
    if (index < 0) return;
    adding.value = "";
    if (!shown.has(index)) shown.toggle(index);
  });
  const several = environment.settings.length > shown.list.length;
  const draw = () => {
    legendRows();
    chart.draw();
  };
  shown.listeners.push(draw);
  const node = section(
    "curves",
    "Learning curves",
    h(
      "div",
      { class: "controls" },
      choice("Statistic", [["mean", "mean over runs"], ["iqm", "interquartile mean"]], view.statistic, change("statistic")),
      choice("Band", [["interval", "95% bootstrap interval"], ["error", "standard error"], ["none", "none"]], view.band, change("band")),
      choice("Single runs", [["hover", "under the cursor"], ["always", "always"], ["never", "never"]], view.runs, change("runs")),
      several ? h("label", { class: "control" }, h("span", {}, "Show also"), adding, names) : null,
    ),
    chart.element,
    h(
      "div",
      { class: "scroll" },
      h("table", { class: "legend" }, h("thead", {}, h("tr", {}, when, heading, h("th", { scope: "col" }, "runs"), h("th", { class: "no-print" }, h("span", { class: "unseen" }, "hide")))), legend),
    ),
    h("p", { class: "hint" }, "Point at a curve for the values there and its single runs, or focus the chart and use the arrow keys: left and right through the frames (with Shift ten at a time), up and down through the curves. Intervals are pointwise; an IQM has no standard error, so its band is its interval.", fewRuns(environment)),
  );
  return { node, draw };
}
