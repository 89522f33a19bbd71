r"""The box problem, to which inverse policy evaluation reduces.

Given action values Q, the Bellman operator of a policy looks one step ahead,
:math:`(T^\pi Q)(s,a) = r(s,a) + \gamma \sum_{s'} P(s'|s,a)\, v(s')`. If Q is the value of :math:`\pi`, then
:math:`T^\pi Q = Q`. If Q is the value of no policy, we ask for the policy with the smallest residual.

The policy enters :math:`T^\pi Q` only through :math:`v(s) = \sum_a \pi(a|s) Q(s,a)`, which ranges freely
over :math:`[\min_a Q(s,a), \max_a Q(s,a)]`. So the paper's problem
:math:`\min_\pi \|Q - T^\pi Q\|` (its `eq:eval-policy-problem`) is a regression in |S| bounded unknowns:

.. math:: \min_{lo \le v \le hi} \| \gamma P v - (Q - r) \|_d .
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array, Mask, dot, refuse_where
from ipe.checks import Form, check_one_form, check_weights
from ipe.errors import InputError
from ipe.inverse.rows import Rows
from ipe.mdp import FiniteMDP
from ipe.planning import action_bounds
from ipe.planning.operators import backup

Norm: TypeAlias = Literal["l2", "l1", "linf"]

ACHIEVED = 1e-10
"""The error of the policy's values, relative to the scale of the problem, at which they count as fitted exactly."""
ROUNDING = 1e-13
"""The least sup-norm residual, relative to the scale of the problem, that rounding lets a solver be asked for."""
LARGEST = 1e100
"""The largest number that is accepted, and the largest ratio of two weights that both count."""


@dataclass(frozen=True, eq=False)
class BoxProblem:
    r""":math:`\min_{lo \le v \le hi} \| A v - b \|_d` with :math:`A = \gamma P`, :math:`b = Q - r`.

    One row per pair (s, a) and one column per state; a row that is not in the norm (not allowed, or of
    weight zero) has d = 0, a terminal state's column has lo = hi = 0.
    """

    rows: Rows
    gamma: float
    b: Array
    d: Array
    lo: Array
    hi: Array
    norm: Norm

    def residuals(self, v: Array) -> Array:
        r""":math:`\delta = \gamma P v - (Q - r) = T^\pi Q - Q`, 0 for rows that are not in the norm."""
        delta = self.rows.times(v)
        delta *= self.gamma
        delta -= self.b
        return delta if self.all_rows else np.where(self.d > 0, delta, 0.0)

    def transposed(self, y: Array) -> Array:
        r""":math:`A^\top y`."""
        out = self.rows.transposed_times(y)
        out *= self.gamma
        return out

    @cached_property
    def all_rows(self) -> bool:
        """Whether every row is in the norm."""
        return bool((self.d > 0).all())

    @cached_property
    def column_weights(self) -> Array:
        r""":math:`\sum_{s,a} d(s,a) P(s'|s,a)`: how much the norm sees of each next state."""
        return self.rows.transposed_times(self.d)

    @cached_property
    def constrained(self) -> Mask:
        """The states whose v the norm sees: reached by a row in the norm, with gamma > 0."""
        return (self.column_weights > 0) & (self.gamma > 0)

    @cached_property
    def free(self) -> Mask:
        """The states whose v changes a residual: seen by the norm, with room in their box."""
        return self.constrained & (self.hi > self.lo)

    @cached_property
    def scale(self) -> float:
        """The size of the numbers in the problem (1 if they are all 0): what tolerances are relative to."""
        return float(max(np.abs(x).max(initial=0.0) for x in (self.b, self.lo, self.hi))) or 1.0

    @property
    def achieved(self) -> float:
        r"""The sup-norm residual below which there is nothing left to minimise but rounding errors.

        The values of the policy are off by at most :math:`1/(1-\gamma)` times the residual.
        """
        return max(ACHIEVED * (1.0 - self.gamma), ROUNDING) * self.scale

    @cached_property
    def smallest_weight(self) -> float:
        """The least weight of a row in the norm."""
        return float(self.d[self.d > 0].min(initial=1.0))

    @property
    def objective_floor(self) -> float:
        """The l2 objective that implies a sup-norm residual of at most `achieved`."""
        return 0.5 * self.smallest_weight * self.achieved**2

    @property
    def gap_rounding(self) -> float:
        """How large the rounding errors in the l2 gap can be: no smaller gap can be asked for."""
        return 16 * float(np.finfo(float).eps) * self.scale * dot(self.column_weights, self.hi - self.lo)

    def norm_of(self, delta: Array) -> float:
        """The problem's weighted norm of residuals."""
        return weighted_norm(delta, self.d, self.norm)

    def in_l2(self) -> BoxProblem:
        """The same rows and box in the l2 norm, with equal weights."""
        present = self.d > 0
        return replace(self, d=present / present.sum(), norm="l2")

    def clip(self, v: Array) -> Array:
        """The nearest point of the box."""
        return np.minimum(np.maximum(v, self.lo), self.hi)


