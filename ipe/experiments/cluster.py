"""Jobs on the workers of a running Dask scheduler.

As many jobs are submitted as there are workers, no more: a worker that dies has then one job with it, which is the one
to suspect. Dask gives that job to another worker, where it goes on from its checkpoint. A job that ends its process
again and again without getting any further is given up.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import secrets
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.base.packages import missing_package
from ipe.deep.progress import Progress
from ipe.errors import InputError
from ipe.experiments.declared import Job
from ipe.experiments.jobs import JobOptions
from ipe.experiments.ledger import STOP_SECONDS, Ledger
from ipe.experiments.workers import request_stop, sees, topic, work

if TYPE_CHECKING:
    from distributed import Client

_CONNECT_SECONDS = 20.0
_LOST = "lost"


def check_scheduler(address: str) -> None:
    """Refuse, in a sentence, a machine without Dask and an address at which there is no scheduler."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        sentence = missing_package("a scheduler", "Dask", extra="sweeps")
        raise InputError(f"{sentence}; without it, leave the scheduler out, or give --shard") from None
    with _quiet():
        _connected(address).close()


def run_on_cluster(ledger: Ledger, options: JobOptions, scheduler: str) -> None:
    """Do the jobs of a ledger on the workers of the scheduler at an address."""
    with _quiet(), contextlib.closing(_connected(scheduler)) as client:
        check_workers(client, ledger.store.folder)
        _Dispatch(ledger, options, client, scheduler).run()


def check_workers(client: Client, folder: Path) -> None:
    """Refuse workers that do not see the folder of the store; others may come later."""
    try:
        answers = client.run(sees, str(folder.resolve()))
    except Exception as error:  # whatever a worker without ipe, or with another one, raises
        said = " ".join(str(error).split())
        raise InputError(f"the scheduler's workers cannot run ipe: {type(error).__name__}: {said}") from None
    for address, why in answers.items():
        if why:
            raise InputError(f"the worker {address} cannot take part: {why}")


class _Dispatch:
    """One run of the jobs in a ledger by the workers of a scheduler."""

    def __init__(self, ledger: Ledger, options: JobOptions, client: Client, scheduler: str) -> None:
        self.ledger, self.options, self.client, self.scheduler = ledger, asdict(options), client, scheduler
        self.token = secrets.token_hex(8)
        self.folder = str(ledger.store.folder.resolve())
        self.under_way: dict[str, tuple[Job, Any]] = {}
        self.ended: queue.Queue[str] = queue.Queue()
        self.heard: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()  # filled by Dask's thread
        self.marks: dict[str, Any] = {}
        self.submitted = 0
        self.width, self.width_at = 0, 0.0

    def run(self) -> None:
        """Do the jobs until all are done, or until somebody asks to stop."""
        self.client.subscribe_topic(topic(self.token), lambda event: self.heard.put(event[1]))
        ledger = self.ledger
        while (ledger.waiting or ledger.postponed or self.under_way) and not ledger.stop.is_set():
            self._submit()
            with contextlib.suppress(queue.Empty):
                self._end(self.ended.get(timeout=0.2))
            while not self.heard.empty():
                said = self.heard.get()
                ledger.hear(ledger.store.by_id[said["job"]], Progress.from_plain(said["progress"]))
            ledger.tell()
            if self.client.status != "running":
                jobs = len(self.under_way)
                ledger.notes.append(
                    f"the Dask scheduler at {self.scheduler} is gone, with {jobs} job{'s' * (jobs != 1)} under way"
                )
                return
        self._stop()

    def _submit(self) -> None:
        if time.monotonic() - self.width_at > 1.0:  # workers come and go
            with contextlib.suppress(OSError):  # the scheduler is gone: the client will know in a moment
                self.width = sum(self.client.nthreads().values())
            self.width_at = time.monotonic()
        while len(self.under_way) < self.width and (job := self.ledger.next_job()) is not None:
            self.submitted += 1
            name = f"ipe-{self.token}-{self.submitted}-{job.id}"
            self.marks.setdefault(job.id, self.ledger.mark(job))
            self.ledger.begin(job)
            future = self.client.submit(work, self.folder, job.id, self.token, self.options, key=name, pure=False)
            self.under_way[name] = (job, future)
            future.add_done_callback(lambda ended: self.ended.put(ended.key))

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
        if (mark := self.ledger.mark(job)) != self.marks[job.id]:
            self.marks[job.id] = mark
            return _LOST, ""  # it gets somewhere between its deaths
        return "failed", f"its process ended {error.allowed_failures + 1} times before the next checkpoint"

    def _stop(self) -> None:
        """Have the jobs under way write checkpoints; those that take too long lose what came after their last."""
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


def _connected(address: str) -> Client:
    from distributed import Client

    made: list[Client] = []

    class Known(Client):  # type: ignore[misc]
        """A client that is known before it is connected."""

        def start(self, **options: Any) -> Any:
            made.append(self)
            return super().start(**options)

    try:
        return Known(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError, ImportError) as error:
        for client in made:  # left to Python's collector, it would wait for a lock that whoever is collecting may hold
            client.close()
        said = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"there is no Dask scheduler at {address}: {said}") from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's log, which tells of every lost connection; what matters is in the ledger."""
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
