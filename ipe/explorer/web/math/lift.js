/* From a value to a policy: the Boltzmann policy whose signed inverse temperature is solved for. */

import { dot, greatest, least, share, sum } from "./numbers.js";

const MAX_STEPS = 200;
const TINY = 2.2250738585072014e-308;

/**
 * The policy of maximum entropy with sum_a pi_a q_a = v, and its inverse temperature eta: 0 where all actions are
 * equal, infinite at the ends of their range (and for v beyond it, which counts as the end).
 */
export function maximumEntropyLift(q, v) {
  const lo = least(q);
  const hi = greatest(q);
  if (lo >= hi) return { pi: share(q.map(() => true)), eta: 0 };
  if (v >= hi) return { pi: share(q.map((x) => x === hi)), eta: Infinity };
  if (v <= lo) return { pi: share(q.map((x) => x === lo)), eta: -Infinity };
  return solve(q, v, lo, hi);
}

/** Newton's method inside a bracket for ln(m / (1-m)) = ln(u / (1-u)), with Q scaled to [0, 1] and m its mean. */
function solve(q, v, lo, hi) {
  const width = hi - lo;
  const above = q.map((x) => (x - lo) / width);
  const below = q.map((x) => (hi - x) / width);
  const target = Math.log(Math.max((v - lo) / width, TINY)) - Math.log(Math.max((hi - v) / width, TINY));
  let eta = target;
  let left = -Infinity;
  let right = Infinity;
  let pi;
  for (let i = 0; i < MAX_STEPS; i++) {
    const { policy, error, slope } = logitError(eta, above, below, target);
    pi = policy;
    if (error > 0) right = eta;
    else left = eta;
    let next = eta - error / slope;
    if (Math.abs(error) <= 1e-15 * (1 + Math.abs(target)) || next === eta) break;
    if (!(next > left && next < right)) {
      next = middle(left, right);
      if (next === eta) break;
    }
    eta = next;
  }
  return { pi, eta: eta / width };
}

/** Half way through a bracket, twice as far out through one that is open on one side. */
function middle(left, right) {
  if (left === -Infinity) return 2 * Math.min(right, -1);
  return right === Infinity ? 2 * Math.max(left, 1) : 0.5 * (left + right);
}

/** Exponents are taken from the end that eta points to; m and 1 - m are separate sums, so that neither is lost. */
function logitError(eta, above, below, target) {
  const weights = eta >= 0 ? below.map((x) => Math.exp(-eta * x)) : above.map((x) => Math.exp(eta * x));
  const total = sum(weights);
  const policy = weights.map((x) => x / total);
  const mean = Math.max(dot(policy, above), TINY);
  const rest = Math.max(dot(policy, below), TINY);
  const nearer = mean < rest ? above : below;
  const variance = dot(policy, nearer.map((x) => x * x)) - Math.min(mean, rest) ** 2;
  const slope = Math.max(variance, TINY) / (mean * rest);
  return { policy, error: Math.log(mean / rest) - target, slope };
}
