/* Numbers as the page shows and reads them, and what has to be drawn again. */

/** A number for reading: three decimals where that says something. */
export function shown(x) {
  if (Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  const text = size !== 0 && (size >= 1e5 || size < 5e-4) ? size.toExponential(2) : size.toFixed(3);
  return x < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** A number for an input: short, and read back as nearly the same. */
export const typed = (x) => String(Number(x.toPrecision(7)));

/** The number in an input, NaN if there is none. */
export const numberIn = (input) => (input.value.trim() === "" ? NaN : Number(input.value));

const drawn = new Map();

/** Whether something has to be drawn again: the parts that it is made of are not those of the last time. */
export function fresh(name, ...parts) {
  const old = drawn.get(name);
  if (old && parts.every((part, k) => part === old[k])) return false;
  drawn.set(name, parts);
  return true;
}
