/* V as something to take hold of: by mouse, by finger, by keyboard. */

import { clip, roundStep } from "../math/numbers.js";
import { set, svg } from "../../../pages/web/dom.js";
import { shown } from "./fields.js";

const TAP = 8; // pixels that a finger may move and still tap

/**
 * The handle, in its layer. `getView()` is the view of the moment; `onMove(v)` is called as V is moved, `onEnd()` when
 * it is let go.
 */
export function makeHandle(plane, getView, onMove, onEnd) {
  const circle = svg("circle", { r: 7, class: "v" });
  const target = svg("circle", { r: 24, class: "v-target" });
  const label = svg("text", { class: "v-name", "aria-hidden": "true" }, "V");
  const handle = svg(
    "g",
    { class: "v-handle", tabindex: 0, role: "slider", "aria-roledescription": "point in the plane",
      "aria-label": "Value function V", "aria-describedby": "plane-help" },
    target,
    circle,
    label,
  );
  plane.handle.append(handle);
  let v = [0, 0];

  const moveTo = (event) => {
    const view = getView();
    const box = plane.picture.getBoundingClientRect();
    const ratio = view.width / box.width;
    onMove(inside(view, view.value((event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio)));
  };
  pointing(plane.picture, handle, moveTo, onEnd);
  // Browsers look for touch-action on the picture as a whole, where it lets fingers scroll: here they must not.
  handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  handle.addEventListener("keydown", (event) => {
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!direction || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const view = getView();
    const step = roundStep((view.high[0] - view.low[0]) / 200) * (event.shiftKey ? 10 : 1);
    // To the next point of a grid of steps: no digits pile up behind the comma.
    const next = v.map((x, i) => (direction[i] === 0 ? x : round(step * (Math.round(x / step) + direction[i]), step)));
    v = inside(view, next); // another key may come before the next frame
    onMove(v);
    onEnd();
  });

  return {
    element: handle,
    draw(view, value, achievable, words) {
      v = value;
      const [x, y] = view.at(value);
      set(handle, { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
      circle.classList.toggle("out", !achievable);
      const side = x > view.frame.x + view.frame.width - 30 ? -1 : 1;
      set(label, { x: 12 * side, y: y < view.frame.y + 24 ? 20 : -10, "text-anchor": side < 0 ? "end" : "start" });
      set(handle, {
        "aria-valuemin": shown(view.low[0]).replace("−", "-"),
        "aria-valuemax": shown(view.high[0]).replace("−", "-"),
        "aria-valuenow": shown(value[0]).replace("−", "-"),
        "aria-valuetext": words,
      });
    },
  };
}

const inside = (view, v) => v.map((x, i) => clip(x, view.low[i], view.high[i]));

const round = (x, step) => Number(x.toFixed(Math.max(0, Math.min(12, 1 - Math.floor(Math.log10(step))))));

/** A mouse takes hold of V anywhere; a finger only on V itself, so that the page can still be scrolled, or taps. */
function pointing(picture, handle, moveTo, onEnd) {
  let holding = null;
  let tap = null;
  picture.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary || event.button !== 0) return;
    if (event.pointerType === "touch" && !handle.contains(event.target)) {
      tap = { id: event.pointerId, x: event.clientX, y: event.clientY };
      return;
    }
    event.preventDefault();
    holding = event.pointerId;
    picture.setPointerCapture(event.pointerId);
    handle.classList.add("held");
    handle.focus({ preventScroll: true });
    moveTo(event);
  });
  picture.addEventListener("pointermove", (event) => {
    if (event.pointerId === holding) moveTo(event);
  });
  const end = (event) => {
    if (event.pointerId === holding) {
      holding = null;
      handle.classList.remove("held");
      onEnd();
    } else if (tap && event.pointerId === tap.id) {
      const near = Math.hypot(event.clientX - tap.x, event.clientY - tap.y) < TAP;
      tap = null;
      if (near && event.type === "pointerup") {
        moveTo(event);
        onEnd();
      }
    }
  };
  picture.addEventListener("pointerup", end);
  picture.addEventListener("pointercancel", end);
}
