"""Jobs on Dask: a local cluster of one process per core, or a running scheduler's workers.

As many jobs are submitted as there are workers, no more: a worker that dies has then one job with it, which is the one
to suspect. Dask starts a new process and gives the job to it, or to another; the job goes on from its checkpoint. A job
that ends its process again and again without getting any further is given up, and said to be.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.deep.compilation import training_environment
from ipe.errors import InputError
from ipe.experiments.declared import Job
from ipe.experiments.ledger import Ledger
from ipe.experiments.watchdog import read_hangs
from ipe.experiments.workers import environment, request_stop, sees, topic, work

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

DEATHS = 3
"""Processes that a job may end before it is looked at whether it gets anywhere."""
STOP_SECONDS = 120.0
"""For all jobs to write a checkpoint."""
MISSING_SECONDS = 20.0
"""Until workers that have not come back are asked for again."""
LOST_SECONDS = 120.0
"""For a new worker process to start, on a busy machine; Dask gives up on it then, and another is asked for."""
_CONNECT_SECONDS = 20.0
_LOST = "lost"


def check_installed() -> None:
    """Refuse, in a sentence, where Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError(
            'sweeps over several processes need Dask, which is not installed: pip install "ipe[sweeps]"; '
            "or give --shard 0/1, which needs none"
        ) from None


def check_scheduler(address: str) -> None:
    """Refuse, in a sentence, an address at which there is no scheduler."""
    with _quiet():
        _connected(address).close()


def _connected(address: str) -> Client:
    from distributed import Client

    try:
        return Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError, ImportError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"there is no Dask scheduler at {address}: {said}") from None


def run_on_cluster(ledger: Ledger, options: dict[str, Any], workers: int, scheduler: str | None) -> None:
    """Do the jobs on Dask's workers.

    Args:
        ledger: the jobs, and what has become of them.
        options: of `ipe.experiments.jobs.run_job`.
        workers: processes of a local cluster.
        scheduler: the address of a running scheduler to use instead.
    """
    with _quiet(), _client(min(workers, len(ledger.waiting)), scheduler) as (client, cluster):
        if scheduler is not None:
            _check_workers(client, ledger.store.folder)
        _Run(ledger, options, client, cluster, scheduler).run()


@contextlib.contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[tuple[Client, LocalCluster | None]]:
    import dask
    from distributed import Client, LocalCluster

    if scheduler is not None:
        with contextlib.closing(_connected(scheduler)) as client:
            yield client, None
        return
    configuration = {
        "distributed.scheduler.allowed-failures": DEATHS - 1,
        "distributed.scheduler.worker-ttl": None,  # whether an environment hangs is for the watchdog to say
        "distributed.deploy.lost-worker-timeout": f"{LOST_SECONDS}s",
        "distributed.worker.daemon": False,  # environments may have processes of their own
    }
    with (
        environment(training_environment(os.environ)),  # as the worker processes are to find it when they start
        dask.config.set(configuration),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # None would be all of this machine's addresses
            worker_dashboard_address="127.0.0.1:0",
            memory_limit=0,  # Dask would pause or end workers whose replay is large
            silence_logs=logging.CRITICAL,
            preload=["ipe.experiments.workers"],
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client, cluster


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask's log tells of every lost connection; what matters is in the ledger."""
    import distributed  # noqa: F401 - it gives its loggers levels of their own

    known = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    loggers = [logging.getLogger(name) for name in ("distributed", *known, "tornado.application", "asyncio")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _check_workers(client: Client, folder: Path) -> None:
    """That those that are there see the folder; others may come later."""
    try:
        answers = client.run(sees, str(folder.resolve()))
    except Exception as error:  # whatever a worker without ipe, or with another one, raises
        said = " ".join(str(error).split())
        raise InputError(f"the scheduler's workers cannot run ipe: {type(error).__name__}: {said}") from None
    for address, why in answers.items():
        if why:
            raise InputError(f"the worker {address} cannot take part: {why}")


class _Run:
    """One run of the jobs in a ledger."""

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
