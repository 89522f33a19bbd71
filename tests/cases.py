"""Value functions of every kind on random MDPs, with weights of every kind, for property tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ipe import EvaluationPolicy, evaluation_policy
from ipe.base.arrays import Array
from ipe.checks import Form
from ipe.inverse.choice import METHODS_OF
from ipe.inverse.closed_forms import has_exact_successors
from ipe.inverse.problem import Norm
from ipe.mdp import FiniteMDP
from tests.oracles import (
    box_problem,
    least_in_box,
    optimal_value,
    policy_value,
)
from tests.strategies import generators, mdps, random_pi, random_q, random_v

NORMS: tuple[Norm, ...] = ("l2", "l1", "linf")
ALL_METHODS = [(norm, method) for norm in NORMS for method in METHODS_OF[norm]]
FORMS: tuple[Form, ...] = ("v", "q", "q")
RTOL = {"pdhg": 1e-4, "interior-point": 1e-6}


def solve_form(mdp: FiniteMDP, form: Form, values: Array, **options: Any) -> EvaluationPolicy:
    given: dict[str, Any] = {form: values, **options}
    return evaluation_policy(mdp, **given)


@dataclass(frozen=True)
class Case:
    """A value function on an MDP, with weights of the norm."""

    mdp: FiniteMDP
    form: Form
    values: Array
    weights: Array | None
    kind: str

    def solve(self, norm: Norm, **options: Any) -> EvaluationPolicy:
        return solve_form(self.mdp, self.form, self.values, norm=norm, weights=self.weights, **options)

    @property
    def size(self) -> float:
        return max(float(np.abs(self.values).max()), float(np.abs(self.mdp.rewards).max()), 1e-300)

    def least(self, norm: Norm) -> tuple[float, Array]:
        """The oracle's minimum and the weights d."""
        problem, bounds = box_problem(self.mdp, self.form, self.values, norm, self.weights)
        return least_in_box(problem, bounds)[0], problem.d

    @property
    def closed(self) -> bool:
        return self.form == "v" or has_exact_successors(self.mdp)


@st.composite
def cases(draw: st.DrawFn, /, form: Form | None = None, max_states: int = 8, **kinds: Any) -> Case:
    """Values far from achievable, with ties, of a policy, or close to optimal; weights even, uneven, zero or none."""
    mdp, rng = draw(mdps(max_states=max_states, **kinds)), draw(generators())
    chosen: Form = draw(st.sampled_from(FORMS if form is None else (form,)))
    kind = draw(st.sampled_from(["any", "ties", "policy", "optimal", "near"]))
    scale = draw(st.sampled_from([1e-3, 1.0, 30.0]))
    values = random_v(rng, mdp, scale) if chosen == "v" else random_q(rng, mdp, scale)
    index = 0 if chosen == "v" else 1
    if kind == "ties":
        values = np.round(values)
    elif kind == "policy":
        values = policy_value(mdp, random_pi(rng, mdp))[index]
    elif kind == "optimal":
        values = optimal_value(mdp)[index]
    elif kind == "near":
        values = optimal_value(mdp)[index] + 1e-5 * values
    return Case(mdp, chosen, values, draw_weights(draw, rng, mdp, chosen), kind)


def draw_weights(draw: st.DrawFn, rng: np.random.Generator, mdp: FiniteMDP, form: Form) -> Array | None:
    kind = draw(st.sampled_from(["none", "even", "uneven", "zeros"]))
    present = ~mdp.terminal if form == "v" else mdp.allowed
    weights: Array = rng.random(present.shape)
    if kind == "uneven":
        weights = np.exp(2 * rng.normal(size=present.shape))
    elif kind == "zeros":
        weights = weights * (rng.random(present.shape) < 0.6)
    return None if kind == "none" or not weights[present].any() else weights


def objective_of(residual: float, norm: Norm) -> float:
    return 0.5 * residual**2 if norm == "l2" else residual
