/* The numbers beside the plane: whether V is achievable, values, residual, distance, the policy's bars. */

import { byId, html, say, set } from "../../../pages/web/dom.js";
import { shown } from "./fields.js";

/** The table of values and the bars of an MDP, empty; a new MDP needs new ones. */
export function makeReadouts(model) {
  for (const s of [0, 1]) {
    for (const place of document.querySelectorAll(`.state-${s}`)) say(place, model.states[s]);
  }
  const rows = [0, 1].map((s) => {
    const cells = Array.from({ length: 4 }, () => html("td"));
    return { cells, row: html("tr", {}, html("th", { scope: "row" }, model.states[s]), ...cells) };
  });
  byId("values-table").replaceChildren(...rows.map(({ row }) => row));
  const states = [0, 1].map((s) => makeState(model, s));
  byId("bars").replaceChildren(...states.map(({ table }) => table));
  return { rows, states };
}

function makeState(model, s) {
  const bars = model.actions[s].map(({ name }) => {
    const fill = html("span", { class: "fill" });
    const pi = html("td", { class: "number" });
    const q = html("td", { class: "number" });
    const star = html("span", { class: "greedy star" });
    const row = html(
      "tr",
      {},
      html("th", { scope: "row" }, name, star),
      html("td", { class: "bar", "aria-hidden": "true" }, html("span", { class: "track" }, fill)),
      pi,
      q,
    );
    return { fill, pi, q, star, row };
  });
  const facts = Array.from({ length: 3 }, () => html("span"));
  const caption = html("span", { class: "facts" }, ...facts);
  const heads = [
    html("th", { scope: "col" }, "action"),
    html("th", { scope: "col", class: "bar" }, html("span", { class: "quiet" }, "bar")),
    html("th", { scope: "col", class: "number" }, "π"),
    html("th", { scope: "col", class: "number" }, html("var", {}, "q"), html("sub", {}, html("var", {}, "V"))),
  ];
  const table = html(
    "table",
    { class: "policy" },
    html("caption", {}, html("strong", {}, `in ${model.states[s]}`), " ", caption),
    html("thead", {}, html("tr", {}, ...heads)),
    html("tbody", {}, ...bars.map(({ row }) => row)),
  );
  return { table, bars, facts };
}

/** Fill them for V. */
export function drawReadouts(readouts, model, v, result, distance, optimal) {
  const [word, why] = verdict(model, result);
  say(byId("verdict-word"), word);
  say(byId("verdict-why"), why);
  byId("verdict").className = result.achievable ? "yes" : "no";
  readouts.rows.forEach(({ cells }, s) => {
    [v[s], result.values[s], result.greedyValues[s], optimal[s]].forEach((x, k) => say(cells[k], shown(x)));
  });
  const rho = result.achievable ? 0 : result.supResidual; // what is left of it then is rounding
  const bounds = result.achievable ? [0, 0] : result.distanceBounds;
  say(byId("rho"), shown(rho));
  say(byId("l2"), shown(result.achievable ? 0 : result.residual));
  say(byId("distance"), shown(distance));
  say(byId("lower"), shown(bounds[0]));
  say(byId("upper"), shown(bounds[1]));
  drawGauge(bounds, distance);
  readouts.states.forEach((state, s) => drawState(state, result, s));
}

/** Whether V is achievable, and if not, where it promises what no action gives. */
export function verdict(model, result) {
  if (result.achievable) return ["Achievable.", "V is the value of its evaluation policy."];
  const places = [0, 1].flatMap((s) => {
    const than = `in ${model.states[s]} than any action gives`;
    if (result.promisesTooMuch[s]) return [`more ${than} (π is greedy there)`];
    if (result.promisesTooLittle[s]) return [`less ${than} (π takes the worst there)`];
    return [];
  });
  return ["Not achievable.", `V promises ${places.join(" and ")}.`];
}

/** Zero at the left, the upper bound near the right: the range that the bounds leave, and where the distance is. */
function drawGauge([lower, upper], distance) {
  const share = (x) => `${upper > 0 ? (100 * x) / upper : 0}%`;
  byId("gauge-range").style.left = share(lower);
  byId("gauge-range").style.right = "0";
  byId("gauge-mark").style.left = share(distance);
  byId("gauge").classList.toggle("empty", !(upper > 0));
}

function drawState(state, result, s) {
  state.bars.forEach(({ fill, pi, q, star }, a) => {
    fill.style.width = `${100 * result.policy[s][a]}%`;
    say(pi, result.policy[s][a].toFixed(3));
    say(q, shown(result.q[s][a]));
    const greedy = result.greedy[s][a] > 0;
    say(star, greedy ? " ▲" : "");
    set(star, { title: greedy ? "greedy action" : null });
  });
  const most = Math.log(state.bars.length);
  say(state.facts[0], `entropy ${shown(result.entropy[s])} of ${shown(most)} nats`);
  say(state.facts[1], `matched ε ${shown(result.epsilon[s])}`);
  say(state.facts[2], `inverse temperature η ${shown(result.eta[s])}`);
}
