r"""Theorems 1 and 2 of the paper, on value iteration with inverse policy evaluation, and what else holds of it.

Value iteration :math:`V_{i+1} = T^* V_i + \epsilon_{i+1}` makes values; the evaluation policy :math:`\pi_k` of
:math:`V_k` acts on them. All norms are sup norms; all of it holds for action values as well.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ipe.base.arrays import Array, sup
from ipe.base.numbers import whole_number
from ipe.base.words import one_of
from ipe.checks import Form, check_one_form, check_policy, check_q, check_v
from ipe.errors import InputError
from ipe.inverse.bounds import Bound, Evaluated, evaluate, residuals, rounding, values_of
from ipe.inverse.extremes import greatest_values
from ipe.mdp import FiniteMDP
from ipe.planning.operators import backup, optimality_operator
from ipe.planning.optimal import OptimalValues
from ipe.planning.policies import greedy_policy


def theorem_1(mdp: FiniteMDP, k: int, *, v: Any = None, q: Any = None) -> Bound:
    r"""Theorem 1: the evaluation policy of the k-th iterate of value iteration from :math:`V_0`.

    .. math:: \|V^{\pi_k} - V^*\| \le
        \gamma^k \|V_1 - V_0\| \left(1 + \frac{\gamma}{1-\gamma}\right) + \gamma^k \|V_0 - V^*\|

    Sharper: :math:`\|V_k - V^*\| + \|T^{\pi_k} V_k - V_k\| / (1-\gamma)`. The right side falls with k; the left side
    need not (`counterexamples.losses`).

    Args:
        mdp: the MDP.
        k: how many steps of value iteration.
        v: :math:`V_0`, shape (S,); or
        q: :math:`Q_0`, shape (S, A). Exactly one of the two.

    Returns:
        Both sides.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> for k in (0, 1, 2):
        ...     bound = theorem_1(switch_stay(), k, v=[18.0, -6.0])
        ...     print(k, round(bound.left, 3), round(bound.sharper, 3), round(bound.right, 3))
        0 7.0 52.0 248.0
        1 9.248 11.0 223.2
        2 7.279 9.9 200.88
    """
    form, start = check_one_form(mdp, v, q)
    return _value_iteration_bound(mdp, "Theorem 1", form, start, np.zeros((whole_number(k, "k", 0), *start.shape)))


def theorem_2(mdp: FiniteMDP, errors: Any, *, v: Any = None, q: Any = None) -> Bound:
    r"""Theorem 2: the evaluation policy of the k-th iterate of approximate value iteration.

    .. math::
        \|V^{\pi_k} - V^*\| \le \Big(1 + \frac{\gamma}{1-\gamma}\Big) \Big( \gamma^k \|V_1 - V_0\| + \|\epsilon_k\|
        + \sum_{t=1}^{k-1} \gamma^t \|\epsilon_{k-t+1} - \epsilon_{k-t}\| \Big)
        + \gamma^k \|V_0 - V^*\| + \sum_{t=0}^{k-1} \gamma^t \|\epsilon_{k-t}\|

    Sharper: as in Theorem 1.

    Args:
        mdp: the MDP.
        errors: :math:`\epsilon_1, \dots, \epsilon_k`, each of the shape of the values: 0 in terminal states.
        v: :math:`V_0`, shape (S,); or
        q: :math:`Q_0`, shape (S, A). Exactly one of the two.

    Returns:
        Both sides.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> bound = theorem_2(switch_stay(), [[0.5, -0.5], [0.0, 0.1]], v=[18.0, -6.0])
        >>> bound.holds, round(bound.left, 3), round(bound.right, 3)
        (True, 8.707, 203.78)
    """
    form, start = check_one_form(mdp, v, q)
    try:
        rows = list(errors)
    except TypeError:
        raise InputError(f"errors must be a sequence of value functions, found {errors!r}") from None
    check = check_v if form == "v" else check_q
    checked = [check(mdp, row, f"errors[{i}]") for i, row in enumerate(rows)]
    return _value_iteration_bound(mdp, "Theorem 2", form, start, np.array(checked).reshape(-1, *start.shape))


def theorem_1_remark(mdp: FiniteMDP, k: int, policy: Any, *, v: Any = None, q: Any = None) -> Bound:
    r"""What holds of a policy that only fits :math:`V_k` as well as an optimal policy does.

    The paper remarks that Theorem 1 needs no more than
    :math:`\|T^{\pi_k} V_k - V_k\| \le \|T^{\pi^*} V_k - V_k\|`. It needs more (`counterexamples.remark`: the left side
    can be up to :math:`1/(1-\gamma)` times Theorem 1's right side). What follows is

    .. math:: \|V^{\pi_k} - V^*\| \le \frac{2 \gamma^k \|V_0 - V^*\|}{1-\gamma} .

    Sharper: :math:`\|V_k - V^*\| + \|T^{\pi_k} V_k - V_k\| / (1-\gamma)`.

    Args:
        mdp: the MDP.
        k: how many steps of value iteration.
        policy: :math:`\pi_k`, shape (S, A).
        v: :math:`V_0`, shape (S,); or
        q: :math:`Q_0`, shape (S, A). Exactly one of the two.

    Returns:
        Both sides; `theorem_1(...).right` is what the remark claims.

    Raises:
        InputError: the policy fits worse than every optimal policy.
    """
    form, start = check_one_form(mdp, v, q)
    pi = check_policy(mdp, policy)
    optimal = greatest_values(mdp)
    iterates = _iterates(mdp, form, start, np.zeros((whole_number(k, "k", 0), *start.shape)))
    best, last = _best(mdp, form, optimal), iterates[-1]
    residual, wanted = sup(residuals(mdp, form, last, pi)), _optimal_residual(mdp, form, last, optimal)
    noise = rounding(mdp, start, best)
    if residual > wanted + noise:
        raise InputError(
            f"policy has a Bellman error of {residual:.6g} on iterate {k}, which is more than the {wanted:.6g} "
            "of an optimal policy"
        )
    truth, error = values_of(mdp, form, pi)
    rest = 1.0 - mdp.gamma
    right = 2.0 * mdp.gamma**k * sup(start - best) / rest
    slack = error + 2.0 * optimal.error_bound / rest + noise
    return Bound("Theorem 1, the remark", sup(truth - best), right, sup(last - best) + residual / rest, slack)


def loss_bound(mdp: FiniteMDP, *, v: Any, policy: Literal["ipe", "greedy"] = "ipe") -> Bound:
    r"""How much acting on V can lose: the best constants, for the evaluation policy and for the greedy policy.

    .. math:: \|V^{\text{IPE}} - V^*\| \le \frac{1+\gamma^2}{1-\gamma} \|V - V^*\|, \qquad
        \|V^{\text{greedy}} - V^*\| \le \frac{2\gamma}{1-\gamma} \|V - V^*\|.

    The first exceeds the second by :math:`(1-\gamma) \|V - V^*\|`; neither can be lowered
    (`counterexamples.worst_case`). Proof of the first, with :math:`D = \|V - V^*\|` and
    :math:`G = \max_s (V - V^{\text{IPE}})(s)`: where :math:`V(s) > \max_a q_V(s,a)` the policy is greedy and
    :math:`V - T^* V \le (1+\gamma) D`; elsewhere :math:`V \le T^{\text{IPE}} V`. So
    :math:`G \le (1+\gamma) D + \gamma G`. In the first kind of state the loss :math:`V^* - V^{\text{IPE}}` is at most
    :math:`\gamma D + \gamma G`, in the second at most :math:`D + \gamma G`, which is the larger.

    Args:
        mdp: the MDP.
        v: state values, shape (S,).
        policy: "ipe" or "greedy".

    Returns:
        Both sides.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> bound = loss_bound(switch_stay(), v=[18.0, -6.0])
        >>> round(bound.left, 3), round(bound.right, 3)
        (7.0, 470.6)
    """
    given = check_v(mdp, v)
    one_of(policy, ("ipe", "greedy"), "policy")
    optimal = greatest_values(mdp)
    gamma, apart = mdp.gamma, sup(given - optimal.v)
    if policy == "ipe":
        ipe = evaluate(mdp, "v", given)
        truth, error, constant = ipe.truth, ipe.error, (1.0 + gamma**2) / (1.0 - gamma)
    else:
        truth, error = values_of(mdp, "v", greedy_policy(mdp, v=given))
        constant = 2.0 * gamma / (1.0 - gamma)
    slack = error + (1.0 + constant) * optimal.error_bound + rounding(mdp, given, optimal.v)
    return Bound(f"loss of {policy}", sup(truth - optimal.v), constant * apart, None, slack)


def _value_iteration_bound(mdp: FiniteMDP, name: str, form: Form, start: Array, errors: Array) -> Bound:
    """Theorem 2; with errors 0 it is Theorem 1."""
    k, gamma, rest = len(errors), mdp.gamma, 1.0 - mdp.gamma
    optimal = greatest_values(mdp)
    best = _best(mdp, form, optimal)
    iterates = _iterates(mdp, form, start, errors)
    first = iterates[1] if k else _sweep(mdp, form, start)
    ipe: Evaluated = evaluate(mdp, form, iterates[-1])
    changes = sum(gamma**t * sup(errors[k - t] - errors[k - t - 1]) for t in range(1, k))
    fit = gamma**k * sup(first - start) + (sup(errors[-1]) if k else 0.0) + changes
    drift = gamma**k * sup(start - best) + sum(gamma**t * sup(errors[k - t - 1]) for t in range(k))
    sharper = sup(iterates[-1] - best) + sup(ipe.residuals) / rest
    slack = ipe.error + 2.0 * optimal.error_bound + ipe.gap / rest + rounding(mdp, best, *iterates)
    return Bound(name, sup(ipe.truth - best), (1.0 + gamma / rest) * fit + drift, sharper, slack)


def _iterates(mdp: FiniteMDP, form: Form, start: Array, errors: Array) -> list[Array]:
    iterates = [start]
    for error in errors:
        iterates.append(_sweep(mdp, form, iterates[-1]) + error)
    return iterates


def _sweep(mdp: FiniteMDP, form: Form, values: Array) -> Array:
    if form == "v":
        return optimality_operator(mdp, v=values)
    return np.where(mdp.allowed, optimality_operator(mdp, q=values), 0.0)


def _best(mdp: FiniteMDP, form: Form, optimal: OptimalValues) -> Array:
    return optimal.v if form == "v" else backup(mdp, optimal.v)


def _optimal_residual(mdp: FiniteMDP, form: Form, values: Array, optimal: OptimalValues) -> float:
    """The largest Bellman error of an optimal policy: at the least or the greatest of its actions' values."""
    used = optimal.policy > 0
    q = backup(mdp, values) if form == "v" else values
    low = np.where(mdp.terminal, 0.0, np.where(used, q, np.inf).min(axis=1))
    high = np.where(mdp.terminal, 0.0, np.where(used, q, -np.inf).max(axis=1))
    ends = (low, high) if form == "v" else (backup(mdp, low), backup(mdp, high))
    return max(sup(end - values) for end in ends)
