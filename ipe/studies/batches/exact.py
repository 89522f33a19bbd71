r"""FrozenLake's truth: what a policy earns in its first steps, from the environment's table and without an episode.

With :math:`v_0 = 0` and :math:`v_{k+1}(s) = \sum_a \pi(a|s) \big(r(s,a) + \sum_{s'} P(s'|s,a) v_k(s')\big)`, the
expected return of an episode that is truncated after h steps is :math:`\sum_s p_0(s) v_h(s)`: nothing is discounted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array
from ipe.deep.environments import make_environment
from ipe.deep.playing import Trained, policy_of
from ipe.deep.setting_groups import EnvironmentSettings
from ipe.deep.transitions import Transitions, stack_transitions
from ipe.mdp import FiniteMDP
from ipe.planning import optimal_values, q_from_v
from ipe.planning.operators import average
from ipe.zoo import from_gymnasium

STEPS = 100
"""The number of steps after which Gymnasium truncates an episode of FrozenLake."""


def table_of(environment: str) -> FiniteMDP:
    """The MDP of an environment's table. Its last state is the one that ends an episode, which the environment never
    shows."""
    return from_gymnasium(environment.partition("-")[0])


def expected_return(mdp: FiniteMDP, pi: Array, steps: int = STEPS) -> float:
    """The expected undiscounted return of an episode of so many steps, from the start.

    Args:
        mdp: the MDP.
        pi: the probabilities of the actions in each state, shape (S, A).
        steps: the number of steps after which the episode is truncated.
    """
    assert mdp.start is not None
    v = np.zeros(mdp.n_states)
    for _ in range(steps):
        v = average(pi, q_from_v(mdp, v / mdp.gamma))  # the backup discounts what it is given
    return float(mdp.start @ v)


def largest_return(mdp: FiniteMDP, steps: int = STEPS) -> float:
    r"""The largest expected undiscounted return of an episode of so many steps, over policies that may look at how many
    steps are left: :math:`v_{k+1}(s) = \max_a \big(r(s,a) + \sum_{s'} P(s'|s,a) v_k(s')\big)`."""
    assert mdp.start is not None
    v = np.zeros(mdp.n_states)
    for _ in range(steps):
        v = q_from_v(mdp, v / mdp.gamma).max(axis=1)
    return float(mdp.start @ v)


def epsilon_optimal(mdp: FiniteMDP, epsilon: float) -> Array:
    """The policy that is epsilon-greedy with respect to the optimal values, shape (S, A)."""
    q = optimal_values(mdp).q
    best = q >= q.max(axis=1, keepdims=True)
    return np.asarray((1.0 - epsilon) * best / best.sum(axis=1, keepdims=True) + epsilon / mdp.n_actions)


def collect(environment: str, pi: Array, transitions: int, seed: int) -> Transitions:
    """Collect so many transitions of an environment with numbered states, by a policy."""
    made = make_environment(EnvironmentSettings(id=environment), seed)
    generator = np.random.default_rng(seed)
    rows: list[tuple[Any, int, float, Any, bool]] = []
    try:
        observation = made.reset()
        while len(rows) < transitions:
            action = int(generator.choice(pi.shape[1], p=pi[int(observation.argmax())]))
            step = made.step(action)
            rows.append((observation, action, step.reward, step.observation, step.terminated))
            observation = made.reset() if step.terminated or step.truncated else step.observation
    finally:
        made.close()
    return stack_transitions(rows)


def returns_of(trained: Trained, mdp: FiniteMDP, behaviour: bool | str) -> list[float]:
    """The expected return of each trained seed that did not diverge, acting by a behaviour."""
    observations: NDArray[Any] = np.eye(trained.spec.observation_shape[0], dtype=trained.spec.dtype)
    found, unusable = [], trained.unusable()
    for seed in (each for each in trained.seeds if each not in unusable):
        pi = np.full((mdp.n_states, mdp.n_actions), 1.0 / mdp.n_actions)
        pi[: len(observations)] = policy_of(trained, seed, behaviour, observations)
        found.append(expected_return(mdp, pi))
    return found
