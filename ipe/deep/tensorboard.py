"""Records as TensorBoard event files, to watch a run in TensorBoard (extra `tensorboard`).

They are written with tensorboardX's record writer rather than its `SummaryWriter`, which hands events to a thread, so
that its `flush` may leave the last of them behind, and which puts the host's name into the name of the file.
"""

from __future__ import annotations

import math
import os
import re
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from ipe.base.packages import missing_package
from ipe.base.words import refusing
from ipe.deep.records import Records

_EVENTS = re.compile(r"events\.out\.tfevents\.([0-9]{10,})\..*")


def check_tensorboard() -> tuple[Any, Any]:
    """Import the modules of tensorboardX that are used; an `InputError` if it is not installed."""
    try:
        return import_module("tensorboardX.proto.event_pb2"), import_module("tensorboardX.record_writer")
    except ImportError:
        raise missing_package("a TensorBoard file", "tensorboardX", extra="tensorboard") from None


class TensorBoard:
    """Event files in one folder `seed-N` per seed: `episode/return`, `episode/length`, `progress/epsilon`, ..., and of
    evaluations while training `evaluation/return` and `evaluation/length`, means over their episodes.

    Call `flush` before a checkpoint is saved, and give the checkpoint's frame when the run is resumed: TensorBoard
    then discards what an interrupted run has written after it, so that no frame stands twice and none is missing.

    Args:
        folder: the folder for the event files; it is made if it is not there.
        resumed_at: the frame of the checkpoint from which the run goes on; None for a new run.

    Raises:
        InputError: if tensorboardX is not installed.
    """

    def __init__(self, folder: Path, resumed_at: int | None = None) -> None:
        events, records = check_tensorboard()
        self._event = events.Event
        self._record_writer = records.RecordWriter
        self._folder = Path(os.path.abspath(folder))  # tensorboardX takes `s3:` at the start of a name for a place
        self._resumed_at, self._shown = resumed_at, resumed_at or 0
        self._writers: dict[int, Any] = {}

    def episode(self, seed: int, frame: int, ret: float, length: int) -> None:
        """Add an episode, as `Records.episode` does."""
        self._add(seed, frame, {"episode/return": ret, "episode/length": length})

    def progress(self, seed: int, frame: int, **measured: float) -> None:
        """Add what the learner measured, by name, as `Records.progress` does; NaN is left out."""
        self._add(seed, frame, {f"progress/{name}": value for name, value in measured.items()})

    def evaluation(self, seed: int, frame: int, mean: float, length: float) -> None:
        """Add the mean return and the mean length of an evaluation's episodes; a mean of NaN is left out."""
        self._add(seed, frame, {"evaluation/return": mean, "evaluation/length": length})

    def show(self, records: Records, frame: int) -> None:
        """Add the records up to a frame that were not shown before, and write them to disk."""
        for row in records.episodes_table().to_pylist():
            if row["frame"] > self._shown:
                self.episode(row["seed"], row["frame"], row["return"], row["length"])
        for row in records.progress_table().to_pylist():
            if row["frame"] > self._shown:
                self.progress(**{name: value for name, value in row.items() if value is not None})
        for row in records.evaluations_table().to_pylist():
            if row["frame"] > self._shown and row["mean"] is not None:
                self.evaluation(row["seed"], row["frame"], row["mean"], sum(row["lengths"]) / len(row["lengths"]))
        self.flush()
        self._shown = frame

    def flush(self) -> None:
        """Write all that was added to disk."""
        with refusing(f"cannot write to {self._folder}"):
            for writer in self._writers.values():
                writer.flush()

    def close(self) -> None:
        """Flush and close every file."""
        self.flush()
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _add(self, seed: int, frame: int, scalars: dict[str, float]) -> None:
        values = [{"tag": tag, "simple_value": value} for tag, value in scalars.items() if not math.isnan(value)]
        if not values:
            return
        with refusing(f"cannot write to {self._folder}"):
            if seed not in self._writers:
                self._writers[seed] = self._open(self._folder / f"seed-{seed}")
            event = self._event(wall_time=time.time(), step=frame, summary={"value": values})
            self._writers[seed].write(event.SerializeToString())

    def _open(self, folder: Path) -> Any:
        folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard reads files in the order of their names, and discards only what it has read before: the new
        # one must come last even if the clock was set back or the second is the same.
        found = [_EVENTS.fullmatch(path.name) for path in folder.iterdir()]
        stamp = max([int(time.time()), *(int(match[1]) + 1 for match in found if match)])
        writer = self._record_writer(str(folder / f"events.out.tfevents.{stamp:010d}.{os.getpid()}.ipe"))
        now = time.time()
        writer.write(self._event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        if self._resumed_at is not None:
            start = self._event(wall_time=now, step=self._resumed_at + 1, session_log={"status": "START"})
            writer.write(start.SerializeToString())
        return writer
