"""Batches of transitions from MDPs whose model is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.audit import Transitions, make_transitions
from ipe.mdp import FiniteMDP

Arrays = dict[str, Any]


def drawn(mdp: FiniteMDP, rng: np.random.Generator, per_pair: int, reward_noise: float = 0.5) -> Transitions:
    """So many transitions of every allowed pair, rewards with normal noise; a terminal state ends the episode."""
    keys = np.repeat(np.flatnonzero(mdp.allowed.ravel()), per_pair)
    rows = mdp.transitions.toarray()[keys].cumsum(axis=1)
    successor = np.minimum((rng.random(len(keys))[:, None] > rows).sum(axis=1), mdp.n_states - 1)
    state, action = np.divmod(keys, mdp.n_actions)
    return make_transitions(
        {
            "state": state,
            "action": action,
            "reward": mdp.rewards[state, action] + reward_noise * rng.standard_normal(len(keys)),
            "next_state": successor,
            "terminated": mdp.terminal[successor],
        }
    )


def switch_stay_batch(**changes: Any) -> Arrays:
    """Each pair of the Switch-Stay MDP once, as arrays."""
    arrays: Arrays = {
        "state": [0, 0, 1, 1],
        "action": [0, 1, 0, 1],
        "reward": [1.0, -1.0, 2.0, 0.0],
        "next_state": [0, 1, 1, 0],
        "terminated": [False] * 4,
    }
    return arrays | changes
