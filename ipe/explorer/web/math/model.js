/*
 * The MDP of the page and what is asked of it:
 *   { name, gamma, states: [name, name], start: [p, p],
 *     actions: [rows of the first state, rows of the second] },
 * a row being { name, reward, next: [P to the first state, to the second, that the episode ends],
 *               rewards: null, or the rewards of these three where they differ (`reward` is their mean) }.
 */

import { dot, sum } from "./numbers.js";

export const REWARD_LIMIT = 1e9;
export const MAX_ACTIONS = 32;
const ROW_SUM_TOLERANCE = 1e-8;

/** What is wrong with a model: { field, message }, the field as a path; or null. */
export function findProblem(model) {
  if (!isObject(model)) return problem("mdp", "the MDP must be an object");
  const { gamma, states, start, actions } = model;
  if (typeof model.name !== "string") return problem("name", "the MDP needs a name");
  if (!isNumber(gamma) || !(gamma >= 0 && gamma < 1)) {
    return problem("gamma", `gamma must lie in [0, 1), found ${said(gamma)}`);
  }
  if (!isList(states, 2) || !states.every(isName)) return problem("states", "states must be two names");
  if (!isList(start, 2) || !start.every(isProbability) || Math.abs(sum(start) - 1) > ROW_SUM_TOLERANCE) {
    return problem("start", "start must be the probabilities of the two states, with the sum 1");
  }
  if (!isList(actions, 2)) return problem("actions", "actions must be two lists, one for each state");
  for (const s of [0, 1]) {
    const rows = actions[s];
    if (!Array.isArray(rows) || !(rows.length >= 1 && rows.length <= MAX_ACTIONS)) {
      return problem(`actions.${s}`, `${states[s]} must have 1 to ${MAX_ACTIONS} actions`);
    }
    for (let a = 0; a < rows.length; a++) {
      const found = findRowProblem(rows[a], states, s, a);
      if (found) return found;
    }
  }
  return null;
}

function findRowProblem(row, states, s, a) {
  const path = `actions.${s}.${a}`;
  if (!isObject(row) || !isName(row.name)) return problem(path, `action ${a} of ${states[s]} needs a name`);
  const at = `${states[s]}, ${row.name}`;
  if (!isReward(row.reward)) {
    return problem(`${path}.reward`, `r(${at}) must be a number within ±${REWARD_LIMIT}, found ${said(row.reward)}`);
  }
  if (!isList(row.next, 3)) return problem(`${path}.next`, `P(· | ${at}) must be three probabilities`);
  for (const k of [0, 1, 2]) {
    if (!isProbability(row.next[k])) {
      const to = k < 2 ? states[k] : "end";
      return problem(`${path}.next.${k}`, `P(${to} | ${at}) must lie in [0, 1], found ${said(row.next[k])}`);
    }
  }
  const total = sum(row.next);
  if (Math.abs(total - 1) > ROW_SUM_TOLERANCE) {
    return problem(`${path}.next`, `P(· | ${at}) sums to ${Number(total.toPrecision(9))}, not to 1`);
  }
  if (row.rewards !== null && !(isList(row.rewards, 3) && row.rewards.every(isReward))) {
    return problem(`${path}.rewards`, `the rewards of ${at} must be three numbers within ±${REWARD_LIMIT}`);
  }
  return null;
}

/** The model with another gamma, reward or probability, `path` being a field as in `findProblem`. */
export function withField(model, path, value) {
  const copy = structuredClone(model);
  if (path === "gamma") return { ...copy, gamma: value };
  const [, s, a, part, k] = path.split(".");
  const row = copy.actions[s][a];
  if (part === "reward") {
    row.reward = value;
    row.rewards = null; // one reward, whatever comes next
  } else {
    row.next[k] = value;
    if (row.rewards !== null) row.reward = dot(row.next, row.rewards);
  }
  return copy;
}

const problem = (field, message) => ({ field, message });
const isObject = (x) => typeof x === "object" && x !== null && !Array.isArray(x);
const isList = (x, length) => Array.isArray(x) && x.length === length;
const isName = (x) => typeof x === "string" && x.length > 0 && x.length <= 100;
const isNumber = (x) => typeof x === "number" && Number.isFinite(x);
const isProbability = (x) => isNumber(x) && x >= 0 && x <= 1;
const isReward = (x) => isNumber(x) && Math.abs(x) <= REWARD_LIMIT;
const said = (x) => (typeof x === "number" && !Number.isNaN(x) ? String(x) : "none");
