/* Values of policies and policies of values, for a model of two states. */

import { entropy, epsilonFromProbabilities } from "./entropy.js";
import { maximumEntropyLift } from "./lift.js";
import { clip, dot, greatest, least, share } from "./numbers.js";

const TOLERANCE = 1e-9;

/** One-step values q_V(s, a) = r + gamma P V, a row per state. */
export function actionValues(model, v) {
  return model.actions.map((row) =>
    row.map(({ reward, next }) => model.gamma * (next[0] * v[0] + next[1] * v[1]) + reward),
  );
}

/**
 * Solved for V(s), V(s) = q_V(s, a) is a line in the other state's value: its intercept and slope for each action,
 * or for each mixture of the actions in `policies`.
 */
export function linesOf(model, s, policies = null) {
  const rows = model.actions[s];
  const mixed = (pi, part) => dot(pi, rows.map(part));
  const line = (reward, stay, other) => {
    const rest = 1 - model.gamma * stay;
    return { intercept: reward / rest, slope: (model.gamma * other) / rest };
  };
  if (policies === null) return rows.map(({ reward, next }) => line(reward, next[s], next[1 - s]));
  return policies.map((pi) =>
    line(
      mixed(pi, (row) => row.reward),
      mixed(pi, (row) => row.next[s]),
      mixed(pi, (row) => row.next[1 - s]),
    ),
  );
}

/** Where a line of state 0 meets a line of state 1: the values of a policy. */
export function meet(first, second) {
  const rest = 1 - first.slope * second.slope;
  return [
    (first.intercept + first.slope * second.intercept) / rest,
    (second.intercept + second.slope * first.intercept) / rest,
  ];
}

/** The true values of a policy, given as a row of probabilities per state. */
export function policyValues(model, policy) {
  return meet(linesOf(model, 0, [policy[0]])[0], linesOf(model, 1, [policy[1]])[0]);
}

/** Uniform over the best actions of each row. */
export function greedyPolicy(q) {
  return q.map((row) => {
    const best = greatest(row);
    return share(row.map((x) => x === best));
  });
}

/** Whether V is the value of some policy, up to rounding. */
export function isAchievable(model, v) {
  const off = actionValues(model, v).map((row, s) => Math.abs(clip(v[s], least(row), greatest(row)) - v[s]));
  return Math.max(off[0], off[1]) <= allowedResidual(v);
}

const allowedResidual = (v) => TOLERANCE * Math.max(1, Math.abs(v[0]), Math.abs(v[1]));

/** The evaluation policy of V with everything that is said about it. */
export function evaluationPolicy(model, v) {
  const q = actionValues(model, v);
  const clipped = q.map((row, s) => clip(v[s], least(row), greatest(row)));
  const lifted = q.map((row, s) => maximumEntropyLift(row, clipped[s]));
  const policy = lifted.map(({ pi }) => pi);
  const off = clipped.map((x, s) => x - v[s]);
  const rho = Math.max(Math.abs(off[0]), Math.abs(off[1]));
  const allowed = allowedResidual(v);
  const greedy = greedyPolicy(q);
  return {
    q,
    policy,
    oneStep: clipped,
    eta: lifted.map(({ eta }) => eta),
    entropy: policy.map(entropy),
    epsilon: policy.map(epsilonFromProbabilities),
    values: policyValues(model, policy),
    greedy,
    greedyValues: policyValues(model, greedy),
    residual: Math.hypot(off[0], off[1]) / Math.SQRT2,
    supResidual: rho,
    achievable: rho <= allowed,
    distanceBounds: [rho / (1 + model.gamma), rho / (1 - model.gamma)],
    promisesTooMuch: q.map((row, s) => v[s] > greatest(row) + allowed),
    promisesTooLittle: q.map((row, s) => v[s] < least(row) - allowed),
  };
}

/** Where acting on V leads: the true values of its evaluation policy, or of its greedy policy. */
export function valueMap(model, v, policy = "ipe") {
  const q = actionValues(model, v);
  if (policy === "greedy") return policyValues(model, greedyPolicy(q));
  return policyValues(model, q.map((row, s) => maximumEntropyLift(row, v[s]).pi));
}
