"""Training: a run of one setting for many seeds over the machine's cores, stopped and resumed at will.

A training run is a sweep of one setting. Its store keeps the networks, and the checkpoints, from which a finished run
can be given more frames.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ipe.base.cores import available_cores
from ipe.base.html import table
from ipe.behaviours import BEHAVIOURS
from ipe.deep.batches import most_seeds, seeds_per_batch, split_seeds
from ipe.deep.callbacks import Callback
from ipe.deep.checkpoints import newest_frame
from ipe.deep.data import Data, learning_from
from ipe.deep.defaults import default_settings
from ipe.deep.environments import EnvironmentSpec, make_environment
from ipe.deep.evaluating import evaluating_from
from ipe.deep.memory import check_training_memory
from ipe.deep.native import library
from ipe.deep.programs import architecture, check_spec
from ipe.deep.progress import Outcome, Progress
from ipe.deep.settings import TrainingSettings
from ipe.deep.stopping import stopping
from ipe.deep.tensorboard import check_tensorboard
from ipe.deep.transitions import Transitions
from ipe.errors import InputError
from ipe.experiments.announcing import Announcement, Say, to_standard_error
from ipe.experiments.calling import Calling, check_callbacks
from ipe.experiments.data_sets import read_data
from ipe.experiments.declared import Job, Sweep, read_seeds
from ipe.experiments.engine import run_jobs, status_of
from ipe.experiments.evaluation_tables import no_evaluations
from ipe.experiments.jobs import JobOptions
from ipe.experiments.leases import take_lease
from ipe.experiments.ledger import Ledger
from ipe.experiments.old_runs import carry_over, is_old_run, read_old_run
from ipe.experiments.printed_progress import PrintedProgress
from ipe.experiments.results import read_runs
from ipe.experiments.store import (
    CHECKPOINTS,
    NETWORKS,
    TRANSITIONS,
    Store,
    create_store,
    open_store,
    with_more_frames,
)
from ipe.experiments.watchdog import HANG_SECONDS
from ipe.updates import UPDATES

_LARGE = 100_000_000
"""The bytes from which on a checkpoint takes so long to write that it is said when a training stops."""
OnProgress = Callable[[Progress], bool | None]
"""Called with the progress of a batch, about once a second; True stops the training, with a checkpoint."""


@dataclass(frozen=True, repr=False)
class TrainingResult:
    """What a training run has come to: how each seed ended, and the records of all of them."""

    folder: Path
    """The folder of the run."""
    status: str
    """done; stopped, and can be resumed; or failed: some jobs could not be done, and can be resumed."""
    outcomes: list[Outcome]
    """The outcome of each seed."""
    episodes: pa.Table
    """A table with a row per episode, and the columns seed, frame, return and length."""
    progress: pa.Table
    """A table with a row per seed and a thousand frames, and the columns seed, frame, epsilon, entropy, td_error,
    ipe_error, q_mean and frames_per_second."""
    notes: list[str]
    """What went wrong on the way, in sentences."""
    evaluations: pa.Table = field(default_factory=no_evaluations)
    """A table with a row per seed and greedy evaluation while training, and the columns seed, frame, mean, returns and
    lengths, the last two lists with an entry per episode; without rows if there was none."""

    def __repr__(self) -> str:
        seeds, episodes = len(self.outcomes), self.episodes.num_rows
        return f"TrainingResult({self.status}: {seeds} seed{'s' * (seeds != 1)}, {episodes} episodes, in {self.folder})"

    def _repr_html_(self) -> str:
        seeds, returns = (self.episodes[name].to_numpy() for name in ("seed", "return"))
        rows = []
        for outcome in self.outcomes:
            last = returns[seeds == outcome.seed][-20:]
            mean = f"{last.mean():.1f}" if last.size else "-"
            rows.append([str(outcome.seed), outcome.status, str(outcome.frame), mean, outcome.reason])
        head = ["seed", "status", "frame", "return of the last 20 episodes", "why"]
        return table(repr(self), head, rows)


def train(
    settings: TrainingSettings | str,
    *,
    seeds: int | Sequence[int] = 1,
    out: str | os.PathLike[str] | None = None,
    processes: int | None = None,
    batch_seeds: int | None = None,
    checkpoint_seconds: float = 300.0,
    evaluate_every: int | None = None,
    evaluate_episodes: int | None = None,
    data: str | os.PathLike[str] | Transitions | None = None,
    data_seed: int | None = None,
    keep_transitions: bool = False,
    tensorboard: bool = False,
    callback: OnProgress | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
    say: Say | None = None,
) -> TrainingResult:
    r"""Train DQN with a behaviour of the paper, epsilon-IPE by default, for several seeds at once.

    The Q-network descends :math:`(r + \gamma \max_b Q^-(s',b) - Q(s,a))^2` on minibatches from the replay; the policy
    network descends :math:`\delta^2`, :math:`\delta = r + \gamma \sum_b \pi(b|s') Q^-(s',b) - Q^-(s,a)`, with
    :math:`Q^-` the target network; and :math:`\epsilon` of the behaviour, epsilon-greedy on Q, has the entropy of
    :math:`\pi(\cdot|s)` (Chan, De Asis and Sutton, 2020).

    Ctrl-C stops with a checkpoint, and so does SIGTERM; `resume` goes on. The result of a seed depends on its settings
    and the seed alone.

    Args:
        settings: what to train, or an environment's id, for what `default_settings` gives.
        seeds: how many seeds, from 0 on; or which.
        out: a new folder for the run. Default: `runs/ENVIRONMENT-BEHAVIOUR`.
        processes: how many processes train at the same time. Default: one per core. 0: train in this process, with JAX
            as it is configured here, one batch after the other; its numbers may round differently.
        batch_seeds: the seeds per process. Default: as many as its cache serves best.
        checkpoint_seconds: the seconds between checkpoints.
        evaluate_every: after every so many frames, each seed plays greedy episodes in environments of their own, and
            its networks are kept if these are its best so far (`load_agent(run, seed, which="best")`). The training is
            the same with and without. Default: never.
        evaluate_episodes: how many episodes each evaluation has. Default: 10.
        data: learn from these transitions alone, without acting: the folder of a run that kept its own, an .npz file
            (`ipe.audit.load_transitions`), `minari:NAME`, or `ipe.audit.Transitions`. Every frame is then an update of
            both networks; there is no warm-up, and the replay holds the whole data set. Default: act, and learn from
            that.
        data_seed: which seed's transitions of a run to learn from. Default: those of all its seeds.
        keep_transitions: whether to keep every transition in the run's folder, for `data` of another run.
        tensorboard: whether to write TensorBoard's files too.
        callback: called with each batch's progress; if it returns True, training stops.
        callbacks: these hear what happens to each seed, and can stop it (`ipe.deep.Callback`).
        progress: whether to print how far the training has come, to standard error: in place in a terminal or a
            notebook, else a line every half minute.
        say: called with sentences before the training starts: how images are read, and how long a long training will
            take, for which it is measured for some seconds; and when it stops with large checkpoints to write.
            Default: they go to standard error, if `progress` is on.

    Returns:
        How each seed ended, and the records of all seeds.

    Raises:
        InputError: for an environment or settings that do not fit; nothing is written then.
        KeyboardInterrupt: after Ctrl-C, when the checkpoints are written.
    """
    if isinstance(settings, str):
        settings = default_settings(settings)
    chosen = _seeds_of(seeds)
    folder = Path(out) if out is not None else default_folder(settings)
    heard = check_callbacks(callbacks)
    options, count = _options(checkpoint_seconds, processes, tensorboard, bool(heard))
    if count > 0:
        BEHAVIOURS.check_shared(settings.behaviour)
        UPDATES.check_shared(settings.policy_update)
    batch = _data(data, data_seed, settings, keep_transitions)
    if batch is not None:
        settings = learning_from(settings, batch)
    spec = _spec(settings, chosen)
    sweep = Sweep.of_one(settings, chosen, evaluating_from(evaluate_every, evaluate_episodes))
    jobs = _jobs(sweep, spec, count, batch_seeds)
    library.choose(architecture(settings, spec))
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; a run needs a new or an empty folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} exists and is not an empty folder; choose another, or resume the run in it")
    check_training_memory(settings, spec, [len(job.seeds) for job in jobs[: max(count, 1)]])
    say = say or (to_standard_error if progress else None)
    if say is not None:
        Announcement(settings, spec).say(say, sweep, jobs, count)
    keep = (NETWORKS, CHECKPOINTS) + (TRANSITIONS,) * keep_transitions
    store = create_store(folder, sweep, jobs, keep, batch)
    with _alone(store.folder):
        return _train(store, options, count, callback, progress, heard, say)


def training_jobs(
    settings: TrainingSettings,
    seeds: int | Sequence[int] = 1,
    *,
    processes: int | None = None,
    batch_seeds: int | None = None,
) -> tuple[Sweep, list[Job]]:
    """The sweep that a training run is, and its jobs, as `train` does them; nothing is started or written.

    Args:
        settings, seeds, processes, batch_seeds: as in `train`.

    Raises:
        InputError: for an environment or settings that do not fit.
    """
    chosen = _seeds_of(seeds)
    sweep = Sweep.of_one(settings, chosen)
    count = available_cores() if processes is None else processes
    return sweep, _jobs(sweep, _spec(settings, chosen), count, batch_seeds)


def _seeds_of(seeds: Any) -> list[int]:
    """How many seeds, or which: a list, or another sequence of whole numbers, as NumPy's arrays are."""
    if isinstance(seeds, str | bytes) or not isinstance(seeds, Iterable):
        return read_seeds(seeds)
    return read_seeds([seed.item() if hasattr(seed, "item") else seed for seed in seeds])


