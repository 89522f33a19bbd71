/* Softmax, entropy and entropy matching: ipe.entropy for one row of numbers. */

import { clip, dot, greatest, share, sum } from "./numbers.js";

const SERIES_BELOW = 0.2;
const SERIES_TERMS = 8;
const SWITCH = 0.7; // the fraction of ln n below which the entropy, above which the deficit is solved for
const TINY = 2.2250738585072014e-308;
const ITERATIONS = 7;
const MOST_ITERATIONS = 60; // of the matching with Boltzmann policies: three to eight, more only where values nearly tie

/** The policy in proportion to exp(theta). */
export function softmax(theta) {
  const top = greatest(theta);
  const powers = theta.map((x) => Math.exp(x - top));
  const total = sum(powers);
  return powers.map((x) => x / total);
}

/** The entropy of a policy in nats; one probability above a half counts as one minus the others. */
export function entropy(pi) {
  let bits = 0;
  let rest = 0;
  for (const p of pi) {
    if (p > 0.5) continue;
    rest += p;
    if (p !== 0) bits -= p * Math.log(p);
  }
  const left = greatest(pi) > 0.5 ? Math.min(rest, 0.5) : 0;
  return bits - (1 - left) * Math.log1p(-left);
}

/** The epsilon whose epsilon-greedy policy has the entropy of pi. */
export function epsilonFromProbabilities(pi) {
  const n = pi.length;
  if (n <= 2) return ofTwo(pi);
  const deficit = sum(pi.map((p) => phi(n * p - 1) / n));
  return match(entropy(pi), deficit, n);
}

/** The same for softmax(theta), without what the probabilities round away. */
export function epsilonFromLogits(theta) {
  const n = theta.length;
  if (n <= 2) return ofTwo(softmax(theta));
  const top = greatest(theta);
  const z = theta.map((x) => x - top);
  const powers = z.map(Math.exp);
  return match(entropyOf(z, powers), deficitOf(z, powers), n);
}

/** The Boltzmann policy of q with the entropy of softmax(theta); greedy, with ties shared, where the ties have more. */
export function boltzmannFromLogits(q, theta) {
  const n = q.length;
  const halves = q.map((x) => 0.5 * x); // their differences cannot overflow
  const half = greatest(halves) - Math.min(...halves);
  const z = halves.map((x) => (half === 0 ? 0 : (x - greatest(halves)) / half));
  const ties = z.map((x) => x === 0);
  const m = ties.filter(Boolean).length;
  const top = greatest(theta);
  const relative = theta.map((x) => x - top);
  const powers = relative.map(Math.exp);
  const [h, d] = [entropyOf(relative, powers), deficitOf(relative, powers)];
  if (Number.isNaN(h) || q.some(Number.isNaN)) return q.map(() => NaN);
  if (h - Math.log(m) <= (m < 2 ? 1e4 * TINY : 4 * Number.EPSILON) && m < n) return share(ties);
  if (m === n || d <= 1e-4 * Number.EPSILON ** 2) return q.map(() => 1 / n);
  const pi = powers.map((x) => x / sum(powers));
  if (n === 2) return ties.map((best) => (best ? Math.max(...pi) : Math.min(...pi)));
  const eta = solveTemperature(z, m, h - Math.log(m), d);
  const weights = z.map((x) => Math.exp(eta * x));
  return weights.map((x) => x / sum(weights));
}

/** The entropy of epsilon-greedy with n actions that leaves the greedy one with probability x. */
export function entropyOfLeaving(x, n) {
  const logarithm = x > 0 ? Math.log(x) : 0;
  const kept = x < 1 ? x : 0;
  return x * Math.log(Math.max(n - 1, 1)) - x * logarithm - (1 - kept) * Math.log1p(-kept);
}

/** (1+t) ln(1+t) - t, by a series near 0, where the two terms cancel. */
function phi(t) {
  if (Math.abs(t) >= SERIES_BELOW) return t <= -1 ? 1 : (1 + t) * Math.log1p(t) - t;
  const s = t / (2 + t);
  let series = 0;
  for (let k = SERIES_TERMS; k > 0; k--) series = series * s * s + 1 / (2 * k + 1);
  return t * s + 2 * (1 + t) * s * s * s * series;
}

function entropyOf(z, powers) {
  const top = sum(powers.filter((_, i) => z[i] === 0));
  const others = sum(powers.filter((_, i) => z[i] !== 0));
  const weighted = dot(powers, z.map((x, i) => (powers[i] === 0 ? 0 : x)));
  return Math.log(top) + Math.log1p(others / top) - weighted / sum(powers);
}

