"""What a simulation returns, and the arrays into which its batches write."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array
from ipe.entropy import softmax
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.tabular.state import Run, Step


@dataclass(frozen=True, eq=False, repr=False)
class TabularRuns:
    r"""Runs of Algorithm 1, for each setting of a sweep.

    All arrays begin with the axes (settings, runs). Arrays that are recorded per step have an axis of steps next, of
    length 0 with `record="summary"`. Entries of q are NaN at actions that are not allowed, and 0 in terminal states;
    entries of theta are :math:`-\infty` in both places, and entries of the probabilities are 0.
    """

    behaviour: str
    """The name of the behaviour."""
    update: str
    """The name of the policy update."""
    settings: dict[str, Array]
    """The values of each parameter in use, one value per setting."""
    reward: Array
    """The average reward per step, shape (settings, runs)."""
    episodes: NDArray[np.int32]
    """How many episodes ended, shape (settings, runs)."""
    rmse: Array
    r""":math:`\sqrt{\mathrm{mean}_s (\max_a Q(s,a) - V^*(s))^2}` after the last step, over the states that are not
    terminal; shape (settings, runs)."""
    q: Array
    """The action values after the last step, shape (settings, runs, S, A); with `record="trajectory"` those before the
    first and after every step, shape (settings, runs, steps + 1, S, A)."""
    theta: Array
    """The logits of the policy, at the same steps and in the same shape as `q`."""
    probabilities: Array
    """The probabilities of the behaviour in every state before each step, shape (settings, runs, steps, S, A)."""
    epsilon: Array
    """The epsilon of the behaviour in every state before each step, shape (settings, runs, steps, S); NaN for a
    behaviour without epsilon."""
    states: NDArray[np.int32]
    """The state of the agent before each step, shape (settings, runs, steps)."""
    actions: NDArray[np.int32]
    """The action of each step, shape (settings, runs, steps)."""
    rewards: Array
    """The reward of each step, shape (settings, runs, steps)."""
    next_states: NDArray[np.int32]
    """The state that each step led to, shape (settings, runs, steps). At the end of an episode it is the terminal
    state, not the start state of the next episode."""

    @property
    def estimates(self) -> Array:
        r"""The estimates of the state values, :math:`\max_a Q(s,a)`; the shape of q without actions."""
        best: Array = np.fmax.reduce(self.q, axis=-1)  # passes over the NaN of actions that are not allowed
        return best

    @property
    def policies(self) -> Array:
        r"""The policies :math:`\mathrm{softmax}(\theta)`, the shape of theta."""
        pi: Array = softmax(self.theta)
        return pi

    def __repr__(self) -> str:
        settings, runs = self.reward.shape
        return (
            f"TabularRuns({self.behaviour}, update {self.update}, {settings} setting{'s' * (settings != 1)}, {runs} "
            f"run{'s' * (runs != 1)}: average reward {self.reward.mean():.4g}, RMSE {self.rmse.mean():.4g})"
        )


class Store:
    """The arrays of a `TabularRuns`, allocated once, filled batch by batch (by any thread: batches do not overlap)."""

    def __init__(
        self,
        mdp: FiniteMDP,
        settings: dict[str, Array],
        optimal: Array,
        runs: int,
        steps: int,
        tables: tuple[Array, Array],
        record: bool,
    ) -> None:
        self.mdp, self.settings, self.optimal, self.tables = mdp, settings, optimal, tables
        self.runs, self.steps, self.record = runs, steps, record
        self.count = len(optimal) * runs
        pairs = (mdp.n_states, mdp.n_actions)
        recorded = steps if record else 0
        shapes: dict[str, tuple[tuple[int, ...], type]] = {
            "reward": ((), np.float64),
            "episodes": ((), np.int32),
            "rmse": ((), np.float64),
            "q": ((steps + 1, *pairs) if record else pairs, np.float64),
            "theta": ((steps + 1, *pairs) if record else pairs, np.float64),
            "probabilities": ((recorded, *pairs), np.float64),
            "epsilon": ((recorded, mdp.n_states), np.float64),
            "states": ((recorded,), np.int32),
            "actions": ((recorded,), np.int32),
            "rewards": ((recorded,), np.float64),
            "next_states": ((recorded,), np.int32),
        }
        self._check_memory(8 * self.count * sum(int(np.prod(shape)) for shape, _ in shapes.values()))
        self.arrays: dict[str, NDArray[Any]] = {
            name: np.empty((self.count, *shape), dtype) for name, (shape, dtype) in shapes.items()
        }

    def _check_memory(self, size: int) -> None:
        if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
            return
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if size > memory:
            what = "runs or steps, or record='summary'" if self.record else "runs"
            raise InputError(
                f"the results of {self.count} runs need {size / 2**30:.3g} GB, and this machine has "
                f"{memory / 2**30:.3g}: ask for fewer {what}"
            )

    def put(self, first: int, run: Run, step: Step | None) -> None:
        """Write the results of a batch of lanes, from lane `first` on; lanes beyond the last run are padding."""
        many = min(len(run.total), self.count - first)
        at = slice(first, first + many)
        allowed, live = self.mdp.allowed, ~self.mdp.terminal
        with np.errstate(over="ignore", invalid="ignore"):  # a run may diverge, and then says so itself
            estimates = np.where(allowed, run.q[:many], -np.inf).max(axis=-1)[:, live]
            errors = estimates - self.optimal[np.arange(first, first + many) // self.runs][:, live]
            self.arrays["rmse"][at] = np.sqrt((errors**2).mean(axis=1))
        self.arrays["reward"][at] = run.total[:many] / self.steps
        self.arrays["episodes"][at] = run.episodes[:many]
        if step is None:
            self._table("q", at, run.q[:many])
            self._table("theta", at, run.theta[:many])
            return
        for name, initial in zip(("q", "theta"), self.tables, strict=True):
            path = getattr(step, name)[:many]
            first_row = np.broadcast_to(initial, (many, 1, *initial.shape))
            self._table(name, at, np.concatenate([first_row, path], axis=1))
        self.arrays["probabilities"][at] = np.where(allowed, step.probabilities[:many], 0.0)
        self.arrays["epsilon"][at] = np.nan if step.epsilon is None else step.epsilon[:many]
        for name, values in (
            ("states", step.state),
            ("actions", step.action),
            ("rewards", step.reward),
            ("next_states", step.next_state),
        ):
            self.arrays[name][at] = values[:many]

    def _table(self, name: str, at: slice, values: Array) -> None:
        """Write a table, with its marks in the places that the MDP does not have."""
        masked = np.where(self.mdp.terminal[:, None], 0.0, np.nan) if name == "q" else -np.inf
        self.arrays[name][at] = np.where(self.mdp.allowed, values, masked)

    def result(self, behaviour: str, update: str) -> TabularRuns:
        """All arrays, with the axes (settings, runs) first."""
        arrays: dict[str, Any] = {
            name: array.reshape(len(self.optimal), self.runs, *array.shape[1:]) for name, array in self.arrays.items()
        }
        return TabularRuns(behaviour=behaviour, update=update, settings=self.settings, **arrays)
