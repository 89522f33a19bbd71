r"""The exact distance from given values to the nearest values of a policy, in the sup norm, for small MDPs.

An upper bound is the distance to the true values of some policy: first the evaluation policy, then the policies found
by a few linear programs, each in the polyhedron in which the last one ended, then those found by branch and bound. A
lower bound comes from the residual, from the emptiness of a box of value functions, and from branch and bound. When
the two bounds meet, the distance is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from ipe.base.arrays import Array
from ipe.base.numbers import check_positive
from ipe.checks import Form, check_one_form
from ipe.errors import InputError, NotSolvedError
from ipe.inverse.achievability import sup_norm_policy
from ipe.inverse.distance_frame import box_around, descend, frame
from ipe.inverse.distance_program import branch_and_bound
from ipe.inverse.extremes import exact_values, value_range
from ipe.inverse.solve import evaluation_policy
from ipe.mdp import FiniteMDP
from ipe.planning.operators import backup, hide_missing

MAX_PAIRS = 200
"""Allowed pairs (s, a) up to which the distance is computed: beyond, branch and bound hardly ever ends."""
LEAST_RTOL = 1e-5
ATOL = 1e-9
"""A distance below this, relative to the largest value (at least 1), is not told apart from 0."""
MAX_PASSES = 3
MAX_DESCENTS = 50
PROGRESS = 1e-9
"""The least relative gain for which descent goes on, and the relative gap at which the search ends."""
BISECTIONS = 20
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class ExactDistance:
    r"""The distance to the nearest achievable values, :math:`\min_\pi \|V - V^\pi\|_\infty` (or Q).

    Attributes:
        form: "v" or "q", what was given.
        distance: from the given values to `values`, rounding included: an upper bound on the minimum.
        lower_bound: no policy's values are nearer than this, up to HiGHS's tolerance of 1e-6 of the distance.
        values: the nearest achievable values, those of `policy`: v of shape (S,) or q of shape (S, A).
        policy: :math:`\pi(a|s)`, shape (S, A).
        nodes: how many nodes the branch and bound tree had; 0 if no tree was needed.
    """

    form: Form
    distance: float
    lower_bound: float
    values: Array
    policy: Array
    nodes: int

    @property
    def gap(self) -> float:
        """How far the distance may be above its minimum."""
        return self.distance - self.lower_bound


def distance_to_achievable(
    mdp: FiniteMDP, *, v: Any = None, q: Any = None, rtol: float = LEAST_RTOL, time_limit: float = 60.0
) -> ExactDistance:
    r"""How far the given values are from those of the nearest policy, in the sup norm.

    .. math:: \min_\pi \|V - V^\pi\|_\infty \qquad (\text{or } \min_\pi \|Q - Q^\pi\|_\infty)

    The set of achievable values is not convex; `ipe.inverse.distance_program` states the mixed-integer
    program. For MDPs of any size, `distance_bounds` gives an interval at the price of one solve.

    Args:
        mdp: the MDP, with at most 200 allowed pairs (s, a). 30 pairs take about a second, 60 seconds to minutes.
        v: state values, shape (S,); or
        q: action values, shape (S, A). Exactly one of the two.
        rtol: the relative gap to reach, at least 1e-5. (`distance` itself is as a rule far more exact.) A
            distance below 1e-9 of the largest value, or of 1, counts as 0, and so does one below twice the error to
            which float64 knows the values of the policy (which matters for gamma next to 1).
        time_limit: how many seconds the search may take.

    Returns:
        The distance with a lower bound, the nearest achievable values and a policy that has them.

    Raises:
        NotSolvedError: time ran out; the error's `result` holds the bounds found.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> nearest = distance_to_achievable(switch_stay(), v=[18.0, -6.0])
        >>> round(nearest.distance, 3), nearest.values.round(3), nearest.gap < 1e-4
        (11.684, array([6.316, 5.684]), True)
    """
    form, given = check_one_form(mdp, v, q)
    rtol, time_limit = check_positive(rtol, "rtol"), check_positive(time_limit, "time_limit")
    if rtol < LEAST_RTOL:
        raise InputError(f"rtol must be at least {LEAST_RTOL:g}, which the solver's tolerances allow; found {rtol:g}")
    pairs = int(mdp.allowed.sum())
    if pairs > MAX_PAIRS:
        raise InputError(
            f"the exact distance is for MDPs of at most {MAX_PAIRS} allowed pairs (s, a); this one has {pairs}. "
            "distance_bounds has no such limit"
        )
    result, settled = _search(mdp, form, given, rtol, monotonic() + time_limit)
    if not settled:
        raise NotSolvedError(
            f"the distance lies between {result.lower_bound:.6g} and {result.distance:.6g}: {result.nodes} nodes did "
            f"not close the gap to rtol = {rtol:g} (time_limit = {time_limit:g} s); give it more time, or ask for less",
            result,
        )
    return result


class _Known(NamedTuple):
    """A policy with its state values and their distance from the given values."""

    policy: Array
    v: Array
    distance: float
    """The distance from the given values to the policy's values, plus `error`."""
    error: float
    """How far the computed values of the policy may be from its true values."""


