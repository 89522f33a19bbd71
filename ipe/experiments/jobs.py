"""A job: some seeds of one setting, trained from their newest valid checkpoint to their end, and published.

The one code path of every engine: a Dask task, a shard of a job array and a plain loop all call `run_job`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.base.atomic import write_atomic
from ipe.deep.compilation import keep_memory, training_environment
from ipe.errors import InputError
from ipe.experiments.claims import Claim, ClaimLostError
from ipe.experiments.declared import Job
from ipe.experiments.store import Store, open_store
from ipe.experiments.watchdog import HANG_SECONDS, Watchdog

if TYPE_CHECKING:
    from ipe.deep.batches import Progress
    from ipe.deep.loop import Loop

CHECKPOINT_SECONDS = 120.0

Report = Callable[["Progress"], object]


def prepare_process() -> None:
    """Keep freed memory; hold JAX to one thread and give it its cache, if this process has not imported it yet."""
    keep_memory()
    if "jax" not in sys.modules:
        os.environ.update(training_environment(os.environ))


def run_job(
    folder: str | os.PathLike[str],
    job_id: str,
    *,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    hang_seconds: float = HANG_SECONDS,
    stopped: Callable[[], bool] | None = None,
    report: Report | None = None,
    say: Callable[[str], object] | None = None,
    bark: Callable[[str], object] | None = None,
) -> str:
    """Do a job of a sweep in this process; at once, if its result is there.

    Args:
        folder: of the store.
        job_id: the job's id.
        checkpoint_seconds: between checkpoints.
        hang_seconds: how long an environment may take for a step before the process is ended; see
            `ipe.experiments.watchdog`.
        stopped: asked after every frame. If it says so, a checkpoint is written, and the job is left.
        report: called with the progress about once a second.
        say: called with sentences for the user: a damaged checkpoint that was passed over.
        bark: called with a sentence before the process is ended for an environment that hangs.

    Returns:
        `done`: the result is there, by this process or another. `stopped`: it can be resumed. `claimed`: another
        process is at it.

    Raises:
        InputError: if it cannot be done: the environment, the disk; what was checkpointed stays.
    """
    prepare_process()
    store = open_store(folder)
    job = store.by_id.get(job_id)
    if job is None:
        raise InputError(f"{store.folder}: the sweep has no job {job_id}")
    if store.published(job):
        return "done"
    claim = store.claim(job)
    if claim is None:
        return "done" if store.published(job) else "claimed"
    try:
        with claim, Watchdog(store.work_folder(job), job.seeds, hang_seconds, bark) as watchdog:
            wants = stopped or (lambda: False)
            done = _train(store, job, claim, watchdog, checkpoint_seconds, wants, report, say)
    except ClaimLostError:
        return "claimed"
    if done:
        store.clean(job)
    return "done" if done else "stopped"


def attempt(folder: str | os.PathLike[str], job_id: str, **options: Any) -> tuple[str, str]:
    """`run_job`, with failures as data: one job's must not end the others.

    Args:
        folder, job_id, options: as for `run_job`.

    Returns:
        What `run_job` returned and an empty text; or `failed` and a sentence. The traceback of what is no InputError
        is left beside the job's checkpoints.
    """
    try:
        return run_job(folder, job_id, **options), ""
    except InputError as error:
        return "failed", str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an environment can raise anything, SystemExit too
        where = Path(folder) / "work" / job_id
        with contextlib.suppress(Exception):
            write_atomic(where / "traceback.txt", lambda file: file.write(traceback.format_exc().encode()))
        return "failed", f"{type(error).__name__}: {' '.join(str(error).split())} (see {where / 'traceback.txt'})"


def _train(
    store: Store,
    job: Job,
    claim: Claim,
    watchdog: Watchdog,
    checkpoint_seconds: float,
    stopped: Callable[[], bool],
    report: Report | None,
    say: Callable[[str], object] | None,
) -> bool:
    """Whether the job is done, and published."""
    from ipe.deep.batches import advance_loop, opened_loop  # JAX: after the process is prepared

    folder, settings = store.work_folder(job), store.sweep.by_key[job.key].settings
    begin, before = time.monotonic(), _spent(folder)

    def spent() -> float:
        return before + time.monotonic() - begin

    def tell(progress: Progress) -> None:
        wrong = sum(own.status in ("failed", "diverged") for own in progress.seeds)
        speed = progress.frames_per_second
        claim.note(frame=progress.frame, frames=progress.frames, frames_per_second=speed, failed=wrong)
        if report is not None:
            report(progress)

    options = {"pulse": watchdog.pulse, "give_up": watchdog.give_up}
    with opened_loop(
        folder, [settings] * len(job.seeds), job.seeds, _one_way(say), fresh_if_damaged=True, **options
    ) as loop:
        first = loop.frame
        advance_loop(
            loop,
            batch=0,
            report=tell,
            stopped=lambda: claim.lost or stopped(),
            save=lambda: _save(folder, loop, claim, spent()),
            checkpoint_seconds=checkpoint_seconds,
        )
        if loop.done:
            outcomes = [vars(own) for own in loop.outcomes]
            store.publish(claim, loop.records, outcomes, seconds=spent(), products=loop.program.products)
        elif loop.frame > first:
            _save(folder, loop, claim, spent())
        return loop.done


def _save(folder: Path, loop: Loop, claim: Claim, seconds: float) -> None:
    from ipe.deep.checkpoints import save_checkpoint

    if claim.lost:
        raise ClaimLostError(f"{claim.name}: another process has taken the job over")
    save_checkpoint(folder, loop.checkpoint())
    with contextlib.suppress(InputError):  # the checkpoint counts, not how long it took
        write_atomic(folder / "seconds.json", lambda file: file.write(json.dumps(seconds).encode()))


def _spent(folder: Path) -> float:
    """Seconds that earlier attempts have spent up to their last checkpoint."""
    try:
        return max(0.0, float(json.loads((folder / "seconds.json").read_bytes())))
    except (OSError, ValueError, TypeError):
        return 0.0


def _one_way(say: Callable[[str], object] | None) -> Callable[[str], None] | None:
    def tell(sentence: str) -> None:
        if say is not None:
            say(sentence)

    return tell
