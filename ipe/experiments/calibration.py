"""How fast this machine trains a setting, measured for a moment in a process like those that do the work.

`python -m ipe.experiments.calibration` reads a list of `{"settings": ..., "seeds": n}` from standard input and answers
each with one JSON object per line. Nothing is written but JAX's cache of compiled programs.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ipe.deep.compilation import training_process
from ipe.deep.settings import TrainingSettings, read_settings
from ipe.errors import InputError

SECONDS = 1.5
"""The seconds of measuring, after compiling."""
_WARM = 60
_LEAST = 40


@dataclass(frozen=True)
class Calibration:
    """What was measured of one process with a batch of seeds."""

    seeds: int
    start_seconds: float
    """The seconds until the first frames: making the environments, compiling."""
    seconds_per_frame: float
    """The seconds that a frame of all seeds together takes."""
    memory: int
    """The bytes per seed: networks, optimisers and replay; a checkpoint is about as large."""
    process: int
    """The most bytes that the process had in memory while it was measured, early in training: its replays are nearly
    empty then."""
    episodes_per_frame: float
    """The episodes per frame of one seed, early in training."""


def calibrate(asked: Sequence[tuple[TrainingSettings, int]]) -> Iterator[Calibration]:
    """Measure settings, each with so many seeds at once, one after the other, in a process of their own."""
    content = json.dumps([{"settings": settings.model_dump(), "seeds": seeds} for settings, seeds in asked])
    process = training_process("ipe.experiments.calibration", text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    count = 0
    try:
        process.stdin.write(content)
        process.stdin.close()
        for line in process.stdout:
            said = json.loads(line)
            if "refused" in said:
                raise InputError(said["refused"])
            count += 1
            yield Calibration(**said)
        if process.wait() != 0 or count < len(asked):
            raise InputError(f"the calibration ended with exit code {process.returncode}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def measure(settings: TrainingSettings, seeds: int) -> Calibration:
    """Train a batch of so many seeds for a moment in this process. Updates are measured from the first frame on,
    whatever the warm-up of the settings."""
    from ipe.deep.loop import Loop

    begin = time.perf_counter()
    loop = Loop([settings.model_copy(update={"warm_up": 0, "frames": 2**31 - 1})] * seeds, range(seeds))
    try:
        for _ in range(_WARM):
            loop.advance()
        ready, first, frames = time.perf_counter(), loop.frame, 0
        while frames < _LEAST or time.perf_counter() - ready < SECONDS:
            loop.advance()
            frames = loop.frame - first
        spent = time.perf_counter() - ready
        episodes = len(loop.records.arrays()["episodes.seed"])
        return Calibration(
            seeds=seeds,
            start_seconds=ready - begin - first * spent / frames,
            seconds_per_frame=spent / frames,
            memory=loop.memory,
            process=_process_bytes(),
            episodes_per_frame=episodes / (seeds * loop.frame),
        )
    finally:
        loop.close()


def _process_bytes() -> int:
    """The most bytes that this process has had in memory."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> int:
    """Answer the questions on standard input."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what an environment prints must not get between the answers
    for asked in json.load(sys.stdin):
        answer: dict[str, Any]
        try:
            answer = asdict(measure(read_settings(asked["settings"]), asked["seeds"]))
        except InputError as error:
            answer = {"refused": str(error)}
        answers.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
