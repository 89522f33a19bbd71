/* The page: one state, read from the address; every change goes through here and is drawn at the next frame. */

import { gridAround, nearestAchievable, valuePolytope } from "../math/polytope.js";
import { evaluationPolicy, policyValues } from "../math/values.js";
import { decode, encode, numberProblem, SPEEDS, V_LIMIT } from "./address.js";
import { makeClock } from "./clock.js";
import { byId, html, say, set } from "../../../pages/web/dom.js";
import { fresh, numberIn, shown, typed } from "./fields.js";
import { makeEditor } from "./editor.js";
import { makeHandle } from "./handle.js";
import { makeLegends } from "./legend.js";
import { drawArrows, drawMap, drawTrace } from "./overlays.js";
import { drawGround, makePlane } from "./plane.js";
import { advance, optimalValues, startPlayer } from "./player.js";
import { drawReadouts, makeReadouts, verdict } from "./readouts.js";
import { describeRun, drawRuns, makeRuns } from "./runs.js";
import { readSettings, writeSettings } from "./settings.js";
import { makeTheme } from "./theme.js";
import { boxAround, viewOf } from "./view.js";

const FINAL_EPSILON = 0.1;
const ADDRESS_DELAY = 250; // browsers refuse an address that changes many times a second

const { models } = JSON.parse(byId("data").textContent);
const root = byId("plane");
const plane = makePlane(root);
const handle = makeHandle(plane, () => view, moveV, () => draw());
const cards = makeRuns((behaviour) => change({ run: behaviour }));

let state;
let original; // the MDP that edits began with
let polytope;
let optimal;
let grid;
let player;
let view;
let readouts;
let editor;
let frame = null;
let timer = null;
let address = null; // as this page last read or wrote it

function open() {
  clock.stop();
  address = location.hash;
  const { state: found, problems } = decode(address.slice(1), models);
  byId("address-problem").hidden = problems.length === 0;
  say(byId("address-problem"), problems.length ? `The address was not understood: ${problems.join("; ")}.` : "");
  state = found;
  original = state.model;
  useModel(state.model);
  state.v ??= firstV();
  state.reach ??= beyond(state.v);
  makeForm();
  playTo(state.done);
  writeSettings(state.settings);
  for (const s of [0, 1]) byId(`v${s}`).value = typed(state.v[s]);
  byId("speed").value = state.speed;
  byId("follow").checked = state.follow;
  for (const radio of document.querySelectorAll("input[name=map]")) radio.checked = radio.value === state.map;
  draw();
}

/** Beside the polytope, where the two arrows differ as a rule: the page starts with a question. */
function firstV() {
  const [low, high] = boxAround(polytope.vertices, grid.step);
  return [0.3, 0.62].map((share, i) => Number((low[i] + share * (high[i] - low[i])).toPrecision(3)));
}

/** V, if it lies beyond what is shown of the polytope by itself, and the view must reach out to it; else null. */
function beyond(v) {
  const [low, high] = boxAround(polytope.vertices, grid.step);
  return [0, 1].some((i) => v[i] < low[i] || v[i] > high[i]) ? v : null;
}

function useModel(model) {
  state.model = model;
  polytope = valuePolytope(model);
  optimal = optimalValues(polytope);
  grid = gridAround(polytope.vertices);
  readouts = makeReadouts(model);
  restart();
}

function makeForm() {
  const edited = state.model !== original;
  editor = makeEditor(state.model, edited, useEdited, () => choose(original));
  const options = models.map((model, k) => html("option", { value: k }, model.title));
  if (!models.includes(state.model)) options.push(html("option", { value: -1 }, state.model.title));
  byId("mdp").replaceChildren(...options);
  byId("mdp").value = models.indexOf(state.model);
  document.title = `${state.model.title}: value polytope explorer`;
}

/** Another MDP, whole: V starts anew. */
function choose(model) {
  clock.stop();
  state.zoom = 0;
  state.reach = null;
  original = model;
  useModel(model);
  state.v = firstV();
  state.done = 0;
  makeForm();
  draw();
}

/** The MDP with a field changed: V stays, the form is left alone, someone is typing in it. */
function useEdited(model) {
  clock.stop();
  const title = original.title.endsWith("(edited)") ? original.title : `${original.title} (edited)`;
  useModel({ ...model, name: title, title, example: false });
  state.done = 0;
  state.reach = beyond(state.v);
  editor.restore.disabled = false;
  const select = byId("mdp");
  if (!select.querySelector("option[value='-1']")) select.append(html("option", { value: -1 }));
  say(select.querySelector("option[value='-1']"), title);
  select.value = -1;
  draw();
}

function restart() {
  player = startPlayer(state.model, { ...state.settings, finalEpsilon: FINAL_EPSILON }, state.settings.seed);
}

function playTo(steps) {
  while (player.steps < steps) advance(player);
  state.done = player.steps;
  if (state.follow && player.steps > 0) state.v = player.runs[state.run].estimates.at(-1);
}

function change(parts) {
  Object.assign(state, parts);
  draw();
}

function moveV(v) {
  state.v = v;
  for (const id of ["v0", "v1"]) set(byId(id), { "aria-invalid": null });
  say(byId("v-problem"), "");
  if (state.follow) {
    state.follow = false;
    byId("follow").checked = false;
  }
  draw();
}

