"""Which methods get a turn, in which order: by the norm, by closed forms, and by what factors are predicted to cost."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from ipe.base.words import one_of
from ipe.checks import Form
from ipe.errors import InputError
from ipe.inverse.closed_forms import has_exact_successors
from ipe.inverse.least_squares import affordable
from ipe.inverse.normal_equations import DENSE_UP_TO, predicted_work
from ipe.inverse.problem import BoxProblem
from ipe.mdp import FiniteMDP

Method: TypeAlias = Literal["auto", "closed-form", "projected-cg", "highs", "interior-point", "pdhg"]

METHODS_OF: dict[str, tuple[str, ...]] = {
    "l2": ("closed-form", "projected-cg", "interior-point"),
    "l1": ("closed-form", "highs", "interior-point", "pdhg"),
    "linf": ("closed-form", "highs", "interior-point", "pdhg"),
}
SMALL = 1000
"""States up to which every method takes seconds, so that the relative gap is 1e-8 by default."""
QUICK_FLOPS = 1e10
"""Work of a dense factor, .2 s, up to which interior points go before PDHG for l1."""
WIDE_FLOPS = 5e7
"""Work of a sparse factor from which HiGHS's IPX gets the first turn for l-inf: a grid of some 80 by 80 cells."""


def choose(mdp: FiniteMDP, problem: BoxProblem, form: Form, method: str) -> tuple[str, ...]:
    """The methods that get a turn, in their order: the one asked for, or for "auto" those that suit the structure."""
    one_of(method, get_args(Method), "method")
    closed = form == "v" or has_exact_successors(mdp) or not problem.free.any()
    if method == "closed-form" and not closed:
        raise InputError("method: there is a closed form only for v, for deterministic transitions or for gamma = 0")
    if method not in ("auto", *METHODS_OF[problem.norm]):
        raise InputError(f"method {method!r} does not solve {problem.norm}; {', '.join(METHODS_OF[problem.norm])} do")
    if method == "interior-point" and not affordable(problem):
        raise InputError(
            f"method 'interior-point' would need dense factors here, of at most {DENSE_UP_TO} states; "
            f"found {mdp.n_states}"
        )
    if method != "auto":
        return (method,)
    if closed:
        return ("closed-form",)
    if problem.norm == "l2":
        return ("auto",)
    if mdp.n_states <= SMALL:
        return ("interior-point", "highs")
    work = predicted_work(problem.rows.matrix)
    if work.worthwhile(mdp.n_states):
        # On wide but sparse graphs IPX needs one good basis instead of a factor per step: up to three times as fast for
        # l-inf, but five times slower for l1. With hubs it is the faster one in both norms.
        by_basis = work.hubs or (problem.norm == "linf" and work.flops > WIDE_FLOPS)
        return ("highs", "interior-point", "pdhg") if by_basis else ("interior-point", "pdhg")
    if mdp.n_states > DENSE_UP_TO:
        return ("pdhg",)
    # l-inf needs dense factors, since PDHG gets nowhere there. For l1, PDHG's four digits come first where such factors
    # cost more than some seconds.
    quick = problem.norm == "linf" or mdp.n_states**3 / 3.0 <= QUICK_FLOPS
    return ("interior-point", "pdhg") if quick else ("pdhg", "interior-point")
