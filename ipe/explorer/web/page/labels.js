/* Names beside their marks: off the boundary, off each other, within the frame. */

const HEIGHT = 15;
const GAP = 9;
const NO_ROOM = 4; // the cost of covering another mark
const SIDES = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [-1, -1], [1, 1], [-1, 1]];
// Beside the mark, or a little further.
const PLACES = [1, 2].flatMap((ring) => SIDES.map(([dx, dy]) => [dx, dy, ring]));

/**
 * For each label { x, y, width } the centre of its text, chosen one after the other; null where there is no room.
 * `strokes` are points to keep clear of; `covered(x, y)` says whether a place lies on the polytope.
 */
export function placeLabels(labels, frame, strokes, covered) {
  const marks = labels.map(({ x, y }) => ({ x, y, width: 10, height: 10 }));
  const taken = [];
  return labels.map((label, index) => {
    let best = null;
    for (const [dx, dy, ring] of PLACES) {
      const more = 8 * (ring - 1);
      const box = {
        x: label.x + dx * (label.width / 2 + (dy === 0 ? GAP + more : more)),
        y: label.y + dy * (HEIGHT / 2 + (dx === 0 ? GAP - 2 : 4) + more),
        width: label.width,
        height: HEIGHT,
      };
      const cost =
        20 * outside(box, frame) +
        6 * taken.filter((other) => overlap(box, other)).length +
        4 * marks.filter((mark, k) => k !== index && overlap(box, mark)).length +
        0.3 * strokes.filter(([x, y]) => overlap(box, { x, y, width: 2, height: 2 })).length +
        (covered(box.x, box.y) ? 1 : 0) +
        1.5 * (ring - 1);
      if (best === null || cost < best.cost) best = { ...box, cost };
    }
    if (best.cost >= NO_ROOM) return null;
    taken.push(best);
    return best;
  });
}

/** Whether two boxes { x, y, width, height } around their centres cover each other. */
export const overlap = (one, other) =>
  Math.abs(one.x - other.x) < (one.width + other.width) / 2 &&
  Math.abs(one.y - other.y) < (one.height + other.height) / 2;

function outside(box, frame) {
  const over = (low, high, from, to) => Math.max(0, from - low) + Math.max(0, high - to);
  return (
    over(box.x - box.width / 2, box.x + box.width / 2, frame.x + 2, frame.x + frame.width) +
    over(box.y - box.height / 2, box.y + box.height / 2, frame.y, frame.y + frame.height - 2)
  );
}
