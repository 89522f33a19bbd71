"""What a sweep will take: settings, runs, frames, disk, and time, before anything is started."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ipe.deep.settings import TrainingSettings
from ipe.experiments.calibration import Calibration, calibrate
from ipe.experiments.declared import Job, Sweep

Measure: TypeAlias = Callable[[Sequence[tuple[TrainingSettings, int]]], Iterable[Calibration]]
"""A function that measures settings, each with a number of seeds at once."""
MOST_MEASURED = 8
"""The most program shapes that are measured; of more, so many among them are."""
_EPISODE_BYTES = 20
_PROGRESS_BYTES = 48
_JOB_BYTES = 8_000
_CHECKPOINTS = 3  # two are kept, and one is being written


@dataclass(frozen=True)
class Plan:
    """An estimate of what a sweep takes."""

    settings: int
    """The number of settings."""
    runs: int
    """The number of runs: settings times seeds."""
    jobs: int
    """The number of jobs."""
    frames: int
    """The frames of all runs together."""
    result_bytes: int
    """The bytes on disk in the end."""
    work_bytes: dict[int, int]
    """The most bytes that checkpoints take on the way, by the number of cores."""
    memory_bytes: dict[int, int]
    """The most bytes of memory that the processes take together, by the number of cores."""
    seconds: dict[int, float]
    """The seconds, by the number of cores of this kind."""
    measured: int
    """The number of program shapes that were measured."""
    shapes: int
    """The number of program shapes; those that were not measured are taken to be like the nearest that was."""


def plan_sweep(
    sweep: Sweep,
    jobs: Sequence[Job],
    cores: Iterable[int],
    measure: Measure = calibrate,
) -> Plan:
    """Estimate what a sweep takes. Trains for some seconds to measure it; writes nothing.

    Args:
        sweep: the sweep.
        jobs: its jobs.
        cores: the numbers of cores to estimate for.
        measure: measures settings with a number of seeds at once.
    """
    of_job, measured, known = measured_jobs(sweep, jobs, measure)
    lengths = [one.start_seconds + _frames(sweep, job) * one.seconds_per_frame for job, one in of_job]
    numbers = sorted(set(cores))
    return Plan(
        settings=len(sweep.settings),
        runs=sweep.runs,
        jobs=len(jobs),
        frames=sweep.frames,
        result_bytes=round(sum(result_bytes(_frames(sweep, job), one) for job, one in of_job)),
        work_bytes={n: _work_bytes([one for _, one in of_job], n) for n in numbers},
        memory_bytes={n: _memory_bytes([one for _, one in of_job], n) for n in numbers},
        seconds={n: makespan(lengths, n) for n in numbers},
        measured=measured,
        shapes=known,
    )


def measured_jobs(
    sweep: Sweep, jobs: Sequence[Job], measure: Measure = calibrate
) -> tuple[list[tuple[Job, Calibration]], int, int]:
    """Measure the program shapes of some jobs for some seconds. Returns each job with what it takes; how many shapes
    were measured, and how many there are."""
    shapes = _shapes(sweep, jobs)
    chosen = _chosen(list(shapes))
    found = dict(zip(chosen, measure([shapes[shape] for shape in chosen]), strict=True))
    of_shape = {shape: found.get(shape) or _nearest(shapes[shape], shapes, found) for shape in shapes}
    return [(job, like(of_shape[_shape(sweep, job)], len(job.seeds))) for job in jobs], len(chosen), len(shapes)


def makespan(lengths: Iterable[float], cores: int) -> float:
    """Return how long jobs take, each given to the core that is free first.

    Example:
        >>> makespan([3.0, 2.0, 2.0], 2)
        4.0
    """
    ends = [0.0] * cores
    for length in lengths:
        heapq.heapreplace(ends, ends[0] + length)
    return max(ends)


def _shapes(sweep: Sweep, jobs: Sequence[Job]) -> dict[str, tuple[TrainingSettings, int]]:
    """Return the compiled programs of a sweep, each with a setting and the most seeds that a job has of it."""
    out: dict[str, tuple[TrainingSettings, int]] = {}
    for job in jobs:
        shape = _shape(sweep, job)
        settings, seeds = out.get(shape, (sweep.by_key[job.key].settings, 0))
        out[shape] = (settings, max(seeds, len(job.seeds)))
    return out


def _shape(sweep: Sweep, job: Job) -> str:
    program: dict[str, Any] = dict(sweep.by_key[job.key].settings.program)
    del program["frames"]
    return json.dumps(program, sort_keys=True)


def _frames(sweep: Sweep, job: Job) -> int:
    return sweep.by_key[job.key].settings.frames


def _chosen(shapes: list[str]) -> list[str]:
    """Return all shapes, or some at even distances."""
    n = len(shapes)
    return shapes if n <= MOST_MEASURED else [shapes[i * n // MOST_MEASURED] for i in range(MOST_MEASURED)]


def _nearest(
    asked: tuple[TrainingSettings, int],
    shapes: Mapping[str, tuple[TrainingSettings, int]],
    found: Mapping[str, Calibration],
) -> Calibration:
    """Return the measurement of the most similar shape: environment and behaviour count first, then the width."""

    def distance(shape: str) -> tuple[bool, bool, float]:
        one, other = asked[0], shapes[shape][0]
        return one.environment != other.environment, one.behaviour != other.behaviour, abs(one.width - other.width)

    return found[min(found, key=distance)]


def like(measured: Calibration, seeds: int) -> Calibration:
    """Estimate another number of seeds at once: in proportion, but one costs as much as two, since it is padded."""
    share = max(seeds, min(2, measured.seeds)) / max(measured.seeds, 1)
    return replace(measured, seeds=seeds, seconds_per_frame=measured.seconds_per_frame * share)


def result_bytes(frames: int, measured: Calibration) -> float:
    """Estimate the bytes of a job's result."""
    rows = _EPISODE_BYTES * measured.episodes_per_frame + _PROGRESS_BYTES / 1000
    return _JOB_BYTES + measured.seeds * frames * rows


def _work_bytes(calibrations: Sequence[Calibration], cores: int) -> int:
    largest = sorted((one.memory * one.seeds for one in calibrations), reverse=True)[:cores]
    return _CHECKPOINTS * sum(largest)


def _memory_bytes(calibrations: Sequence[Calibration], cores: int) -> int:
    """What processes with full replays take: as much as was measured, and what their seeds hold in the end."""
    return sum(sorted((one.process + one.memory * one.seeds for one in calibrations), reverse=True)[:cores])
