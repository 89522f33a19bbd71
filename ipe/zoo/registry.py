"""The zoo by name, for the command line and for loops over all of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ipe.base.words import did_you_mean
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.zoo.chains import chain, river_swim
from ipe.zoo.deep_sea import deep_sea
from ipe.zoo.garnets import garnet
from ipe.zoo.gymnasium_tables import from_gymnasium
from ipe.zoo.structures import queue, ring_walk, slippery_grid, smooth_line
from ipe.zoo.two_states import dadashi, switch_stay


class Entry(NamedTuple):
    """A name's constructor, and what it makes in one line."""

    constructor: Callable[..., FiniteMDP]
    description: str


ZOO: dict[str, Entry] = {
    "switch-stay": Entry(switch_stay, "the paper's two states: stay, or switch to the other"),
    **{
        f"dadashi-{i}": Entry(partial(dadashi, i), f"two states, {actions} actions: {where} of Dadashi et al. (2019)")
        for i, actions, where in (
            (1, 2, "Figure 2a"),
            (2, 2, "Figure 2b"),
            (3, 3, "Figure 2c"),
            (4, 2, "Figure 2d"),
            (5, 3, "Figures 3 to 6, left,"),
        )
    },
    "river-swim": Entry(river_swim, "n states in a row, a current against the swim to the large reward"),
    "chain": Entry(chain, "n states in a row, a reward at the right end, terminal or not"),
    "deep-sea": Entry(deep_sea, "n x n cells, and one of 2^n ways down leads to the treasure"),
    "garnet": Entry(garnet, "a random MDP: n_states, n_actions, successors, seed"),
    "slippery-grid": Entry(slippery_grid, "n x n cells, four moves that slip to their sides"),
    "queue": Entry(queue, "a queue of up to n - 1 customers and three paces of service"),
    "ring-walk": Entry(ring_walk, "a walk on a ring of n states"),
    "smooth-line": Entry(smooth_line, "n points of a continuous state, moved with normal noise"),
    "frozen-lake": Entry(partial(from_gymnasium, "FrozenLake"), "Gymnasium's FrozenLake (needs gymnasium)"),
    "cliff-walking": Entry(partial(from_gymnasium, "CliffWalking"), "Gymnasium's CliffWalking (needs gymnasium)"),
    "taxi": Entry(partial(from_gymnasium, "Taxi"), "Gymnasium's Taxi (needs gymnasium)"),
}
"""Every MDP of the zoo that has a name: name -> (constructor, description)."""


def names() -> tuple[str, ...]:
    """The names that `make` knows, in the order of the zoo."""
    return tuple(ZOO)


def make(name: str, **kwargs: Any) -> FiniteMDP:
    """The MDP of that name.

    Args:
        name: one of `names()`.
        kwargs: parameters of its constructor, such as `gamma`, `slip` or `n`.

    Example:
        >>> make("switch-stay", slip=0.1)
        FiniteMDP(2 states, 2 actions, gamma=0.9, stochastic)
        >>> make("swich-stay")
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: the zoo has no 'swich-stay' (did you mean switch-stay?); it has switch-stay, ...
    """
    if not isinstance(name, str) or name not in ZOO:
        raise InputError(f"the zoo has no {name!r}{did_you_mean(str(name), ZOO)}; it has {', '.join(ZOO)}")
    constructor = ZOO[name].constructor
    parameters = inspect.signature(constructor).parameters
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        for key in kwargs:
            if key not in parameters:
                takes = ", ".join(parameters)
                raise InputError(f"{name} has no parameter {key!r}{did_you_mean(key, parameters)}; it takes {takes}")
    return constructor(**kwargs)
