"""The names that `simulate` knows: behaviours, updates, and the numbers that each of them has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np

from ipe.base.arrays import Array, numeric
from ipe.base.numbers import is_number
from ipe.entropy.arrays import check_range
from ipe.errors import InputError

BEHAVIOURS: dict[str, tuple[str, ...]] = {
    "greedy": (),
    "epsilon-greedy": ("epsilon",),
    "linear": ("anneal_steps", "initial_epsilon", "final_epsilon"),
    "exponential": ("anneal_steps", "initial_epsilon", "final_epsilon"),
    "boltzmann": ("temperature",),
    "conservative": ("rate",),
    "vdbe": ("sigma", "initial_epsilon", "rate"),
    "ipe": (),
    "epsilon-ipe": (),
}
"""The behaviours, each with its parameters."""

UPDATES: dict[str, tuple[str, ...]] = {
    "paper": ("alpha_pi", "tau"),
    "natural": ("alpha_pi", "tau"),
    "kl-proximal": ("alpha_pi", "tau"),
    "fenchel": ("alpha_pi", "tau", "beta"),
    "absolute": ("alpha_pi", "tau"),
    "none": (),
}
"""The policy updates, each with its parameters. With "none" the policy stays as it starts."""

COMMON = ("alpha_q", "gamma")


class Parameters(TypedDict, total=False):
    """A value for each parameter that shall not have its default; `PARAMETERS` says what they are."""

    alpha_q: float
    gamma: float
    alpha_pi: float
    tau: float
    beta: float
    epsilon: float
    anneal_steps: float
    initial_epsilon: float
    final_epsilon: float
    temperature: float
    rate: float
    sigma: float


class Parameter(NamedTuple):
    """A default (None: it depends on the rest) and the range of a parameter."""

    default: float | None
    low: float = 0.0
    high: float = np.inf
    above: bool = False
    """Whether the low end itself is left out."""


PARAMETERS: dict[str, Parameter] = {
    "alpha_q": Parameter(0.5),
    "gamma": Parameter(None, high=1.0),
    "alpha_pi": Parameter(0.05),
    "tau": Parameter(0.0),
    "beta": Parameter(0.1, high=1.0),
    "epsilon": Parameter(0.1, high=1.0),
    "anneal_steps": Parameter(100.0, above=True),
    "initial_epsilon": Parameter(1.0, high=1.0),
    "final_epsilon": Parameter(0.1, high=1.0),
    "temperature": Parameter(1.0, above=True),
    "rate": Parameter(None, high=1.0),
    "sigma": Parameter(1.0, above=True),
}
"""Every number that can be swept, with its default and range."""

CONSERVATIVE_RATE = 0.1


def one_of(value: Any, names: Iterable[str], field: str) -> str:
    """`value` if it is one of the names, or an `InputError` that lists them."""
    known = tuple(names)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{field} must be one of {', '.join(known)}; found {value!r}")
    return value


def settings_of(
    behaviour: str, update: str, gamma: float, given: Mapping[str, Any], sweep: Mapping[str, Sequence[float]] | None
) -> dict[str, Array]:
    """The value of every parameter in use, one per setting.

    Nothing that is given may go unused: a sweep over a number that the behaviour does not have would show a
    flat line and mean nothing.
    """
    used = (*COMMON, *UPDATES[update], *BEHAVIOURS[behaviour])
    swept = _swept(sweep)
    for name in (*given, *swept):
        if name not in PARAMETERS:
            raise InputError(f"unknown parameter {name!r}; there are {', '.join(PARAMETERS)}")
        if name not in used:
            raise InputError(f"{name} has no effect with behaviour {behaviour!r} and update {update!r}")
    if twice := sorted(set(given) & set(swept)):
        raise InputError(f"{twice[0]} is both swept and given as one value")
    count = len(next(iter(swept.values()))) if swept else 1
    values: dict[str, Array] = {}
    for name in used:
        if name in swept:
            values[name] = swept[name]
        elif (single := _single(name, behaviour, gamma, given)) is not None:
            values[name] = np.full(count, single)
    for name, array in values.items():
        _check(name, array if name in swept else array[0], behaviour)
    return values


def _single(name: str, behaviour: str, gamma: float, given: Mapping[str, Any]) -> float | None:
    if name in given:
        value = given[name]
        if not is_number(value):
            raise InputError(f"{name} must be a number, found {value!r} (several values: sweep={{{name!r}: ...}})")
        return float(value)
    if name == "gamma":
        return gamma
    if name == "rate" and behaviour == "conservative":
        return CONSERVATIVE_RATE
    return PARAMETERS[name].default


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


def _check(name: str, values: Any, behaviour: str) -> None:
    values = np.asarray(values)
    finite = np.isfinite(values)
    if not finite.all():
        at = int(np.argmin(np.atleast_1d(finite)))
        place = f"[{at}]" if values.ndim else ""
        raise InputError(f"{name}{place} = {np.atleast_1d(values)[at]:g} is not a finite number")
    spec = PARAMETERS[name]
    geometric = behaviour == "exponential" and name in ("initial_epsilon", "final_epsilon")
    check_range(values, name, spec.low, spec.high, strict=spec.above or geometric)
