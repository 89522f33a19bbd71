/* The card of Algorithm 1: small pictures to choose from, and what the chosen run says. */

import { BEHAVIOURS, behaviourEpsilon } from "../math/algorithm.js";
import { byId, html, say, set, svg } from "../../../pages/web/dom.js";
import { shown } from "./fields.js";
import { summary, TITLES } from "./player.js";

const SIZE = 100;

/** The pictures as radio buttons; `onChoose(behaviour)`. */
export function makeRuns(onChoose) {
  const cards = {};
  for (const behaviour of BEHAVIOURS) {
    const radio = html("input", { type: "radio", name: "run", value: behaviour });
    radio.addEventListener("change", () => onChoose(behaviour));
    const picture = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, "aria-hidden": "true" });
    const parts = {
      fill: svg("path", { class: "polytope" }),
      edge: svg("path", { class: "boundary" }),
      values: svg("path", { class: "trace-line values" }),
      estimates: svg("path", { class: "trace-line estimates" }),
    };
    picture.append(...Object.values(parts));
    const said = html("span", { class: "said" });
    const title = html("span", { class: "title" }, TITLES[behaviour]);
    const card = html("label", { class: "run" }, radio, title, picture, said);
    byId("runs").append(card);
    cards[behaviour] = { radio, said, ...parts };
  }
  return cards;
}

/** Draw the runs in a box around all of them. */
export function drawRuns(cards, player, polytope, box, optimal, chosen) {
  const extent = Math.max(box[1][0] - box[0][0], box[1][1] - box[0][1]);
  const middle = [0, 1].map((i) => (box[0][i] + box[1][i]) / 2);
  const at = (v) => {
    const x = SIZE / 2 + ((v[0] - middle[0]) / extent) * SIZE;
    const y = SIZE / 2 - ((v[1] - middle[1]) / extent) * SIZE;
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  };
  const line = (points) => `M${points.map(at).join("L")}`;
  for (const [behaviour, card] of Object.entries(cards)) {
    const traced = player.runs[behaviour];
    set(card.fill, { d: polytope.polygons.map((p) => `${line(p)}Z`).join("") || "M0 0" });
    set(card.edge, { d: polytope.segments.map(line).join("") });
    set(card.values, { d: line(traced.values) });
    set(card.estimates, { d: line(traced.estimates) });
    card.radio.checked = behaviour === chosen;
    const { reward, rmse } = summary(traced, optimal);
    say(card.said, player.steps ? `reward ${reward.toFixed(2)}, RMSE ${rmse.toFixed(2)}` : "not started");
  }
}

/** What happened last in the chosen run, in words. */
export function describeRun(player, chosen, optimal, steps) {
  const traced = player.runs[chosen];
  const { run } = traced;
  const { model } = player;
  if (!run.last) {
    return `${TITLES[chosen]}: Q = 0, in ${model.states[run.state]}, before step 1 of ${steps}. Play, or take a step.`;
  }
  const { state, action, reward, next } = run.last;
  const to = next === 2 ? "the end" : model.states[next];
  const epsilon = behaviourEpsilon(run, player.settings);
  const { reward: average, outside } = summary(traced, optimal);
  return (
    `${TITLES[chosen]}, step ${run.steps} of ${steps}: ${model.states[state]}, ${model.actions[state][action].name}, ` +
    `reward ${shown(reward)}, to ${to}. ` +
    (epsilon ? `ε there now ${epsilon[run.state].toFixed(3)}. ` : "") +
    `Average reward ${shown(average)}; ${Math.round(100 * outside)}% of the estimates outside the polytope.`
  );
}
