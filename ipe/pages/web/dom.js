/* Elements of a page. Names and other data become text, never markup. */

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** A new HTML element with properties (as for `set`) and children; null, undefined and false are no child. */
export const html = (tag, properties = {}, ...children) => filled(document.createElement(tag), properties, children);

/** A new SVG element with properties and children, as for `html`. */
export const svg = (tag, properties = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), properties, children);

function filled(element, properties, children) {
  const given = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  element.append(...given);
  return set(element, properties);
}

/** Set properties: functions named `on...` listen, true is an empty attribute, null and false take one away. */
export function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return element;
}

/** Set a text, only if it is another one: screen readers announce changes. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
