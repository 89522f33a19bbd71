"""Planning: Bellman operators, values of a policy, optimal values, and policies that need no solver."""

from ipe.planning.evaluation import PolicyValues, policy_values
from ipe.planning.operators import action_bounds, bellman_operator, optimality_operator, q_from_v, state_values
from ipe.planning.optimal import OptimalValues, optimal_values
from ipe.planning.policies import greedy_policy, random_policy, uniform_policy

__all__ = [
    "OptimalValues",
    "PolicyValues",
    "action_bounds",
    "bellman_operator",
    "greedy_policy",
    "optimal_values",
    "optimality_operator",
    "policy_values",
    "q_from_v",
    "random_policy",
    "state_values",
    "uniform_policy",
]
