"""The watchdog: notices an environment that does not return, so that its seed is given up and the others go on.

A thread cannot be ended from outside, so the process ends. First it leaves `hang.json` beside the job's checkpoints:
the seed and the frame at which the seed's environment did not answer. The process that takes the job up next, from its
checkpoint, stops that seed at that frame, as failed, without asking its environment; the other seeds go on.

The watching thread counts its own ticks, not the clock: a process that was suspended and wakes up has hung for a tick
at most. The thread cannot tick while the environment's own code holds Python's lock; then a timer of `faulthandler`,
which needs no lock, ends the process, and leaves its trace. Because that timer goes by the clock, a seed is given up
only if it happens twice at the same frame.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import mmap
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from ipe.base.atomic import write_bytes
from ipe.base.words import refusing
from ipe.deep.evaluating import TICK
from ipe.deep.progress import Outcome
from ipe.errors import InputError

HANG_SECONDS = 300.0
EXIT_CODE = 1
_TICK = 1.0
_GRACE = 30.0  # other code holds Python's lock for seconds too: imports, say


@dataclass(frozen=True)
class Hang:
    """An environment that did not return."""

    seed: int
    frame: int
    """The frame that the environment was asked for, counted from 1; 0: the first reset; -1: it was being made."""
    seconds: float
    """How long the process waited for the environment."""
    sure: bool
    """Whether the seed is to be given up."""

    @property
    def reason(self) -> str:
        """The reason in the seed's outcome."""
        return f"the environment did not return within {self.seconds:g} seconds"


class Watchdog:
    """Watches one job's environments: a context manager around its loop. `bark` is called with a sentence before the
    process ends; by default the sentence goes to standard error."""

    def __init__(
        self,
        folder: Path,
        seeds: Sequence[int],
        hang_seconds: float = HANG_SECONDS,
        bark: Callable[[str], object] | None = None,
    ) -> None:
        self.folder, self.seeds, self.seconds = folder, list(seeds), hang_seconds
        self._bark = _say if bark is None else bark
        self._over = threading.Event()
        self._tick = min(_TICK, hang_seconds / 5)
        token = secrets.token_hex(8)  # a process that hangs may still be there when the next one starts
        self._pulse_file, self._trace_file = folder / f"pulse-{token}", folder / f"trace-{token}"

    def __enter__(self) -> Self:
        with refusing(f"cannot write in {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.hangs = self._known()
            with open(self._pulse_file, "x+b") as file:
                file.write(bytes(16))
                file.flush()
                # In the file, so that it outlives the process, at no cost per frame.
                self._memory = mmap.mmap(file.fileno(), 16)
            self._trace = open(self._trace_file, "x")
        self.pulse: Any = memoryview(self._memory).cast("q")
        """The two numbers that `ipe.deep.actors.Actors` keeps up to date."""
        self.pulse[0] = self.pulse[1] = -1
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()
        self._trace.close()
        for path in (self._pulse_file, self._trace_file):
            with contextlib.suppress(OSError):
                path.unlink()

    @property
    def give_up(self) -> dict[int, Outcome]:
        """The outcomes of the seeds that hung, for `Loop`. An environment that hung as it was being made is refused."""
        sure = [hang for hang in self.hangs if hang.sure]
        for hang in sure:
            if hang.frame < 0:
                raise InputError(f"{hang.reason} when it was made")
        return {hang.seed: Outcome(hang.seed, "failed", hang.frame, hang.reason) for hang in sure}

    def _known(self) -> list[Hang]:
        """Return the hangs so far, with those that ended a process without a word."""
        hangs = read_hangs(self.folder)
        for trace in self.folder.glob("trace-*"):
            pulse = trace.with_name(trace.name.replace("trace", "pulse"))
            with contextlib.suppress(OSError, ValueError):
                if trace.stat().st_size == 0:
                    continue
                lane, at = memoryview(pulse.read_bytes()).cast("q")
                frame = _frame(at)
                if 0 <= lane < len(self.seeds):
                    hangs = _with(hangs, Hang(self.seeds[lane], frame, self.seconds, sure=False))
                    self._write(hangs)
                trace.unlink()
                pulse.unlink()
        return hangs

    def _write(self, hangs: list[Hang]) -> None:
        text = json.dumps({"format": "ipe.hangs", "hangs": [asdict(hang) for hang in hangs]}, indent=1)
        write_bytes(self.folder / "hang.json", f"{text}\n".encode())

    def _watch(self) -> None:
        last, still, then = (-1, -1), 0.0, time.monotonic()
        while True:
            # Armed anew with every tick: it goes off only if there are no ticks.
            faulthandler.dump_traceback_later(self.seconds + _GRACE, exit=True, file=self._trace)
            if self._over.wait(self._tick):
                return
            now = time.monotonic()
            at = (self.pulse[0], self.pulse[1])
            still = still + min(now - then, 2 * self._tick) if at == last and at[0] >= 0 else 0.0
            last, then = at, now
            if still >= self.seconds:
                self._end(*at)

    def _end(self, lane: int, at: int) -> NoReturn:
        faulthandler.cancel_dump_traceback_later()
        frame = _frame(at)
        hang = Hang(self.seeds[lane], frame, self.seconds, sure=True)
        then = "this process ends; the next one that takes the job up goes on without that seed"
        try:
            self._write(_with(self.hangs, hang))
        except InputError as error:
            then = str(error)
        with contextlib.suppress(Exception):
            self._bark(f"seed {hang.seed}, frame {frame}: {hang.reason}; {then}")
        os._exit(EXIT_CODE)


def _frame(at: int) -> int:
    """Return the frame that a pulse tells; in an evaluation, the frame after which it takes place."""
    return at if at < 0 else at % TICK


def read_hangs(folder: Path) -> list[Hang]:
    """Read the hangs that are on record beside a job's checkpoints."""
    try:
        content = json.loads((folder / "hang.json").read_bytes())
        return [Hang(int(h["seed"]), int(h["frame"]), float(h["seconds"]), bool(h["sure"])) for h in content["hangs"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _with(hangs: list[Hang], new: Hang) -> list[Hang]:
    """Return the hangs with one more; one that happened before at the same frame is sure now."""
    again = any((old.seed, old.frame) == (new.seed, new.frame) for old in hangs)
    others = [old for old in hangs if old.seed != new.seed]
    return [*others, Hang(new.seed, new.frame, new.seconds, new.sure or again)]


def _say(sentence: str) -> None:
    if sys.stderr is not None:
        print(f"ipe: {sentence}", file=sys.stderr, flush=True)
