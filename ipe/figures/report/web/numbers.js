export const NONE = "–";

/** A number with about `digits` significant digits, without exponents where people would not use them. */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return NONE;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(Math.max(0, digits - 2)).replace("-", "−");
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  const text = value.toFixed(Math.min(decimals, 8));
  return (text.includes(".") ? text.replace(/\.?0+$/, "") : text).replace("-", "−");
}

/** A score with as many decimals as the scores of its environment need to be told apart. */
export function scoreFormat(values) {
  const finite = values.filter((value) => value !== null);
  const span = finite.length ? Math.max(...finite) - Math.min(...finite) : 0;
  const decimals = span > 0 ? Math.min(8, Math.max(0, 2 - Math.floor(Math.log10(span / 2)))) : 2;
  return (value) => (value === null || value === undefined ? NONE : value.toFixed(decimals).replace("-", "−"));
}

/** Frames as people say them: 250k, 2M. */
export function frames(value) {
  if (value >= 1e6) return `${number(value / 1e6, 4)}M`;
  return value >= 1e3 ? `${number(value / 1e3, 4)}k` : String(value);
}

/** A probability; never a plain 0 or 1, which the bootstrap cannot know. */
export function probability(value) {
  if (value === null || value === undefined) return NONE;
  if (value < 0.005) return "< 0.01";
  return value > 0.995 ? "> 0.99" : value.toFixed(2);
}

/** A p-value; never a plain 0. */
export function pValue(value) {
  if (value === null || value === undefined) return NONE;
  return value < 0.001 ? "< 0.001" : value.toFixed(3);
}

/** A share as a percentage. */
export const percent = (value) => `${Math.round(100 * value)}%`;

/** A value of a setting. */
export function setting(value) {
  if (value === null) return "none";
  if (Array.isArray(value)) return value.map(setting).join(", ") || "(empty)";
  if (typeof value === "object") return Object.keys(value).length ? JSON.stringify(value) : "(empty)";
  if (typeof value === "number" && value !== 0 && Math.abs(value) < 1e-3) return value.toExponential();
  return String(value);
}

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** The least and the greatest of several lists of numbers, nulls aside. */
export function extent(lists) {
  let low = Infinity;
  let high = -Infinity;
  for (const list of lists) {
    for (const value of list) {
      if (value === null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : [0, 1];
}

/** The values at these shares of the sorted lists, nulls aside. */
export function quantiles(lists, shares) {
  const sorted = lists.flat().filter((value) => value !== null).sort((a, b) => a - b);
  return shares.map((share) => sorted[Math.round(share * (sorted.length - 1))]);
}
