r"""The values that two chosen states of any MDP can have together, all states following any policy.

That set, :math:`\{(V^\pi(s_0), V^\pi(s_1))\}`, is the projection of the value polytope on two of its coordinates. With
more than two states it is not known to have a boundary of finitely many segments: where two other states mix their
actions, the boundary may be curved, and to decide whether a point belongs to the set is a problem with a choice of
actions in every state. So it is enclosed:

- **From within.** With a fixed policy in the other states, the set is the polytope of two states, exactly
  (`two_state_mdp`). The union over many such policies is achieved: each of its points has a policy that is known.
- **From without.** Whatever the other states do, :math:`m_0(V_1) \le V_0 \le M_0(V_1)` and
  :math:`m_1(V_0) \le V_1 \le M_1(V_0)` with the curves of `ipe.polytope.outer`. Beyond, no policy has these values.
  These bounds let the other states follow one policy for the first state and another one for the second, so they are
  loosest where one of the two is to have a high value and the other a low one. Where the deterministic policies can be
  counted, the convex hull of their values cuts that off: along a mixture of actions in one state the values move on a
  straight line (Dadashi et al., 2019), so that no :math:`c_0 V(s_0) + c_1 V(s_1)` exceeds its greatest value among
  deterministic policies.

Between the two nothing is claimed. The greatest and the least values are points of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from ipe.base.arrays import Array, Mask
from ipe.base.numbers import whole_number
from ipe.checks import check_mdp
from ipe.inverse.extremes import value_range
from ipe.mdp import FiniteMDP
from ipe.planning.policies import random_policy, uniform_policy
from ipe.polytope.boundary import boundary_walk, meet
from ipe.polytope.outer import Envelope, envelope
from ipe.polytope.planar import sides, signed_area, simple_loops
from ipe.polytope.polytope import ValuePolytope, check_points, value_polytope
from ipe.polytope.reduction import check_two_states

SOLVES = 60
"""MDPs that may be solved for each of the four curves."""
ENUMERATED = 5000
"""Deterministic policies up to which all their values are computed."""
ENUMERATED_STATES = 30


@dataclass(frozen=True, eq=False, repr=False)
class PolytopeProjection:
    """The projection of a value polytope on two states, enclosed between what is achieved and what is not excluded."""

    mdp: FiniteMDP
    """The MDP."""
    states: tuple[int, int]
    """The two chosen states."""
    pieces: tuple[ValuePolytope, ...]
    """Polytopes of the two states with a fixed policy in the others. Their union is achieved."""
    outer: tuple[Array, ...]
    """Polygons of shape (k, 2) that hold the projection; none if it is a segment or a point."""
    bounds: tuple[tuple[Envelope, Envelope], tuple[Envelope, Envelope]]
    """The curves m and M of the first state, and of the second."""
    box: tuple[Array, Array]
    """The least and the greatest values of the two states."""
    hull: Array | None
    """The corners, counterclockwise, of the convex hull of all deterministic policies' values; None if they are too
    many to count, or lie on a line."""

    def achieved(self, v: Any, tolerance: float = 1e-9) -> Mask:
        """Which points are the values of a policy that is known: those in one of the pieces.

        Args:
            v: points, shape (..., 2).
            tolerance: as in `ValuePolytope.contains`.

        Returns:
            A boolean array of shape (...). False says nothing, unless `excluded` is True.
        """
        points = check_points(v)
        inside = np.zeros(points.shape[:-1], dtype=bool)
        for piece in self.pieces:
            inside |= piece.contains(points, tolerance)
        return inside

    def excluded(self, v: Any, tolerance: float = 1e-9) -> Mask:
        """Which points are the values of no policy: those beyond one of the four curves.

        Args:
            v: points, shape (..., 2).
            tolerance: how far beyond, relative to the largest value (at least 1).

        Returns:
            A boolean array of shape (...).
        """
        points = check_points(v)
        beyond = tolerance * np.maximum(1.0, np.abs(points).max(axis=-1))
        outside: Mask = (points < self.box[0] - beyond[..., None]).any(axis=-1)
        outside |= (points > self.box[1] + beyond[..., None]).any(axis=-1)
        for i, (low, high) in enumerate(self.bounds):
            # Beyond the box the lines say nothing; those points are excluded already.
            x, t = points[..., i], np.clip(points[..., 1 - i], self.box[0][1 - i], self.box[1][1 - i])
            outside |= x < _at(low, t).min(axis=-1) - beyond
            outside |= x > _at(high, t).max(axis=-1) + beyond
        for start, end in [] if self.hull is None else sides(self.hull):
            outside |= _right_of(points, start, end) > beyond
        return outside

    def undecided(self, n: int = 100) -> float:
        """The share of the outer bound that is not known to be achieved, estimated on n by n points.

        Args:
            n: the points along each side.
        """
        n = whole_number(n, "n", 2)
        sides = [np.linspace(low, high, n) for low, high in zip(*self.box, strict=True)]
        grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
        possible = grid[~self.excluded(grid)]
        return float(1.0 - self.achieved(possible).mean()) if len(possible) else 0.0

    def __repr__(self) -> str:
        area = sum(signed_area(polygon) for polygon in self.outer)
        return f"PolytopeProjection(states {self.states}, {len(self.pieces)} pieces, within an area of {area:.6g})"


def polytope_projection(
    mdp: FiniteMDP, states: Sequence[int], *, policies: int = 200, seed: int = 0
) -> PolytopeProjection:
    r"""Enclose all :math:`(V^\pi(s_0), V^\pi(s_1))`, the values that two states of any MDP can have together.

    Args:
        mdp: the MDP. Each policy takes some linear systems with an unknown per state.
        states: the two states, neither of them terminal.
        policies: how many policies of the other states are tried beside those of the outer bound: random
            deterministic ones, random stochastic ones, and mixtures of those of the outer bound.
        seed: of the random policies.

    Returns:
        What is achieved, and outside of what no policy's values lie.

    Example:
        >>> from ipe.zoo import garnet
        >>> projection = polytope_projection(garnet(4, 2, 2, seed=2), (0, 1), policies=20)
        >>> best = projection.box[1]
        >>> bool(projection.achieved(best)), bool(projection.excluded(best + 0.01))
        (True, True)
    """
    check_mdp(mdp)
    chosen = check_two_states(mdp, states)
    count, seed = whole_number(policies, "policies", 0), whole_number(seed, "seed", 0)
    low, high = value_range(mdp)
    box = low[list(chosen)], high[list(chosen)]
    bounds = (_curves(mdp, chosen, 0, box), _curves(mdp, chosen, 1, box))
    found = [pi for pair in bounds for curve in pair for pi in curve.policies]
    rng = np.random.default_rng(seed)
    tried = [uniform_policy(mdp), *found, *_more(mdp, found, count, rng)]
    pieces = tuple(value_polytope(mdp, chosen, pi) for pi in _without_repeats(tried, chosen))
    hull = _hull(mdp, chosen)
    return PolytopeProjection(mdp, chosen, pieces, _outline(bounds, mdp.gamma, hull), bounds, box, hull)


def _curves(mdp: FiniteMDP, states: tuple[int, int], i: int, box: tuple[Array, Array]) -> tuple[Envelope, Envelope]:
    within = float(box[0][1 - i]), float(box[1][1 - i])
    return envelope(mdp, states, i, -1, within, SOLVES), envelope(mdp, states, i, 1, within, SOLVES)


def _at(curve: Envelope, t: Array) -> Array:
    intercepts, slopes = curve.lines
    return np.asarray(intercepts + np.multiply.outer(t, slopes))


def _right_of(points: Array, start: Array, end: Array) -> Array:
    """How far points (..., 2) lie to the right of the way from start to end."""
    way = end - start
    across = way[1] * (points[..., 0] - start[0]) - way[0] * (points[..., 1] - start[1])
    return np.asarray(across / (float(np.hypot(*way)) or 1.0))


def _hull(mdp: FiniteMDP, states: tuple[int, int]) -> Array | None:
    """The convex hull of the values of all deterministic policies, if there are few and it has an area."""
    actions = [np.flatnonzero(row) for row in mdp.allowed[~mdp.terminal]]
    if math.prod(len(a) for a in actions) > ENUMERATED or len(actions) > ENUMERATED_STATES:
        return None
    live = np.flatnonzero(~mdp.terminal)
    choices = np.stack(np.meshgrid(*actions, indexing="ij"), axis=-1).reshape(-1, len(actions))
    rows = mdp.transitions.toarray()[:, live]
    pairs = live * mdp.n_actions + choices
    v = np.linalg.solve(np.eye(len(live)) - mdp.gamma * rows[pairs], mdp.rewards.ravel()[pairs][..., None])[..., 0]
    values = v[:, np.searchsorted(live, states)]
    try:
        return np.asarray(values[ConvexHull(values).vertices])
    except QhullError:  # a point or a segment
        return None


def _cut(polygon: Array, hull: Array) -> Array:
    """The part of a polygon inside a convex one (Sutherland and Hodgman)."""
    for start, end in sides(hull):
        kept: list[Array] = []
        right = _right_of(polygon, start, end)
        for i in range(len(polygon)):
            j = (i + 1) % len(polygon)
            if right[i] <= 0:
                kept.append(polygon[i])
            if (right[i] <= 0) != (right[j] <= 0):
                kept.append(polygon[i] + (polygon[j] - polygon[i]) * (right[i] / (right[i] - right[j])))
        polygon = np.array(kept).reshape(-1, 2)
    return polygon


def _outline(
    bounds: tuple[tuple[Envelope, Envelope], tuple[Envelope, Envelope]], gamma: float, hull: Array | None
) -> tuple[Array, ...]:
    """The polygons between the four curves, inside the hull."""
    first, second = (
        (np.concatenate([m.lines[0], M.lines[0]]), np.concatenate([m.lines[1], M.lines[1]])) for m, M in bounds
    )
    values = meet((first[0][:, None], first[1][:, None]), second)
    blur = 64 * np.finfo(float).eps * max(np.abs(first[0]).max(), np.abs(second[0]).max()) / (1 - gamma)
    loops = simple_loops(boundary_walk((first, second), values, blur), blur)
    if hull is not None:
        loops = [_cut(loop, hull) for loop in loops]
    return tuple(loop for loop in loops if len(loop) > 2)


def _more(mdp: FiniteMDP, found: list[Array], count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Policies of three kinds in turn: deterministic, stochastic, and a mixture of two that the outer bound has."""
    for k in range(count):
        if k % 3 == 0:
            best = np.where(mdp.allowed, rng.random(mdp.allowed.shape), -1.0).argmax(axis=1)
            yield np.where(mdp.allowed, np.arange(mdp.n_actions) == best[:, None], False).astype(np.float64)
        elif k % 3 == 1:
            yield random_policy(mdp, int(rng.integers(2**31)))
        else:
            one, other = (found[int(rng.integers(len(found)))] for _ in range(2))
            share = rng.random((mdp.n_states, 1))  # a weight of its own for each state
            yield share * one + (1.0 - share) * other


def _without_repeats(policies: list[Array], states: tuple[int, int]) -> list[Array]:
    """The policies that differ somewhere outside of the two states."""
    different: dict[bytes, Array] = {}
    for pi in policies:
        others = np.delete(pi, list(states), axis=0)
        different.setdefault(others.tobytes(), pi)
    return list(different.values())
