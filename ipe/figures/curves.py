"""Plane geometry for diagrams: Bézier curves between shapes, and labels that keep clear of everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ipe.base.arrays import Array, Mask

Inside = Callable[[Array], Mask]


def unit(degrees: float) -> Array:
    """The unit vector in a direction."""
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])


def left_of(vector: Array) -> Array:
    """The unit vector to the left of a direction."""
    return np.array([-vector[1], vector[0]]) / max(float(np.hypot(*vector)), 1e-12)


def at(curve: Array, t: Array | float) -> Array:
    """Points of a cubic Bézier curve, given by its four control points."""
    t = np.asarray(t)[..., None]
    a, b, c, d = curve
    return np.asarray((1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d)


def part(curve: Array, start: float, end: float) -> Array:
    """The control points of a curve from `start` to `end`, by de Casteljau's construction."""

    def before(points: Array, t: float) -> Array:
        out = [points[0]]
        while len(points) > 1:
            points = (1 - t) * points[:-1] + t * points[1:]
            out.append(points[0])
        return np.array(out)

    head = before(curve, end)
    return before(head[::-1], 1 - start / end)[::-1] if end > 0 else head


def arc(start: Array, end: Array, bulge: float) -> Array:
    """A curve whose middle lies `bulge` to the left of the straight line."""
    chord, offset = end - start, left_of(end - start) * bulge * 4 / 3
    return np.array([start, start + chord / 4 + offset, end - chord / 4 + offset, end])


def loop(centre: Array, direction: float, reach: float) -> Array:
    """A curve that leaves a point and comes back to it, its far end about `reach` away."""
    far = reach * 4 / 3 / np.cos(np.radians(32))
    return np.array([centre, centre + far * unit(direction - 32), centre + far * unit(direction + 32), centre])


def trim(curve: Array, source: Inside | None, target: Inside | None) -> Array:
    """The part of a curve outside the shapes at its two ends."""
    t = np.linspace(0.0, 1.0, 201)
    points = at(curve, t)
    start, end = 0, t.size - 1
    if source is not None:
        start = int(np.argmax(~source(points)))
    if target is not None:
        end = t.size - 1 - int(np.argmax(~target(points)[::-1]))
    return part(curve, t[start], t[end]) if start < end else curve


@dataclass(frozen=True)
class Label:
    """A text that looks for a place: its size, and where its centre may be, the better places first."""

    text: str
    width: float
    height: float
    places: Array  # (candidates, 2)
    dislike: Array  # (candidates,), 0 for the best


def label_along(text: str, size: tuple[float, float], curve: Array, middle: float, gap: float) -> Label:
    """A label beside a curve, near its parameter `middle`, on either side."""
    t = np.clip(middle + 0.06 * np.array([0, -1, 1, -2, 2, -3, 3, -4, 4, -5, 5, -6, 6]), 0.05, 0.95)
    points = at(curve, t)
    tangents = at(curve, np.minimum(t + 0.01, 1.0)) - at(curve, t - 0.01)
    normals = np.array([left_of(tangent) for tangent in tangents])
    reach = 0.5 * (np.abs(normals) @ np.array(size)) + gap
    places = np.concatenate([points + normals * reach[:, None], points - normals * reach[:, None]])
    dislike = np.tile(2.0 * np.abs(t - middle), 2)
    return Label(text, *size, places, dislike)


def label_around(text: str, size: tuple[float, float], centre: Array, gap: float) -> Label:
    """A label next to a point, in any direction."""
    directions = np.array([unit(degrees) for degrees in range(0, 360, 15)])
    half = 0.5 * np.array(size)
    reach = np.min(half / np.maximum(np.abs(directions), 1e-9), axis=1) + gap
    near, far = (centre + directions * (reach + more)[:, None] for more in (0.0, 0.1))
    return Label(text, *size, np.concatenate([near, far]), np.repeat([0.0, 0.5], len(directions)))


def place_labels(labels: Sequence[Label], shapes: Array, marks: Array, strokes: Array) -> Array:
    """Centres for all labels such that they cover as little as possible: of each other, shapes and strokes.

    Args:
        labels: the labels.
        shapes: boxes (x, y, half width, half height) of the states.
        marks: small boxes of the same form.
        strokes: points along all curves, (n, 2).

    Returns:
        The centres, one row per label: coordinate descent over the candidate places, which ends after a few rounds.
    """
    centres = np.array([label.places[0] for label in labels]).reshape(-1, 2)
    halves = np.array([(0.5 * label.width, 0.5 * label.height) for label in labels]).reshape(-1, 2)
    fixed = [_static_cost(label, shapes, marks, strokes) for label in labels]
    for _ in range(6):
        before = centres.copy()
        for i, label in enumerate(labels):
            others = np.arange(len(labels)) != i
            boxes = np.hstack([centres[others], halves[others]])
            cost = fixed[i] + 12.0 * _overlap(label.places, halves[i], boxes).sum(axis=1)
            centres[i] = label.places[int(np.argmin(cost))]
        if np.array_equal(before, centres):
            break
    return centres


def _static_cost(label: Label, shapes: Array, marks: Array, strokes: Array) -> Array:
    half = 0.5 * np.array([label.width, label.height])
    cost = label.dislike + 12.0 * _overlap(label.places, half, shapes).sum(axis=1)
    cost += 6.0 * _overlap(label.places, half, marks).sum(axis=1)
    covered = (np.abs(label.places[:, None] - strokes[None]) < half + 0.02).all(axis=2)
    return np.asarray(cost + 0.5 * covered.sum(axis=1))


def _overlap(places: Array, half: Array, boxes: Array) -> Array:
    """How deep a box at each place reaches into each of `boxes`: 0 if not at all, 1 and up to 2 where it does."""
    if boxes.size == 0:
        return np.zeros((len(places), 0))
    depth = half + boxes[None, :, 2:] - np.abs(places[:, None] - boxes[None, :, :2])
    inside = np.minimum(depth, 2 * half) / (2 * half)
    return np.where((inside > 0).all(axis=2), 1.0 + inside.min(axis=2), 0.0)
