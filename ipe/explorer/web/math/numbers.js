/* Sums, extremes and ranges of small arrays. */

export const sum = (x) => x.reduce((total, entry) => total + entry, 0);

export const dot = (x, y) => x.reduce((total, entry, i) => total + entry * y[i], 0);

export const clip = (x, low, high) => Math.min(Math.max(x, low), high);

/** The largest entry; NaN if there is one. */
export const greatest = (x) => x.reduce((best, entry) => Math.max(best, entry), -Infinity);

/** The smallest entry; NaN if there is one. */
export const least = (x) => x.reduce((best, entry) => Math.min(best, entry), Infinity);

/** Equal probabilities over the entries that are marked. */
export function share(marks) {
  const count = Math.max(1, sum(marks.map(Number)));
  return marks.map((mark) => (mark ? 1 / count : 0));
}

/** The step 1, 2 or 5 times a power of ten that is nearest, in ratio, to a positive number. */
export function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  const far = (digit) => Math.abs(Math.log((digit * power) / rough));
  return power * [1, 2, 5, 10].reduce((best, digit) => (far(digit) < far(best) ? digit : best));
}
