"""Training: a run of many seeds over the machine's cores, stopped and resumed at will."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ipe.base.cores import available_cores
from ipe.deep.batches import Progress, train_batch
from ipe.deep.compilation import training_environment
from ipe.deep.environments import make_environment
from ipe.deep.loop import Outcome, architecture, check_spec
from ipe.deep.native import library
from ipe.deep.runs import Run, collect, create_run, extended, most_seeds, open_run, seeds_per_batch, split_seeds
from ipe.deep.settings import TrainingSettings, paper_settings
from ipe.deep.stopping import Stop, stopping
from ipe.deep.tensorboard import check_tensorboard
from ipe.errors import InputError

Callback = Callable[[Progress], bool | None]
"""Called with the progress of a batch, about once a second; True stops the training, with a checkpoint."""


@dataclass(frozen=True)
class TrainingResult:
    """What a run has come to."""

    folder: Path
    status: str
    """done; stopped, and can be resumed; or failed: some process ended, and can be resumed."""
    outcomes: list[Outcome]
    """Per seed."""
    episodes: pa.Table
    """seed, frame, return, length."""
    progress: pa.Table
    """seed, frame, epsilon, entropy, td_error, ipe_error, q_mean, frames_per_second."""
    notes: list[str]
    """What went wrong on the way, in sentences."""


def train(
    settings: TrainingSettings | str,
    *,
    seeds: int | Sequence[int] = 1,
    out: str | os.PathLike[str] | None = None,
    processes: int | None = None,
    batch_seeds: int | None = None,
    checkpoint_seconds: float = 300.0,
    tensorboard: bool = False,
    callback: Callback | None = None,
) -> TrainingResult:
    r"""Train DQN with a behaviour of the paper, epsilon-IPE by default, for several seeds at once.

    The Q-network descends :math:`(r + \gamma \max_b Q^-(s',b) - Q(s,a))^2` on minibatches from the replay; the policy
    network descends :math:`\delta^2`, :math:`\delta = r + \gamma \sum_b \pi(b|s') Q^-(s',b) - Q^-(s,a)`, with
    :math:`Q^-` the target network; and :math:`\epsilon` of the behaviour, epsilon-greedy on Q, has the entropy of
    :math:`\pi(\cdot|s)` (Chan, De Asis and Sutton, 2020).

    Ctrl-C stops with a checkpoint, and so does SIGTERM; `resume` goes on. The result of a seed depends on its settings
    and the seed alone.

    Args:
        settings: what to train (`paper_settings` has the paper's), or an environment's id, for the paper's settings.
        seeds: how many, from 0 on; or which.
        out: a new folder for the run. Default: `runs/ENVIRONMENT-BEHAVIOUR`.
        processes: how many train at the same time. Default: one per core. 0: in this process, with JAX as it is
            configured here, one batch after the other; its numbers may round differently.
        batch_seeds: seeds per process. Default: as many as its cache serves best.
        checkpoint_seconds: between checkpoints.
        tensorboard: whether to write TensorBoard's files too.
        callback: called with each batch's progress; if it returns True, training stops.

    Returns:
        What came out.

    Raises:
        InputError: for an environment or settings that do not fit; nothing is written then.
        KeyboardInterrupt: after Ctrl-C, when the checkpoints are written.
    """
    if isinstance(settings, str):
        settings = paper_settings(settings)
    chosen = _seeds(seeds)
    folder = Path(out) if out is not None else default_folder(settings)
    _check_number("checkpoint_seconds", checkpoint_seconds, 0.0)
    environment = make_environment(settings.environment, chosen[0])  # refused here, not in a process
    spec = environment.spec
    environment.close()
    check_spec(spec)
    image, limit = spec.image, most_seeds(settings, spec.image, spec.actions)
    if batch_seeds is not None and not 1 <= batch_seeds <= limit:
        raise InputError(f"batch_seeds must lie between 1 and {limit}, found {batch_seeds}")
    most = batch_seeds or min(limit, seeds_per_batch(settings, image))
    count = _processes(processes)
    library.choose(architecture(settings, spec))
    if tensorboard:
        check_tensorboard()
    run = create_run(folder, settings, split_seeds(chosen, most, max(count, 1)))
    with _locked(run.folder):
        return _train(run, count, checkpoint_seconds, tensorboard, callback)


def resume(
    folder: str | os.PathLike[str],
    *,
    frames: int | None = None,
    processes: int | None = None,
    checkpoint_seconds: float = 300.0,
    tensorboard: bool = False,
    callback: Callback | None = None,
) -> TrainingResult:
    """Go on with a run that was stopped, as if it had never been: the same bytes come out.

    Args:
        folder: of the run.
        frames: more of them than the run was to have. Default: as many.
        processes, checkpoint_seconds, tensorboard, callback: as in `train`.
    """
    _check_number("checkpoint_seconds", checkpoint_seconds, 0.0)
    count = _processes(processes)
    open_run(Path(folder))  # refused before anything is locked
    with _locked(Path(folder)):
        run = open_run(Path(folder))
        if frames is not None:
            run = extended(run, frames)
        return _train(run, count, checkpoint_seconds, tensorboard, callback)


def default_folder(settings: TrainingSettings) -> Path:
    """`runs/ENVIRONMENT-BEHAVIOUR`, with what a file's name cannot have replaced."""
    name = "".join(c if c.isalnum() or c in "-._" else "-" for c in settings.environment.id)
    return Path("runs") / f"{name}-{settings.behaviour}"


def _train(
    run: Run, processes: int, checkpoint_seconds: float, tensorboard: bool, callback: Callback | None
) -> TrainingResult:
    begin = time.monotonic()
    with stopping() as stop:
        here = _Here if processes == 0 else _Elsewhere
        status, notes = here(run, processes, checkpoint_seconds, tensorboard, callback, stop).run()
        run, records = collect(run, status, time.monotonic() - begin)
    if stop.signal is not None:
        raise KeyboardInterrupt
    outcomes = [Outcome(**own) for own in run.content["outcomes"]]
    return TrainingResult(run.folder, status, outcomes, records.episodes_table(), records.progress_table(), notes)


class _Trainer:
    """What training here and in processes have in common."""

    def __init__(
        self,
        run: Run,
        processes: int,
        checkpoint_seconds: float,
        tensorboard: bool,
        callback: Callback | None,
        stop: Stop,
    ) -> None:
        self.own = run
        self.processes = processes
        self.checkpoint_seconds = checkpoint_seconds
        self.tensorboard = tensorboard
        self.callback = callback
        self.stop = stop
        self.notes: list[str] = []

    def report(self, progress: Progress) -> None:
        """Pass it on; a True that comes back is a wish to stop."""
        if self.callback is not None and self.callback(progress):
            self.stop.set()


class _Here(_Trainer):
    """All batches in this process, one after the other."""

    def run(self) -> tuple[str, list[str]]:
        done = True
        for batch in range(len(self.own.batches)):
            done &= not self.stop.is_set() and train_batch(
                self.own,
                batch,
                report=self.report,
                stopped=self.stop.is_set,
                checkpoint_seconds=self.checkpoint_seconds,
                tensorboard=self.tensorboard,
                say=self.notes.append,
            )
        return ("done" if done else "stopped"), self.notes


class _Elsewhere(_Trainer):
    """A process per batch, as many at a time as were asked for."""

    def run(self) -> tuple[str, list[str]]:
        waiting = list(range(len(self.own.batches)))
        running: dict[int, subprocess.Popen[bytes]] = {}
        heard: queue.Queue[tuple[int, str | None]] = queue.Queue()
        states: dict[int, str] = {}
        told = False
        try:
            while waiting or running:
                while waiting and len(running) < self.processes and not self.stop.is_set():
                    batch = waiting.pop(0)
                    running[batch] = self._start(batch, heard)
                if self.stop.is_set() and not told:
                    waiting.clear()
                    for process in running.values():
                        process.terminate()
                    told = True
                with contextlib.suppress(queue.Empty):
                    self._hear(*heard.get(timeout=0.2), running, states)
        finally:
            # Something went wrong here, or Ctrl-C came twice: nothing is to go on unwatched.
            _end(list(running.values()), patience=0.0 if self.stop.urgent else 60.0)
        every = [states.get(batch, "stopped") for batch in range(len(self.own.batches))]
        status = "failed" if "failed" in every else "done" if set(every) == {"done"} else "stopped"
        return status, self.notes

    def _start(self, batch: int, heard: queue.Queue[tuple[int, str | None]]) -> subprocess.Popen[bytes]:
        words = [str(self.own.folder), str(batch), str(self.checkpoint_seconds), "1" if self.tensorboard else "0"]
        variables = training_environment(os.environ)
        # A module of the user's that registers an environment is found there as it is here.
        variables["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
        process = subprocess.Popen(
            [sys.executable, "-m", "ipe.deep.worker", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=variables,
            process_group=0,  # Ctrl-C is for this process to hear
        )

        def listen() -> None:
            assert process.stdout is not None
            with contextlib.suppress(ValueError, OSError):  # closed, since nobody wants to hear any more
                for line in process.stdout:
                    heard.put((batch, line.decode()))
            heard.put((batch, None))

        threading.Thread(target=listen, daemon=True).start()
        return process

    def _hear(
        self, batch: int, line: str | None, running: dict[int, subprocess.Popen[bytes]], states: dict[int, str]
    ) -> None:
        if line is None:
            process = running.pop(batch)
            code = process.wait()
            _close(process)
            if batch not in states and self.stop.is_set() and code == -signal.SIGTERM:
                states[batch] = "stopped"  # before it could hear: there was nothing to save
            elif batch not in states:
                states[batch] = "failed"
                how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
                self.notes.append(f"the process of seeds {self.own.batches[batch]} {how}")
            return
        message = json.loads(line)
        if "progress" in message:
            self.report(Progress.from_plain(message["progress"]))
        elif "note" in message:
            self.notes.append(message["note"])
        elif "refused" in message:
            raise InputError(message["refused"])
        else:
            states[batch] = next(iter(message))


def _end(processes: list[subprocess.Popen[bytes]], patience: float) -> None:
    """Have them save what they have and end; those that do not within so many seconds are killed."""
    for process in processes:
        process.terminate()
    try:
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
    finally:
        for process in processes:
            process.kill()  # does nothing to one that has ended
            process.wait()
            _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes of a process that has ended."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one process trains a run."""
    try:
        import fcntl
    except ImportError:  # not POSIX
        yield
        return
    with open(folder / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another process is training the run {folder}") from None
        yield


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    chosen = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not chosen:
        raise InputError(f"seeds must be at least one, found {seeds!r}")
    seen = set[int]()
    for i, seed in enumerate(chosen):
        if not 0 <= seed < 2**63:
            raise InputError(f"seeds[{i}] = {seed} must lie between 0 and 2^63 - 1")
        if seed in seen:
            raise InputError(f"seeds[{i}] = {seed} is there twice")
        seen.add(seed)
    return chosen


def _processes(processes: int | None) -> int:
    if processes is None:
        return available_cores()
    if processes < 0:
        raise InputError(f"processes must be 0 or more, found {processes}")
    return processes


def _check_number(name: str, value: float, low: float) -> None:
    if not value >= low:
        raise InputError(f"{name} must be {low:g} or more, found {value}")
