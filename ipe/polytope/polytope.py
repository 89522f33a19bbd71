"""The value polytope of a two-state MDP as an object: membership, the nearest achievable values, distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array, Mask, numeric, refuse_where
from ipe.base.words import one_of
from ipe.errors import InputError
from ipe.inverse.problem import Norm
from ipe.mdp import FiniteMDP
from ipe.polytope.boundary import action_values, boundary_walk, lines_of, meet, two_states
from ipe.polytope.planar import nearest_on_segments, sides, signed_area, simple_loops
from ipe.polytope.reduction import two_state_mdp


@dataclass(frozen=True, eq=False, repr=False)
class ValuePolytope:
    r"""The achievable value functions of a two-state MDP.

    Points are arrays of shape (..., 2): the values of `states[0]` and of `states[1]`.
    """

    mdp: FiniteMDP
    """The MDP."""
    states: tuple[int, int]
    """The two states that are not terminal."""
    deterministic_policies: NDArray[np.int64]
    """The actions (in `states[0]`, in `states[1]`) of every deterministic policy, shape (n, 2)."""
    vertices: Array
    """The values of those policies, shape (n, 2). With more than two actions some of them lie inside the polytope."""
    segments: Array
    """The boundary, shape (m, 2, 2): pairs of end points. A single point is one segment of length zero."""
    polygons: tuple[Array, ...]
    """Simple polygons of shape (k, 2), counterclockwise: one, two that meet in a point, or none (no area)."""

    @property
    def area(self) -> float:
        """The area of the polygons."""
        return float(sum(signed_area(polygon) for polygon in self.polygons))

    def residual(self, v: Any) -> Array:
        r"""How far each point is from its one-step values: :math:`\rho = \max_s |V(s) - \mathrm{clip}\,V(s)|`.

        The clip is to :math:`[\min_a q_V(s,a), \max_a q_V(s,a)]`; :math:`\rho` is the smallest Bellman error
        :math:`\|V - T^\pi V\|_\infty` of any policy.

        Args:
            v: points, shape (..., 2).

        Returns:
            :math:`\rho`, shape (...): 0 for achievable values, up to rounding.
        """
        points = check_points(v)
        excess = np.zeros(points.shape[:-1])
        for i, q in enumerate(action_values(self.mdp, self.states, points)):
            x = points[..., i]
            excess = np.maximum(excess, np.abs(x - np.clip(x, q.min(axis=-1), q.max(axis=-1))))
        return excess

    def contains(self, v: Any, tolerance: float = 1e-9) -> Mask:
        r"""Which points are achievable: :math:`\rho \le \text{tolerance} \cdot \max(1, \|V\|_\infty)`.

        Args:
            v: points, shape (..., 2).
            tolerance: relative, not negative.

        Returns:
            A boolean array of shape (...).
        """
        if not tolerance >= 0:
            raise InputError(f"tolerance must be a number >= 0, found {tolerance!r}")
        points = check_points(v)
        inside: Mask = self.residual(points) <= tolerance * np.maximum(1.0, np.abs(points).max(axis=-1))
        return inside

    def nearest(self, v: Any, norm: Norm = "l2", tolerance: float = 1e-9) -> tuple[Array, Array]:
        r"""The nearest achievable values, :math:`\min_{\pi} \|V - V^\pi\|`, exactly.

        An achievable point is its own nearest point. Any other point has its nearest point on the boundary: the best
        of the closed forms for the segments. In l1 and l-inf several points can be equally near; one is returned.

        Args:
            v: points, shape (..., 2).
            norm: "l2", "l1" or "linf".
            tolerance: as in `contains`.

        Returns:
            The nearest points, shape (..., 2), and the distances to them, shape (...).

        Example:
            >>> from ipe.zoo import switch_stay
            >>> point, distance = value_polytope(switch_stay()).nearest([18.0, -6.0], norm="linf")
            >>> print(point.round(3), round(float(distance), 3))
            [6.316 5.684] 11.684
        """
        points = check_points(v)
        closest, distance = nearest_on_segments(points, self.segments, one_of(norm, get_args(Norm), "norm"))
        inside = self.contains(points, tolerance)
        return np.where(inside[..., None], points, closest), np.where(inside, 0.0, distance)

    def boundary_distance(self, v: Any, norm: Norm = "l2") -> Array:
        """The distance to the boundary, from within or from without.

        Args:
            v: points, shape (..., 2).
            norm: "l2", "l1" or "linf".

        Returns:
            Distances, shape (...).
        """
        return nearest_on_segments(check_points(v), self.segments, one_of(norm, get_args(Norm), "norm"))[1]

    def __repr__(self) -> str:
        return (
            f"ValuePolytope({len(self.polygons)} polygon{'s' * (len(self.polygons) != 1)}, area {self.area:.6g}, "
            f"{len(self.vertices)} deterministic polic{'ies' if len(self.vertices) != 1 else 'y'})"
        )


def value_polytope(mdp: FiniteMDP, states: Sequence[int] | None = None, policy: Any = None) -> ValuePolytope:
    r"""The set of value functions of all policies of a two-state MDP (`ipe.polytope.boundary` says how it is found).

    Args:
        mdp: exactly two of its states are not terminal; or any MDP, if two states are chosen.
        states: two states of an MDP that may have more. The others follow a fixed policy, and the polytope is that
            of `two_state_mdp`, in which the two states are 0 and 1.
        policy: the policy of the other states, shape (S, A). Default: uniform.

    Returns:
        The polytope, with its boundary and the values of all deterministic policies.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> polytope = value_polytope(switch_stay())
        >>> polytope
        ValuePolytope(2 polygons, area 51.8129, 4 deterministic policies)
        >>> for actions, values in zip(polytope.deterministic_policies, polytope.vertices):
        ...     print(actions, values.round(3))
        [0 0] [10. 20.]
        [0 1] [10.  9.]
        [1 0] [17. 20.]
        [1 1] [-5.263 -4.737]
    """
    if states is not None:
        mdp = two_state_mdp(mdp, states, policy)
    elif policy is not None:
        raise InputError("policy is for the states other than the two chosen: give states too")
    chosen = two_states(mdp)
    lines = lines_of(mdp, chosen, 0), lines_of(mdp, chosen, 1)
    (alpha, slope), second = lines
    values = meet((alpha[:, None], slope[:, None]), second)
    # Values that differ by less than this differ by rounding: the 2 by 2 system magnifies it by 1 / (1 - gamma).
    blur = 64 * np.finfo(float).eps * max(np.abs(alpha).max(), np.abs(second[0]).max()) / (1 - mdp.gamma)
    loops = simple_loops(boundary_walk(lines, values, blur), blur)
    actions = [np.flatnonzero(mdp.allowed[s]) for s in chosen]
    return ValuePolytope(
        mdp=mdp,
        states=chosen,
        deterministic_policies=np.stack(np.meshgrid(*actions, indexing="ij"), axis=-1).reshape(-1, 2),
        vertices=values.reshape(-1, 2),
        segments=np.concatenate([sides(loop) for loop in loops]),
        polygons=tuple(loop for loop in loops if len(loop) > 2),
    )


def check_points(v: Any, name: str = "v") -> Array:
    """Points of the plane of values: shape (..., 2), finite."""
    points = numeric(v, name)
    if points.ndim == 0 or points.shape[-1] != 2:
        raise InputError(f"{name} must have shape (..., 2), the values of the two states; found {points.shape}")
    refuse_where(~np.isfinite(points), points, name, "not a finite number")
    return points
