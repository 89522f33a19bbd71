"""MDPs as the page holds them: two states, their actions, and the end of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.polytope.boundary import two_states
from ipe.zoo import make

REWARD_LIMIT = 1e9
MAX_ACTIONS = 32
_MAX_NAME = 100
END = 2
"""The place of "the episode ends" among the next states of a row, after the two states."""

EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "switch-stay": ("Switch-Stay", {}),
    "switch-stay:slip=0.1": ("Switch-Stay, slippery", {"slip": 0.1}),
    "dadashi-1": ("Dadashi et al., Figure 2a", {}),
    "dadashi-2": ("Dadashi et al., Figure 2b", {}),
    "dadashi-3": ("Dadashi et al., Figure 2c", {}),
    "dadashi-4": ("Dadashi et al., Figure 2d", {}),
    "dadashi-5": ("Dadashi et al., Figures 3 to 6", {}),
}
"""The MDPs that every page offers: the name that `ipe explore` takes, its title, and the zoo's parameters."""


def examples() -> list[dict[str, Any]]:
    """The models of `EXAMPLES`, each with its title."""
    return [
        {**page_model(make(name.partition(":")[0], **parameters), name), "title": title, "example": True}
        for name, (title, parameters) in EXAMPLES.items()
    ]


def page_model(mdp: FiniteMDP, name: str) -> dict[str, Any]:
    """A two-state MDP as the page holds it (`web/math/model.js` says how), ready for JSON.

    Args:
        mdp: the MDP; exactly two of its states are not terminal.
        name: the name of the MDP on the page.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> page_model(switch_stay(), "mine")["actions"][0][1]
        {'name': 'switch', 'reward': -1.0, 'next': [0.0, 1.0, 0.0], 'rewards': None}
    """
    states = two_states(mdp)
    most = int(mdp.allowed[list(states)].sum(axis=1).max())
    if most > MAX_ACTIONS:
        raise InputError(f"the explorer shows at most {MAX_ACTIONS} actions per state; this MDP has {most}")
    start = np.full(2, 0.5) if mdp.start is None else mdp.start[list(states)]
    return {
        "name": name[:_MAX_NAME],
        "gamma": mdp.gamma,
        "states": [_short(mdp.state_name(s)) for s in states],
        "start": start.tolist(),
        "actions": [[_row(mdp, states, s, int(a)) for a in np.flatnonzero(mdp.allowed[s])] for s in states],
    }


def _row(mdp: FiniteMDP, states: tuple[int, int], s: int, a: int) -> dict[str, Any]:
    """One action: its expected reward, where it leads, and the rewards on the way there if they differ."""
    place = f"({mdp.state_name(s)}, {mdp.action_name(a)})"
    reward = float(mdp.rewards[s, a])
    at = slice(*mdp.transitions.indptr[s * mdp.n_actions + a :][:2])
    following, chances = mdp.transitions.indices[at], mdp.transitions.data[at]
    outcomes = [states.index(int(n)) if n in states else END for n in following]
    next_states = [0.0, 0.0, 0.0]
    for k, chance in zip(outcomes, chances, strict=True):
        next_states[k] += float(chance)
    rewards = None
    if mdp.transition_rewards is not None:
        rewards = _by_outcome(place, outcomes, mdp.transition_rewards[at], reward)
    largest = max(abs(x) for x in (reward, *(rewards or ())))
    if largest > REWARD_LIMIT:
        raise InputError(f"the explorer takes rewards up to {REWARD_LIMIT:g}; {place} has one of {largest:g}")
    return {"name": _short(mdp.action_name(a)), "reward": reward, "next": next_states, "rewards": rewards}


def _by_outcome(place: str, outcomes: list[int], given: Any, expected: float) -> list[float] | None:
    """The rewards of each outcome, the expected one where an outcome cannot happen; None if they are all the same."""
    found: dict[int, float] = {}
    for k, reward in zip(outcomes, given, strict=True):
        if found.setdefault(k, float(reward)) != reward:
            raise InputError(f"the explorer knows one way to end; {place} ends with several different rewards")
    return [found.get(k, expected) for k in range(3)] if len(set(found.values())) > 1 else None


def _short(name: str) -> str:
    """A name that is not empty and not endless."""
    return name[:_MAX_NAME] or "?"
