r"""A policy update from a plain function `f(theta, transition, alpha)`, which returns the new logits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ipe.base.declarations import first_call, renamed, summary_of
from ipe.behaviours import Hyperparameter
from ipe.behaviours.declaration import Numbers
from ipe.entropy.arrays import AnyArray
from ipe.errors import InputError
from ipe.updates.declaration import ALPHA, UPDATES, PolicyUpdate, Transition, Update


def find_update(given: str | PolicyUpdate | Callable[..., Any]) -> PolicyUpdate:
    """The policy update that is meant by its name, by `package.module:name`, by a function, or by itself.

    Raises:
        InputError: there is no such name or module, or the function cannot be an update.
    """
    return UPDATES.meant(given, PolicyUpdate, update_from)


def name_of_update(given: Any) -> Any:
    """The name by which settings know an update; anything else is returned as it is."""
    return UPDATES.name_of(given, update_from)


@lru_cache(maxsize=256)
def update_from(name: str, given: Any) -> PolicyUpdate:
    """A policy update of this name, from another one or from a function.

    Args:
        name: the name.
        given: a `PolicyUpdate`; or a function of the logits of s', shape (A,), a `Transition` and the step size, and of
            numbers with their defaults, which become hyperparameters. It returns the new logits, or an `Update`. The
            deep agent needs a `PolicyUpdate` with a gradient instead.

    Raises:
        InputError: the function asks for something else, cannot be compiled, or returns no logits.
    """
    if (declared := renamed(name, given, PolicyUpdate)) is not None:
        return declared
    numbers = _numbers(name, given)

    def step(theta: AnyArray, estimate: AnyArray | None, transition: Transition, values: Numbers) -> tuple[Any, Any]:
        more = {each.name: values[each.name] for each in numbers}
        found = given(theta, transition, values["alpha_pi"], **more)
        return found.theta if isinstance(found, Update) else found, estimate

    update = PolicyUpdate(name, summary_of(given), step, hyperparameters=(ALPHA, *numbers))
    _try(update)
    return update


def _numbers(name: str, function: Callable[..., Any]) -> tuple[Hyperparameter, ...]:
    parameters = list(inspect.signature(function).parameters.items())
    if len(parameters) < 3:
        raise InputError(f"policy update {name}: its parameters must be theta, transition, alpha, and then numbers")
    for parameter, about in parameters[3:]:
        if not isinstance(about.default, (int, float)) or isinstance(about.default, bool):
            raise InputError(f"policy update {name}: the parameter {parameter} has no number as its default")
    return tuple(
        Hyperparameter(parameter, f"A number of the policy update {name}.", float(about.default), low=-np.inf)
        for parameter, about in parameters[3:]
    )


def _try(update: PolicyUpdate) -> None:
    numbers = {each.name: each.default for each in update.hyperparameters}

    def moved(theta: Any, q: Any) -> Any:
        return update.step(theta, None, Transition(q[0], 1.0, 0.9, False, q, None), numbers)[0]

    theta = np.zeros(3, np.float32)
    found = np.asarray(first_call(f"policy update {update.name}", moved, theta, np.arange(3, dtype=np.float32)))
    if found.shape != theta.shape:
        raise InputError(
            f"policy update {update.name}: for logits of the shape {theta.shape} it returns the shape {found.shape}"
        )
