"""Inverse policy evaluation: the policy that a value function is the value of, and acting on it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipe import (
        audit,
        behaviours,
        deep,
        entropy,
        experiments,
        inverse,
        planning,
        polytope,
        tabular,
        updates,
        zoo,
    )
    from ipe.entropy import epsilon_from_entropy, epsilon_from_logits, epsilon_from_probabilities
    from ipe.errors import InputError, NotSolvedError
    from ipe.inverse import (
        EvaluationPolicy,
        distance_bounds,
        distance_to_achievable,
        evaluation_policy,
        is_achievable,
        maximum_entropy_lift,
        regularised_evaluation_policy,
        sampled_minimiser,
    )
    from ipe.mdp import FiniteMDP
    from ipe.mdp_files import load_mdp, load_values, save_mdp, save_values
    from ipe.planning import optimal_values, policy_values
    from ipe.polytope import value_polytope
    from ipe.tabular import simulate

__all__ = [
    "EvaluationPolicy",
    "FiniteMDP",
    "InputError",
    "NotSolvedError",
    "audit",
    "behaviours",
    "deep",
    "distance_bounds",
    "distance_to_achievable",
    "entropy",
    "epsilon_from_entropy",
    "epsilon_from_logits",
    "epsilon_from_probabilities",
    "evaluation_policy",
    "experiments",
    "inverse",
    "is_achievable",
    "load_mdp",
    "load_values",
    "maximum_entropy_lift",
    "optimal_values",
    "planning",
    "policy_values",
    "polytope",
    "regularised_evaluation_policy",
    "sampled_minimiser",
    "save_mdp",
    "save_values",
    "simulate",
    "tabular",
    "updates",
    "value_polytope",
    "zoo",
]

# Imported when first asked for: SciPy and JAX take seconds, in which `ipe --help` has long answered.
_HOMES = {
    "EvaluationPolicy": "inverse",
    "FiniteMDP": "mdp",
    "InputError": "errors",
    "NotSolvedError": "errors",
    "distance_bounds": "inverse",
    "distance_to_achievable": "inverse",
    "epsilon_from_entropy": "entropy",
    "epsilon_from_logits": "entropy",
    "epsilon_from_probabilities": "entropy",
    "evaluation_policy": "inverse",
    "is_achievable": "inverse",
    "load_mdp": "mdp_files",
    "load_values": "mdp_files",
    "maximum_entropy_lift": "inverse",
    "optimal_values": "planning",
    "policy_values": "planning",
    "regularised_evaluation_policy": "inverse",
    "sampled_minimiser": "inverse",
    "save_mdp": "mdp_files",
    "save_values": "mdp_files",
    "simulate": "tabular",
    "value_polytope": "polytope",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"ipe.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"ipe.{name}")
    raise AttributeError(f"module 'ipe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
