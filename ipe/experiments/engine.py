"""The engine: does the jobs of a store, in processes on this machine, on a Dask scheduler's workers, or right here.

Training runs and sweeps use the same engine. Whatever runs the jobs, each is `ipe.experiments.jobs.run_job` on a store
that all processes see. The engine holds nothing that is not in the store: if it is killed, the same call goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from ipe.base.cores import available_cores
from ipe.deep.progress import Progress
from ipe.deep.stopping import stopping
from ipe.errors import InputError
from ipe.experiments.declared import Job, Sweep, merged_jobs, seed_by_seed
from ipe.experiments.grids import jobs as make_jobs
from ipe.experiments.jobs import CHECKPOINT_SECONDS, JobOptions, attempt
from ipe.experiments.ledger import Ledger, SweepProgress
from ipe.experiments.store import CHECKPOINTS, NETWORKS, Store, continued_jobs, create_store, open_store
from ipe.experiments.watchdog import HANG_SECONDS

OnSweepProgress = Callable[[SweepProgress], bool | None]
"""Called with the sweep's progress, about once a second; True stops it, with checkpoints."""


@dataclass(frozen=True)
class SweepResult:
    """What a sweep, or a shard of one, has come to."""

    folder: Path
    """The folder of the sweep."""
    status: str
    """done; stopped, and the same call goes on; or failed: some jobs could not be done."""
    jobs: int
    """The number of jobs."""
    done: int
    """The number of jobs that are published."""
    failed: dict[str, str]
    """Why jobs could not be done, by their ids."""
    seeds: dict[str, int]
    """How many runs of the published jobs are done, failed and diverged."""
    notes: list[str]
    """What went wrong on the way, in sentences: each seed that failed or diverged among them."""


def run_sweep(
    sweep: Sweep,
    folder: str | os.PathLike[str],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    shard: tuple[int, int] | None = None,
    batch_seeds: int | None = None,
    keep_networks: bool = False,
    keep_checkpoints: bool = False,
    earlier: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    hang_seconds: float = HANG_SECONDS,
    callback: OnSweepProgress | None = None,
) -> SweepResult:
    """Run a sweep to its end, or go on with one that was stopped: what is published already is not done again.

    Ctrl-C stops with checkpoints, and so does SIGTERM; the same call goes on. The results depend on settings and seeds
    alone: not on workers, interruptions, or who else works on the folder at the same time.

    Args:
        sweep: what to run.
        folder: the folder of the store. If it holds this sweep, the sweep goes on; a sweep with more seeds or settings
            extends the store.
        workers: the number of processes on this machine. Default: one per core.
        scheduler: the address of a running Dask scheduler, whose workers see the folder, instead.
        shard: `(i, n)`: this process does the jobs i, i + n, i + 2n, ... one after the other. In a process that has
            imported JAX before, JAX is used as it is configured there; numbers may round differently then.
        batch_seeds: the most seeds in a job, for a new store. Default: as many as a process's cache serves best.
        keep_networks: whether a new store keeps the networks of every run, for `evaluate`, `watch` and the audit.
        keep_checkpoints: whether a new store keeps the last checkpoint of every run, which a longer sweep can begin
            from.
        earlier: the folder of a store of the same settings with fewer frames. Runs that it has kept the checkpoints of
            are not trained from their first frame, but go on from there; the results are the same.
        checkpoint_seconds: the seconds between checkpoints.
        hang_seconds: how long an environment may take for a step.
        callback: called with the progress; if it returns True, the sweep stops.

    Returns:
        What came out.

    Raises:
        InputError: for arguments, an environment or a folder that do not fit; nothing is written then.
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the checkpoints are written.
    """
    _check(workers, scheduler, shard, checkpoint_seconds, hang_seconds)
    if scheduler is not None:
        from ipe.experiments.cluster import check_scheduler

        check_scheduler(scheduler)
    jobs, begin = make_jobs(sweep, batch_seeds), None
    if earlier is not None:
        begin = str(Path(earlier).resolve())
        shorter = open_store(begin)
        if shorter.sweep.evaluating != sweep.evaluating:
            raise InputError(f"earlier: the runs in {earlier} were evaluated otherwise while they trained")
        jobs = merged_jobs(continued_jobs(shorter, sweep), jobs)
    keep = [NETWORKS] * keep_networks + [CHECKPOINTS] * keep_checkpoints
    store = create_store(folder, sweep, jobs, keep)
    options = JobOptions(checkpoint_seconds=checkpoint_seconds, hang_seconds=hang_seconds, earlier=begin)
    with stopping() as stop:
        ledger = Ledger(store, _chosen(store, shard), stop, callback)
        run_jobs(ledger, options, 0 if shard is not None else workers or available_cores(), scheduler)
        ledger.tell(at_once=True)
    if stop.signal is not None:
        raise KeyboardInterrupt("stopped, with checkpoints")
    return SweepResult(
        folder=store.folder,
        status=status_of(ledger),
        jobs=len(ledger.jobs),
        done=len(ledger.done),
        failed=ledger.failed,
        seeds=ledger.seeds,
        notes=ledger.notes + ledger.lost,
    )


