"""Inverse policy evaluation: the policy that a value function is the value of, exactly, with a certificate."""

from ipe.inverse.lift import maximum_entropy_lift
from ipe.inverse.regularised import regularised_evaluation_policy
from ipe.inverse.result import EvaluationPolicy
from ipe.inverse.sampled import sampled_minimiser, sampled_objective
from ipe.inverse.solve import evaluation_policy

__all__ = [
    "EvaluationPolicy",
    "evaluation_policy",
    "maximum_entropy_lift",
    "regularised_evaluation_policy",
    "sampled_minimiser",
    "sampled_objective",
]
