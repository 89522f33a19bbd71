"""What runs in the workers of a Dask scheduler: jobs, and the request that they stop.

This module is also a preload for those workers (`dask worker ... --preload ipe.experiments.workers`): it prepares the
process for JAX, and leaves Ctrl-C to the process that started the sweep.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

from ipe.deep.progress import Progress
from ipe.experiments.jobs import attempt, prepare_process

_STOPPED: set[str] = set()


def dask_setup(worker: Any) -> None:
    """Prepare a new worker process; Dask calls this before the first task."""
    prepare_process()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def work(folder: str, job_id: str, token: str, options: dict[str, Any]) -> tuple[str, str]:
    """Do a job as a Dask task. The token is that of the process that runs the sweep, for `request_stop` and for the
    topic of the progress; the options are the fields of `ipe.experiments.jobs.JobOptions`."""
    from distributed import Status, get_worker

    worker = get_worker()

    def stopped() -> bool:
        # A worker that loses its scheduler closes, and waits some time for its task.
        return token in _STOPPED or worker.status is not Status.running

    def report(progress: Progress) -> None:
        worker.log_event(topic(token), {"job": job_id, "progress": progress.plain()})

    return attempt(folder, job_id, stopped=stopped, report=report, bark=lambda sentence: None, **options)


def topic(token: str) -> str:
    """Return the topic on which the progress of a sweep's jobs is told."""
    return f"ipe-{token}"


async def request_stop(token: str) -> None:
    """Have the jobs of one sweep that run in this worker write a checkpoint and end.

    A coroutine: Dask waits for the answer of a plain function, also from a worker that has none to give.
    """
    _STOPPED.add(token)


def sees(folder: str) -> str:
    """Return why this worker cannot work in a store; an empty text if it can."""
    if not (Path(folder) / "sweep.json").is_file():
        return f"it does not see {Path(folder) / 'sweep.json'}"
    if not os.access(folder, os.W_OK):
        return f"it may not write to {folder}"
    return ""
