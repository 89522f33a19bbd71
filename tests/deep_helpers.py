"""Training loops in tests: made in a line, looked into seed by seed, and compared to the byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ipe.deep.loop import Loop
from ipe.deep.networks import split
from ipe.deep.settings import TrainingSettings, paper_settings
from tests.deep_oracle import Network, Oracle

DRIFT = "tests.deep_environments:Drift-v0"
SMALL: dict[str, Any] = {"width": 16, "channels": 4, "batch": 8, "replay": 64, "frames": 100_000, "target_period": 7}


def small(environment: str, /, behaviour: Any = "epsilon-ipe", **changes: Any) -> TrainingSettings:
    """Settings of a network and a replay that are quick to check."""
    return paper_settings(environment, behaviour, **(SMALL | changes))


def run(settings: TrainingSettings | Sequence[TrainingSettings], seeds: Sequence[int], frames: int) -> Loop:
    """A loop after some frames."""
    every = [settings] * len(seeds) if isinstance(settings, TrainingSettings) else settings
    loop = Loop(every, seeds)
    advance(loop, frames)
    return loop


def advance(loop: Loop, frames: int) -> None:
    for _ in range(frames):
        if not loop.done:
            loop.advance()


def networks_of(loop: Loop, name: str, arrays: dict[str, Any] | None = None) -> list[Network]:
    """One of the learner's networks (q, target, policy, q_moments.square, ...) in double precision, per seed.

    Args:
        loop: the loop.
        name: the network's.
        arrays: those of a checkpoint. Default: of a new one.
    """
    arrays = loop.checkpoint().arrays if arrays is None else arrays
    prefix = f"state.{name}."
    parts = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    program = loop.program
    layers = split(program.policy_architecture if name.startswith("policy") else program.architecture, parts)
    flat = [np.asarray(array, np.float64) for layer in layers for array in layer]
    return [[array[i] for array in flat] for i in range(len(loop.seeds))]


def oracles_of(loop: Loop) -> list[Oracle]:
    """An oracle per seed of a loop that has not begun."""
    q = networks_of(loop, "q")
    policy = networks_of(loop, "policy") if loop.program.learns_policy else q
    return [Oracle(loop.settings[i], loop.seeds[i], q[i], policy[i]) for i in range(len(loop.seeds))]


def result(loop: Loop, i: int) -> dict[str, bytes]:
    """All that a seed has come to, but for how fast."""
    networks = {name: array[i].tobytes() for name, array in loop.networks().items()}
    return networks | recorded(loop, i) | {"outcome": repr(loop.outcomes[i]).encode()}


def recorded(loop: Loop, i: int) -> dict[str, bytes]:
    """A seed's episodes and progress, but for how fast."""
    arrays = loop.records.arrays()
    rows = {part: arrays[f"{part}.seed"] == loop.seeds[i] for part in {name.partition(".")[0] for name in arrays}}
    return {
        name: array[rows[name.partition(".")[0]]].tobytes()
        for name, array in arrays.items()
        if not name.endswith("frames_per_second")
    }
