import { html } from "../../../pages/web/dom.js";
import { padded } from "./axes.js";
import { lineChart, SLOTS, slotsFor, swatch } from "./chart.js";
import { choice, csv, saving, section } from "./controls.js";
import { extent, frames, NONE, number, percent, quantiles, scoreFormat } from "./numbers.js";

/** The settings that are shown, each with a slot (its colour and dash) that it keeps while it is shown. */
export const shown = {
  list: [],
  listeners: [],
  settings: [],
  start(environment) {
    this.settings = environment.settings;
    const slots = slotsFor(environment.shown.map((index) => this.settings[index].slot));
    this.list = environment.shown.map((index, i) => ({ index, slot: slots[i] }));
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
      const slots = slotsFor([...this.list.map((entry) => entry.slot), this.settings[index].slot]);
      this.list = [...this.list, { index, slot: slots.at(-1) }];
    }
    this.listeners.forEach((listener) => listener());
  },
};

/** What few runs do to bootstrap intervals (measured by simulation; see `ipe.analysis.bootstrap_interval`). */
function fewRuns(environment) {
  const least = Math.min(...environment.settings.map((one) => one.n));
  if (least >= 20) return "";
  return ` With few runs (here ${least === 1 ? "one" : `as few as ${least}`}) bootstrap intervals are too narrow: of normal scores a nominal 95% covers the mean in about 84% of cases at 5 runs, 90% at 10, 94% at 30.`;
}

/** The curves of all settings, as drawn: a row for each setting and step. */
function curvesTable(environment) {
  const names = ["mean", "error", "low", "high", "iqm", "iqm_low", "iqm_high", "tolerance_low", "tolerance_high"];
  const heads = ["environment", "measure", "setting", environment.measure.steps, ...names.map((name) => (name === "error" ? "standard_error" : name))];
  const rows = environment.settings.filter((one) => one.curve).flatMap((one) =>
    environment.grid.map((at, i) => [environment.id, environment.measure.name, one.name, at, ...names.map((name) => one.curve[name]?.[i])]));
  return csv([heads, ...rows]);
}

/** Learning curves with their controls and a legend that says the values at the cursor. */
export function curvesSection(report, environment) {
  const view = { statistic: "mean", band: "interval", runs: "hover" };
  const score = scoreFormat(environment.settings.flatMap((one) => [one.mean, one.worst]));
  const legend = html("tbody", {});
  const when = html("th", { scope: "col" });
  const heading = html("th", { scope: "col" });
  let values = [];
  const { measure } = environment;
  const share = percent(environment.tolerance);

  const ends = (curve) => {
    if (view.band === "none") return [null, null];
    if (view.band === "tolerance") return [curve.tolerance_low ?? null, curve.tolerance_high ?? null];
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
      const runNames = one.runs?.map((run) => `${measure.run} ${run.seed}${run.status === "done" ? "" : `, ${run.status === "short" ? "ended early" : run.status}`}`);
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
      xLabel: measure.steps,
      yLabel: measure.curve,
      label: `Learning curves of ${environment.id}: ${measure.steps}`,
      spoken: (index) => `${frames(environment.grid[index])} ${measure.steps}. ${lines.map((line) => `${line.name}: ${score(line.values[index])}`).join(". ")}`,
    };
  }

  const chart = lineChart(describe, { height: 400, moved: fill });

  /** The values at the cursor, in place: only they change while it moves. */
  function fill(index) {
    const at = index ?? environment.grid.length - 1;
    const error = view.band === "error" && view.statistic === "mean";
    const band = { none: "", tolerance: ` [${share} of runs]` }[view.band] ?? (error ? " ± standard error" : " [95% interval]");
    heading.textContent = `return, ${view.statistic === "iqm" ? "IQM" : "mean"} over runs${band}`;
    when.textContent = `at ${frames(environment.grid[at])} ${measure.steps}`;
    for (const { one, cell } of values) {
      const [low, high] = one.curve ? ends(one.curve) : [null, null];
      let spread = "";
      if (low && low[at] !== null) spread = error ? ` ± ${score(one.curve.error[at])}` : ` [${score(low[at])}, ${score(high[at])}]`;
      cell.textContent = one.curve ? `${score(one.curve[view.statistic][at])}${spread}` : NONE;
    }
  }

  function legendRows() {
    values = shown.list.map(({ index, slot }) => ({ one: environment.settings[index], index, slot, cell: html("td", { class: "number" }) }));
    legend.replaceChildren(...values.map(legendRow));
    if (!values.length) legend.append(html("tr", {}, html("td", { colspan: 4 }, "No setting is shown. Tick some in the ranking.")));
  }

  function legendRow({ one, index, slot, cell }) {
    const hide = () => {
      shown.toggle(index);
      (legend.querySelector("button") ?? chart.element).focus();
    };
    const count = `${one.n}${one.runs ? "" : " (single runs are not in this page)"}`;
    return html(
      "tr",
      {},
      html("td", { class: "name" }, html("div", { class: "sign" }, swatch(slot), html("span", {}, one.name))),
      cell,
      html("td", { class: "number" }, count),
      html("td", { class: "number no-print" }, html("button", { type: "button", class: "small", "aria-label": `Hide ${one.name}`, onclick: hide }, "×")),
    );
  }

  const change = (name) => (value) => {
    view[name] = value;
    chart.draw();
  };
  const names = html("datalist", { id: "setting-names" }, environment.settings.map((one) => html("option", { value: one.name })));
  const adding = html("input", { type: "text", list: "setting-names", placeholder: "name of a setting", autocomplete: "off" });
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
    html(
      "div",
      { class: "controls" },
      choice("Statistic", [["mean", "mean over runs"], ["iqm", "interquartile mean"]], view.statistic, change("statistic")),
      choice("Band", [["interval", "95% bootstrap interval"], ["error", "standard error"], ["tolerance", `where ${share} of runs lie`], ["none", "none"]], view.band, change("band")),
      choice("Single runs", [["hover", "under the cursor"], ["always", "always"], ["never", "never"]], view.runs, change("runs")),
      several ? html("label", { class: "control" }, html("span", {}, "Show also"), adding, names) : null,
    ),
    chart.element,
    html(
      "div",
      { class: "scroll" },
      html("table", { class: "legend" }, html("thead", {}, html("tr", {}, when, heading, html("th", { scope: "col" }, "runs"), html("th", { class: "no-print" }, html("span", { class: "unseen" }, "hide")))), legend),
    ),
    html("p", { class: "saves no-print" }, saving("curves.csv", () => curvesTable(environment))),
    html("p", { class: "hint" }, "Point at a curve for the values there and its single runs, or focus the chart and use the arrow keys: left and right through the steps (with Shift ten at a time), up and down through the curves. Intervals are pointwise; an IQM has no standard error, so its band is its interval. The band where most runs lie is a tolerance interval: at each point it holds that share of all runs to come, with 95% confidence, and takes 22 runs or more.", fewRuns(environment)),
  );
  return { node, draw };
}
