"""How far a batch of seeds has come, and how each seed's run ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ipe.deep.records import Records

LAST_EPISODES = 20
"""The number of last episodes whose mean return is reported."""


@dataclass
class Outcome:
    """How a seed's run ended, or that it has not ended."""

    seed: int
    """The trained seed."""
    status: str = "running"
    """running, done, failed (the environment failed) or diverged (the learner's numbers are not finite)."""
    frame: int = 0
    """The seed's last frame; or, where something went wrong, the frame that went wrong, counted from 1, with which the
    seed's records end (0: the first reset)."""
    reason: str = ""
    """Why the seed failed or diverged, or was stopped by a callback before its last frame."""

    @property
    def stopped(self) -> bool:
        """Whether a callback stopped the seed, which is done then."""
        return self.status == "done" and bool(self.reason)

    @property
    def lost(self) -> bool:
        """Whether the seed failed or diverged."""
        return self.status in ("failed", "diverged")


@dataclass(frozen=True)
class SeedProgress:
    """How far a seed has come."""

    seed: int
    """The trained seed."""
    status: str
    """running, done, failed or diverged."""
    frame: int
    """The frames that the seed has done."""
    episodes: int
    """The episodes that the seed has finished."""
    mean_return: float | None
    """The mean return of the last 20 episodes; None before the first one has ended."""
    epsilon: float | None
    """The mean epsilon over the last thousand frames; None if the behaviour has no epsilon, and before frame 1000."""
    reason: str = ""
    """Why the seed failed or diverged, or was stopped."""
    evaluated: float | None = None
    """The mean return of the last greedy evaluation; None if there was none, or its environment failed."""
    best: float | None = None
    """The mean return of the best greedy evaluation so far; None if there was none."""


@dataclass(frozen=True)
class Progress:
    """How far a batch of seeds has come."""

    batch: int
    """The number of the batch in its run, from 0 on."""
    frame: int
    """The frames that every seed has done."""
    frames: int
    """The frames that every seed is to do."""
    frames_per_second: float
    """The speed of every seed."""
    memory: int
    """The bytes that each seed takes: networks, optimisers and replay."""
    seeds: list[SeedProgress]
    """The progress of each seed of the batch."""

    @property
    def lost(self) -> int:
        """The number of seeds that failed or diverged."""
        return sum(seed.status in ("failed", "diverged") for seed in self.seeds)

    def plain(self) -> dict[str, Any]:
        """Return the progress as plain data, for JSON."""
        return asdict(self)

    @classmethod
    def from_plain(cls, content: dict[str, Any]) -> Progress:
        """Return the progress from what `plain` gave."""
        return cls(**{**content, "seeds": [SeedProgress(**seed) for seed in content["seeds"]]})


def seed_progress(
    records: Records, outcomes: Sequence[Outcome], frame: int, best: Sequence[float] | None = None
) -> list[SeedProgress]:
    """Return how far each seed has come; the running ones have done `frame` frames. The best means of the evaluations,
    one for each seed, are NaN where there is none."""
    arrays, evaluated = records.arrays(), records.last_evaluations()
    seeds = []
    for outcome, highest in zip(outcomes, [math.nan] * len(outcomes) if best is None else best, strict=True):
        returns = arrays["episodes.return"][arrays["episodes.seed"] == outcome.seed]
        epsilons = arrays["progress.epsilon"][arrays["progress.seed"] == outcome.seed]
        seeds.append(
            SeedProgress(
                seed=outcome.seed,
                status=outcome.status,
                frame=frame if outcome.status == "running" else outcome.frame,
                episodes=int(returns.size),
                mean_return=float(returns[-LAST_EPISODES:].mean()) if returns.size else None,
                epsilon=float(epsilons[-1]) if epsilons.size and np.isfinite(epsilons[-1]) else None,
                reason=outcome.reason,
                evaluated=_finite(evaluated.get(outcome.seed, (0, math.nan))[1]),
                best=_finite(highest),
            )
        )
    return seeds


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