function deficitOf(z, powers) {
  const n = z.length;
  const mean = sum(powers) / n;
  const below = z.map(Math.expm1);
  const shift = sum(below) / n;
  const terms = powers.map((power, i) => {
    const t = power / mean - 1;
    // Both are n pi - 1: the one keeps the digits of n pi next to -1, the other those of t next to 0.
    return phi(mean > 0.5 && Math.abs(t) < 0.5 ? (below[i] - shift) / mean : t) / n;
  });
  return sum(terms);
}

function ofTwo(pi) {
  return pi.length === 2 ? Math.min(2 * Math.min(pi[0], pi[1]), 1) : 0;
}

function match(h, d, n) {
  if (Number.isNaN(h)) return NaN;
  if (h <= SWITCH * Math.log(n)) {
    return h > 1e4 * TINY ? clip((solveEntropy(h, n) * n) / (n - 1), 0, 1) : 0;
  }
  return d > 1e-4 * Number.EPSILON ** 2 ? 1 - solveDeficit(d, n) : 1;
}

/** x with H(x) = h, by Newton's method on ln H against ln x. */
function solveEntropy(h, n) {
  const others = Math.log(n - 1);
  const u = others - Math.log(h);
  let x = h / (1 + Math.sqrt(2 * u) + u);
  for (let i = 0; i < ITERATIONS; i++) {
    const value = entropyOfLeaving(x, n);
    const slope = Math.log1p(-x) - Math.log(x) + others;
    x *= Math.exp((-Math.log(value / h) * value) / (x * slope));
  }
  return x;
}

/** y = 1 - epsilon with D(y) = d, by Newton's method on the roots of both. */
function solveDeficit(d, n) {
  const root = Math.sqrt(d);
  let y = root * Math.sqrt(2 / (n - 1));
  for (let i = 0; i < ITERATIONS; i++) {
    const at = Math.sqrt((phi((n - 1) * y) + (n - 1) * phi(-y)) / n);
    const slope = (Math.log1p((n - 1) * y) - Math.log1p(-y)) * ((n - 1) / n);
    y = clip(y - ((at - root) * 2 * at) / slope, 0, 0.99);
  }
  return y;
}

/** The inverse temperature on z, by Newton's method on ln D - ln T against ln eta, kept between two bounds. */
function solveTemperature(z, m, t, d) {
  const n = z.length;
  const gap = Math.min(...z.filter((x) => x < 0).map((x) => -x));
  const k = Math.max(Math.log((n - m) / m) - Math.log(t), 1);
  let low = 0.5 * Math.log(8 * d);
  let high = Math.log((k + 2 * Math.log1p(k) + 2) / gap);
  if (!(high > low)) high = low + 1;
  const mean = sum(z) / n;
  const variance = sum(z.map((x) => (x - mean) ** 2)) / n;
  let x = clip(0.5 * Math.log((2 * d) / variance), low, high);
  const goal = Math.log(d) - Math.log(t);
  for (let i = 0; i < MOST_ITERATIONS; i++) {
    const [y, slope] = balance(Math.exp(x), z, m);
    const f = y - goal;
    if (Number.isNaN(f)) break;
    if (f < 0) low = x;
    else high = x;
    let after = x - f / slope;
    if (!(after > low && after < high)) after = 0.5 * (low + high);
    const near = Math.abs(after - x) <= 2 * Number.EPSILON * (1 + Math.abs(x));
    x = after;
    if (near) break;
  }
  return Math.exp(x);
}

/** ln D - ln T at an inverse temperature, and its derivative by the temperature's logarithm. */
function balance(eta, z, m) {
  const n = z.length;
  const powers = z.map((x) => Math.exp(eta * x));
  const below = z.map((x) => Math.expm1(eta * x));
  const rest = sum(powers.filter((_, i) => z[i] < 0));
  const total = m + rest;
  const lost = sum(powers.map((power, i) => -power * z[i]));
  const tail = Math.max(Math.log1p(rest / m) + (eta * lost) / total, TINY);
  const shift = sum(below) / n;
  const terms = powers.map((power, i) => {
    const t = (power * n) / total - 1;
    return phi(total > 0.5 * n && Math.abs(t) < 0.5 ? ((below[i] - shift) * n) / total : t) / n;
  });
  const deficit = Math.max(sum(terms), TINY);
  const mean = -lost / total;
  const variance = sum(powers.map((power, i) => power * (z[i] - mean) ** 2)) / total;
  return [Math.log(deficit) - Math.log(tail), Math.max(eta * eta * variance * (1 / deficit + 1 / tail), TINY)];
}