def _spec(settings: TrainingSettings, seeds: Sequence[int]) -> EnvironmentSpec:
    """The spaces of the environment; it is refused here, and not in a process."""
    environment = make_environment(settings.environment, seeds[0])
    environment.close()
    check_spec(settings, environment.spec)
    return environment.spec


def _data(source: Any, seed: int | None, settings: TrainingSettings, keep_transitions: bool) -> Data | None:
    """The data set to learn from, if there is one."""
    if source is None:
        if seed is not None:
            raise InputError("data_seed chooses among the seeds of data, which is not given")
        if settings.data:
            raise InputError("data: a checksum is not enough, give the data set itself")
        return None
    if keep_transitions:
        raise InputError("keep_transitions has no effect with data: the agent does not act")
    return read_data(source, settings.environment, seed)


def _jobs(sweep: Sweep, spec: EnvironmentSpec, processes: int, batch_seeds: int | None) -> list[Job]:
    (setting,) = sweep.settings
    limit = most_seeds(setting.settings, spec.image, spec.actions)
    if batch_seeds is not None and not 1 <= batch_seeds <= limit:
        raise InputError(f"batch_seeds must lie between 1 and {limit}, found {batch_seeds}")
    most = batch_seeds or min(limit, seeds_per_batch(setting.settings, spec.image))
    return [Job(setting.key, tuple(batch)) for batch in split_seeds(sweep.seeds, most, max(processes, 1))]


