"""Behaviours inside the compiled program: probabilities from the tables of one run."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from ipe.behaviours import (
    boltzmann,
    conservative_update,
    epsilon_greedy,
    exponential_schedule,
    greedy,
    ipe,
    linear_schedule,
)
from ipe.entropy import epsilon_from_logits
from ipe.tabular.state import Ties


class View(NamedTuple):
    """What a behaviour may look at: one state's rows of the tables, or the tables whole."""

    q: Any
    theta: Any
    average: Any
    """The conservative policy when the state was last visited, or None."""
    visited: Any
    """How many steps had been done by then, or None."""
    epsilon: Any
    """VDBE's epsilon, or None."""
    allowed: Any


def epsilon_of(behaviour: str, view: View, step: Any, parameters: dict[str, Any]) -> Any:
    """The behaviour's epsilon in each state of the view, or None if it has no such thing."""
    if behaviour == "epsilon-greedy":
        return parameters["epsilon"]
    if behaviour in ("linear", "exponential"):
        schedule = linear_schedule if behaviour == "linear" else exponential_schedule
        ends = parameters["initial_epsilon"], parameters["final_epsilon"]
        return schedule(step, *ends, parameters["anneal_steps"])
    if behaviour == "vdbe":
        return view.epsilon
    if behaviour == "epsilon-ipe":
        return epsilon_from_logits(view.theta, view.allowed)
    return None


def probabilities(behaviour: str, ties: Ties, view: View, step: Any, parameters: dict[str, Any]) -> Any:
    """The behaviour's probabilities in each state of the view."""
    if behaviour == "ipe":
        return ipe(view.theta, view.allowed)
    if behaviour == "boltzmann":
        return boltzmann(view.q, parameters["temperature"], view.allowed)
    preferred = preference(view.q, ties, view.allowed)
    if behaviour == "conservative":
        # Q(s, .) has not changed since the last visit, so all the steps since then mix in the same greedy policy.
        rate = 1.0 - (1.0 - parameters["rate"]) ** (step - view.visited)
        return conservative_update(view.average, preferred, rate, view.allowed)
    if behaviour == "greedy":
        return greedy(preferred, view.allowed)
    return epsilon_greedy(preferred, epsilon_of(behaviour, view, step, parameters), view.allowed)


def preference(q: Any, ties: Ties, allowed: Any) -> Any:
    """Numbers whose arg max is that of Q, all of it or only its first action."""
    if ties == "random":
        return q
    first = jnp.argmax(q if allowed is None else jnp.where(allowed, q, -jnp.inf), axis=-1, keepdims=True)
    return (jnp.arange(q.shape[-1]) == first).astype(q.dtype)
