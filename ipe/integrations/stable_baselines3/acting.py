"""How a model explores in the current states: from the outputs of both networks to an action, in one compiled program.

One state passes through both networks in some 30 microseconds. Every call of another library between those of torch
costs as much again, because the processor's caches have to be filled anew. So the program takes one array and returns
one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ipe.base.words import one_of
from ipe.behaviours import BEHAVIOURS, Behaviour, View, find_behaviour, sample_at
from ipe.entropy import entropy_from_logits, epsilon_from_logits
from ipe.errors import InputError
from ipe.integrations.stable_baselines3.stepping import compiled


class Exploring(NamedTuple):
    """How a model explores in each of n states."""

    pi: NDArray[np.float32]
    """The probabilities of the actions, shape (n, A)."""
    epsilon: NDArray[np.float32]
    """The epsilon at which epsilon-greedy has that entropy, shape (n,); the behaviour's own if it has one."""
    entropy: NDArray[np.float32]
    """The entropy of the evaluation policy in nats, shape (n,)."""


def explored(
    name: str, outputs: NDArray[np.float32], draws: NDArray[np.float32]
) -> tuple[Exploring, NDArray[np.int64]]:
    """How a behaviour explores in n states, and the action of each state that a uniform number stands for.

    Args:
        name: the behaviour's name.
        outputs: the Q-network's outputs and the policy network's, shape (2, n, A).
        draws: uniform numbers in [0, 1), shape (n,).

    Returns:
        Probabilities, epsilon and entropy; and the actions, shape (n,).

    Raises:
        InputError: an output is not finite.
    """
    n, actions = outputs.shape[1:]
    if more := (1 << (n - 1).bit_length()) - n:  # a program per power of two, not per n
        outputs = np.concatenate((outputs, np.zeros_like(outputs[:, :more])), axis=1)
        draws = np.concatenate((draws, np.zeros_like(draws[:more])))
    found = np.array(_program(name)(outputs, draws))[:n]
    if not found[:, -1].all():
        _refuse_infinite(outputs[0], "Q-network", "learning_rate")
        _refuse_infinite(outputs[1], "policy network", "policy_learning_rate")
    epsilon, entropy, action = (found[:, actions + column] for column in range(3))
    return Exploring(found[:, :actions], epsilon, entropy), action.astype(np.int64)


@cache
def _program(name: str) -> Callable[[Any, Any], Any]:
    """From outputs and uniform numbers to the columns pi, epsilon, entropy, action, and whether outputs are finite.

    Compiled: matching epsilon is hundreds of small calls.
    """
    behaviour = behaviour_on_policy(name)
    numbers = {each.name: each.default for each in behaviour.hyperparameters}

    def program(outputs: Any, draws: Any) -> Any:
        q, logits = outputs
        pi, epsilon = behaviour.act(View(q, logits), numbers)
        matched = epsilon_from_logits(logits) if epsilon is None else epsilon
        finite = jnp.isfinite(outputs).all(axis=(0, 2))
        columns = (matched, entropy_from_logits(logits), sample_at(pi, draws), finite)
        return jnp.concatenate((pi, jnp.stack(columns, axis=1).astype(pi.dtype)), axis=1)

    return compiled(program)


def behaviour_on_policy(name: str) -> Behaviour:
    """The behaviour of a name, or of `package.module:name`, if it acts on a learned evaluation policy.

    Raises:
        InputError: there is no such behaviour, or it is another one.
    """
    if isinstance(name, str) and ":" in name:
        found = find_behaviour(name)
        if not (found.deep and found.needs_policy):
            raise InputError(f"behaviour: {name} does not look at an evaluation policy (logits or policy)")
        if found.memory is not None:
            raise InputError(
                f"behaviour: {name} remembers from step to step, which only the library's own training does"
            )
        return found
    offered = (each for each in BEHAVIOURS.values() if each.deep and each.needs_policy and each.memory is None)
    return BEHAVIOURS[one_of(name, (each.name for each in offered), "behaviour")]


def _refuse_infinite(rows: NDArray[np.float32], network: str, rate: str) -> None:
    wrong = ~np.isfinite(rows).all(axis=-1)
    if wrong.any():
        raise InputError(
            f"the {network}'s output for observation {int(np.argmax(wrong))} is not finite: either the observation is "
            f"not, or training diverged, where a smaller {rate} helps"
        )
