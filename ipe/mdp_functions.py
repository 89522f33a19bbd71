r"""A finite MDP from functions: states and actions are any hashable things, the dynamics are code.

Models are mostly written as rules, not as arrays: "from cell (x, y) a move to the right leads to (x + 1, y)". Here the
rules are asked once per pair (s, a), and their answers become the arrays of a `FiniteMDP`. Every error names the state
and the action as they were given, not their indices.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array
from ipe.base.numbers import is_number
from ipe.errors import InputError
from ipe.mdp_input import ROW_SUM_TOLERANCE


def arrays_from_functions(
    states: Iterable[Hashable],
    actions: Iterable[Hashable] | Callable[[Any], Iterable[Hashable]],
    transition: Callable[[Any, Any], Any],
    reward: Callable[..., float],
    *,
    terminal: Iterable[Hashable] | Callable[[Any], bool] | None = None,
    start: Any = None,
) -> dict[str, Any]:
    """The arguments of `FiniteMDP` that the functions stand for; see `FiniteMDP.from_functions`."""
    for function, name in ((transition, "transition"), (reward, "reward")):
        if not callable(function):
            raise InputError(f"{name} must be a function; found {function!r}")
    index = _numbered(states, "states")
    ended = _terminal(terminal, index)
    offered = _offered(actions, index, ended)
    names = _numbered(dict.fromkeys(a for row in offered.values() for a in row), "actions")
    depends = _takes_next_state(reward)
    rows: list[int] = []
    columns: list[int] = []
    probabilities: list[float] = []
    rewards: list[float] = []
    expected = np.zeros((len(index), len(names)))
    allowed = np.zeros(expected.shape, dtype=bool)
    for state, choices in offered.items():
        for action in choices:
            where = f"state {state!r}, action {action!r}"
            following = _distribution(_asked(transition, where, state, action), index, where)
            if following is None:
                continue
            s, a = index[state], names[action]
            allowed[s, a] = True
            rows += [s * len(names) + a] * len(following)
            columns += [index[name] for name in following]
            probabilities += following.values()
            if depends:
                rewards += [_reward(reward, f"{where}, next state {name!r}", state, action, name) for name in following]
            else:
                expected[s, a] = _reward(reward, where, state, action)
    stuck = ~allowed.any(axis=1) & ~ended
    if stuck.any():
        raise InputError(f"state {list(index)[int(np.argmax(stuck))]!r} has no action, and is not terminal")
    shape = (expected.size, len(index))
    return {
        "transitions": _matrix(probabilities, rows, columns, shape),
        "rewards": _matrix(rewards, rows, columns, shape) if depends else expected,
        "allowed": allowed,
        "terminal": ended,
        "start": None if start is None else _start(start, index),
        "state_names": _names(index),
        "action_names": _names(names),
    }


def _matrix(entries: list[float], rows: list[int], columns: list[int], shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.csr_array((entries, (rows, columns)), shape=shape, dtype=np.float64)


def _asked(function: Callable[..., Any], where: str, *arguments: Any) -> Any:
    """The function's answer; an exception of its own is passed on, with a note of what it was asked."""
    try:
        return function(*arguments)
    except Exception as error:
        error.add_note(f"raised for {where}")
        raise


def _is_hashable(thing: Any) -> bool:
    try:
        hash(thing)
    except TypeError:
        return False
    return True


def _numbered(things: Any, field: str) -> dict[Hashable, int]:
    """Each thing's index; refuses what is no list, none at all, what cannot be a key, and what stands twice."""
    if not isinstance(things, Iterable):
        raise InputError(f"{field} must be a list of hashable things; found {things!r}")
    out: dict[Hashable, int] = {}
    for thing in things:
        if not _is_hashable(thing):
            raise InputError(f"{field}: {thing!r} is not hashable; give a tuple, a string or a number")
        if thing in out:
            raise InputError(f"{field} holds {thing!r} twice")
        out[thing] = len(out)
    if not out:
        raise InputError(f"{field} is empty")
    return out