@dataclass(frozen=True, eq=False)
class BoxSolution:
    """A point of the box with the proof of how good it is.

    `objective` is the number that was minimised (half the squared norm for l2, the norm for l1 and
    l-inf), `gap` bounds how far it is above its minimum. `stopped` says why the solve ended early, if it did.
    """

    v: Array
    objective: float
    gap: float
    iterations: int
    converged: bool
    method: str
    unique: bool | None = None
    stopped: str = ""


def weighted_norm(x: Array, d: Array, norm: Norm) -> float:
    r""":math:`\sqrt{\sum d x^2}` (l2), :math:`\sum d |x|` (l1) or :math:`\max d |x|` (l-inf)."""
    if norm == "l2":
        return math.sqrt(float(np.einsum("i,i,i->", d, x, x)))
    if norm == "l1":
        return dot(d, np.abs(x))
    return float((d * np.abs(x)).max(initial=0.0))


def normalised_weights(weights: Array | None, present: Mask, norm: Norm) -> Array:
    """The d of the norm: summing to one for l1 and l2, as given for l-inf; by default equal weights.

    Weights below 1e-100 of the largest count as 0: no sum in float64 holds both.
    """
    d = np.where(present, 1.0, 0.0) if weights is None else weights
    largest = float(d.max())
    if largest == 0:  # an MDP whose states are all terminal has no rows
        return d
    d = np.where(d < largest / LARGEST, 0.0, d)
    if norm == "linf":
        if not 1.0 / LARGEST <= largest <= LARGEST:
            raise InputError(f"weights: the largest is {largest:g}; for linf it must lie between 1e-100 and 1e+100")
        return d
    d = d / largest  # so that the sum of large weights cannot overflow
    normalised: Array = d / d.sum()
    return normalised


def refuse_huge(array: Array, name: str) -> None:
    """Refuse numbers beyond 1e100, whose squares would overflow."""
    refuse_where(np.abs(array) > LARGEST, array, name, "too large: at most 1e+100")


def q_problem(mdp: FiniteMDP, q: Array, norm: Norm, weights: Array | None = None) -> BoxProblem:
    """The box problem of action values (checked, 0 where not allowed)."""
    if 0.0 < mdp.gamma < 1.0 / LARGEST:
        raise InputError(f"gamma = {mdp.gamma:g} is too small to divide by: 0, or at least 1e-100")
    refuse_huge(q, "q")
    refuse_huge(mdp.rewards, "rewards")
    lo, hi = action_bounds(mdp, q)
    b = np.where(mdp.allowed, q - mdp.rewards, 0.0).ravel()
    d = normalised_weights(weights, mdp.allowed, norm).ravel()
    return BoxProblem(Rows(mdp.transitions), mdp.gamma, b, d, lo, hi, norm)


def v_problem(mdp: FiniteMDP, v: Array, q: Array, norm: Norm, weights: Array | None = None) -> BoxProblem:
    """The box problem of state values: A is the identity, and the box that of q = q_V."""
    refuse_huge(v, "v")
    refuse_huge(mdp.rewards, "rewards")
    lo, hi = action_bounds(mdp, q)
    d = normalised_weights(weights, ~mdp.terminal, norm)
    return BoxProblem(Rows(sparse.eye_array(mdp.n_states, format="csr")), 1.0, v, d, lo, hi, norm)


class Posed(NamedTuple):
    """What a user asks, checked, and the box problem that it comes to."""

    form: Form
    given: Array
    q_values: Array
    """The action values that v averages: Q, or q_V in the V form."""
    problem: BoxProblem


def pose(mdp: FiniteMDP, v: Any, q: Any, norm: Norm, weights: Any) -> Posed:
    """The box problem of state values or of action values, whichever is given, in a weighted norm."""
    form, given = check_one_form(mdp, v, q)
    d = check_weights(mdp, weights, form)
    if form == "q":
        return Posed(form, given, given, q_problem(mdp, given, norm, d))
    looked_ahead = backup(mdp, given)
    return Posed(form, given, looked_ahead, v_problem(mdp, given, looked_ahead, norm, d))
