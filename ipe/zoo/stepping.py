"""The environment behind `to_gymnasium`: a finite MDP that is stepped through with Gymnasium's interface."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from gymnasium import Env
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from ipe.errors import InputError
from ipe.mdp import FiniteMDP


class FiniteEnvironment(Env):  # type: ignore[misc]
    """A finite MDP as a Gymnasium environment; `ipe.zoo.to_gymnasium` makes it and describes it."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (Gymnasium's attribute)

    def __init__(self, mdp: FiniteMDP, one_hot: bool, limit: int | None, replace: bool) -> None:
        if mdp.terminal.all():
            raise InputError("mdp has only terminal states: there is nothing to play")
        self.mdp = mdp
        n = mdp.n_states
        self.observation_space = Box(0.0, 1.0, (n,), np.float32) if one_hot else Discrete(n)
        self.action_space = Discrete(mdp.n_actions)
        self._one_hot, self._limit, self._replace = one_hot, limit, replace
        live = ~mdp.terminal
        start = live / live.sum() if mdp.start is None else mdp.start
        self._starts = np.flatnonzero(start)
        self._start_sums = np.cumsum(start[self._starts])
        rows = mdp.transitions
        self._first, self._targets = rows.indptr, rows.indices
        self._sums = rows.data.astype(np.float64)
        for row in np.flatnonzero(np.diff(rows.indptr) > 1):  # cumulated within each row
            part = slice(rows.indptr[row], rows.indptr[row + 1])
            self._sums[part] = np.cumsum(rows.data[part])
        self._rewards = mdp.transition_rewards
        self._masks = (mdp.allowed & live[:, None]).astype(np.int8)
        self._state, self._steps = -1, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode. The same seed gives the same episode; without a seed, the generator goes on."""
        super().reset(seed=seed)
        self._state = int(self._starts[_drawn(self._start_sums, self.np_random.random())])
        self._steps = 0
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action in the present state."""
        s, a = self._state, self._action(action)
        row = s * self.mdp.n_actions + a
        first, last = int(self._first[row]), int(self._first[row + 1])
        entry = first + _drawn(self._sums[first:last], self.np_random.random())
        reward = self.mdp.rewards[s, a] if self._rewards is None else self._rewards[entry]
        self._state = int(self._targets[entry])
        self._steps += 1
        ended = bool(self.mdp.terminal[self._state])
        cut_off = not ended and self._limit is not None and self._steps >= self._limit
        return self._observation(), float(reward), ended, cut_off, self._info()

    def _action(self, given: Any) -> int:
        if self._state < 0 or self.mdp.terminal[self._state]:
            raise InputError("the environment is not in the middle of an episode: call reset before step")
        a = operator.index(given)
        if not 0 <= a < self.mdp.n_actions:
            raise InputError(f"action must be one of 0 to {self.mdp.n_actions - 1}, found {a}")
        if not self._masks[self._state, a]:
            if not self._replace:
                s, name = self._state, self.mdp.action_name(a)
                raise InputError(f"action {a} ({name}) is not allowed in state {s} ({self.mdp.state_name(s)})")
            allowed = np.flatnonzero(self._masks[self._state])
            a = int(allowed[a % allowed.size])
        return a

    def _observation(self) -> NDArray[Any] | int:
        if not self._one_hot:
            return self._state
        x = np.zeros(self.mdp.n_states, dtype=np.float32)
        x[self._state] = 1.0
        return x

    def _info(self) -> dict[str, Any]:
        return {"state": self._state, "action_mask": self._masks[self._state].copy()}


def _drawn(sums: NDArray[Any], number: float) -> int:
    """The first entry whose cumulated probability exceeds a number in [0, 1); the last one where rounding is short."""
    return min(int(np.searchsorted(sums, number, side="right")), sums.size - 1)