def _terminal(terminal: Any, index: Mapping[Hashable, int]) -> Any:
    ended = np.zeros(len(index), dtype=bool)
    if callable(terminal):
        return np.array([bool(terminal(state)) for state in index])
    if terminal is not None and not isinstance(terminal, Iterable):
        raise InputError(f"terminal must be a list of states, or a function of a state; found {terminal!r}")
    for state in terminal if terminal is not None else ():
        if not _is_hashable(state) or state not in index:
            raise InputError(f"terminal names {state!r}, which is not one of the states")
        ended[index[state]] = True
    return ended


def _offered(actions: Any, index: Mapping[Hashable, int], ended: Any) -> dict[Hashable, list[Hashable]]:
    """The actions to ask for in each state that is not terminal, in their order."""
    common = None if callable(actions) else list(_numbered(actions, "actions"))
    offered: dict[Hashable, list[Hashable]] = {}
    for state, s in index.items():
        if not ended[s]:
            offered[state] = common if common is not None else _actions_of(state, actions)
    return offered


def _actions_of(state: Hashable, actions: Callable[[Any], Any]) -> list[Hashable]:
    return list(_numbered(_asked(actions, f"state {state!r}", state), f"actions of {state!r}"))


def _takes_next_state(reward: Callable[..., float]) -> bool:
    try:
        parameters = inspect.signature(reward).parameters.values()
    except (TypeError, ValueError):  # a built-in function
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty]
    if len(needed) not in (2, 3):
        raise InputError(f"reward must take (state, action) or (state, action, next state); it takes {len(needed)}")
    return len(needed) == 3


def _distribution(answer: Any, index: Mapping[Hashable, int], where: str) -> dict[Hashable, float] | None:
    """The next states with their probabilities; None if the action is not allowed."""
    if answer is None:
        return None
    if not isinstance(answer, Mapping) and not _is_hashable(answer):
        raise InputError(
            f"{where}: transition gives {answer!r}, neither a state nor a dictionary {{next state: probability}}"
        )
    following = answer if isinstance(answer, Mapping) else {answer: 1.0}
    out: dict[Hashable, float] = {}
    for state, p in following.items():
        if state not in index:
            raise InputError(f"{where}: transition leads to {state!r}, which is not one of the states")
        if not is_number(p) or not 0.0 <= p <= 1.0 + ROW_SUM_TOLERANCE:
            raise InputError(f"{where}: the probability {p!r} of {state!r} is not a number from 0 to 1")
        if p > 0:
            out[state] = float(p)
    total = math.fsum(out.values())
    if abs(total - 1.0) > ROW_SUM_TOLERANCE:
        raise InputError(f"{where}: the probabilities sum to {total:.12g}, not to 1 (off by {total - 1.0:.3g})")
    return out


def _reward(reward: Callable[..., Any], where: str, *arguments: Any) -> float:
    value = _asked(reward, where, *arguments)
    if not is_number(value) or not math.isfinite(value):
        raise InputError(f"{where}: the reward {value!r} is not a finite number")
    return float(value)


def _start(start: Any, index: Mapping[Hashable, int]) -> Array:
    distribution = np.zeros(len(index))
    if not isinstance(start, Mapping) and not _is_hashable(start):
        raise InputError(f"start must be a state or a dictionary {{state: probability}}; found {start!r}")
    for state, p in (start if isinstance(start, Mapping) else {start: 1.0}).items():
        if state not in index:
            raise InputError(f"start names {state!r}, which is not one of the states")
        if not is_number(p):
            raise InputError(f"start: the probability {p!r} of {state!r} is not a number")
        distribution[index[state]] = p
    return distribution


def _names(index: Mapping[Hashable, int]) -> list[str]:
    names = [str(thing) for thing in index]
    return names if len(set(names)) == len(names) else [repr(thing) for thing in index]
