import { html } from "../../../pages/web/dom.js";
import { section } from "./controls.js";

/** A paragraph on methods that can be pasted; every sentence is made from what was computed for this environment. */
export function methodsSection(report, environment) {
  const words = html("textarea", { class: "paste", readonly: true, rows: 12, "aria-label": "Methods, as text" });
  words.value = environment.methods;
  const done = html("span", { class: "hint", role: "status" });
  const copy = () => {
    words.focus();
    words.select();
    done.textContent = document.execCommand("copy") ? " Copied." : " Selected: copy it with Ctrl+C.";
  };
  return section(
    "methods",
    "Methods",
    html("p", {}, "To paste into a paper. It says what this page did with these runs, and nothing else: what the algorithms are and how they were tuned is for you to add."),
    words,
    html("p", { class: "no-print" }, html("button", { type: "button", onclick: copy }, "Copy"), done),
  );
}
