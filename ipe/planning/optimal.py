r"""Optimal values with a guaranteed error, by value iteration, policy iteration and what lies between them.

One loop serves all: sweep, :math:`TV = \max_a q_V`; stop if MacQueen's bounds (see `contraction`) are close enough;
otherwise continue from :math:`TV` (value iteration), from a few more sweeps with the greedy policy alone (modified
policy iteration), or from the exact values of that policy (policy iteration).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array, sup
from ipe.base.numbers import check_positive, whole_number
from ipe.base.words import one_of
from ipe.checks import check_mdp
from ipe.errors import NotSolvedError
from ipe.mdp import FiniteMDP
from ipe.planning.contraction import Contraction, Interval, contraction, fixed_point_interval, lower_bound
from ipe.planning.linear import DIRECT_STATES, action_chain, solve
from ipe.planning.operators import average, backup, largest, q_from_v
from ipe.planning.policies import near_best, share

PlanningMethod = Literal["auto", "value-iteration", "policy-iteration", "modified-policy-iteration"]

Actions: TypeAlias = NDArray[np.intp]

EVALUATION_SWEEPS = 10


@dataclass(frozen=True, eq=False)
class OptimalValues:
    r"""Optimal values and an optimal policy, and how sure they are.

    Attributes:
        v: state values, shape (S,), 0 in terminal states.
        q: action values :math:`r + \gamma P v`, shape (S, A), computed when first asked for.
        policy: greedy for `q`, uniform over the actions within :math:`(1 - \bar\beta)` `error_bound` of the best: ties
            that rounding hides are seen, and taking them as ties costs the policy at most one `error_bound`.
            (Every optimal action is within :math:`2 \gamma` `error_bound`: see the tolerance of `greedy_policy`.)
        error_bound: :math:`\|v - V^*\|_\infty` is at most this, the rounding of float64 included.
        policy_error_bound: :math:`\|V^\text{policy} - V^*\|_\infty` is at most this.
        iterations: how often :math:`T^*` was applied on the way.
        method: the method used.
    """

    mdp: FiniteMDP = field(repr=False)
    v: Array
    policy: Array
    error_bound: float
    policy_error_bound: float
    iterations: int
    method: str

    @cached_property
    def q(self) -> Array:
        r"""Action values :math:`r + \gamma P v`; NaN where an action is not allowed, 0 in terminal states."""
        return q_from_v(self.mdp, self.v)


def optimal_values(
    mdp: FiniteMDP, *, method: PlanningMethod = "auto", tol: float = 1e-8, max_iterations: int | None = None
) -> OptimalValues:
    r"""The optimal values, the solution of :math:`V^* = T^* V^*`, to a guaranteed error.

    Args:
        mdp: the MDP.
        method: "value-iteration", "policy-iteration", "modified-policy-iteration" (10 sweeps of the greedy policy
            after each of :math:`T^*`), or "auto": policy iteration to 500 states; beyond, modified policy
            iteration that evaluates a greedy policy exactly where it repeats itself and the error falls slowly.
        tol: the error wanted, absolute, in the sup norm: `error_bound <= tol`.
        max_iterations: how often to apply :math:`T^*` at most. Default: as often as its contraction can need.

    Returns:
        The values with a policy and the bounds on both their errors.

    Raises:
        NotSolvedError: `max_iterations` were too few, or `tol` is below what float64 can guarantee for values of
            this size. The error's `result` holds the values found, with their true error bound.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> best = optimal_values(switch_stay())
        >>> best.v.round(8), best.error_bound <= 1e-8
        (array([17., 20.]), True)
        >>> best.policy
        array([[0., 1.],
               [1., 0.]])
    """
    check_mdp(mdp)
    tol = check_positive(tol, "tol")
    one_of(method, get_args(PlanningMethod), "method")
    if max_iterations is not None:
        max_iterations = whole_number(max_iterations, "max_iterations", 1, also=" or None")
    modulus = contraction(mdp.transitions, mdp.allowed.ravel(), ~mdp.terminal, mdp.gamma, mdp.rewards, 0)
    if method == "auto" and mdp.n_states <= DIRECT_STATES:
        method = "policy-iteration"
    tv, interval, iterations = _iterate(mdp, modulus, _SCHEMES[method], tol, max_iterations)
    used = "modified-policy-iteration" if method == "auto" else method
    result = _result(mdp, modulus, tv, interval, iterations, used)
    if not interval.error <= tol:
        reason = (
            "float64 guarantees hardly more for values of this size"
            if _at_floor(interval)
            else f"{iterations} iterations were too few"
        )
        raise NotSolvedError(
            f"the optimal values are known to {interval.error:.3g} only, not to tol = {tol:.3g}: {reason}", result
        )
    return result


class _Scheme(NamedTuple):
    """What follows a sweep of T*: some sweeps of the greedy policy, or the exact values of that policy."""

    sweeps: int
    exact: Literal["never", "when slow", "always"]


_SCHEMES = {
    "value-iteration": _Scheme(0, "never"),
    "modified-policy-iteration": _Scheme(EVALUATION_SWEEPS, "never"),
    "policy-iteration": _Scheme(0, "always"),
    "auto": _Scheme(EVALUATION_SWEEPS, "when slow"),
}


def _iterate(
    mdp: FiniteMDP, modulus: Contraction, scheme: _Scheme, tol: float, max_iterations: int | None
) -> tuple[Array, Interval, int]:
    """The values after the last sweep, the bounds around them, and the number of sweeps."""
    rewards = mdp.rewards if mdp.all_allowed else np.where(mdp.allowed, mdp.rewards, -np.inf)
    v = np.zeros(mdp.n_states)
    actions: Actions | None = None
    evaluated, doubt, error, iterations = False, 0.0, np.inf, 0
    while True:
        q = backup(mdp, v, rewards)
        tv = largest(q)
        tv[mdp.terminal] = 0.0
        interval = fixed_point_interval(modulus, v, tv, ~mdp.terminal)
        iterations += 1
        max_iterations = max_iterations or _enough_iterations(modulus, tv, interval, tol)
        if interval.error <= tol or _at_floor(interval) or iterations >= max_iterations:
            return tv, interval, iterations
        if scheme == _SCHEMES["value-iteration"]:
            v = tv
            continue
        actions, repeated = _improve(actions, q, tv, 2 * (modulus.high * doubt + modulus.rounding(v)))
        evaluated = evaluated and repeated
        slow, error = repeated and interval.error > 0.1 * error, interval.error
        chain = action_chain(mdp, actions, modulus)
        if evaluated:  # rounding cannot tell this policy from a better one: T* does the rest
            v = tv
        elif scheme.exact == "always" or (scheme.exact == "when slow" and slow):
            solution = solve(chain, "auto", tol * (1 - modulus.high) / 4, start=tv)
            v, evaluated, doubt = solution.v, True, chain.error_bound(solution.v, solution.residual)
        else:
            v = chain.sweep(tv, scheme.sweeps)


def _improve(actions: Actions | None, q: Array, tv: Array, slack: float) -> tuple[Actions, bool]:
    """The greedy actions, and whether they are the same as before.

    An action is given up only for an action that is better by more than `slack`: otherwise policy iteration could go
    round in circles among ties.
    """
    best: Actions = q.argmax(axis=1)
    if actions is None:
        return best, False
    same = q[np.arange(tv.size), actions] >= tv - slack
    same |= best == actions  # terminal states, whose rows are all -inf
    return np.where(same, actions, best), bool(same.all())


def _enough_iterations(modulus: Contraction, tv: Array, interval: Interval, tol: float) -> int:
    """How many sweeps from v = 0 suffice, by the contraction of T*. Every method is at least as fast, up to a factor
    for which the goal leaves room.
    """
    goal = max(tol, interval.floor) * (1 - modulus.high) ** 2 / 4
    return 1 + modulus.enough_sweeps(sup(tv), goal)


def _at_floor(interval: Interval) -> bool:
    return interval.error <= 2 * interval.floor


def _result(
    mdp: FiniteMDP, modulus: Contraction, tv: Array, interval: Interval, iterations: int, method: str
) -> OptimalValues:
    """The result: the values, the policy that is greedy for them, and bounds on the errors of both."""
    live = ~mdp.terminal
    v = tv + interval.shift
    q = backup(mdp, v)
    policy = share(near_best(mdp, q, (1 - modulus.high) * interval.error))
    averaged = replace(modulus, roundings=modulus.roundings + mdp.n_actions)
    loss = interval.error - lower_bound(averaged, v, average(policy, q), live)
    return OptimalValues(mdp, v, policy, interval.error, loss, iterations, method)
