"""Inverse policy evaluation: the policy that a value function is the value of, and acting on it."""

from typing import TYPE_CHECKING

from ipe.base.lazy import load_when_asked

if TYPE_CHECKING:
    from ipe import (
        analysis,
        audit,
        behaviours,
        deep,
        entropy,
        experiments,
        explorer,
        figures,
        integrations,
        inverse,
        mdp_files,
        planning,
        polytope,
        studies,
        tabular,
        updates,
        zoo,
    )
    from ipe.base.version import __version__
    from ipe.entropy import epsilon_from_entropy, epsilon_from_logits, epsilon_from_probabilities
    from ipe.errors import InputError, NotSolvedError, SolveInterrupted
    from ipe.experiments.agents import TrainedAgent, load_agent
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
else:
    __getattr__, __dir__ = load_when_asked(__name__)

__all__ = [
    "EvaluationPolicy",
    "FiniteMDP",
    "InputError",
    "NotSolvedError",
    "SolveInterrupted",
    "TrainedAgent",
    "__version__",
    "analysis",
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
    "explorer",
    "figures",
    "integrations",
    "inverse",
    "is_achievable",
    "load_agent",
    "load_mdp",
    "load_values",
    "maximum_entropy_lift",
    "mdp_files",
    "optimal_values",
    "planning",
    "policy_values",
    "polytope",
    "regularised_evaluation_policy",
    "sampled_minimiser",
    "save_mdp",
    "save_values",
    "simulate",
    "studies",
    "tabular",
    "updates",
    "value_polytope",
    "zoo",
]
