/* Elements and numbers on the page. */

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** A new SVG element with attributes and children. */
export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

/** A new HTML element with attributes and children. */
export const html = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

function filled(element, attributes, children) {
  set(element, attributes);
  element.append(...children);
  return element;
}

/** Set attributes; null takes one away. */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null) element.removeAttribute(name);
    else element.setAttribute(name, value);
  }
}

/** Set a text, only if it is another: screen readers announce changes. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

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
