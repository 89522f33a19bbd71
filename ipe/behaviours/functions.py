r"""A behaviour from a plain function: `f(q)`, `f(q, logits, step, boldness=2.0)` and so on.

What a function asks for is read from the names of its parameters. It may be called with one state or a batch of states,
is compiled, and is tried before anything runs with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ipe.base.declarations import first_call, renamed, summary_of
from ipe.behaviours.declaration import BEHAVIOURS, Behaviour, Numbers, View
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.entropy import softmax
from ipe.entropy.arrays import AnyArray, mask
from ipe.errors import InputError

PARAMETERS = ("q", "logits", "policy", "allowed", "step")
"""What a function may ask for by the names of its parameters: see `View`. `policy` is the softmax of the logits."""


def find_behaviour(given: str | Behaviour | Callable[..., AnyArray]) -> Behaviour:
    """The behaviour that is meant by its name, by `package.module:name`, by a function, or by itself.

    Raises:
        InputError: there is no such name or module, or the function cannot be a behaviour.
    """
    return BEHAVIOURS.meant(given, Behaviour, behaviour_from)


def name_of_behaviour(given: Any) -> Any:
    """The name by which settings know a behaviour or a function; anything else is returned as it is."""
    return BEHAVIOURS.name_of(given, behaviour_from)


@lru_cache(maxsize=256)
def behaviour_from(name: str, given: Any) -> Behaviour:
    """A behaviour of this name, from another behaviour or from a function.

    Args:
        name: the name.
        given: a `Behaviour`; or a function that returns the probabilities of the actions, shape (..., A). Its
            parameters are `q` or whatever comes first, others of `PARAMETERS`, and numbers with their defaults, which
            become hyperparameters; `epsilon` among these follows the schedule of the settings in training.

    Raises:
        InputError: the function asks for something else, cannot be compiled, or returns no probabilities.
    """
    if (found := renamed(name, given, Behaviour)) is not None:
        return found
    asked, numbers = _parameters(name, given)

    def probabilities(view: View, values: Numbers) -> AnyArray:
        if view.allowed is not None and "allowed" not in asked:
            raise InputError(
                f"behaviour {name}: not every action is allowed in every state, and the function has no parameter "
                "allowed"
            )
        shown = {"q": view.q, "logits": view.logits, "step": view.step}
        if "allowed" in asked:
            shown["allowed"] = mask(view.q, view.allowed)
        if "policy" in asked:
            shown["policy"] = softmax(view.logits, view.allowed)
        return given(*(shown[each] for each in asked), **{each.name: values[each.name] for each in numbers})

    policy = bool({"logits", "policy"} & set(asked))
    behaviour = Behaviour(name, summary_of(given), probabilities, hyperparameters=numbers, needs_policy=policy)
    _try(behaviour)
    return behaviour


def _parameters(name: str, function: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[Hyperparameter, ...]]:
    """What a function asks for, in the order of its parameters, and its numbers."""
    asked, numbers = [], []
    for i, (parameter, about) in enumerate(inspect.signature(function).parameters.items()):
        positional = about.kind in (about.POSITIONAL_ONLY, about.POSITIONAL_OR_KEYWORD)
        if positional and about.default is about.empty and (parameter in PARAMETERS or i == 0):
            asked.append(parameter if parameter in PARAMETERS else "q")
        elif isinstance(about.default, (int, float)) and not isinstance(about.default, bool):
            scheduled = parameter == "epsilon"
            low, high = (0.0, 1.0) if scheduled else (-np.inf, np.inf)
            sentence = f"A number of the behaviour {name}."
            numbers.append(
                Hyperparameter(parameter, sentence, float(about.default), low=low, high=high, scheduled=scheduled)
            )
        else:
            raise InputError(
                f"behaviour {name}: the parameter {parameter} is none of {', '.join(PARAMETERS)} and has no number as "
                "its default"
            )
    return tuple(asked), tuple(numbers)


def _try(behaviour: Behaviour) -> None:
    """Compile a behaviour for one state and for a batch of states, and look at its probabilities."""
    numbers = {each.name: each.default for each in behaviour.hyperparameters}
    for shape in ((3,), (4, 3)):
        q = np.linspace(-1.0, 2.0, int(np.prod(shape)), dtype=np.float32).reshape(shape)

        def act(q: Any, step: Any) -> Any:
            assert behaviour.probabilities is not None
            return behaviour.probabilities(View(q, -q, step=step), numbers)

        pi = np.asarray(first_call(f"behaviour {behaviour.name}", act, q, np.int32(0)))
        if pi.shape != shape:
            raise InputError(
                f"behaviour {behaviour.name}: for q of the shape {shape} it returns the shape {pi.shape}, and "
                "probabilities have the shape of q"
            )
        if not ((pi >= 0.0).all() and np.allclose(pi.sum(axis=-1), 1.0, atol=1e-4)):
            raise InputError(
                f"behaviour {behaviour.name}: what it returns are no probabilities: for q = {q.tolist()} it "
                f"returns {pi.tolist()}"
            )
