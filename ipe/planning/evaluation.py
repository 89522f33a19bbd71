"""The values of a stochastic policy, and of many policies of a small MDP at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from ipe.base.arrays import Array, numeric
from ipe.base.numbers import check_positive
from ipe.base.words import one_of
from ipe.checks import check_policy
from ipe.errors import InputError, NotSolvedError
from ipe.mdp import FiniteMDP
from ipe.planning.linear import policy_chain, solve
from ipe.planning.operators import q_from_v

EvaluationMethod = Literal["auto", "direct", "krylov"]

MAX_STATES = 200
"""The most states of an MDP whose policies are evaluated together, by dense solves."""


@dataclass(frozen=True, eq=False)
class PolicyValues:
    r"""The values of a policy, and how sure they are.

    Attributes:
        v: state values, shape (S,), 0 in terminal states.
        q: action values :math:`r + \gamma P v`, shape (S, A), computed when first asked for.
        residual: :math:`\|v - T^\pi v\|_\infty`.
        error_bound: no value is further than this from :math:`V^\pi`: the residual, with the rounding of its
            computation, over :math:`1 - \bar\beta`, where :math:`\bar\beta` is :math:`\gamma` times the largest
            probability, under the policy, of going on to a state that is not terminal.
        iterations: solves with the factors, or products with :math:`P^\pi`.
        method: "direct", "krylov" or "sweeps": the one that reached the tolerance.
    """

    mdp: FiniteMDP = field(repr=False)
    v: Array
    residual: float
    error_bound: float
    iterations: int
    method: str

    @cached_property
    def q(self) -> Array:
        r"""Action values :math:`r + \gamma P v`; NaN where an action is not allowed, 0 in terminal states."""
        return q_from_v(self.mdp, self.v)


def policy_values(
    mdp: FiniteMDP, policy: Any, *, method: EvaluationMethod = "auto", tol: float = 1e-10
) -> PolicyValues:
    r"""The values of a policy, the solution of :math:`v = T^\pi v`, that is :math:`(I - \gamma P^\pi) v = r^\pi`.

    Args:
        mdp: the MDP.
        policy: :math:`\pi(a|s)`, shape (S, A).
        method: "direct" (sparse LU), "krylov" (BiCGSTAB), or "auto": direct to 500 states, Krylov beyond. Where
            BiCGSTAB stalls (long, nearly periodic chains with :math:`\gamma` near 1) the chain is factorised or
            swept, :math:`v \leftarrow T^\pi v`, which always converges, whichever is less work; `method` of the
            result says so.
        tol: the error wanted, absolute: `error_bound <= tol` where float64 can guarantee that. Where it cannot, the
            values are as good as it can: `error_bound` is then at most 5 roundings over :math:`1 - \bar\beta`,
            one rounding being :math:`(n + A + 5)\, 2^{-53} (\max|r| + \max|v|)` with n the most successors of a
            state under the policy.

    Returns:
        The values with their residual and error bound.

    Raises:
        NotSolvedError: the residual stayed too large; the error's `result` holds the values found, with their true
            error bound.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> values = policy_values(switch_stay(), [[0.0, 1.0], [1.0, 0.0]])
        >>> values.v.round(9), values.error_bound < 1e-10
        (array([17., 20.]), True)
    """
    pi = check_policy(mdp, policy)
    one_of(method, get_args(EvaluationMethod), "method")
    chain = policy_chain(mdp, pi)
    solution = solve(chain, method, check_positive(tol, "tol"))
    bound = chain.error_bound(solution.v, solution.residual)
    result = PolicyValues(mdp, solution.v, solution.residual, bound, solution.iterations, solution.method)
    if not solution.solved:
        raise NotSolvedError(
            f"the values of the policy are known to {bound:.3g} only, not to tol = {tol:.3g}: {solution.method} "
            f"stopped at a residual of {solution.residual:.3g} after {solution.iterations} iterations",
            result,
        )
    return result


def many_policy_values(mdp: FiniteMDP, policies: Any) -> Array:
    r"""The values :math:`V^\pi = (I - \gamma P^\pi)^{-1} r^\pi` of a stack of policies, by dense solves.

    Args:
        mdp: at most 200 states.
        policies: shape (..., S, A); rows of terminal states are ignored. The probabilities are not
            checked: they come from simulations.

    Returns:
        Shape (..., S).

    Example:
        >>> from ipe.zoo import switch_stay
        >>> many_policy_values(switch_stay(), [[[1, 0], [1, 0]], [[0, 1], [1, 0]]]).round(6)
        array([[10., 20.],
               [17., 20.]])
    """
    if mdp.n_states > MAX_STATES:
        raise InputError(f"many_policy_values is for at most {MAX_STATES} states, the MDP has {mdp.n_states}")
    pi = numeric(policies, "policies")
    if pi.ndim < 2 or pi.shape[-2:] != (mdp.n_states, mdp.n_actions):
        raise InputError(f"policies must have shape (..., {mdp.n_states}, {mdp.n_actions}); found {pi.shape}")
    pi = np.where(mdp.allowed, pi, 0.0)
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    chains = np.einsum("...sa,sat->...st", pi, dense)
    rewards = np.einsum("...sa,sa->...s", pi, mdp.rewards)
    values: Array = np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * chains, rewards[..., None])[..., 0]
    return values
