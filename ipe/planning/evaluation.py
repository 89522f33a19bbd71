"""The values of a stochastic policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from ipe.base.arrays import Array
from ipe.base.numbers import check_positive
from ipe.base.words import one_of
from ipe.checks import check_policy
from ipe.errors import NotSolvedError
from ipe.mdp import FiniteMDP
from ipe.planning.linear import policy_chain, solve
from ipe.planning.operators import q_from_v

EvaluationMethod = Literal["auto", "direct", "krylov"]


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
