/*
 * Algorithm 1 of the paper, one step at a time: act, Q-learning, then the policy of the next state with the updated Q.
 * Random numbers are arguments, so that a step is a function.
 */

import { boltzmannFromLogits, epsilonFromLogits, softmax } from "./entropy.js";
import { clip, greatest, share, sum } from "./numbers.js";
import { greedyPolicy, policyValues } from "./values.js";

/** The four behaviours of Figure 2a and tau-IPE, as the library names them. */
export const BEHAVIOURS = ["epsilon-greedy", "linear", "ipe", "epsilon-ipe", "tau-ipe"];

/** Those that learn an evaluation policy. */
const LEARNERS = ["ipe", "epsilon-ipe", "tau-ipe"];

const INITIAL_EPSILON = 1;
const END = 2; // the place of "the episode ends" among next states

/** A run before its first step; `number` in [0, 1) draws where it starts. */
export function beginRun(model, behaviour, number) {
  const zeros = () => model.actions.map((row) => row.map(() => 0));
  return { behaviour, q: zeros(), theta: zeros(), state: locate(model.start, number), steps: 0, total: 0, last: null };
}

/** The behaviour's epsilon in each state, or null for IPE and tau-IPE, which have none. */
export function behaviourEpsilon(run, settings) {
  const both = (epsilon) => [epsilon, epsilon];
  if (run.behaviour === "epsilon-greedy") return both(settings.epsilon);
  if (run.behaviour === "linear") {
    const done = clip(run.steps / settings.annealSteps, 0, 1);
    return both((1 - done) * INITIAL_EPSILON + done * settings.finalEpsilon);
  }
  return run.behaviour === "epsilon-ipe" ? run.theta.map(epsilonFromLogits) : null;
}

/** The behaviour's probabilities, a row per state. */
export function behaviourPolicy(run, settings) {
  if (run.behaviour === "ipe") return run.theta.map(softmax);
  if (run.behaviour === "tau-ipe") return run.q.map((row, s) => boltzmannFromLogits(row, run.theta[s]));
  const epsilon = behaviourEpsilon(run, settings);
  return greedyPolicy(run.q).map((row, s) =>
    row.map((p) => (1 - epsilon[s]) * p + epsilon[s] * (1 / row.length)),
  );
}

/** The estimates of the state values, max_a Q(s, a). */
export const estimates = (run) => run.q.map(greatest);

/** The true values of the behaviour as it is now. */
export const behaviourValues = (model, run, settings) => policyValues(model, behaviourPolicy(run, settings));

/**
 * The run after one more step. `numbers` are two or three in [0, 1): for the action, for the next state, and for the
 * start of the next episode where one ends.
 */
export function stepRun(model, run, settings, numbers) {
  const s = run.state;
  const a = choose(behaviourPolicy(run, settings)[s], numbers[0]);
  const { reward, next, rewards } = model.actions[s][a];
  const following = locate(next, numbers[1]);
  const ended = following === END;
  const r = rewards === null ? reward : rewards[following];

  const best = ended ? 0 : greatest(run.q[following]);
  const delta = r + model.gamma * best - run.q[s][a];
  const q = replaced(run.q, s, replaced(run.q[s], a, run.q[s][a] + settings.alphaQ * delta));
  let theta = run.theta;
  if (!ended && LEARNERS.includes(run.behaviour)) {
    const row = paperUpdate(theta[following], q[following], q[s][a], r, model.gamma, settings.alphaPi);
    theta = replaced(theta, following, row);
  }
  return {
    behaviour: run.behaviour,
    q,
    theta,
    state: ended ? locate(model.start, numbers[2]) : following,
    steps: run.steps + 1,
    total: run.total + r,
    last: { state: s, action: a, reward: r, next: following },
  };
}

/** The paper's update of the logits of the next state: a gradient step on delta^2. */
export function paperUpdate(theta, qNext, qSa, reward, gamma, alpha) {
  const pi = softmax(theta);
  const top = greatest(theta);
  const likeliest = share(theta.map((x) => x === top));
  const reference = sum(qNext.map((x, b) => likeliest[b] * x));
  const relative = qNext.map((x) => x - reference); // counted from the likeliest action: nothing is lost near corners
  const offset = sum(relative.map((x, b) => pi[b] * x));
  const delta = reward - qSa + gamma * (reference + offset);
  return theta.map((x, b) => x - alpha * (2 * delta * gamma * pi[b] * (relative[b] - offset)));
}

/** The action at which the cumulated probability exceeds the number; the first where values have overflowed. */
function choose(pi, number) {
  let total = 0;
  for (let a = 0; a < pi.length; a++) {
    total += pi[a];
    if (pi[a] > 0 && total > number) return a;
  }
  return 0;
}

/** The outcome at which the cumulated probability exceeds the number, or the last that is possible. */
function locate(probabilities, number) {
  let total = 0;
  let found = 0;
  for (let k = 0; k < probabilities.length; k++) {
    if (!(probabilities[k] > 0)) continue;
    found = k;
    total += probabilities[k];
    if (total > number) break;
  }
  return found;
}

const replaced = (array, at, entry) => array.map((old, k) => (k === at ? entry : old));
