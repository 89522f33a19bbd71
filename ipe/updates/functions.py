r"""A policy update from a plain function `f(theta, transition, alpha)`, which returns the new logits."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

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
    if isinstance(given, str) or not (isinstance(given, PolicyUpdate) or callable(given)):
        return UPDATES.find(given, update_from)
    return given if isinstance(given, PolicyUpdate) else update_from(getattr(given, "__name__", "a function"), given)


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
    if isinstance(given, PolicyUpdate):
        return dataclasses.replace(given, name=name)
    if not callable(given):
        raise InputError(f"{name} is neither a PolicyUpdate nor a function, but {type(given).__name__}")
    numbers = _numbers(name, given)

    def step(theta: AnyArray, estimate: AnyArray | None, transition: Transition, values: Numbers) -> tuple[Any, Any]:
        more = {each.name: values[each.name] for each in numbers}
        found = given(theta, transition, values["alpha_pi"], **more)
        return found.theta if isinstance(found, Update) else found, estimate

    summary = (inspect.getdoc(given) or "by a function of the user's").partition("\n")[0]
    update = PolicyUpdate(name, summary, step, hyperparameters=(ALPHA, *numbers))
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
    import jax

    numbers = {each.name: each.default for each in update.hyperparameters}

    def moved(theta: Any, q: Any) -> Any:
        return update.step(theta, None, Transition(q[0], 1.0, 0.9, False, q, None), numbers)[0]

    theta = np.zeros(3, np.float32)
    try:
        found = np.asarray(jax.jit(moved)(theta, np.arange(3, dtype=np.float32)))
    except InputError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        raise InputError(
            f"policy update {update.name}: it cannot be compiled, because with arrays of JAX it raises {why} (an "
            "update is made of operations on whole arrays, such as those of jax.numpy)"
        ) from None
    if found.shape != theta.shape:
        raise InputError(
            f"policy update {update.name}: for logits of the shape {theta.shape} it returns the shape {found.shape}"
        )
