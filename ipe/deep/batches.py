"""One batch of a run, from its newest checkpoint to its end: the job that a process does."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ipe.deep.checkpoints import load_checkpoint, save_checkpoint
from ipe.deep.loop import Loop
from ipe.deep.records import Records
from ipe.deep.runs import Run
from ipe.deep.settings import TrainingSettings
from ipe.deep.tensorboard import TensorBoard
from ipe.errors import InputError

REPORT_SECONDS = 1.0


@dataclass(frozen=True)
class SeedProgress:
    """Where a seed is."""

    seed: int
    status: str
    """running, done, failed or diverged."""
    frame: int
    episodes: int
    mean_return: float | None
    """Of the last 20 episodes; None before the first one has ended."""
    epsilon: float | None
    """Mean over the last thousand frames; None if the behaviour has none, or before they are over."""
    reason: str = ""


@dataclass(frozen=True)
class Progress:
    """Where a batch is."""

    batch: int
    frame: int
    frames: int
    frames_per_second: float
    """Of every seed."""
    memory: int
    """Bytes per seed: networks, optimisers and replay."""
    seeds: list[SeedProgress]

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, content: dict[str, Any]) -> Progress:
        """What `plain` gave."""
        return cls(**{**content, "seeds": [SeedProgress(**own) for own in content["seeds"]]})


def train_batch(
    run: Run,
    batch: int,
    *,
    report: Callable[[Progress], object],
    stopped: Callable[[], bool],
    checkpoint_seconds: float,
    tensorboard: bool = False,
    say: Callable[[str], None] | None = None,
) -> bool:
    """Train a batch of seeds until it is done or told to stop, and leave a checkpoint.

    Args:
        run: the run.
        batch: which of its batches.
        report: called about once a second.
        stopped: asked after every frame.
        checkpoint_seconds: between checkpoints.
        tensorboard: whether to write TensorBoard's files.
        say: called with sentences for the user: a damaged checkpoint that was passed over.

    Returns:
        Whether it is done.
    """
    folder, seeds = run.batch_folder(batch), run.batches[batch]
    with opened_loop(folder, [run.settings] * len(seeds), seeds, say) as loop, contextlib.ExitStack() as stack:
        board = (
            stack.enter_context(TensorBoard(run.folder / "tensorboard", loop.frame or None)) if tensorboard else None
        )
        begin = shown = loop.frame

        def save() -> None:
            nonlocal shown
            if board is not None:
                _show(board, loop.records, shown)
                shown = loop.frame
            save_checkpoint(folder, loop.checkpoint())

        advance_loop(
            loop, batch=batch, report=report, stopped=stopped, save=save, checkpoint_seconds=checkpoint_seconds
        )
        if loop.frame > begin or begin == 0:
            save()
        return loop.done


@contextlib.contextmanager
def opened_loop(
    folder: Path,
    settings: Sequence[TrainingSettings],
    seeds: Sequence[int],
    say: Callable[[str], None] | None = None,
    *,
    fresh_if_damaged: bool = False,
    **options: Any,
) -> Iterator[Loop]:
    """The loop of some seeds as their newest valid checkpoint has it, for this process alone.

    Args:
        folder: of the checkpoints; made if it is not there.
        settings: of every seed.
        seeds: the seeds.
        say: called with a sentence about every damaged checkpoint that was passed over.
        fresh_if_damaged: begin anew if all checkpoints are damaged, rather than refuse.
        options: others of `Loop`.
    """
    with _locked(folder):
        try:
            checkpoint = load_checkpoint(folder, say)
        except InputError:
            if not fresh_if_damaged:
                raise
            checkpoint = None
        loop = Loop(settings, seeds, checkpoint, **options)
        try:
            yield loop
        finally:
            loop.close()


def advance_loop(
    loop: Loop,
    *,
    batch: int,
    report: Callable[[Progress], object],
    stopped: Callable[[], bool],
    save: Callable[[], None],
    checkpoint_seconds: float,
) -> None:
    """Train until all is done or it is told to stop.

    Args:
        loop: the loop.
        batch: its number, for the reports.
        report: called about once a second, and in the end.
        stopped: asked after every frame.
        save: called when a checkpoint is due; not in the end.
        checkpoint_seconds: between checkpoints.
    """
    saved = told = time.monotonic()
    at_told = loop.frame
    while not loop.done and not stopped():
        loop.advance()
        now = time.monotonic()
        if now - told >= REPORT_SECONDS:
            report(_progress(loop, batch, (loop.frame - at_told) / (now - told)))
            told, at_told = now, loop.frame
        if now - saved >= checkpoint_seconds and not loop.done:
            save()
            saved = time.monotonic()
    report(_progress(loop, batch, (loop.frame - at_told) / max(time.monotonic() - told, 1e-9)))


def _show(board: TensorBoard, records: Records, after: int) -> None:
    """Write what is newer than a frame to TensorBoard's files."""
    for row in records.episodes_table().to_pylist():
        if row["frame"] > after:
            board.episode(row["seed"], row["frame"], row["return"], row["length"])
    for row in records.progress_table().to_pylist():
        if row["frame"] > after:
            measured = {
                name: value for name, value in row.items() if name not in ("seed", "frame") and value is not None
            }
            board.progress(row["seed"], row["frame"], **measured)
    board.flush()


def _progress(loop: Loop, batch: int, speed: float) -> Progress:
    records = loop.records.arrays()
    seeds = []
    for outcome in loop.outcomes:
        returns = records["episodes.return"][records["episodes.seed"] == outcome.seed]
        epsilons = records["progress.epsilon"][records["progress.seed"] == outcome.seed]
        last = float(epsilons[-1]) if epsilons.size and np.isfinite(epsilons[-1]) else None
        seeds.append(
            SeedProgress(
                seed=outcome.seed,
                status=outcome.status,
                frame=loop.frame if outcome.status == "running" else outcome.frame,
                episodes=int(returns.size),
                mean_return=float(returns[-20:].mean()) if returns.size else None,
                epsilon=last,
                reason=outcome.reason,
            )
        )
    return Progress(batch, loop.frame, loop.frames, speed, loop.memory, seeds)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a batch for this process: another may still be writing its last checkpoint."""
    try:
        import fcntl
    except ImportError:  # not POSIX
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as file:
        deadline = time.monotonic() + 60.0
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise InputError(f"another process is training {folder}") from None
                time.sleep(0.1)
        yield
