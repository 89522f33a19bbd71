/* The MDP as a form. What is typed is a draft; it becomes the MDP once nothing is wrong with it. */

import { findProblem, withField } from "../math/model.js";
import { byId, html, say, set } from "../../../pages/web/dom.js";
import { numberIn, typed } from "./fields.js";

/** A form for the model; `onChange(model)` with every draft that is a model, `onRestore()` to undo them all. */
export function makeEditor(model, edited, onChange, onRestore) {
  const inputs = new Map();
  let draft = model;
  const ends = model.actions.some((rows) => rows.some(({ next }) => next[2] > 0));

  const field = (path, value, label) => {
    const kind = { type: "number", step: "any", inputmode: "decimal", value: typed(value) };
    const input = html("input", { ...kind, "aria-label": label, "data-field": path });
    inputs.set(path, input);
    input.addEventListener("input", () => {
      draft = withField(draft, path, numberIn(input));
      if (!ends) complement(path);
      review();
    });
    return input;
  };

  // Without an end, what does not lead to the one state leads to the other.
  const complement = (path) => {
    const found = path.match(/^(.*\.next\.)([01])$/);
    const value = numberIn(inputs.get(path));
    if (!found || !(value >= 0 && value <= 1)) return;
    const other = `${found[1]}${1 - found[2]}`;
    const rest = Number((1 - value).toFixed(12));
    draft = withField(draft, other, rest);
    inputs.get(other).value = typed(rest);
  };

  const review = () => {
    const problem = findProblem(draft);
    for (const [path, input] of inputs) {
      const wrong = problem !== null && path.startsWith(problem.field);
      set(input, { "aria-invalid": wrong ? "true" : null, "aria-describedby": wrong ? "mdp-problem" : null });
    }
    say(byId("mdp-problem"), problem ? `${problem.message}. The page shows the last MDP that was whole.` : "");
    if (!problem) onChange(draft);
  };

  const restore = html("button", { type: "button", id: "restore" }, "Restore");
  restore.disabled = !edited;
  restore.addEventListener("click", onRestore);
  const gamma = html("label", {}, html("span", {}, "discount γ"), field("gamma", model.gamma, "discount gamma"));
  byId("editor").replaceChildren(
    html("div", { class: "row inputs" }, gamma, restore),
    table(model, field, ends),
    ...notes(model),
  );
  say(byId("mdp-problem"), "");
  return { restore, reset: (now) => { draft = now; } };
}

function table(model, field, ends) {
  const head = (...children) => html("th", { scope: "col" }, ...children);
  const next = model.states.map((name) => head(`to ${name}`));
  const heads = [head("state, action"), head("reward ", html("var", {}, "r")), ...next];
  if (ends) heads.push(head("ends"));
  const rows = model.actions.flatMap((actions, s) =>
    actions.map((action, a) => {
      const at = `${model.states[s]}, ${action.name}`;
      const path = `actions.${s}.${a}`;
      const cells = [field(`${path}.reward`, action.reward, `reward of ${at}`)];
      for (const k of ends ? [0, 1, 2] : [0, 1]) {
        const to = k === 2 ? "the end" : model.states[k];
        cells.push(field(`${path}.next.${k}`, action.next[k], `probability from ${at} to ${to}`));
      }
      return html("tr", { class: a === 0 ? "first" : "" }, html("th", { scope: "row" }, at),
        ...cells.map((cell) => html("td", {}, cell)));
    }),
  );
  return html("div", { class: "scroll" }, html("table", { class: "mdp" }, html("thead", {}, html("tr", {}, ...heads)),
    html("tbody", {}, ...rows)));
}

function notes(model) {
  if (!model.actions.some((rows) => rows.some(({ rewards }) => rewards !== null))) return [];
  return [html("p", { class: "hint" },
    "Some rewards depend on the next state: r is their mean, and a reward that you change no longer depends on it.")];
}