def resume(
    folder: str | os.PathLike[str],
    *,
    frames: int | None = None,
    processes: int | None = None,
    checkpoint_seconds: float = 300.0,
    tensorboard: bool = False,
    callback: OnProgress | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
    say: Say | None = None,
) -> TrainingResult:
    """Go on with a run that was stopped, as if it had never been stopped: the same bytes come out.

    Args:
        folder: the folder of the run. A run of an earlier version is turned into one of this version.
        frames: the number of frames that the run is to have in all. Default: as many as it was begun with. A seed that
            a callback has stopped stays stopped.
        processes, checkpoint_seconds, tensorboard, callback, callbacks, progress, say: as in `train`.
    """
    heard = check_callbacks(callbacks)
    options, count = _options(checkpoint_seconds, processes, tensorboard, bool(heard))
    path = Path(folder)
    open_run(path)  # refused before anything is written
    with _alone(path):
        store = carry_over(read_old_run(path)) if is_old_run(path) else open_run(path)
        if frames is not None:
            store = with_more_frames(store, frames)
        say = say or (to_standard_error if progress else None)
        return _train(store, options, count, callback, progress, heard, say)


def open_run(folder: str | os.PathLike[str]) -> Store:
    """Open the store of a training run, or describe a run of an earlier version as one. A sweep of several settings is
    refused."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"there is no run {path}")
    if is_old_run(path):
        old = read_old_run(path)
        return Store(path, old.sweep, old.jobs, (NETWORKS, CHECKPOINTS))
    store = open_store(path)
    if (count := len(store.sweep.settings)) > 1:
        raise InputError(f"{path} holds a sweep of {count} settings; go on with: ipe sweep --resume {path}")
    return store


def default_folder(settings: TrainingSettings) -> Path:
    """Return `runs/ENVIRONMENT-BEHAVIOUR`, with what a file's name cannot have replaced."""
    name = "".join(c if c.isalnum() or c in "-._" else "-" for c in settings.environment.id)
    return Path("runs") / f"{name}-{settings.behaviour}"


