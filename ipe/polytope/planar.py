"""Plane geometry: closed walks cut into simple polygons, and the nearest points of segments in three norms."""

from __future__ import annotations

import numpy as np

from ipe.base.arrays import Array
from ipe.inverse.problem import Norm


def simple_loops(walk: Array, blur: float) -> list[Array]:
    """Cut a closed walk into polygons that visit no point twice.

    Where the walk only goes there and back, the piece is a segment (2, 2). A walk that never moves is one point (1, 2).
    """
    stack: list[int] = []
    loops: list[list[int]] = []
    for point in walk:
        k = int(np.argmax(np.abs(walk - point).max(axis=1) <= blur))  # the first that is the same up to rounding
        if k in stack:
            start = stack.index(k)
            loops.append(stack[start:])
            del stack[start:]
        stack.append(k)
    loops.append(stack)
    return [walk[loop] for loop in loops if len(loop) > 1] or [walk[loops[0]]]


def sides(loop: Array) -> Array:
    """The sides of a polygon, shape (k, 2, 2). A segment or a point has one side."""
    around = np.stack([loop, np.roll(loop, -1, axis=0)], axis=1)
    return around if len(loop) > 2 else around[:1]


def signed_area(polygon: Array) -> float:
    """The area of a polygon, positive if the interior is on the left of the walk along its sides."""
    x, y = (polygon - polygon[0]).T
    return float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def nearest_on_segments(points: Array, segments: Array, norm: Norm) -> tuple[Array, Array]:
    """The nearest point on any of the segments, and the distance to it, for points of shape (..., 2)."""
    closest = np.empty_like(points)
    distance = np.full(points.shape[:-1], np.inf)
    for start, end in segments:
        candidate, candidate_distance = _nearest_on_segment(points, start, end, norm)
        nearer = candidate_distance < distance
        closest = np.where(nearer[..., None], candidate, closest)
        distance = np.where(nearer, candidate_distance, distance)
    return closest, distance


def _nearest_on_segment(points: Array, start: Array, end: Array, norm: Norm) -> tuple[Array, Array]:
    """The distance along a segment is convex: its minimum is at a kink (l2: the foot of the normal) or at an end."""
    u, d = points - start, end - start
    if norm == "l2":
        kinks = [_ratio(u @ d, float(d @ d))]
    elif norm == "l1":  # where one of the two coordinates agrees
        kinks = [_ratio(u[..., i], float(d[i])) for i in (0, 1)]
    else:  # where the two coordinates differ by the same amount
        kinks = [_ratio(u[..., 0] - sign * u[..., 1], float(d[0] - sign * d[1])) for sign in (1, -1)]
    best, best_distance = np.empty_like(points), np.full(points.shape[:-1], np.inf)
    for t in kinks:
        # Both ends come out exactly: start + 1.0 * d need not be `end`.
        candidate = np.where(t[..., None] < 1, start + np.clip(t, 0.0, 1.0)[..., None] * d, end)
        distance = _length(points - candidate, norm)
        nearer = distance < best_distance
        best = np.where(nearer[..., None], candidate, best)
        best_distance = np.where(nearer, distance, best_distance)
    return best, best_distance


def _ratio(numerator: Array, denominator: float) -> Array:
    """The quotient, 0 where the denominator is 0: there the distance has no kink, or is constant."""
    if denominator == 0:
        return np.zeros_like(numerator)
    with np.errstate(over="ignore"):
        quotient: Array = numerator / denominator
    return quotient


def _length(x: Array, norm: Norm) -> Array:
    if norm == "l2":
        return np.asarray(np.hypot(x[..., 0], x[..., 1]))
    size = np.abs(x)
    return np.asarray(size.sum(axis=-1) if norm == "l1" else size.max(axis=-1))
