r"""The policy that minimises the paper's sampled objective.

From one transition at a time only the upper bound (the paper's `eq:upper-bound-eval-policy`) can be lowered,

.. math:: E_{s,a,s'}\big[ (R(s,a,s') + \gamma v(s') - Q(s,a))^2 \big]
    = \|\gamma P v - (Q - r)\|_d^2 + E\big[\mathrm{Var}(R + \gamma v(s') \mid s,a)\big] .

Its minimiser is separable whatever the transitions: :math:`v(s') = \mathrm{clip}\, E[(Q - R)/\gamma \mid s']`. In
deterministic MDPs it is the evaluation policy. In stochastic ones the variance is a bias, even at :math:`Q = Q^*`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.base.arrays import Array, dot
from ipe.base.numbers import check_positive
from ipe.checks import check_policy, check_q, check_weights
from ipe.inverse.l2 import certificate
from ipe.inverse.outcome import make_result
from ipe.inverse.problem import BoxProblem, BoxSolution, q_problem
from ipe.inverse.result import EvaluationPolicy
from ipe.mdp import FiniteMDP
from ipe.planning.operators import average


def sampled_minimiser(mdp: FiniteMDP, *, q: Any, weights: Any = None, tolerance: float = 1e-9) -> EvaluationPolicy:
    r"""The policy that stochastic gradient on single transitions tends to: not the evaluation policy in general.

    .. math:: v(s') = \mathrm{clip}\big(E[(Q(s,a) - R(s,a,s'))/\gamma \mid s'],\, \min_a Q(s',a),\, \max_a Q(s',a)\big),

    the expectation under :math:`d(s,a) P(s'|s,a)`, lifted to the policy of maximum entropy.

    Args:
        mdp: the MDP; rewards that depend on the next state are used as such.
        q: action values, shape (S, A).
        weights: how often each pair is sampled, d of shape (S, A). Default: equally often.
        tolerance: as in `evaluation_policy`.

    Returns:
        The policy with its residual in the *exact* problem. `gap` says how far that is from the exact minimum
        at most: it does not go to zero, since this is the solution of another problem.

    Example:
        >>> import ipe
        >>> mdp = ipe.zoo.garnet(200, 4, 3, seed=0, gamma=0.9)
        >>> q = ipe.planning.optimal_values(mdp).q
        >>> bool(sampled_minimiser(mdp, q=q).residual > 0.1), bool(ipe.evaluation_policy(mdp, q=q).residual < 1e-8)
        (True, True)
    """
    given = check_q(mdp, q)
    problem = q_problem(mdp, given, "l2", check_weights(mdp, weights, "q"))
    v = 0.5 * (problem.lo + problem.hi)
    if problem.constrained.any():
        targets, seen = _transition_targets(mdp, given), _transition_weights(mdp, problem)
        states = mdp.transitions.indices
        sums = np.bincount(states, seen * targets, minlength=mdp.n_states)
        total = np.bincount(states, seen, minlength=mdp.n_states)
        np.divide(sums, problem.gamma * total, out=v, where=problem.constrained)
    v = problem.clip(v)
    objective, gap = certificate(problem, v)
    solution = BoxSolution(v, objective, gap, 0, True, "sampled minimiser")
    return make_result(mdp, "q", given, given, problem, solution, tolerance=check_positive(tolerance, "tolerance"))


def sampled_objective(mdp: FiniteMDP, policy: Any, *, q: Any, weights: Any = None) -> float:
    r"""The paper's upper bound, :math:`E_{s,a,s'}[(R + \gamma \sum_{a'} \pi(a'|s') Q(s',a') - Q(s,a))^2]`.

    Args:
        mdp: the MDP.
        policy: :math:`\pi`, shape (S, A).
        q: action values, shape (S, A).
        weights: how often each pair is sampled, d of shape (S, A). Default: equally often.
    """
    given = check_q(mdp, q)
    problem = q_problem(mdp, given, "l2", check_weights(mdp, weights, "q"))
    v = average(check_policy(mdp, policy), given)
    errors = mdp.gamma * v[mdp.transitions.indices] - _transition_targets(mdp, given)
    return dot(_transition_weights(mdp, problem), errors * errors)


def _sources(mdp: FiniteMDP) -> Array:
    return np.repeat(np.arange(mdp.transitions.shape[0]), np.diff(mdp.transitions.indptr))


def _transition_targets(mdp: FiniteMDP, q: Array) -> Array:
    """Q(s,a) - R(s,a,s') for every transition."""
    sources = _sources(mdp)
    rewards = mdp.rewards.ravel()[sources] if mdp.transition_rewards is None else mdp.transition_rewards
    targets: Array = q.ravel()[sources] - rewards
    return targets


def _transition_weights(mdp: FiniteMDP, problem: BoxProblem) -> Array:
    """d(s,a) P(s'|s,a) for every transition."""
    weights: Array = mdp.transitions.data * problem.d[_sources(mdp)]
    return weights