def _search(mdp: FiniteMDP, form: Form, given: Array, rtol: float, deadline: float) -> tuple[ExactDistance, bool]:
    """The distance, and whether its gap is closed."""
    first = sup_norm_policy(mdp, form, given)
    known, lower, nodes = _evaluate(mdp, form, given, first.policy), first.distance_bounds[0], 0
    if not _settled(given, known, lower, PROGRESS):
        known = _descend(mdp, form, given, known, known.v)
        box = value_range(mdp)
        lower = _emptiness(mdp, form, given, box, lower, known.distance)
        for i in range(MAX_PASSES):
            left = deadline - monotonic()
            # Before the first pass what is known may be within rtol and still not be the nearest.
            if left <= 0 or _settled(given, known, lower, rtol if i else PROGRESS):
                break
            maps = frame(mdp, form, given, known.v, known.distance)
            outcome = branch_and_bound(maps, box, lower / known.distance, left)
            lower, nodes = max(lower, outcome.lower_bound * maps.unit), nodes + outcome.nodes
            if outcome.x is not None:
                known = _descend(mdp, form, given, known, maps.centre + maps.unit * outcome.x)
    values = known.v if form == "v" else hide_missing(mdp, backup(mdp, known.v))
    result = ExactDistance(form, known.distance, min(lower, known.distance), values, known.policy, nodes)
    return result, _settled(given, known, result.lower_bound, rtol)


def _settled(given: Array, known: _Known, lower: float, rtol: float) -> bool:
    """Whether the gap is small, or as small as the error of the values allows."""
    small = max(rtol * known.distance, ATOL * max(1.0, float(np.abs(given).max())), 2.0 * known.error)
    return known.distance - lower <= small


def _evaluate(mdp: FiniteMDP, form: Form, given: Array, policy: Array) -> _Known:
    values = exact_values(mdp, policy)
    achieved = values.v if form == "v" else backup(mdp, values.v)
    distance = float(np.abs(achieved - given).max())
    return _Known(policy, values.v, distance + values.error_bound, values.error_bound)


def _descend(mdp: FiniteMDP, form: Form, given: Array, known: _Known, u: Array) -> _Known:
    """Descend from u by linear programs; return the nearest policy found, or `known` if none is nearer.

    u itself need not be quite achievable.
    """
    for _ in range(MAX_DESCENTS):
        maps = frame(mdp, form, given, known.v, known.distance)
        u = maps.centre + maps.unit * descend(maps, (u - maps.centre) / maps.unit)
        found = _evaluate(mdp, form, given, evaluation_policy(mdp, v=u).policy)
        nearer = found.distance < known.distance * (1.0 - PROGRESS)
        known = min(found, known, key=lambda candidate: candidate.distance)
        if not nearer:
            break
    return known


def _emptiness(mdp: FiniteMDP, form: Form, given: Array, box: tuple[Array, Array], lower: float, upper: float) -> float:
    """A lower bound: the largest distance found, from `lower` to `upper`, at which the bounds on U contradict."""
    rounding = ROUNDING * max(1.0, float(np.abs(given).max())) / (1.0 - mdp.gamma)
    for _ in range(BISECTIONS):
        reach = 0.5 * (lower + upper)
        low, high, _, _ = box_around(mdp, form, given, box, reach)
        if (low > high + rounding).any():
            lower = reach
        else:
            upper = reach
    return lower
