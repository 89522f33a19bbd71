"""How a training goes: a table with a row per seed on a terminal, a line per batch of seeds elsewhere."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ipe.base.columns import columns
from ipe.base.cores import available_cores
from ipe.cli.wording import decimal, time_left

if TYPE_CHECKING:
    from ipe.cli.display import Display
    from ipe.deep import Progress, SeedProgress

_SMOOTHING = 0.2


class TrainingProgress:
    """A callback for `ipe.deep.train` and `ipe.deep.resume` that shows the progress they report."""

    def __init__(self, display: Display, folder: Path, processes: int | None) -> None:
        self._display, self._folder = display, folder
        self._processes = max(1, available_cores() if processes is None else processes)
        self._latest: dict[int, Progress] = {}
        self._speeds: dict[int, float] = {}
        self._batches: list[list[int]] = []

    def __call__(self, progress: Progress) -> None:
        """Take note of a batch's progress, and show it."""
        if not self._batches:
            from ipe.experiments.training import open_run

            self._batches = [list(job.seeds) for job in open_run(self._folder).jobs]
        self._note_speed(progress)
        self._latest[progress.batch] = progress
        left = seconds_left(self._latest, self._speeds, len(self._batches), self._processes)
        lines = table_lines(self._latest, self._speeds, self._batches, left, self._folder, self._display.rows)
        line = batch_line(progress, self._batches[progress.batch], self._speeds.get(progress.batch), left)
        self._display.show(lines, line, about=progress.batch, at_once=progress.frame >= progress.frames)

    def _note_speed(self, progress: Progress) -> None:
        """A moving average, without a batch's first report, which compiling slows, and its last, about a moment."""
        batch, now = progress.batch, progress.frames_per_second
        if batch in self._latest and progress.frame < progress.frames:
            before = self._speeds.get(batch, now)
            self._speeds[batch] = (1 - _SMOOTHING) * before + _SMOOTHING * now


def table_lines(
    latest: Mapping[int, Progress],
    speeds: Mapping[int, float],
    batches: Sequence[Sequence[int]],
    left: float | None,
    folder: Path,
    most: int,
) -> list[str]:
    """The table, one row per seed as far as `most` lines hold them, the time left if it is known, and how to go on."""
    evaluated = any(seed.best is not None for progress in latest.values() for seed in progress.seeds)
    greedy = ["greedy", "best greedy"] if evaluated else []
    rows = [["seed", "frame", "episodes", "return (last 20)", *greedy, "epsilon", "frames/s"]]
    notes = []
    for batch, seeds in enumerate(batches):
        if batch not in latest:
            rows += [[str(seed), "waiting", *[""] * (len(rows[0]) - 2)] for seed in seeds]
            continue
        for seed in latest[batch].seeds:
            rows.append(_row(seed, latest[batch], speeds.get(batch), evaluated))
            if seed.status in ("failed", "diverged"):
                notes.append(f"seed {seed.seed} {seed.status} at frame {seed.frame}: {seed.reason}")
    lines = columns(rows)
    memory = _memory(max(progress.memory for progress in latest.values()))
    stop = f"Ctrl-C stops, with a checkpoint; go on with: ipe train --resume {folder}"
    end = [*notes[:3], f"{time_left(left)}; {memory}", stop]
    room = max(2, most - len(end) - 1)
    if len(lines) > room:
        lines = [*lines[:room], f"... and {len(lines) - room} seeds more"]
    return lines + end


def _row(seed: SeedProgress, progress: Progress, speed: float | None, evaluated: bool) -> list[str]:
    running = seed.status == "running"
    return [
        str(seed.seed),
        f"{seed.frame} / {progress.frames}",
        str(seed.episodes),
        decimal(seed.mean_return),
        *([decimal(seed.evaluated), decimal(seed.best)] if evaluated else []),
        decimal(seed.epsilon, 3),
        decimal(speed, 0) if running else seed.status,
    ]


def _memory(per_seed: int) -> str:
    return f"{per_seed / 1e6:.{0 if per_seed >= 1e7 else 1}f} MB of memory per seed"


def batch_line(progress: Progress, seeds: Sequence[int], speed: float | None, left: float | None) -> str:
    """A batch in one line."""
    returns = [seed.mean_return for seed in progress.seeds if seed.mean_return is not None]
    mean = decimal(sum(returns) / len(returns) if returns else None)
    stopped = "".join(f", seed {seed.seed} {seed.status}" for seed in progress.seeds if seed.reason)
    names = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    rate = "" if speed is None or progress.frame >= progress.frames else f", {speed:.0f} frames/s"
    share = f"frame {progress.frame} of {progress.frames}, return of the last 20 episodes {mean}"
    means = [seed.evaluated for seed in progress.seeds if seed.evaluated is not None]
    greedy = f", greedy {decimal(sum(means) / len(means))}" if means else ""
    return f"{names}: {share}{greedy}{rate}, {_memory(progress.memory)}{stopped}; {time_left(left)}"


def seconds_left(
    latest: Mapping[int, Progress], speeds: Mapping[int, float], batches: int, processes: int
) -> float | None:
    """An estimate of the time until the last batch is done; None before there is a speed.

    Batches that have not begun are taken to go at the mean speed, each as soon as a process is free for it.
    """
    over = [progress.frame >= progress.frames or _all_stopped(progress) for progress in latest.values()]
    if len(latest) == batches and all(over):
        return 0.0
    known = [speed for speed in speeds.values() if speed > 0.0]
    if not known:
        return None
    usual = sum(known) / len(known)
    ends = [0.0] * processes
    frames = next(iter(latest.values())).frames
    left = [
        0.0 if done else (progress.frames - progress.frame) / (speeds.get(batch) or usual)
        for (batch, progress), done in zip(latest.items(), over, strict=True)
    ]
    for seconds in [*left, *[frames / usual] * (batches - len(latest))]:
        heapq.heappush(ends, heapq.heappop(ends) + seconds)
    return max(ends)


def _all_stopped(progress: Progress) -> bool:
    return all(seed.status != "running" for seed in progress.seeds)
