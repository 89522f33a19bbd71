r"""Whether values are the values of a policy, and if not, how far they are from the values of every policy.

V is the value of some policy iff :math:`\min_a q_V(s,a) \le V(s) \le \max_a q_V(s,a)` in every state; Q is iff
:math:`\gamma P v = Q - r` has a solution with :math:`\min_a Q(s,a) \le v(s) \le \max_a Q(s,a)`. Either way: iff
:math:`\rho`, the smallest sup-norm residual :math:`\|V - T^\pi V\|_\infty` (or Q) of any policy, is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ipe.base.arrays import Array, Indices
from ipe.base.numbers import check_positive
from ipe.checks import Form, check_one_form
from ipe.inverse.choice import SMALL
from ipe.inverse.closed_forms import has_exact_successors
from ipe.inverse.result import EvaluationPolicy
from ipe.inverse.solve import evaluation_policy
from ipe.mdp import FiniteMDP
from ipe.planning.operators import action_bounds, backup


@dataclass(frozen=True, eq=False)
class Achievability:
    r"""Whether values are the values of a policy, with the proof.

    Attributes:
        achievable: True if the values are those of `policy`, to the tolerance; False if they are those of no policy;
            None if that is not decided.
        residual: the sup-norm residual of `policy`: at least :math:`\rho`.
        residual_lower_bound: no policy has a smaller residual: at most :math:`\rho`. Both are equal where v was given.
        policy: the evaluation policy, shape (S, A).
        greedy: the states with :math:`V(s) > \max_a q_V(s,a)`: more is promised than any action gives, and the policy
            is greedy there. Empty where q was given.
        anti_greedy: the states with :math:`V(s) < \min_a q_V(s,a)`, where the policy takes the worst action.
    """

    achievable: bool | None
    residual: float
    residual_lower_bound: float
    policy: Array
    greedy: Indices
    anti_greedy: Indices


def is_achievable(mdp: FiniteMDP, *, v: Any = None, q: Any = None, tolerance: float = 1e-9) -> Achievability:
    r"""Whether the given values are those of some policy.

    Args:
        mdp: the MDP.
        v: state values, shape (S,); or
        q: action values, shape (S, A). Exactly one of the two.
        tolerance: on the sup-norm residual, relative to the largest absolute value (at least 1).

    Returns:
        The answer with a policy and the residual. For q it is undecided (None) if the bounds on the residual lie
        on either side of the tolerance.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> is_achievable(switch_stay(), v=[12.0, 18.0]).achievable
        True
        >>> answer = is_achievable(switch_stay(), v=[18.0, -6.0])
        >>> answer.achievable, round(answer.residual, 9), answer.greedy, answer.anti_greedy
        (False, 2.6, array([0]), array([1]))
    """
    form, given = check_one_form(mdp, v, q)
    tolerance = check_positive(tolerance, "tolerance")
    result = sup_norm_policy(mdp, form, given, tolerance)
    greedy = anti_greedy = np.array([], dtype=np.intp)
    lower = result.distance_bounds[0] * (1.0 + mdp.gamma)
    if form == "v":
        lo, hi = action_bounds(mdp, backup(mdp, given))
        allowed = tolerance * max(1.0, float(np.abs(given).max()))
        greedy, anti_greedy = np.flatnonzero(given > hi + allowed), np.flatnonzero(given < lo - allowed)
        lower = result.sup_residual
    return Achievability(result.achievable, result.sup_residual, lower, result.policy, greedy, anti_greedy)


def distance_bounds(mdp: FiniteMDP, *, v: Any = None, q: Any = None) -> tuple[float, float]:
    r"""Bounds on the sup-norm distance to the nearest achievable values.

    .. math:: \frac{\rho}{1+\gamma} \;\le\; \min_\pi \|V - V^\pi\|_\infty \;\le\; \frac{\rho}{1-\gamma}
        \qquad (\text{or Q})

    The left side, as :math:`\rho \le \|V - T^\pi V\| \le \|V - V^\pi\| + \|T^\pi V^\pi - T^\pi V\|` for every policy;
    the right side, as the evaluation policy has :math:`\|V - V^\pi\| \le \|V - T^\pi V\| / (1-\gamma)`. Both are
    attained: from :math:`V^* + x` for a constant x > 0 the distance is :math:`x = \rho/(1-\gamma)`.

    :math:`\rho` is exact for v. For q it is the solution of the l-inf problem up to 1000 states, or in deterministic
    MDPs; beyond, a lower bound on the l2 residual stands for it on the left, and the sup norm of that solution's
    residual on the right.

    Args:
        mdp: the MDP.
        v: state values, shape (S,); or
        q: action values, shape (S, A). Exactly one of the two.

    Returns:
        The lower and the upper bound.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> lower, upper = distance_bounds(switch_stay(), v=[18.0, -6.0])
        >>> round(lower, 3), round(upper, 3)
        (1.368, 26.0)
    """
    form, given = check_one_form(mdp, v, q)
    return sup_norm_policy(mdp, form, given).distance_bounds


def sup_norm_policy(mdp: FiniteMDP, form: Form, given: Array, tolerance: float = 1e-9) -> EvaluationPolicy:
    """The evaluation policy in the sup norm where that is cheap, in l2 otherwise."""
    if form == "v":
        return evaluation_policy(mdp, v=given, norm="linf", tolerance=tolerance)
    if mdp.n_states <= SMALL or has_exact_successors(mdp):
        return evaluation_policy(mdp, q=given, norm="linf", tolerance=tolerance, on_miss="flag")
    return evaluation_policy(mdp, q=given, norm="l2", tolerance=tolerance, on_miss="flag")
