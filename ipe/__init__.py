"""Inverse policy evaluation: the policy that a value function is the value of, and acting on it."""

from ipe import zoo
from ipe.errors import InputError, NotSolvedError
from ipe.inverse import EvaluationPolicy, evaluation_policy
from ipe.mdp import FiniteMDP

__all__ = ["EvaluationPolicy", "FiniteMDP", "InputError", "NotSolvedError", "evaluation_policy", "zoo"]