def unfinished_frames(store: Store) -> list[int]:
    """Return the frames that each seed of a run has done that is still in training, as of its newest checkpoint."""
    frames = []
    for job in store.jobs:
        if store.publication(job, verify=False) is None:
            frames += [newest_frame(store.work_folder(job)) or 0] * len(job.seeds)
    return frames


def _train(
    store: Store,
    options: JobOptions,
    processes: int,
    callback: OnProgress | None,
    shown: bool,
    callbacks: Sequence[Callback],
    say: Say | None,
) -> TrainingResult:
    printed = PrintedProgress(len(store.sweep.seeds)) if shown else None
    numbers = {job.id: i for i, job in enumerate(store.jobs)}
    sizes: dict[str, int] = {}

    def say_stopping() -> None:
        if say is not None and max(sizes.values(), default=0) >= _LARGE:
            say(_about_stopping(max(sizes.values())))

    def report(job: Job, progress: Progress) -> bool | None:
        sizes[job.id] = progress.memory * len(job.seeds)
        numbered = replace(progress, batch=numbers[job.id])
        if printed is not None:
            printed.show(numbered)
        return None if callback is None else callback(numbered)

    if processes == 0:  # to end this process for an environment that hangs would not be for the library to decide
        options = replace(options, hang_seconds=None)
    with stopping() as stop:
        calling = Calling(callbacks, store, stop.set)
        ledger = Ledger(store, store.jobs, stop, report=report, ask=calling.ask, stopping=say_stopping)
        try:
            run_jobs(ledger, options, processes)
        finally:
            calling.end()
    if printed is not None:
        printed.end()
    if calling.error is not None:
        raise calling.error
    if stop.signal is not None:
        raise KeyboardInterrupt("stopped, with checkpoints")
    if ledger.refused:
        raise InputError(ledger.refused[0])
    (runs,) = read_runs(store.folder)
    tables = runs.episodes, runs.progress, ledger.notes, runs.evaluations
    return TrainingResult(store.folder, status_of(ledger), runs.outcomes, *tables)


def _about_stopping(size: int) -> str:
    written = f"of up to {size / 1e6:.0f} MB; what the last one holds already is not written again"
    return f"stopping: each process writes a checkpoint {written} (a second Ctrl-C does not wait for it)"


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from training the same run: two of them would take the jobs from each other."""
    lease = take_lease(folder / "claims", "training")
    if lease is None:
        raise InputError(f"another process is training the run {folder}")
    try:
        yield
    finally:
        lease.finish()


def _options(
    checkpoint_seconds: float, processes: int | None, tensorboard: bool, events: bool
) -> tuple[JobOptions, int]:
    if not checkpoint_seconds >= 0.0:
        raise InputError(f"checkpoint_seconds must be 0 or more, found {checkpoint_seconds}")
    if processes is not None and processes < 0:
        raise InputError(f"processes must be 0 or more, found {processes}")
    if tensorboard:
        check_tensorboard()
    count = available_cores() if processes is None else processes
    return JobOptions(checkpoint_seconds, HANG_SECONDS, tensorboard, begin_again=False, events=events), count
