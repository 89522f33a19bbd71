import { html, svg } from "../../../pages/web/dom.js";
import { linear } from "./axes.js";
import { lineChart, slotsFor, swatch } from "./chart.js";
import { savings, section, table } from "./controls.js";
import { NONE, number, plural, pValue, probability, scoreFormat, setting } from "./numbers.js";

/** A probability with its interval on a line from 0 to 1, its middle marked. */
function probabilityBar([estimate, low, high]) {
  const x = linear([0, 1], [6, 154]);
  return svg(
    "svg",
    { class: "bar slot s0", viewBox: "0 0 160 16", role: "img", "aria-label": `${probability(estimate)}, from ${probability(low)} to ${probability(high)}` },
    svg("line", { class: "axis", x1: x(0), x2: x(1), y1: 8, y2: 8 }),
    svg("line", { class: "axis", x1: x(0.5), x2: x(0.5), y1: 2, y2: 14 }),
    svg("line", { class: "span", x1: x(low), x2: x(high), y1: 8, y2: 8 }),
    svg("circle", { class: "dot", cx: x(estimate), cy: 8, r: 4 }),
  );
}

/** Who beats whom: pairs of contenders, fresh runs beside those chosen by, performance profiles. */
export function comparisonSection(report, environment) {
  const { settings, comparisons } = environment;
  const score = scoreFormat(settings.flatMap((one) => [one.mean, one.worst]));
  const signed = (value) => (value > 0 ? `+${score(value)}` : score(value));
  const pairs = comparisons.map((pair) => [
    `${settings[pair.first].name}`,
    `${settings[pair.second].name}`,
    `${probability(pair.probability[0])} [${probability(pair.probability[1])}, ${probability(pair.probability[2])}]`,
    probabilityBar(pair.probability),
    `${signed(pair.difference[0])} [${signed(pair.difference[1])}, ${signed(pair.difference[2])}]`,
    pValue(pair.p),
    ...(comparisons.length > 1 ? [pValue(pair.corrected)] : []),
  ]);
  const family = comparisons.length > 1 ? ` The last column is corrected by Holm's method over the ${comparisons.length} comparisons of this table: below 0.05, one wrong finding among all of them is as rare as 5%.` : "";
  const most = Math.max(0, ...comparisons.map((pair) => settings[pair.first].n + settings[pair.second].n));
  const test = `The p-value is that of the ${most > 100 ? "" : "exact "}two-sided Mann-Whitney test: how often a difference at least as large comes about where there is none.`;
  const parts = [];
  if (report.confirmed) parts.push(...confirmation(environment, score));
  const rests = settings[environment.shown[0]]?.fresh
    ? "These rest on fresh runs, by which nothing was chosen."
    : environment.settings.length > environment.shown.length
      ? "The settings were chosen by the same runs, which makes them look better than they are: confirm the choice on fresh seeds before you report it."
      : "";
  if (pairs.length) {
    parts.push(
      html("h3", {}, "Probability of improvement"),
      html("p", {}, `The chance that a run of the first has the larger AUC than one of the second, and the difference of their mean AUC, in units of return, with 95% bootstrap intervals. ${test}${family} ${rests}`),
      table(["first", "second", "P(first > second) [95%]", "from 0 to 1", "difference of mean AUC [95%]", "p-value", ...(comparisons.length > 1 ? ["p-value, Holm"] : [])], pairs, "Probability of improvement"),
      savings(report, "comparisons.csv"),
    );
  }
  const differing = Object.entries(environment.differences).map(([path, values]) => [path, ...values.map(setting)]);
  if (differing.length) {
    const names = environment.shown.map((index) => settings[index].name);
    parts.push(
      html("h3", {}, "Settings in which they differ"),
      html("p", {}, "A difference between two settings may come from any of these."),
      table(["setting", ...names], differing, "Settings in which the compared settings differ"),
    );
  }
  const chart = profiles(environment, score);
  parts.push(html("h3", {}, "Performance profiles"), html("p", {}, "The share of runs whose AUC is above each threshold, with 95% bootstrap intervals: a curve above another everywhere is better in every quantile."), chart.element, chart.legend);
  return { node: section("comparison", "Comparison", ...parts), draw: chart.draw };
}

function confirmation(environment, score) {
  const { settings } = environment;
  const rows = settings.filter((one) => one.fresh).map((one) => {
    const before = settings.findIndex((other) => !other.fresh && other.key === one.key);
    const chosen = environment.chosen.includes(before);
    const first = settings[before];
    const seen = first ? `${score(first.mean)} ± ${score(first.error)} (${plural(first.n, "run")})` : NONE;
    return [
      first ? first.name : one.name,
      chosen ? "yes" : "no",
      seen,
      `${score(one.mean)} ± ${score(one.error)} (${plural(one.n, "run")})`,
      `${score(one.iqm[0])} [${score(one.iqm[1])}, ${score(one.iqm[2])}]`,
    ];
  });
  return [
    html("h3", {}, "Chosen on one set of runs, reported on another"),
    html("p", {}, "On the runs that it was chosen by, the best setting looks better than it is. The fresh runs had no part in the choice."),
    table(["setting", "best of its case", "AUC when chosen", "AUC on fresh runs", "IQM on fresh runs [95%]"], rows, "Fresh runs"),
  ];
}

function profiles(environment, score) {
  const legend = html("p", { class: "readout" });
  let at = null;
  const slots = slotsFor(environment.profiles.map((profile) => environment.settings[profile.setting].slot));
  const lines = environment.profiles.map((profile, i) => ({
    slot: slots[i],
    name: environment.settings[profile.setting].name,
    values: profile.mean,
    low: profile.low,
    high: profile.high,
  }));
  const x = environment.profiles[0].tau;
  const describe = () => ({
    lines,
    x,
    domain: [-0.02, 1.02],
    formatX: (value) => number(value, 4),
    formatY: (value) => value.toFixed(1),
    xLabel: "AUC threshold τ, return",
    yLabel: "share of runs with AUC > τ",
    label: `Performance profiles of ${environment.id}: threshold`,
    spoken: (index) => `${score(x[index])}. ${lines.map((line) => `${line.name}: ${line.values[index].toFixed(2)}`).join(". ")}`,
  });
  const moved = (index) => {
    at = index;
    const entries = lines.map((line) => html("span", { class: "entry" }, swatch(line.slot), line.name, at === null ? "" : `: ${line.values[at].toFixed(2)}`));
    legend.replaceChildren(at === null ? "" : `above ${score(x[at])}: `, ...entries);
  };
  const chart = lineChart(describe, { height: 300, moved });
  return { element: chart.element, legend, draw: chart.draw };
}
