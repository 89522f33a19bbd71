/* The view in the address bar: everything that is not as it is by default, and checked when it is read back. */

import { BEHAVIOURS } from "../math/algorithm.js";
import { findProblem } from "../math/model.js";

/** The numbers of a run with their defaults and ranges. */
export const SETTINGS = {
  alphaQ: { value: 0.5, low: 0, high: 1, said: "α_Q" },
  alphaPi: { value: 0.05, low: 0, high: 1000, said: "α_π" },
  epsilon: { value: 0.1, low: 0, high: 1, said: "ε fixed" },
  annealSteps: { value: 100, low: 1, high: 1e6, said: "anneal steps" },
  steps: { value: 500, low: 1, high: 5000, whole: true, said: "steps" },
  seed: { value: 24, low: 0, high: 2 ** 31 - 1, whole: true, said: "seed" },
};
export const SPEEDS = [1, 2, 5, 10, 25, 50, 100, 250, 500];
export const V_LIMIT = 1e12;
const MAPS = ["off", "ipe", "greedy"];

/** The state that a page opens with. */
export function defaults(models) {
  const settings = Object.fromEntries(Object.entries(SETTINGS).map(([name, { value }]) => [name, value]));
  const shown = { v: null, map: "off", zoom: 0, centre: null, reach: null };
  return { model: models[0], ...shown, run: "epsilon-ipe", done: 0, speed: 5, follow: false, settings };
}

/** The state as the part of an address after #. */
export function encode(state, models) {
  const normal = defaults(models);
  const parts = new URLSearchParams();
  if (state.model.example) parts.set("mdp", state.model.name);
  else parts.set("mdp", JSON.stringify(bare(state.model)));
  parts.set("v", state.v.map((x) => String(Number(x.toPrecision(12)))).join(","));
  for (const name of ["map", "run", "done", "speed"]) {
    if (state[name] !== normal[name]) parts.set(name, state[name]);
  }
  if (state.follow) parts.set("follow", "1");
  for (const [name, { value }] of Object.entries(SETTINGS)) {
    if (state.settings[name] !== value) parts.set(name, state.settings[name]);
  }
  if (state.reach) parts.set("reach", state.reach.map((x) => Number(x.toPrecision(12))).join(","));
  if (state.zoom !== 0) parts.set("zoom", [state.zoom, ...state.centre.map((x) => Number(x.toPrecision(6)))].join(","));
  return parts.toString();
}

/** The state that the part of an address after # stands for, and what was wrong with it. */
export function decode(text, models) {
  const state = defaults(models);
  const problems = [];
  const parts = new URLSearchParams(text);
  const take = (name, read) => {
    if (!parts.has(name)) return;
    const found = read(parts.get(name));
    if (typeof found === "string") problems.push(`${name} ${found}`);
  };
  take("mdp", (word) => readModel(word, models, state));
  for (const name of ["v", "reach"]) {
    take(name, (word) => {
      const v = numbers(word, 2);
      if (!v || v.some((x) => Math.abs(x) > V_LIMIT)) return "must be two numbers";
      state[name] = v;
      return true;
    });
  }
  take("map", (word) => (MAPS.includes(word) ? Boolean((state.map = word)) : `must be one of ${MAPS.join(", ")}`));
  take("run", (word) =>
    BEHAVIOURS.includes(word) ? Boolean((state.run = word)) : `must be one of ${BEHAVIOURS.join(", ")}`,
  );
  take("follow", (word) => (state.follow = word === "1"));
  for (const [name, range] of Object.entries(SETTINGS)) {
    take(name, (word) => readNumber(word, range, state.settings, name));
  }
  take("done", (word) => readNumber(word, { low: 0, high: state.settings.steps, whole: true }, state, "done"));
  take("speed", (word) => readNumber(word, { low: 0, high: SPEEDS.length - 1, whole: true }, state, "speed"));
  take("zoom", (word) => {
    const found = numbers(word, 3);
    const whole = found && Number.isInteger(found[0]) && Math.abs(found[0]) <= 20;
    if (!whole) return "must be a whole number and two values";
    [state.zoom, state.centre] = [found[0], found.slice(1)];
    return true;
  });
  return { state, problems };
}

/** What is wrong with a number, or null. */
export function numberProblem(value, { low, high, whole }) {
  if (Number.isFinite(value) && value >= low && value <= high && (!whole || Number.isInteger(value))) return null;
  return `must be a ${whole ? "whole " : ""}number from ${low} to ${high}`;
}

function readModel(word, models, state) {
  const known = models.find((model) => model.example && model.name === word);
  if (known) {
    state.model = known;
    return true;
  }
  let model;
  try {
    model = JSON.parse(word);
  } catch {
    return "is neither an example's name nor an MDP";
  }
  const problem = findProblem(model);
  if (problem) return `is not an MDP: ${problem.message}`;
  const same = models.find((other) => JSON.stringify(bare(other)) === JSON.stringify(bare(model)));
  state.model = same ?? { ...bare(model), title: model.name, example: false };
  return true;
}

function readNumber(word, range, target, name) {
  const value = word.trim() === "" ? NaN : Number(word);
  const problem = numberProblem(value, range);
  if (problem) return problem;
  target[name] = value;
  return true;
}

function numbers(word, count) {
  const found = word.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
  return found.length === count && found.every(Number.isFinite) ? found : null;
}

/** The model without what is the page's own. */
const bare = ({ name, gamma, states, start, actions }) => ({ name, gamma, states, start, actions });
