"""The books of a running sweep: which jobs wait, run, are done or failed, and how it goes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ipe.deep.stopping import Stop
from ipe.errors import InputError
from ipe.experiments.declared import Job
from ipe.experiments.store import Store

TELL_SECONDS = 1.0
CLAIMED_SECONDS = 2.0
"""Until a job that another process is at is looked at again."""


@dataclass(frozen=True)
class SweepProgress:
    """Where a sweep is."""

    jobs: int
    done: int
    """Jobs that are published."""
    running: int
    failed: int
    """Jobs that could not be done."""
    frames: int
    """Of all runs of these jobs together."""
    frames_done: int
    runs: int
    failed_runs: int
    """Runs whose environment failed, or that diverged."""
    elsewhere: int
    """Jobs that another process is at."""
    seconds: float
    """Since it was started, or gone on with."""
    seconds_left: float | None
    """None before there is anything to go by."""


class Ledger:
    """The books.

    Args:
        store: of the sweep.
        jobs: of it, that this process looks after.
        callback: called with the progress; True stops.
        stop: the wish to stop.
    """

    def __init__(
        self, store: Store, jobs: Sequence[Job], callback: Callable[[SweepProgress], bool | None] | None, stop: Stop
    ) -> None:
        self.store, self.jobs, self.stop = store, list(jobs), stop
        self.done: set[str] = set()
        self.failed: dict[str, str] = {}
        self.seeds = dict.fromkeys(("done", "failed", "diverged"), 0)
        self.notes: list[str] = []
        self.waiting: deque[Job] = deque()
        self.postponed: list[tuple[float, Job]] = []
        self._callback = callback
        self._running: dict[str, tuple[int, int]] = {}
        self._size = {job.id: store.sweep.by_key[job.key].settings.frames * len(job.seeds) for job in self.jobs}
        self._lanes = {job.id: len(job.seeds) for job in self.jobs}
        for job in self.jobs:
            if not self._count(job):
                self.waiting.append(job)
        self._begin, self._told = time.monotonic(), -TELL_SECONDS
        self._at_first = sum(self._size[name] for name in self.done)
        self._resumed: dict[str, int] = {}
        self._first: float | None = None

    @property
    def finished(self) -> bool:
        """Whether every job is published."""
        return len(self.done) == len(self.jobs)

    def next_job(self) -> Job | None:
        """One that nobody is at; those of other processes are looked at again now and then."""
        if self.waiting:
            return self.waiting.popleft()
        now = time.monotonic()
        due = [entry for entry in self.postponed if entry[0] <= now]
        if not due:
            return None
        self.postponed.remove(due[0])
        return due[0][1]

    def begin(self, job: Job) -> None:
        """Take note that a job is being started."""
        self._running[job.id] = (0, 0)

    def hear(self, job_id: str, frame: int, wrong: int) -> None:
        """Take note of a running job's frame, and of how many of its seeds have failed."""
        if job_id in self._running:
            self._first = time.monotonic() if self._first is None else self._first  # JAX has been compiling until now
            self._running[job_id] = (frame, wrong)
            self._resumed.setdefault(
                job_id, frame * self._lanes[job_id]
            )  # what a checkpoint had is not this hour's work

    def again(self, job: Job) -> None:
        """It was left, and is to be taken up again."""
        self._running.pop(job.id, None)
        self.waiting.append(job)

    def end(self, job: Job, state: str, reason: str) -> None:
        """Take note of what became of a job: what `ipe.experiments.jobs.attempt` returned."""
        self._running.pop(job.id, None)
        if state == "done":
            if not self._count(job):
                self.failed[job.id] = "its result is not there, though it was reported"
        elif state == "claimed":
            self.postponed.append((time.monotonic() + CLAIMED_SECONDS, job))
        elif state == "failed":
            self.failed[job.id] = reason
            self.notes.append(f"{self.describe(job)}: {reason}")
        else:
            self.waiting.append(job)

    def describe(self, job: Job) -> str:
        """A job in words."""
        name = self.store.sweep.by_key[job.key].name
        return f"{name}, seed{'s' * (len(job.seeds) > 1)} {', '.join(map(str, job.seeds))}"

    def _count(self, job: Job) -> bool:
        """Whether a job is published; its outcomes are counted then."""
        try:
            manifest = self.store.publication(job)
        except InputError as error:  # of a later version of ipe
            self.failed[job.id] = str(error)
            self.notes.append(f"{self.describe(job)}: {error}")
            return True
        if manifest is None:
            return False
        self.done.add(job.id)
        for outcome in manifest.outcomes:
            self.seeds[outcome["status"]] += 1
            if outcome["status"] != "done":
                what = f"seed {outcome['seed']} {outcome['status']} at frame {outcome['frame']}: {outcome['reason']}"
                self.notes.append(f"{self.store.sweep.by_key[job.key].name}, {what}")
        return True

    def progress(self) -> SweepProgress:
        """Where it is now."""
        finished = sum(self._size[name] for name in self.done)
        under_way = sum(frame * self._lanes[name] for name, (frame, _) in self._running.items())
        frames = sum(self._size.values())
        now = time.monotonic()
        spent = now - (self._begin if self._first is None else self._first)
        new = finished + under_way - self._at_first - sum(self._resumed.values())
        given_up = sum(self._size[name] for name in self.failed)
        left = max(0, frames - finished - under_way - given_up)
        return SweepProgress(
            jobs=len(self.jobs),
            done=len(self.done),
            running=len(self._running),
            failed=len(self.failed),
            frames=frames,
            frames_done=finished + under_way,
            runs=sum(self._lanes.values()),
            failed_runs=self.seeds["failed"] + self.seeds["diverged"] + sum(w for _, w in self._running.values()),
            elsewhere=len(self.postponed),
            seconds=now - self._begin,
            seconds_left=0.0 if left == 0 else left * spent / new if new > 0 and spent > 5.0 else None,
        )

    def tell(self, at_once: bool = False) -> None:
        """Pass the progress on, if it is time; a True that comes back is a wish to stop."""
        now = time.monotonic()
        if self._callback is None or (not at_once and now - self._told < TELL_SECONDS):
            return
        self._told = now
        if self._callback(self.progress()):
            self.stop.set()
