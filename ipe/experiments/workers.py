"""What runs in Dask's worker processes: jobs, and the wish that they stop.

This module is also a preload for workers that somebody starts by hand (`dask worker ... --preload
ipe.experiments.workers`): it prepares the process for JAX, and lets Ctrl-C be for the one who started the sweep.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.experiments.jobs import attempt, prepare_process

if TYPE_CHECKING:
    from ipe.deep.batches import Progress

_STOPPED: set[str] = set()


def dask_setup(worker: Any) -> None:
    """Called by Dask in a new worker process, before its first task."""
    prepare_process()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def work(folder: str, job_id: str, token: str, options: dict[str, Any]) -> tuple[str, str]:
    """A job as a Dask task.

    Args:
        folder: of the store, as this machine sees it.
        job_id: the job's id.
        token: of the sweep's process, for `request_stop` and for the topic that progress is told to.
        options: others of `ipe.experiments.jobs.run_job`.

    Returns:
        As `ipe.experiments.jobs.attempt`.
    """
    from distributed import Status, get_worker

    worker = get_worker()

    def stopped() -> bool:
        # A worker that loses its scheduler closes, and waits some time for its task.
        return token in _STOPPED or worker.status is not Status.running

    def report(progress: Progress) -> None:
        wrong = sum(own.status in ("failed", "diverged") for own in progress.seeds)
        worker.log_event(topic(token), {"job": job_id, "frame": progress.frame, "failed": wrong})

    return attempt(folder, job_id, stopped=stopped, report=report, bark=_to_nobody, **options)


def topic(token: str) -> str:
    """The topic that the progress of a sweep's jobs is told to."""
    return f"ipe-{token}"


async def request_stop(token: str) -> None:
    """Have the jobs of a sweep's process that run in this worker write a checkpoint and end.

    A coroutine: Dask waits for the answer of a plain function, also from a worker that has none to give.
    """
    _STOPPED.add(token)


def sees(folder: str) -> str:
    """Why this worker cannot work on a store; empty if it can."""
    if not (Path(folder) / "sweep.json").is_file():
        return f"it does not see {Path(folder) / 'sweep.json'}"
    if not os.access(folder, os.W_OK):
        return f"it may not write to {folder}"
    return ""


def _to_nobody(sentence: str) -> None:
    """The seed's outcome will say it."""


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Have these environment variables for a while, for the processes that are started meanwhile."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
