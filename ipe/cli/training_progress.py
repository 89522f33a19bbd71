"""How a training goes, on standard error: a table that is drawn in place, or a line now and then."""

from __future__ import annotations

import heapq
import math
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ipe.base.cores import available_cores
from ipe.cli.tables import columns, duration, number

if TYPE_CHECKING:
    from ipe.deep import Progress, SeedProgress

QUIET_SECONDS = 30.0
"""Between two lines about a batch where there is no terminal."""
_REDRAW_SECONDS = 0.2
_SMOOTHING = 0.2


class Display:
    """A callback for `ipe.deep.train` and `ipe.deep.resume`.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.latest: dict[int, Progress] = {}
        self._speeds: dict[int, float] = {}
        self._batches: list[list[int]] = []
        self._processes = 1
        self._said: dict[int, float] = {}
        self._title = ""
        self._drawn = 0
        self._at = 0.0
        self._live = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def begin(self, title: str, processes: int | None) -> None:
        """Say what is about to be done: the first numbers take some seconds, in which JAX compiles.

        Where it cannot be taken back, it is said with the first numbers: what is refused has one line alone.
        """
        self._processes = max(1, available_cores() if processes is None else processes)
        self._title = f"{title}\n"
        if self._live:
            self._write(f"{title[: shutil.get_terminal_size().columns - 1]}\n")

    def __call__(self, progress: Progress) -> None:
        """Take note of a batch's progress, and show it."""
        if not self._batches:
            from ipe.deep.runs import open_run

            self._batches = open_run(self.folder).batches
            if not self._live:
                self._write(self._title)
        self._note_speed(progress)
        self.latest[progress.batch] = progress
        now = time.monotonic()
        if self._live:
            if now - self._at >= _REDRAW_SECONDS:
                self._at = now
                self._redraw()
            return
        over = progress.frame >= progress.frames
        if over or now - self._said.get(progress.batch, -math.inf) >= QUIET_SECONDS:
            self._said[progress.batch] = now
            seeds, speed = self._batches[progress.batch], self._speeds.get(progress.batch)
            self._write(f"{batch_line(progress, seeds, speed, self._left())}\n")

    def close(self) -> None:
        """Leave the table as it is last; what follows goes below it."""
        if self._live and self.latest:
            self._redraw()
        elif self._live:
            self._write("\033[F\033[J")
        self._live = False

    def _note_speed(self, progress: Progress) -> None:
        """A moving average, without a batch's first report, which compiling slows, and its last, about a moment."""
        batch, now = progress.batch, progress.frames_per_second
        if batch in self.latest and progress.frame < progress.frames:
            before = self._speeds.get(batch, now)
            self._speeds[batch] = (1 - _SMOOTHING) * before + _SMOOTHING * now

    def _left(self) -> float | None:
        return seconds_left(self.latest, self._speeds, len(self._batches), self._processes)

    def _redraw(self) -> None:
        size = shutil.get_terminal_size()
        lines = table_lines(self.latest, self._speeds, self._batches, self._left(), self.folder, size.lines - 1)
        up = f"\033[{self._drawn}F" if self._drawn else ""
        # A line that wraps would take two rows, and the next table would begin one too low.
        self._write(f"{up}\033[J" + "".join(f"{line[: size.columns - 1]}\n" for line in lines))
        self._drawn = len(lines)

    def _write(self, text: str) -> None:
        if sys.stderr is not None:
            print(text, end="", file=sys.stderr, flush=True)


def table_lines(
    latest: Mapping[int, Progress],
    speeds: Mapping[int, float],
    batches: Sequence[Sequence[int]],
    left: float | None,
    folder: Path,
    most: int,
) -> list[str]:
    """The table, one row per seed as far as `most` lines hold them, and what is left.

    Args:
        latest: the last report of each batch that has begun.
        speeds: frames per second of each of them.
        batches: the seeds of each batch.
        left: seconds until the end; None: not known yet.
        folder: of the run.
        most: lines.
    """
    rows = [["seed", "frame", "episodes", "return (last 20)", "epsilon", "frames/s"]]
    notes = []
    for batch, seeds in enumerate(batches):
        if batch not in latest:
            rows += [[str(seed), "waiting", "", "", "", ""] for seed in seeds]
            continue
        for own in latest[batch].seeds:
            rows.append(_row(own, latest[batch], speeds.get(batch)))
            if own.status in ("failed", "diverged"):
                notes.append(f"seed {own.seed} {own.status} at frame {own.frame}: {own.reason}")
    lines = columns(rows)
    end = [*notes[:3], _end(latest, left), f"Ctrl-C stops, with a checkpoint; go on with: ipe train --resume {folder}"]
    room = max(2, most - len(end) - 1)
    if len(lines) > room:
        lines = [*lines[:room], f"... and {len(lines) - room} seeds more"]
    return lines + end


def _row(own: SeedProgress, progress: Progress, speed: float | None) -> list[str]:
    running = own.status == "running"
    return [
        str(own.seed),
        f"{own.frame} / {progress.frames}",
        str(own.episodes),
        number(own.mean_return),
        number(own.epsilon, 3),
        number(speed, 0) if running else own.status,
    ]


def _end(latest: Mapping[int, Progress], left: float | None) -> str:
    return f"{_time(left)}; {_memory(max(progress.memory for progress in latest.values()))}"


def _memory(per_seed: int) -> str:
    return f"{per_seed / 1e6:.{0 if per_seed >= 1e7 else 1}f} MB per seed"


def _time(left: float | None) -> str:
    return "time left not known yet" if left is None else "done" if left <= 0 else f"about {duration(left)} left"


def batch_line(progress: Progress, seeds: Sequence[int], speed: float | None, left: float | None) -> str:
    """A batch in one line."""
    returns = [own.mean_return for own in progress.seeds if own.mean_return is not None]
    mean = number(sum(returns) / len(returns) if returns else None)
    stopped = "".join(f", seed {own.seed} {own.status}" for own in progress.seeds if own.reason)
    names = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    rate = "" if speed is None or progress.frame >= progress.frames else f", {speed:.0f} frames/s"
    share = f"frame {progress.frame} of {progress.frames}, return of the last 20 episodes {mean}"
    return f"{names}: {share}{rate}, {_memory(progress.memory)}{stopped}; {_time(left)}"


def seconds_left(
    latest: Mapping[int, Progress], speeds: Mapping[int, float], batches: int, processes: int
) -> float | None:
    """An estimate of the time until the last batch is done; None before there is a speed.

    Batches that have not begun go at the mean speed, each as soon as a process is free for it.

    Args:
        latest: the last report of each batch that has begun.
        speeds: frames per second of each of them.
        batches: how many there are.
        processes: how many run at a time.
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
    return all(own.status != "running" for own in progress.seeds)
