"""Evaluation while training: when it takes place, with how many episodes, and the networks that did best in it.

At the frames `every`, 2 `every`, ... of a run each of its seeds plays some episodes greedily, in environments and from
seeds that training does not use. Nothing of it reaches the training: networks and records are those of a run without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ipe.base.numbers import whole_number
from ipe.base.words import did_you_mean
from ipe.errors import InputError

EPISODES = 10
"""The number of episodes of an evaluation, unless another is given."""
MOST_EPISODES = 1000
TICK = 2**40
"""What the pulse of a watchdog grows by with every step of an evaluation: more than any frame's number."""


@dataclass(frozen=True)
class Evaluating:
    """When a run is evaluated while it trains, and with how many episodes.

    Example:
        >>> Evaluating(every=1000).due(3000), Evaluating(every=1000).due(3500)
        (True, False)
    """

    every: int
    """The frames between two evaluations."""
    episodes: int = EPISODES
    """The greedy episodes of each evaluation, for every seed."""

    def due(self, frame: int) -> bool:
        """Whether there is an evaluation after a frame, counted from 1."""
        return frame % self.every == 0

    def plain(self) -> dict[str, Any]:
        """Return the numbers as plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.episodes} episode{'s' * (self.episodes != 1)} every {self.every} frames"


def read_evaluating(content: Any, where: str = "evaluation") -> Evaluating | None:
    """Read the table `evaluation` of a sweep's file or of a store; None if there is none.

    Args:
        content: a mapping with `every` and perhaps `episodes`, or None.
        where: what the errors name, before the key.

    Raises:
        InputError: naming the key and what is wrong with it.
    """
    if content is None:
        return None
    if not isinstance(content, Mapping):
        raise InputError(f"{where} must be a table, found {content!r}")
    for key in content:
        if key not in ("every", "episodes"):
            raise InputError(f"there is no key {where}.{key}{did_you_mean(str(key), ('every', 'episodes'))}")
    if "every" not in content:
        raise InputError(f"{where}.every is missing, the frames between two evaluations")
    return Evaluating(
        whole_number(content["every"], f"{where}.every", 1, 2**31 - 1),
        whole_number(content.get("episodes", EPISODES), f"{where}.episodes", 1, MOST_EPISODES),
    )


def evaluating_from(every: int | None, episodes: int | None) -> Evaluating | None:
    """The evaluation that `evaluate_every` and `evaluate_episodes` ask for; None if neither is given.

    Raises:
        InputError: naming the argument.
    """
    if every is None:
        if episodes is not None:
            raise InputError("evaluate_episodes has no effect without evaluate_every")
        return None
    return Evaluating(
        whole_number(every, "evaluate_every", 1, 2**31 - 1),
        whole_number(EPISODES if episodes is None else episodes, "evaluate_episodes", 1, MOST_EPISODES),
    )


def check_reached(evaluating: Evaluating | None, frames: int) -> None:
    """Refuse an evaluation that no run would come to: every run ends before its first frame."""
    if evaluating is not None and evaluating.every > frames:
        raise InputError(
            f"evaluation every {evaluating.every} frames would never take place: the longest run has {frames} frames"
        )


class Kept:
    """Copies of the networks of some seeds of a batch, each made after one of the seed's frames."""

    def __init__(self, seeds: int) -> None:
        self.frames = np.zeros(seeds, np.int64)
        """The frame at which each seed's networks were copied; 0 for a seed without a copy."""
        self.scores = np.full(seeds, np.nan)
        """The mean return that each copy was made for; NaN if it was not made for one."""
        self.networks: dict[str, NDArray[Any]] = {}
        """The copies, by the names of `ipe.deep.loop.Loop.networks`; NaN for a seed without a copy."""

    def keep(self, i: int, networks: Mapping[str, Any], frame: int, score: float = np.nan) -> None:
        """Copy the networks of the seed of index i, in the place of an earlier copy."""
        for name, array in networks.items():
            if name not in self.networks:
                self.networks[name] = np.full((self.frames.size, *array.shape[1:]), np.nan, np.float32)
            self.networks[name][i] = array[i]
        self.frames[i], self.scores[i] = frame, score

    def keep_better(self, i: int, networks: Mapping[str, Any], frame: int, score: float) -> bool:
        """Copy the networks of the seed of index i if their score is above that of the copy, or if there is none;
        returns whether they were copied. A score of NaN is never better."""
        better = bool(score > self.scores[i]) or (self.frames[i] == 0 and not np.isnan(score))
        if better:
            self.keep(i, networks, frame, score)
        return better

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the copies, frames and scores, for a checkpoint; nothing if there is no copy."""
        if not self.networks:
            return {}
        return {"frames": self.frames.copy(), "scores": self.scores.copy()} | {
            name: array.copy() for name, array in self.networks.items()
        }

    @classmethod
    def from_arrays(cls, seeds: int, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return what gave these `arrays()`."""
        out = cls(seeds)
        if arrays:
            out.frames, out.scores = np.array(arrays["frames"]), np.array(arrays["scores"])
            out.networks = {name: np.array(a) for name, a in arrays.items() if name not in ("frames", "scores")}
        return out
