"""Gymnasium's toy-text environments, whose whole model stands in a table `env.unwrapped.P`."""

from __future__ import annotations

import contextlib
import operator
from typing import Any

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array
from ipe.base.packages import missing_package
from ipe.errors import InputError
from ipe.mdp import FiniteMDP

_ACTION_NAMES = {
    "FrozenLake": ("left", "down", "right", "up"),
    "FrozenLake8x8": ("left", "down", "right", "up"),
    "CliffWalking": ("up", "right", "down", "left"),
    "CliffWalkingSlippery": ("up", "right", "down", "left"),
    "Taxi": ("south", "north", "east", "west", "pickup", "dropoff"),
}


def from_gymnasium(env: Any, /, gamma: float = 0.99, **kwargs: Any) -> FiniteMDP:
    r"""The MDP in the table of a Gymnasium toy-text environment: FrozenLake, CliffWalking, Taxi and the like.

    The table lists, per state and action, tuples (probability, next state, reward, terminated). Since
    termination is flagged per transition and a state that ends an episode need not be absorbing in the
    table, every flagged transition is redirected to *one* added terminal state, the last one, named
    `end`. Every state of the table is kept, reachable or not; a pair without tuples is not allowed.

    Rewards depend on the next state. Where several tuples of a pair lead to the same state with
    different rewards (several ends, say), :math:`r(s,a,s')` is their average weighted by probability:
    :math:`r(s,a)` stays exact.

    Args:
        env: an environment, or the id of a registered one. An id without a version, `"Taxi"`, means the
            newest version that the installed Gymnasium has.
        gamma: the discount.
        kwargs: passed to `gymnasium.make`: `is_slippery=False`, `map_name="8x8"`, ...

    Example:
        >>> from_gymnasium("FrozenLake", gamma=0.9, is_slippery=False)  # doctest: +SKIP
        FiniteMDP(17 states, 4 actions, gamma=0.9, 1 terminal, deterministic)
    """
    if not isinstance(env, str):
        if kwargs:
            raise InputError(f"{next(iter(kwargs))} was given together with an environment that is already made")
        return _from_env(env, gamma)
    made = _make(env, kwargs)
    with contextlib.closing(made):
        return _from_env(made, gamma)


def _make(name: str, kwargs: dict[str, Any]) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise missing_package(repr(name), "Gymnasium", extra="gymnasium") from None
    env_id = _registered(name, list(gymnasium.registry), gymnasium.__version__)
    try:
        return gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    except Exception as error:  # the environment's constructor may raise anything
        given = ", ".join(f"{key}={value!r}" for key, value in kwargs.items())
        raise InputError(f"Gymnasium cannot make {env_id}({given}): {error}") from None


def _registered(name: str, registry: list[str], version: str) -> str:
    """The id itself if it is registered, or the newest version of a name without one."""
    if name in registry:
        return name
    base, dash, tail = name.rpartition("-v")
    base = base if dash and tail.isdigit() else name
    versions = sorted(
        int(found[len(base) + 2 :])
        for found in registry
        if found.startswith(base + "-v") and found[len(base) + 2 :].isdigit()
    )
    if base == name and versions:
        return f"{base}-v{versions[-1]}"
    there = "it has " + ", ".join(f"{base}-v{number}" for number in versions) if versions else "nor any version of it"
    raise InputError(f"Gymnasium {version} has no environment {name!r}; {there}")


def _from_env(env: Any, gamma: float) -> FiniteMDP:
    inner = getattr(env, "unwrapped", None)
    name = getattr(getattr(inner, "spec", None), "name", type(inner if inner is not None else env).__name__)
    table = getattr(inner, "P", None)
    if table is None:
        raise InputError(f"{name} has no table of transitions (env.unwrapped.P)")
    if getattr(inner, "fickle_passenger", False):
        raise InputError(f"{name} with fickle_passenger does not follow its table: the destination changes outside it")
    sources, targets, p, r, ends, n_actions = _entries(table, name)
    n_states = len(table) + int(ends.any())  # no added state where nothing ever ends
    targets = np.where(ends, n_states - 1, targets)
    allowed = np.zeros(n_states * n_actions, dtype=bool)
    allowed[sources] = True
    names = [f"s{s}" for s in range(len(table))] + ["end"] * int(ends.any())
    actions = _ACTION_NAMES.get(name, ())
    start = getattr(inner, "initial_state_distrib", None)
    shape = (n_states * n_actions, n_states)
    try:
        return FiniteMDP(
            sparse.coo_array((p, (sources, targets)), shape=shape),
            _mean_rewards(sources, targets, p, r, shape),
            gamma,
            allowed=allowed.reshape(n_states, n_actions),
            terminal=[n_states - 1] if ends.any() else None,
            start=None if start is None else np.append(np.asarray(start, dtype=np.float64), [0.0] * int(ends.any())),
            state_names=names,
            action_names=actions if len(actions) == n_actions else None,
        )
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _entries(table: Any, name: str) -> tuple[Array, Array, Array, Array, Array, int]:
    """The table's tuples as arrays: row s * A + a, next state, probability, reward, terminated; and A."""
    try:
        n_actions = 1 + max(
            max(table[s]) if isinstance(table[s], dict) else len(table[s]) - 1 for s in range(len(table))
        )
        flat = [
            (s * n_actions + a, operator.index(following), float(p), float(r), bool(ended))
            for s in range(len(table))
            for a, outcomes in (table[s].items() if isinstance(table[s], dict) else enumerate(table[s]))
            for p, following, r, ended in outcomes
        ]
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise InputError(
            f"{name}: env.unwrapped.P must hold lists of (probability, next state, reward, terminated) "
            f"per state and action ({error})"
        ) from None
    rows, targets, p, r, ends = (np.array(column) for column in zip(*flat, strict=True))
    outside = (targets < 0) | (targets >= len(table))
    if outside.any():
        at = int(np.argmax(outside))
        s, a = divmod(int(rows[at]), n_actions)
        raise InputError(
            f"{name}: env.unwrapped.P[{s}][{a}] leads to state {targets[at]}, which the table does not have"
        )
    return rows, targets, p, r, ends, n_actions


def _mean_rewards(rows: Array, columns: Array, p: Array, r: Array, shape: tuple[int, int]) -> sparse.coo_array:
    """The mean reward of each (s, a, s') under the probabilities of the tuples that lead there."""
    keys, first, where = np.unique(rows.astype(np.int64) * shape[1] + columns, return_index=True, return_inverse=True)
    total = np.bincount(where, weights=p)
    paid = np.bincount(where, weights=p * r)
    several = np.bincount(where, weights=r != r[first][where]) > 0
    mean = r[first]  # the only reward there is, to the last bit
    mean[several] = np.divide(paid, total, out=np.zeros_like(paid), where=total > 0)[several]
    return sparse.coo_array((mean, np.divmod(keys, shape[1])), shape=shape)
