"""A job: some seeds of one setting, trained from their newest valid checkpoint to their end, and published.

Every engine runs jobs by the same function: a worker of the local pool, a Dask task, a shard of a job array and a
training in this process all call `run_job`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.base.atomic import write_bytes
from ipe.deep.callbacks import Checkpointed, Ended, events_of, plain_event, plain_start
from ipe.deep.compilation import keep_memory, training_environment
from ipe.deep.progress import Progress, seed_progress
from ipe.deep.records import WINDOW
from ipe.deep.tensorboard import TensorBoard
from ipe.errors import InputError
from ipe.experiments.declared import Job
from ipe.experiments.leases import Lease, LeaseLostError
from ipe.experiments.publications import JobResult
from ipe.experiments.store import CHECKPOINTS, NETWORKS, TRANSITIONS, Store, earlier_job, open_store
from ipe.experiments.watchdog import HANG_SECONDS, Watchdog

if TYPE_CHECKING:
    from ipe.deep.loop import Loop

CHECKPOINT_SECONDS = 120.0
REPORT_SECONDS = 1.0


@dataclass(frozen=True)
class JobOptions:
    """How a job is done; nothing here changes what it comes to."""

    checkpoint_seconds: float = CHECKPOINT_SECONDS
    """The seconds between checkpoints."""
    hang_seconds: float | None = HANG_SECONDS
    """How long an environment may take for a step before the process is ended (see `ipe.experiments.watchdog`); None:
    as long as it likes."""
    tensorboard: bool = False
    """Whether to write TensorBoard's files, into the store's folder `tensorboard`."""
    begin_again: bool = True
    """Whether to begin again where all checkpoints of the job are damaged; otherwise the job is refused."""
    earlier: str | None = None
    """The folder of a store of the same settings with fewer frames. A job without checkpoints of its own begins from
    those that the job of the same seeds has kept there, if it has."""
    events: bool = False
    """Whether the events of the job are told, and their answer waited for (`ipe.deep.callbacks`)."""


Ask = Callable[[list[dict[str, Any]]], dict[int, str] | None]
"""Called with events, as plain data; returns which seeds are to stop and why, or None if nobody hears any more."""


class _UnheardError(Exception):
    """Nobody has answered an event: the caller's process is gone."""


def prepare_process() -> None:
    """Keep freed memory; hold JAX to one thread and give it its cache, if this process has not imported it yet."""
    keep_memory()
    if "jax" not in sys.modules:
        os.environ.update(training_environment(os.environ))


def run_job(
    folder: str | os.PathLike[str],
    job_id: str,
    *,
    stopped: Callable[[], bool] | None = None,
    report: Callable[[Progress], object] | None = None,
    say: Callable[[str], object] | None = None,
    bark: Callable[[str], object] | None = None,
    ask: Ask | None = None,
    **options: Any,
) -> str:
    """Do a job of a store in this process; return at once, if its result is there.

    Args:
        folder: the folder of the store.
        job_id: the job's id.
        stopped: asked after every frame. If it returns True, a checkpoint is written, and the job is left.
        report: called with the progress about once a second.
        say: called with sentences for the user: a damaged checkpoint that was passed over.
        bark: called with a sentence before the process is ended for an environment that hangs.
        ask: called with the job's events, if its options say so, and answers which seeds are to stop.
        options: the fields of `JobOptions`.

    Returns:
        `done`: the result is there, by this process or another. `stopped`: the job can be resumed. `claimed`: another
        process works on it.

    Raises:
        InputError: if the job cannot be done, because of the environment or the disk; its checkpoints stay.
    """
    prepare_process()
    how = JobOptions(**options)
    store = open_store(folder)
    job = store.by_id.get(job_id)
    if job is None:
        raise InputError(f"{store.folder}: the sweep has no job {job_id}")
    if store.published(job):
        return "done"
    lease = store.lease(job)
    if lease is None:
        return "done" if store.published(job) else "claimed"
    try:
        with lease, _watched(store, job, how, bark) as watched:
            work = _Work(store, job, lease, how, ask if how.events else None)
            done = work.train(watched, stopped or (lambda: False), report or _to_nobody, say or _to_nobody)
    except LeaseLostError:
        return "claimed"
    if done:
        store.clean(job)
    return "done" if done else "stopped"


