r"""Propositions 1 and 2 of the paper as functions that return both sides. (Its theorems: `ipe.inverse.theorems`.)

They rest on one inequality, for any values Q and any policy :math:`\beta`, in a norm in which :math:`T^\beta`
contracts by :math:`\gamma`:

.. math:: \|Q^\beta - Q\| \le \frac{\|T^\beta Q - Q\|}{1 - \gamma} .

The norm is the sup norm. With norm="l2" the functions take the Euclidean norm, in which :math:`T^\beta` is no
contraction: the inequality that they return may then be false, which is what that option is there to show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from ipe.base.arrays import Array, sup
from ipe.base.words import one_of
from ipe.checks import Form, check_one_form, check_policy, check_q, check_v
from ipe.errors import InputError
from ipe.inverse.extremes import exact_values
from ipe.inverse.solve import evaluation_policy
from ipe.mdp import FiniteMDP
from ipe.planning.operators import average, backup

BoundNorm: TypeAlias = Literal["linf", "l2"]

ROUNDING = 1e-13


@dataclass(frozen=True)
class Bound:
    """The two sides of an inequality `left <= right`.

    Attributes:
        name: the name of the inequality.
        left: the left side.
        right: the right side.
        sharper: a smaller right side that holds as well, or None.
        slack: how much rounding and the tolerances of the solvers may add to the left side.
    """

    name: str
    left: float
    right: float
    sharper: float | None
    slack: float

    @property
    def holds(self) -> bool:
        """Whether `left <= right`, up to the slack."""
        return self.left <= self.right + self.slack

    @property
    def sharper_holds(self) -> bool | None:
        """Whether `left <= sharper`, up to the slack; None if there is no sharper form."""
        return None if self.sharper is None else self.left <= self.sharper + self.slack

    @property
    def ratio(self) -> float:
        """`left / right`; 0 if both are 0."""
        if self.right > 0:
            return self.left / self.right
        return 0.0 if self.left <= self.slack else float("inf")


def proposition_1(mdp: FiniteMDP, policy: Any, *, v: Any = None, q: Any = None, norm: BoundNorm = "linf") -> Bound:
    r"""Proposition 1: values Q that approximate those of a policy have an evaluation policy of similar value.

    .. math:: \|Q^\pi - Q^{\text{IPE}}\| \le \frac{(1+\gamma) \|Q^\pi - Q\| + \|T^{\text{IPE}} Q - Q\|}{1-\gamma}

    Sharper: :math:`\|Q^\pi - Q\| + \|T^{\text{IPE}} Q - Q\| / (1-\gamma)`. Both with V for Q where v is given.

    Args:
        mdp: the MDP.
        policy: :math:`\pi`, shape (S, A).
        v: state values, shape (S,); or
        q: action values, shape (S, A). Exactly one of the two.
        norm: "linf", in which it holds; or "l2", in which it fails without limit (`counterexamples.hub`).

    Returns:
        Both sides.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> bound = proposition_1(switch_stay(), [[0.0, 1.0], [1.0, 0.0]], v=[18.0, -6.0])
        >>> round(bound.left, 3), round(bound.sharper, 3), round(bound.right, 3)
        (7.0, 52.0, 520.0)
    """
    form, given = check_one_form(mdp, v, q)
    norm_of = _norm(norm)
    truth, error = values_of(mdp, form, check_policy(mdp, policy))
    ipe = evaluate(mdp, form, given, norm)
    apart, residual = norm_of(truth - given), norm_of(ipe.residuals)
    slack = (error + ipe.error + rounding(mdp, truth, given)) * np.sqrt(given.size if norm == "l2" else 1)
    return _bound(mdp, "Proposition 1", norm_of(truth - ipe.truth), apart, residual, slack)


def proposition_2(mdp: FiniteMDP, *, v: Any = None, q: Any = None, norm: BoundNorm = "linf") -> Bound:
    r"""Proposition 2: how far the values of two evaluation policies are apart.

    .. math:: \|Q^{\pi_1} - Q^{\pi_2}\| \le
        \frac{(1+\gamma) \|Q_1 - Q_2\| + \|T^{\pi_1} Q_1 - Q_1\| + \|T^{\pi_2} Q_2 - Q_2\|}{1-\gamma}

    Sharper: :math:`\|Q_1 - Q_2\| + (\|T^{\pi_1} Q_1 - Q_1\| + \|T^{\pi_2} Q_2 - Q_2\|) / (1-\gamma)`. Neither is
    continuity: the residuals stay when :math:`Q_1` and :math:`Q_2` meet.

    Args:
        mdp: the MDP.
        v: two state-value functions, each of shape (S,); or
        q: two action-value functions, each of shape (S, A). Exactly one of the two.
        norm: as in `proposition_1`.

    Returns:
        Both sides.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> tie = 14 + 2 / 0.9
        >>> bound = proposition_2(switch_stay(), v=([14.0, tie - 1e-9], [14.0, tie + 1e-9]))
        >>> round(bound.left, 3), round(bound.right, 3)
        (3.318, 8.0)
    """
    form, (one, two) = _check_pair(mdp, v, q)
    norm_of = _norm(norm)
    first, second = evaluate(mdp, form, one, norm), evaluate(mdp, form, two, norm)
    residual = norm_of(first.residuals) + norm_of(second.residuals)
    slack = (first.error + second.error + rounding(mdp, one, two)) * np.sqrt(one.size if norm == "l2" else 1)
    return _bound(mdp, "Proposition 2", norm_of(first.truth - second.truth), norm_of(one - two), residual, slack)


def _bound(mdp: FiniteMDP, name: str, left: float, apart: float, residual: float, slack: float) -> Bound:
    rest = 1.0 - mdp.gamma
    return Bound(name, left, ((1.0 + mdp.gamma) * apart + residual) / rest, apart + residual / rest, float(slack))


def _check_pair(mdp: FiniteMDP, v: Any, q: Any) -> tuple[Form, tuple[Array, Array]]:
    if (v is None) == (q is None):
        raise InputError("give either v (two state-value functions) or q (two action-value functions), and not both")
    form: Form = "v" if q is None else "q"
    check = check_v if q is None else check_q
    try:
        first, second = v if q is None else q
    except (TypeError, ValueError):
        raise InputError(f"{form} must be two value functions: {form}=({form}1, {form}2)") from None
    return form, (check(mdp, first, f"{form}[0]"), check(mdp, second, f"{form}[1]"))


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The evaluation policy of given values: its residuals, its true values, their error, the gap of the solve."""

    residuals: Array
    truth: Array
    error: float
    gap: float


