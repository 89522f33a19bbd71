"""Inverse policy evaluation: the policy that a value function is the value of, exactly, with a certificate."""

from ipe.inverse import counterexamples
from ipe.inverse.achievability import Achievability, distance_bounds, is_achievable
from ipe.inverse.bounds import Bound, proposition_1, proposition_2
from ipe.inverse.distance import ExactDistance, distance_to_achievable
from ipe.inverse.lift import maximum_entropy_lift
from ipe.inverse.regularised import regularised_evaluation_policy
from ipe.inverse.result import EvaluationPolicy
from ipe.inverse.sampled import sampled_minimiser, sampled_objective
from ipe.inverse.solve import evaluation_policy
from ipe.inverse.theorems import loss_bound, theorem_1, theorem_1_remark, theorem_2
from ipe.inverse.watch import SolveProgress

__all__ = [
    "Achievability",
    "Bound",
    "EvaluationPolicy",
    "ExactDistance",
    "SolveProgress",
    "counterexamples",
    "distance_bounds",
    "distance_to_achievable",
    "evaluation_policy",
    "is_achievable",
    "loss_bound",
    "maximum_entropy_lift",
    "proposition_1",
    "proposition_2",
    "regularised_evaluation_policy",
    "sampled_minimiser",
    "sampled_objective",
    "theorem_1",
    "theorem_1_remark",
    "theorem_2",
]
