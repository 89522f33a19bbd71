"""The books of a running sweep: which jobs wait, run, are done or have failed, and how far all of it is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ipe.deep.checkpoints import newest_frame
from ipe.deep.progress import Progress
from ipe.deep.stopping import Stop
from ipe.errors import InputError
from ipe.experiments.declared import Job
from ipe.experiments.store import Store
from ipe.experiments.watchdog import read_hangs

TELL_SECONDS = 1.0
CLAIMED_SECONDS = 2.0
"""The seconds until a job that another process works on is looked at again."""
STOP_SECONDS = 120.0
"""The seconds that all running jobs together have to write their checkpoints when the sweep stops."""
DEATHS = 3
"""The number of processes that a job may end before the next checkpoint."""


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is."""

    jobs: int
    """The number of jobs."""
    done: int
    """The number of jobs that are published."""
    running: int
    """The number of jobs that are running."""
    failed: int
    """The number of jobs that could not be done."""
    frames: int
    """The frames of all runs of these jobs together."""
    frames_done: int
    """The frames that these runs have done, together."""
    runs: int
    """The number of runs: settings times seeds."""
    failed_runs: int
    """The number of runs whose environment failed, or that diverged."""
    elsewhere: int
    """The number of jobs that another process works on."""
    seconds: float
    """The seconds since the sweep was started or resumed."""
    seconds_left: float | None
    """An estimate of the seconds that are left; None before there is anything to go by."""


class Ledger:
    """What has become of each job, as far as this process knows. The callback hears the progress of all jobs, `report`
    that of each; if one of them returns True, the sweep stops. `ask` hears the events of each job, and answers which
    seeds are to stop. `stopping` is called when jobs are asked to write their checkpoints and end."""

    def __init__(
        self,
        store: Store,
        jobs: Sequence[Job],
        stop: Stop,
        callback: Callable[[SweepProgress], bool | None] | None = None,
        report: Callable[[Job, Progress], bool | None] | None = None,
        ask: Callable[[Job, list[dict[str, Any]]], dict[int, str]] | None = None,
        stopping: Callable[[], object] | None = None,
    ) -> None:
        self.store, self.jobs, self.stop = store, list(jobs), stop
        self.done: set[str] = set()
        self.failed: dict[str, str] = {}
        self.refused: list[str] = []
        self.seeds = dict.fromkeys(("done", "failed", "diverged"), 0)
        self.notes: list[str] = []
        self.lost: list[str] = []
        self.waiting: deque[Job] = deque()
        self.postponed: list[tuple[float, Job]] = []
        self._callback, self._report, self._ask = callback, report, ask
        self.say_stopping = stopping or (lambda: None)
        self._deaths: dict[str, tuple[Any, int]] = {}
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
        """Return a job that nobody works on, if there is one; jobs of other processes are tried again now and then."""
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

    def hear(self, job: Job, progress: Progress) -> None:
        """Take note of how far a running job is."""
        if job.id not in self._running:
            return
        self._first = time.monotonic() if self._first is None else self._first  # JAX has been compiling until now
        self._running[job.id] = (progress.frame, progress.lost)
        # The frames that a checkpoint had are not this hour's work.
        self._resumed.setdefault(job.id, progress.frame * self._lanes[job.id])
        if self._report is not None and self._report(job, progress):
            self.stop.set()

    def asked(self, job: Job, events: list[dict[str, Any]]) -> dict[int, str]:
        """Pass the events of a job on; returns the seeds that are to stop, and why."""
        return {} if self._ask is None else self._ask(job, events)

    def again(self, job: Job) -> None:
        """Take note that a job was left, and must be taken up again."""
        self._running.pop(job.id, None)
        self.waiting.append(job)

    def died(self, job: Job, how: str) -> None:
        """Take note that a process ended while it did a job; the third time without progress, the job has failed. `how`
        it ended is the end of a sentence."""
        mark = self.mark(job)
        before, deaths = self._deaths.get(job.id, (mark, 0))
        deaths = deaths + 1 if before == mark else 1
        self._deaths[job.id] = (mark, deaths)
        if deaths < DEATHS or self.stop.is_set():
            self.again(job)
        else:
            del self._deaths[job.id]
            self.end(job, "failed", f"its process ended {deaths} times before the next checkpoint; the last {how}")

    def mark(self, job: Job) -> Any:
        """Return what changes when a job gets somewhere: the frame of its newest checkpoint, and its recorded hangs."""
        folder = self.store.work_folder(job)
        try:
            return newest_frame(folder), read_hangs(folder)
        except InputError:
            return None, []

    def end(self, job: Job, state: str, reason: str) -> None:
        """Take note of what became of a job: what `ipe.experiments.jobs.attempt` returned."""
        self._running.pop(job.id, None)
        if state == "done":
            if not self._count(job):
                self.failed[job.id] = "its result is not there, though it was reported"
        elif state == "claimed":
            self.postponed.append((time.monotonic() + CLAIMED_SECONDS, job))
        elif state in ("failed", "refused"):
            self.failed[job.id] = reason
            self.notes.append(f"{self.describe(job)}: {reason}")
            if state == "refused":
                self.refused.append(reason)
        else:
            self.waiting.append(job)

    def describe(self, job: Job) -> str:
        """Describe a job in words."""
        name = self.store.sweep.by_key[job.key].name
        return f"{name}, seed{'s' * (len(job.seeds) > 1)} {', '.join(map(str, job.seeds))}"

    def _count(self, job: Job) -> bool:
        """Count the outcomes of a job, if it is published; whether it is."""
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
                self.lost.append(f"{self.store.sweep.by_key[job.key].name}, {what}")
        return True

    def _count_others(self) -> None:
        """Count the jobs of other processes that have been published in the meantime."""
        self.postponed = [(at, job) for at, job in self.postponed if not self._count(job)]

    def progress(self) -> SweepProgress:
        """Return how far the sweep is now."""
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
            failed_runs=self.seeds["failed"] + self.seeds["diverged"] + sum(lost for _, lost in self._running.values()),
            elsewhere=len(self.postponed),
            seconds=now - self._begin,
            seconds_left=0.0 if left == 0 else left * spent / new if new > 0 and spent > 5.0 else None,
        )

    def tell(self, at_once: bool = False) -> None:
        """Pass the progress on, if it is time; a callback that returns True asks to stop."""
        now = time.monotonic()
        if self._callback is None or (not at_once and now - self._told < TELL_SECONDS):
            return
        self._told = now
        self._count_others()
        if self._callback(self.progress()):
            self.stop.set()
