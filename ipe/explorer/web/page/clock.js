/* A clock that asks for steps at a given speed, at every frame for those that have come due. */

const LONGEST = 0.25; // seconds: after a pause of the browser it does not catch up

/** `onSteps(n)` returns whether to go on. `speed()` is in steps a second, and may change. */
export function makeClock(speed, onSteps) {
  let frame = null;
  const stop = () => {
    if (frame !== null) cancelAnimationFrame(frame);
    frame = null;
  };
  const start = () => {
    let last = performance.now();
    let due = 1;
    const tick = (now) => {
      due += Math.min(LONGEST, (now - last) / 1000) * speed();
      last = now;
      const steps = Math.floor(due);
      due -= steps;
      frame = requestAnimationFrame(tick);
      if (steps > 0 && !onSteps(steps)) stop();
    };
    frame = requestAnimationFrame(tick);
  };
  return { start, stop, running: () => frame !== null };
}
