const SVG = "http://www.w3.org/2000/svg";

/** Put properties on an element: `on...` listeners, true and false as present and absent, the rest as attributes. */
function dress(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  return element;
}

/** An HTML element. Children that are not nodes become text, never markup: names of runs are data. */
function h(tag, properties = {}, ...children) {
  const element = dress(document.createElement(tag), properties);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An SVG element. */
function g(tag, properties = {}, ...children) {
  const element = dress(document.createElementNS(SVG, tag), properties);
  element.append(...children.flat());
  return element;
}

/** A section of the page with its heading; `id` is what the links at the top point to. */
function section(id, heading, ...children) {
  return h("section", { id, "aria-labelledby": `${id}-heading` }, h("h2", { id: `${id}-heading` }, heading), ...children);
}

/** A labelled choice. `options` are [value, words] pairs. */
function choice(label, options, value, onchange) {
  const select = h("select", { onchange: () => onchange(select.value) });
  for (const [key, words] of options) select.append(h("option", { value: key, selected: key === value }, words));
  return h("label", { class: "control" }, h("span", {}, label), select);
}

/** A plain table: a row of heads, rows of cells. Numbers are set as such; a wide one becomes cards on a phone. */
function table(heads, rows, caption) {
  const isNumber = (content) => typeof content === "string" && /^[<>+\-−]? ?\d/.test(content);
  const cell = (content, i) => h("td", { class: isNumber(content) ? "number" : null, "data-label": heads[i] }, h("span", {}, content));
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      { class: heads.length > 2 ? "cards" : null },
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell)))),
    ),
  );
}