def run_jobs(ledger: Ledger, options: JobOptions, workers: int, scheduler: str | None = None) -> None:
    """Do the jobs of a ledger, until all are done or until somebody asks to stop: by a Dask scheduler's workers, by so
    many processes on this machine, or, with 0 of them, in this process one after the other."""
    if not ledger.waiting or ledger.stop.is_set():
        return
    if scheduler is not None:
        from ipe.experiments.cluster import run_on_cluster

        run_on_cluster(ledger, options, scheduler)
    elif workers == 0:
        _run_here(ledger, options)
    else:
        from ipe.experiments.pool import Pool

        Pool(ledger, options, workers).run()


def status_of(ledger: Ledger) -> str:
    """Return what the jobs of a ledger have come to together: done, stopped or failed."""
    if ledger.failed:
        return "failed"
    return "done" if ledger.finished else "stopped" if ledger.stop.is_set() else "failed"


def _run_here(ledger: Ledger, options: JobOptions) -> None:
    while (job := ledger.next_job()) is not None or ledger.postponed:
        if ledger.stop.is_set():
            return
        if job is None:  # another process works on those that are left
            ledger.tell()
            ledger.stop.wait(0.5)
            continue

        def report(progress: Progress, job: Job = job) -> None:
            ledger.hear(job, progress)
            ledger.tell()

        def stopped() -> bool:
            if asked := ledger.stop.is_set():
                ledger.say_stopping()
            return asked

        ledger.begin(job)
        state, reason = attempt(
            ledger.store.folder,
            job.id,
            stopped=stopped,
            report=report,
            say=ledger.notes.append,
            ask=partial(ledger.asked, job),
            **asdict(options),
        )
        ledger.end(job, state, reason)
        ledger.tell()


def _chosen(store: Store, shard: tuple[int, int] | None) -> Sequence[Job]:
    jobs = seed_by_seed(store.sweep, store.jobs)
    return jobs if shard is None else jobs[shard[0] :: shard[1]]


def _check(
    workers: int | None,
    scheduler: str | None,
    shard: tuple[int, int] | None,
    checkpoint_seconds: float,
    hang_seconds: float,
) -> None:
    if workers is not None and workers < 1:
        raise InputError(f"workers must be 1 or more, found {workers}")
    if sum(given is not None for given in (workers, scheduler, shard)) > 1:
        raise InputError("give one of workers, scheduler and shard")
    if shard is not None and not 0 <= shard[0] < shard[1]:
        raise InputError(f"shard must be i/n with i from 0 to n - 1, found {shard[0]}/{shard[1]}")
    if not checkpoint_seconds >= 0.0:
        raise InputError(f"checkpoint_seconds must be 0 or more, found {checkpoint_seconds}")
    if not 0.0 < hang_seconds <= 1e6:
        raise InputError(f"hang_seconds must be above 0, and at most a million, found {hang_seconds}")