def attempt(folder: str | os.PathLike[str], job_id: str, **options: Any) -> tuple[str, str]:
    """Call `run_job`, and return failures as data: the failure of one job must not end the others.

    Returns:
        What `run_job` returned and an empty text; `refused` and the sentence of an InputError; or `failed` and a
        sentence about any other exception, whose traceback is left beside the job's checkpoints.
    """
    try:
        return run_job(folder, job_id, **options), ""
    except InputError as error:
        return "refused", str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an environment can raise anything, SystemExit too
        where = Path(folder) / "work" / job_id / "traceback.txt"
        with contextlib.suppress(Exception):
            write_bytes(where, traceback.format_exc().encode())
        return "failed", f"{type(error).__name__}: {' '.join(str(error).split())} (see {where})"


class _Work:
    """A job that this process holds the lease on."""

    def __init__(self, store: Store, job: Job, lease: Lease, options: JobOptions, ask: Ask | None) -> None:
        self.store, self.job, self.lease, self.options = store, job, lease, options
        self._asks = ask
        self.folder = store.work_folder(job)
        self._begin, self._before = time.monotonic(), _seconds_before(self.folder)

    def train(
        self,
        watched: dict[str, Any],
        stopped: Callable[[], bool],
        report: Callable[[Progress], object],
        say: Callable[[str], object],
    ) -> bool:
        """Train until the job is done, and publish it; or until it is stopped, and leave a checkpoint."""
        with self._opened_loop(watched, say) as loop, self._board(loop) as board:
            first = loop.frame
            try:
                self._start(loop)
                self._advance(loop, board, stopped, report)
            except _UnheardError:  # a checkpoint here would pass over what the callbacks would have answered
                return False
            for note in loop.notes:
                say(note)
            if loop.frame > first and (not loop.done or CHECKPOINTS in self.store.keep):
                self._save(loop, board)
            elif board is not None:
                board.show(loop.records, loop.frame)
            if loop.done:
                self.store.publish(self.lease, self._result(loop))
                ends = [Ended(**vars(outcome)) for outcome in loop.outcomes]
                with contextlib.suppress(_UnheardError):
                    self._ask([plain_event(end) for end in ends])
            return loop.done

    def _start(self, loop: Loop) -> None:
        """Tell the callbacks of each seed that is in training, and of what it went through before."""
        if self._asks is not None:
            running = [outcome.seed for outcome in loop.outcomes if outcome.status == "running"]
            past = events_of(loop.records, running, -1, loop.frame)
            of_seed = {seed: [event for event in past if event.seed == seed] for seed in running}
            self._ask([plain_start(seed, loop.frame, events) for seed, events in of_seed.items()])

    def _ask(self, events: list[dict[str, Any]]) -> dict[int, str]:
        if self._asks is None or not events:
            return {}
        answer = self._asks(events)
        if answer is None:
            raise _UnheardError
        return {int(seed): reason for seed, reason in answer.items()}

    def _hear_callbacks(self, loop: Loop) -> None:
        """Tell the callbacks what has happened in this frame, and stop the seeds that they want to stop."""
        due = loop.frame % WINDOW == 0 or loop.frame == loop.frames
        if self._asks is not None and (due or (loop.evaluating is not None and loop.evaluating.due(loop.frame))):
            events = events_of(loop.records, loop.seeds, loop.frame - 1, loop.frame)
            for seed, reason in self._ask([plain_event(event) for event in events]).items():
                loop.stop(seed, reason)

    def _advance(
        self, loop: Loop, board: TensorBoard | None, stopped: Callable[[], bool], report: Callable[[Progress], object]
    ) -> None:
        saved = told = time.monotonic()
        frame_told = loop.frame
        while not loop.done and not self.lease.lost and not stopped():
            loop.advance()
            self._hear_callbacks(loop)
            now = time.monotonic()
            if now - told >= REPORT_SECONDS:
                self._tell(loop, (loop.frame - frame_told) / (now - told), report)
                told, frame_told = now, loop.frame
            if now - saved >= self.options.checkpoint_seconds and not loop.done:
                self._save(loop, board)
                saved = time.monotonic()
        self._tell(loop, (loop.frame - frame_told) / max(time.monotonic() - told, 1e-9), report)

    def _tell(self, loop: Loop, speed: float, report: Callable[[Progress], object]) -> None:
        seeds = seed_progress(loop.records, loop.outcomes, loop.frame, loop.best.scores.tolist())
        progress = Progress(0, loop.frame, loop.frames, speed, loop.memory, seeds)
        self.lease.note(frame=loop.frame, frames=loop.frames, frames_per_second=speed, failed=progress.lost)
        report(progress)

    def _save(self, loop: Loop, board: TensorBoard | None) -> None:
        from ipe.deep.checkpoints import save_checkpoint

        if self.lease.lost:
            raise LeaseLostError(f"{self.job.id}: another process has taken the job over")
        if board is not None:
            board.show(loop.records, loop.frame)
        save_checkpoint(self.folder, loop.checkpoint(), keep=1 if loop.done else 2)
        with contextlib.suppress(InputError):  # the checkpoint counts, not how long it took
            write_bytes(self.folder / "seconds.json", json.dumps(self._seconds()).encode())
        running = [outcome.seed for outcome in loop.outcomes if outcome.status == "running"]
        with contextlib.suppress(_UnheardError):  # the next event will say so
            self._ask([plain_event(Checkpointed(seed, loop.frame, str(self.folder))) for seed in running])

    def _result(self, loop: Loop) -> JobResult:
        outcomes = [vars(outcome) for outcome in loop.outcomes]
        kept = NETWORKS in self.store.keep
        networks, best = (loop.networks(), loop.best.arrays()) if kept else ({}, {})
        products, evaluating = loop.program.products, loop.evaluating
        return JobResult(loop.records, outcomes, self._seconds(), products, networks, evaluating, best, loop.kept())

    def _seconds(self) -> float:
        """Return the seconds that this attempt and those before it have spent."""
        return self._before + time.monotonic() - self._begin

    @contextlib.contextmanager
    def _opened_loop(self, watched: dict[str, Any], say: Callable[[str], object]) -> Iterator[Loop]:
        from ipe.deep.checkpoints import load_checkpoint
        from ipe.deep.loop import Loop  # JAX: after the process is prepared

        setting = self.store.sweep.by_key[self.job.key]
        try:
            checkpoint = load_checkpoint(self.folder, say)
            if checkpoint is None and self.options.earlier is not None:
                shorter = open_store(self.options.earlier)
                if (job := earlier_job(shorter, setting, self.job.seeds)) is not None:
                    checkpoint = load_checkpoint(shorter.work_folder(job), say)
        except InputError:
            if not self.options.begin_again:
                raise
            checkpoint = None
        settings = setting.settings
        evaluating, seeds = self.store.sweep.evaluating, self.job.seeds
        source: dict[str, Any] = {"data": self.store.data(settings), "keep_transitions": TRANSITIONS in self.store.keep}
        loop = Loop([settings] * len(seeds), seeds, checkpoint, evaluating=evaluating, **source, **watched)
        try:
            yield loop
        finally:
            loop.close()

    def _board(self, loop: Loop) -> contextlib.AbstractContextManager[TensorBoard | None]:
        if not self.options.tensorboard:
            return contextlib.nullcontext()
        return TensorBoard(self.store.folder / "tensorboard", loop.frame or None)


@contextlib.contextmanager
def _watched(
    store: Store, job: Job, options: JobOptions, bark: Callable[[str], object] | None
) -> Iterator[dict[str, Any]]:
    """Watch the job's environments; yields what `Loop` takes from a watchdog."""
    if options.hang_seconds is None:
        yield {}
        return
    with Watchdog(store.work_folder(job), job.seeds, options.hang_seconds, bark) as watchdog:
        yield {"pulse": watchdog.pulse, "give_up": watchdog.give_up}


def _seconds_before(folder: Path) -> float:
    """Return the seconds that earlier attempts have spent up to their last checkpoint."""
    try:
        return max(0.0, float(json.loads((folder / "seconds.json").read_bytes())))
    except (OSError, ValueError, TypeError):
        return 0.0


def _to_nobody(_: object) -> None:
    """Hear what nobody wants to hear."""
