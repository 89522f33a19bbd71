"""Behaviours and an update as a user would write them, in a module that worker processes import."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ipe.behaviours import Behaviour
from ipe.behaviours.declaration import Numbers, Outcome, Target
from ipe.behaviours.kinds.epsilon_ipe import EPSILON_IPE
from ipe.updates import UPDATES, PolicyUpdate, Transition


def cautious(q: Any, policy: Any, boldness: float = 2.0) -> Any:
    """with the evaluation policy, sharpened"""
    sharpened = policy**boldness
    return sharpened / sharpened.sum(axis=-1, keepdims=True)


def annealing(q: Any, step: Any, epsilon: float = 0.5) -> Any:
    """epsilon-greedily, by hand"""
    n = q.shape[-1]
    best = jnp.argmax(q, axis=-1)[..., None] == jnp.arange(n)
    return (1.0 - epsilon) * best + epsilon / n


def wide(q: Any, width: float = 1.0) -> Any:
    return annealing(q, 0, 0.5)


def loops(q: Any) -> Any:
    return np.array([1.0 if value == max(q) else 0.0 for value in q])


def half(q: Any) -> Any:
    return 0.5 * q / q


always = Behaviour("always", "with the first action", probabilities=lambda view, numbers: view.q * 0.0 + _first(view.q))


def _first(q: Any) -> Any:
    return jnp.arange(q.shape[-1]) == 0


def _dqns_target(outcome: Outcome, numbers: Numbers) -> Target:
    return Target(0.0, outcome.following.q.max(-1))


plain_target = replace(EPSILON_IPE, name="plain-target", target=_dqns_target)


not_a_behaviour = 7


def slow_update(theta: Any, transition: Transition, alpha: Any, slowness: float = 1.0) -> Any:
    """away from the largest value"""
    return theta - alpha / slowness * transition.q_next


own_update = PolicyUpdate("own", "as the paper's", UPDATES["paper"].step, gradient=UPDATES["paper"].gradient)
