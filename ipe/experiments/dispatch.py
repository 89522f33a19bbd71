"""Jobs given to Dask's workers, and taken back.

As many jobs are submitted as there are workers, no more: a worker that dies has then one job with it, which is the one
to suspect. Dask starts a new process and gives the job to it, or to another; the job goes on from its checkpoint. A job
that ends its process again and again without getting any further is given up, and said to be.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import time
from typing import TYPE_CHECKING, Any

from ipe.experiments.declared import Job
from ipe.experiments.ledger import Ledger
from ipe.experiments.watchdog import read_hangs
from ipe.experiments.workers import request_stop, topic, work

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

MISSING_SECONDS = 20.0
"""Until workers that have not come back are asked for again."""
STOP_SECONDS = 120.0
"""For all jobs to write a checkpoint."""
_LOST = "lost"


class Dispatch:
    """One run of the jobs in a ledger.

    Args:
        ledger: the jobs, and what has become of them.
        options: of `ipe.experiments.jobs.run_job`.
        client: of the scheduler.
        cluster: this process's own, if it is.
        scheduler: the address, if it is not.
    """

    def __init__(
        self,
        ledger: Ledger,
        options: dict[str, Any],
        client: Client,
        cluster: LocalCluster | None,
        scheduler: str | None,
    ) -> None:
        self.ledger, self.options, self.client, self.cluster = ledger, options, client, cluster
        self.scheduler = scheduler
        self.wanted, self.whole_at = 0 if cluster is None else len(cluster.worker_spec), time.monotonic()
        self.token = secrets.token_hex(8)
        self.folder = str(ledger.store.folder.resolve())
        self.under_way: dict[str, tuple[Job, Any]] = {}
        self.ended: queue.Queue[str] = queue.Queue()
        self.heard: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()  # by Dask's thread
        self.marks: dict[str, Any] = {}
        self.submitted = 0
        self.width, self.width_at = 0, 0.0

    def run(self) -> None:
        """Until all jobs are done, or the wish to stop is granted."""
        self.client.subscribe_topic(topic(self.token), lambda event: self.heard.put(event[1]))
        ledger = self.ledger
        while (ledger.waiting or ledger.postponed or self.under_way) and not ledger.stop.is_set():
            self._submit()
            with contextlib.suppress(queue.Empty):
                self._end(self.ended.get(timeout=0.2))
            self._hear()
            ledger.tell()
            if self.client.status != "running":
                self._lost()
                return
        self._stop()

    def _hear(self) -> None:
        while not self.heard.empty():
            said = self.heard.get()
            self.ledger.hear(said["job"], said["frame"], said["failed"])

    def _submit(self) -> None:
        if time.monotonic() - self.width_at > 1.0:  # workers come and go
            with contextlib.suppress(OSError):  # the scheduler is gone: the client will know in a moment
                self.width = sum(self.client.nthreads().values())
            self.width_at = time.monotonic()
            self._ask_for_missing()
        while len(self.under_way) < self.width and (job := self.ledger.next_job()) is not None:
            self.submitted += 1
            name = f"ipe-{self.token}-{self.submitted}-{job.id}"
            self.marks.setdefault(job.id, _mark(self.ledger, job))
            self.ledger.begin(job)
            future = self.client.submit(work, self.folder, job.id, self.token, self.options, key=name, pure=False)
            self.under_way[name] = (job, future)
            future.add_done_callback(lambda own: self.ended.put(own.key))

    def _ask_for_missing(self) -> None:
        """A worker process that takes too long to start is given up by Dask, and not replaced unless it is asked to."""
        if self.width >= self.wanted or self.cluster is None:
            self.whole_at = self.width_at
        elif self.width_at - self.whole_at > MISSING_SECONDS:
            self.whole_at = self.width_at
            self.cluster.scale(self.wanted)

    def _end(self, name: str) -> None:
        if name not in self.under_way:
            return
        job, future = self.under_way.pop(name)
        state, reason = self._outcome(job, future)
        if state == _LOST:
            self.ledger.again(job)
        else:
            self.ledger.end(job, state, reason)
        future.release()

    def _outcome(self, job: Job, future: Any) -> tuple[str, str]:
        from distributed import KilledWorker

        if future.status == "finished":
            state, reason = future.result()
            return str(state), str(reason)
        if future.status != "error":  # cancelled: the scheduler has forgotten it
            return _LOST, ""
        error = future.exception()
        if not isinstance(error, KilledWorker):
            return "failed", f"{type(error).__name__}: {' '.join(str(error).split())}"
        if (mark := _mark(self.ledger, job)) != self.marks[job.id]:
            self.marks[job.id] = mark
            return _LOST, ""  # it gets somewhere between its deaths
        return "failed", f"its process ended {error.allowed_failures + 1} times before the next checkpoint"

    def _stop(self) -> None:
        """Have what is under way write its checkpoints; those that take too long lose the work since their last."""
        deadline, asked = time.monotonic() + STOP_SECONDS, 0.0
        while self.under_way and time.monotonic() < deadline:
            if time.monotonic() - asked > 2.0:  # again, for workers that have just started
                with contextlib.suppress(Exception):  # a worker that is just ending, or a scheduler
                    self.client.run(request_stop, self.token, wait=False)
                asked = time.monotonic()
            with contextlib.suppress(queue.Empty):
                self._end(self.ended.get(timeout=0.2))
            if self.client.status != "running":
                break

    def _lost(self) -> None:
        where, jobs = self.scheduler or "this process", len(self.under_way)
        said = f"the Dask scheduler at {where} is gone, with {jobs} job{'s' * (jobs != 1)} under way"
        self.ledger.notes.append(said)


def _mark(ledger: Ledger, job: Job) -> Any:
    """What changes if a job gets somewhere: the frame of its newest checkpoint, and the hangs that it has on record."""
    folder = ledger.store.work_folder(job)
    try:
        newest = max((path.name.split("-")[1] for path in folder.glob("checkpoint-*.json")), default="")
    except OSError:
        newest = ""
    return (newest, read_hangs(folder))