/** Draw at the next frame, however much changes until then. */
function draw() {
  frame ??= requestAnimationFrame(() => {
    frame = null;
    render();
  });
  timer ??= setTimeout(() => {
    timer = null;
    if (location.hash !== address) return; // someone has just given it another: that is to be read, not overwritten
    history.replaceState(null, "", `#${encode(state, models)}`);
    address = location.hash;
  }, ADDRESS_DELAY);
}

function render() {
  const points = [...polytope.vertices, ...(player.steps ? player.box : [])];
  const box = boxAround(state.reach ? [...points, state.reach] : points, grid.step);
  const size = [root.clientWidth, root.clientHeight];
  view = viewOf(box, state.zoom, state.centre, ...size);
  const shape = JSON.stringify([box, state.zoom, state.centre, size]);
  if (fresh("ground", shape, polytope)) drawGround(plane, view, state.model, polytope);
  if (fresh("map", shape, polytope, state.map)) drawMap(plane.map, view, state.model, polytope, state.map);
  if (fresh("trace", shape, player, player.steps, state.run)) {
    drawTrace(plane.trace, view, player.steps ? player.runs[state.run] : null);
    drawRuns(cards, player, polytope, boxAround(points, grid.step), optimal, state.run);
  }
  say(byId("run-said"), describeRun(player, state.run, optimal, state.settings.steps));
  for (const id of ["play", "step", "finish"]) byId(id).disabled = player.steps >= state.settings.steps;
  byId("reset").disabled = player.steps === 0;
  say(byId("play"), clock.running() ? "Pause" : "Play");
  say(byId("speed-said"), `${SPEEDS[state.speed]} steps/s`);
  renderV();
}

function renderV() {
  const { model, v } = state;
  const result = evaluationPolicy(model, v);
  const nearest = (norm) => nearestAchievable(polytope, v, result.achievable, norm);
  drawArrows(plane, view, v, result, nearest("l2").point);
  drawReadouts(readouts, model, v, result, nearest("linf").distance, optimal);
  const values = [0, 1].map((s) => `${model.states[s]} ${shown(v[s])}`).join(", of ");
  handle.draw(view, v, result.achievable, `V of ${values}. ${verdict(model, result).join(" ")}`);
  for (const s of [0, 1]) {
    const input = byId(`v${s}`);
    if (document.activeElement !== input) input.value = typed(v[s]);
  }
}

const clock = makeClock(
  () => SPEEDS[state.speed],
  (steps) => {
    playTo(Math.min(state.settings.steps, player.steps + steps));
    draw();
    return player.steps < state.settings.steps;
  },
);

function play() {
  if (clock.running()) clock.stop();
  else clock.start();
  draw();
}

function useSettings() {
  const settings = readSettings(state.settings);
  if (Object.keys(settings).every((name) => settings[name] === state.settings[name])) return;
  state.settings = settings;
  const done = Math.min(player.steps, settings.steps);
  clock.stop();
  restart();
  playTo(done); // the same run, as it would have been
  draw();
}

function typeV(s) {
  const value = numberIn(byId(`v${s}`));
  const problem = numberProblem(value, { low: -V_LIMIT, high: V_LIMIT });
  set(byId(`v${s}`), { "aria-invalid": problem ? "true" : null });
  say(byId("v-problem"), problem ? `V(${state.model.states[s]}) ${problem}.` : "");
  if (!problem) setV(state.v.map((x, i) => (i === s ? value : x)));
}

/** V as typed or chosen: the view follows where it must. */
function setV(v) {
  if ([0, 1].some((i) => v[i] < view.low[i] || v[i] > view.high[i])) {
    state.reach = v;
    state.zoom = 0;
  }
  moveV(v);
}

function zoom(by) {
  const next = Math.max(-6, Math.min(12, state.zoom + by));
  change({ zoom: next, centre: next === 0 ? null : state.zoom === 0 || by > 0 ? state.v : state.centre });
}

const on = (id, event, action) => byId(id).addEventListener(event, action);
on("mdp", "change", () => choose(models[byId("mdp").value] ?? state.model));
on("zoom-in", "click", () => zoom(1));
on("zoom-out", "click", () => zoom(-1));
on("fit", "click", () => {
  change({ zoom: 0, centre: null, reach: beyond(state.v) });
});
on("map", "change", (event) => change({ map: event.target.value }));
on("v0", "input", () => typeV(0));
on("v1", "input", () => typeV(1));
on("set-optimal", "click", () => setV(optimal));
on("set-uniform", "click", () =>
  setV(policyValues(state.model, state.model.actions.map((rows) => rows.map(() => 1 / rows.length)))),
);
on("set-zero", "click", () => setV([0, 0]));
on("play", "click", play);
on("step", "click", () => {
  clock.stop();
  playTo(Math.min(state.settings.steps, player.steps + 1));
  draw();
});
on("finish", "click", () => {
  clock.stop();
  playTo(state.settings.steps);
  draw();
});
on("reset", "click", () => {
  clock.stop();
  restart();
  change({ done: 0 });
});
on("speed", "input", () => change({ speed: Number(byId("speed").value) }));
on("follow", "change", () => {
  state.follow = byId("follow").checked;
  playTo(player.steps);
  draw();
});
on("settings", "input", useSettings);
addEventListener("hashchange", () => {
  if (location.hash !== address) open();
});
new ResizeObserver(() => draw()).observe(root);

makeTheme();
makeLegends();
open();
cancelAnimationFrame(frame); // the first picture is there before the first paint
frame = null;
render();
