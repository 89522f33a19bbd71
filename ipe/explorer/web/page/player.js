/* Runs of Algorithm 1 with all behaviours, on the same random numbers, and what they left behind. */

import { BEHAVIOURS, beginRun, behaviourValues, estimates, stepRun } from "../math/algorithm.js";
import { greatest } from "../math/numbers.js";
import { uniform } from "../math/random.js";
import { isAchievable } from "../math/values.js";

/** What the behaviours are called, in the words of Figure 2a. */
export const TITLES = {
  "epsilon-greedy": "ε-greedy",
  linear: "annealed ε",
  ipe: "IPE",
  "epsilon-ipe": "ε-IPE",
  "tau-ipe": "τ-IPE",
};

/** All runs before their first step. */
export function startPlayer(model, settings, seed) {
  const runs = {};
  for (const behaviour of BEHAVIOURS) {
    const run = beginRun(model, behaviour, uniform(seed, 0));
    runs[behaviour] = { run, estimates: [], values: [], outside: 0 };
  }
  const box = [[Infinity, Infinity], [-Infinity, -Infinity]];
  const player = { model, settings, seed, steps: 0, runs, box };
  note(player);
  return player;
}

/** One more step of every run. */
export function advance(player) {
  const { model, settings, seed } = player;
  const first = 1 + 3 * player.steps;
  const numbers = [uniform(seed, first), uniform(seed, first + 1), uniform(seed, first + 2)];
  for (const traced of Object.values(player.runs)) traced.run = stepRun(model, traced.run, settings, numbers);
  note(player);
  player.steps += 1;
}

/** Where the runs are now; `player.box` grows around all of it. */
function note({ model, settings, runs, box }) {
  for (const traced of Object.values(runs)) {
    const estimate = estimates(traced.run);
    const value = behaviourValues(model, traced.run, settings);
    traced.estimates.push(estimate);
    traced.values.push(value);
    if (!isAchievable(model, estimate)) traced.outside += 1;
    for (const i of [0, 1]) {
      box[0][i] = Math.min(box[0][i], estimate[i], value[i]);
      box[1][i] = Math.max(box[1][i], estimate[i], value[i]);
    }
  }
}

/** What a run has come to: average reward, error of its estimates, share of them that no policy has. */
export function summary(traced, optimal) {
  const { run } = traced;
  const last = traced.estimates[traced.estimates.length - 1];
  return {
    reward: run.steps ? run.total / run.steps : NaN,
    rmse: Math.sqrt(((last[0] - optimal[0]) ** 2 + (last[1] - optimal[1]) ** 2) / 2),
    outside: traced.outside / traced.estimates.length,
  };
}

/** The values of the best policy: the largest in both states. */
export const optimalValues = (polytope) => [0, 1].map((i) => greatest(polytope.vertices.map((v) => v[i])));