def evaluate(mdp: FiniteMDP, form: Form, given: Array, norm: BoundNorm = "linf") -> Evaluated:
    """The evaluation policy of values already checked, evaluated."""
    v, q = (given, None) if form == "v" else (None, given)
    result = evaluation_policy(mdp, v=v, q=q, norm=norm)
    truth, error = values_of(mdp, form, result.policy)
    return Evaluated(residuals(mdp, form, given, result.policy), truth, error, result.gap)


def values_of(mdp: FiniteMDP, form: Form, policy: Array) -> tuple[Array, float]:
    """The true values of a policy, 0 where the MDP has none, and how far they may be off."""
    result = exact_values(mdp, policy)
    return (result.v if form == "v" else backup(mdp, result.v)), result.error_bound


def residuals(mdp: FiniteMDP, form: Form, given: Array, policy: Array) -> Array:
    r""":math:`T^\pi V - V` or :math:`T^\pi Q - Q`."""
    if form == "v":
        return average(policy, backup(mdp, given)) - given
    return backup(mdp, average(policy, given)) - given


def rounding(mdp: FiniteMDP, *values: Array) -> float:
    """What float64 may add to differences of these values, over 1 - gamma."""
    return ROUNDING * max(1.0, *(sup(x) for x in values)) / (1.0 - mdp.gamma)


def _norm(norm: BoundNorm) -> Callable[[Array], float]:
    return sup if one_of(norm, get_args(BoundNorm), "norm") == "linf" else lambda x: float(np.linalg.norm(x))
