"""The numbers that `simulate` takes: those of the agent itself, of its behaviour and of its policy update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ipe.base.arrays import Array, numeric
from ipe.base.numbers import is_number
from ipe.behaviours import BEHAVIOURS, Behaviour, Hyperparameter
from ipe.errors import InputError
from ipe.tabular.returns import NUMBERS, Returns
from ipe.updates import UPDATES, PolicyUpdate

NO_UPDATE = "none"
"""The name by which users ask for a policy that stays as it starts."""

COMMON = (
    Hyperparameter("alpha_q", "The step size of Q-learning.", 0.5),
    Hyperparameter("gamma", "The discount; by default that of the MDP.", None, high=1.0),
)
"""The numbers that every run has."""


def names_by_behaviour() -> dict[str, tuple[str, ...]]:
    """The behaviours, each with the names of its parameters."""
    return {name: _names(behaviour.hyperparameters) for name, behaviour in BEHAVIOURS.items() if not behaviour.imitates}


def names_by_update() -> dict[str, tuple[str, ...]]:
    """The policy updates, each with the names of its parameters; with "none" the policy stays as it starts."""
    return {name: _names(update.hyperparameters) for name, update in UPDATES.items()} | {NO_UPDATE: ()}


def parameters() -> dict[str, Hyperparameter]:
    """Every number that can be swept, with its default and range; of two with the same name the first declared."""
    declarations: list[Behaviour | PolicyUpdate] = [*UPDATES.values(), *BEHAVIOURS.values()]
    every = [*COMMON, *NUMBERS, *(each for declaration in declarations for each in declaration.hyperparameters)]
    return {each.name: each for each in reversed(every)}


def _names(hyperparameters: Sequence[Hyperparameter]) -> tuple[str, ...]:
    return tuple(each.name for each in hyperparameters)


def settings_of(
    behaviour: Behaviour,
    update: PolicyUpdate | None,
    gamma: float,
    given: Mapping[str, Any],
    sweep: Mapping[str, Sequence[float]] | None,
    returns: Returns = Returns(),  # noqa: B008 (it cannot change)
) -> dict[str, Array]:
    """The value of every parameter in use, one per setting.

    Nothing that is given may go unused: a sweep over a number that the behaviour does not have would show a
    flat line and mean nothing.
    """
    of_update = () if update is None else update.hyperparameters
    used = {each.name: each for each in (*COMMON, *returns.hyperparameters, *of_update, *behaviour.hyperparameters)}
    swept = _swept(sweep)
    for name in (*given, *swept):
        if name not in used and name not in (known := parameters()):
            raise InputError(f"unknown parameter {name!r}; there are {', '.join(sorted(known))}")
        if name not in used:
            chosen = NO_UPDATE if update is None else update.name
            with_ = f"behaviour {behaviour.name!r} and update {chosen!r}"
            if name in {each.name for each in NUMBERS}:
                with_ = ", ".join(f"{field} = {value!r}" for field, value in returns._asdict().items())
            raise InputError(f"{name} has no effect with {with_}")
    if twice := sorted(set(given) & set(swept)):
        raise InputError(f"{twice[0]} is both swept and given as one value")
    count = len(next(iter(swept.values()))) if swept else 1
    defaults = {name: each.default for name, each in used.items()} | {"gamma": gamma}
    values: dict[str, Array] = {}
    for name, hyperparameter in used.items():
        if name in swept:
            values[name] = swept[name]
        elif (single := _single(name, given, defaults[name])) is not None:
            values[name] = np.full(count, single)
        if name in values:
            hyperparameter.check(values[name] if name in swept else values[name][0])
    return values


def _single(name: str, given: Mapping[str, Any], default: float | None) -> float | None:
    if name not in given:
        return default
    value = given[name]
    if not is_number(value):
        raise InputError(f"{name} must be a number, found {value!r} (several values: sweep={{{name!r}: ...}})")
    return float(value)


def _swept(sweep: Mapping[str, Sequence[float]] | None) -> dict[str, Array]:
    if sweep is None:
        return {}
    if not isinstance(sweep, Mapping):
        raise InputError(f"sweep must map the names of parameters to their values, found {sweep!r}")
    arrays = {name: numeric(values, f"sweep[{name!r}]") for name, values in sweep.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or array.size == 0:
            raise InputError(f"sweep[{name!r}] must be a list of at least one number; found shape {array.shape}")
    if len({array.size for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{array.size} of {name}" for name, array in arrays.items())
        raise InputError(f"sweep: the values of several parameters go together, but there are {lengths}")
    return arrays
