/* Sections, choices and tables of the report. */

import { html } from "../../../pages/web/dom.js";

/** A section of the page with its heading; `id` is what the links at the top point to. */
export function section(id, heading, ...children) {
  return html("section", { id, "aria-labelledby": `${id}-heading` }, html("h2", { id: `${id}-heading` }, heading), ...children);
}

/** A labelled choice. `options` are [value, words] pairs. */
export function choice(label, options, value, onchange) {
  const select = html("select", { onchange: () => onchange(select.value) });
  for (const [key, words] of options) select.append(html("option", { value: key, selected: key === value }, words));
  return html("label", { class: "control" }, html("span", {}, label), select);
}

/** A button that saves a text as a file. The file is made in the page, so that nothing is asked for. */
export function saving(name, text, words = `Download ${name}`) {
  const save = () => {
    const address = URL.createObjectURL(new Blob([typeof text === "function" ? text() : text], { type: "text/csv" }));
    const link = html("a", { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };
  return html("button", { type: "button", class: "save no-print", onclick: save }, words);
}

/** The buttons for those of the report's tables that it has. */
export function savings(report, ...names) {
  const there = names.filter((name) => report.tables[name]);
  return there.length ? html("p", { class: "saves no-print" }, there.map((name) => saving(name, report.tables[name]))) : null;
}

/** Rows of cells as CSV. */
export function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}

/** A plain table: a row of heads, rows of cells. Numbers are set as such; a wide one becomes cards on a phone. */
export function table(heads, rows, caption) {
  const isNumber = (content) => typeof content === "string" && /^[<>+\-−]? ?\d/.test(content);
  const cell = (content, i) => html("td", { class: isNumber(content) ? "number" : null, "data-label": heads[i] }, html("span", {}, content));
  return html(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    html(
      "table",
      { class: heads.length > 2 ? "cards" : null },
      html("thead", {}, html("tr", {}, heads.map((head) => html("th", { scope: "col" }, head)))),
      html("tbody", {}, rows.map((row) => html("tr", {}, row.map(cell)))),
    ),
  );
}
