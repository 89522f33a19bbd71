"""The local pool: worker processes on this machine, each of which does one job after the other.

A worker that dies is replaced, and its job goes on from its checkpoint. A job that ends its process again and again
without getting any further is given up.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
import time
from dataclasses import asdict

from ipe.deep.compilation import training_process
from ipe.deep.progress import Progress
from ipe.experiments.declared import Job
from ipe.experiments.jobs import JobOptions
from ipe.experiments.ledger import STOP_SECONDS, Ledger
from ipe.experiments.worker import ANSWER


class Pool:
    """One run of the jobs in a ledger by so many worker processes at the same time."""

    def __init__(self, ledger: Ledger, options: JobOptions, workers: int) -> None:
        self.ledger, self.options, self.workers = ledger, options, workers
        self._living: list[_Worker] = []
        self._heard: queue.Queue[tuple[_Worker, str | None]] = queue.Queue()

    def run(self) -> None:
        """Do the jobs until all are done, or until somebody asks to stop."""
        ledger = self.ledger
        try:
            while (ledger.waiting or ledger.postponed or self._busy()) and not ledger.stop.is_set():
                self._assign()
                self._hear(0.2)
                ledger.tell()
            self._stop()
        finally:
            # Something went wrong here, or Ctrl-C came twice: nothing may go on unwatched.
            _end(self._living, patience=0.0 if ledger.stop.urgent else 60.0)

    def _busy(self) -> bool:
        return any(worker.job is not None for worker in self._living)

    def _assign(self) -> None:
        """Give jobs to workers that have none, and start workers as long as there may be more."""
        while True:
            idle = next((worker for worker in self._living if worker.job is None), None)
            if idle is None and len(self._living) >= self.workers:
                return
            job = self.ledger.next_job()
            if job is None:
                return
            if idle is None:
                idle = _Worker(self.ledger.store.folder.resolve(), self.options, self._heard)
                self._living.append(idle)
            self.ledger.begin(job)
            idle.give(job)

    def _hear(self, seconds: float) -> None:
        """Take note of the next message of a worker, if one comes in time."""
        try:
            worker, line = self._heard.get(timeout=seconds)
        except queue.Empty:
            return
        if line is None:
            self._bury(worker)
            return
        ((kind, content),) = json.loads(line).items()
        if kind == "note":
            self.ledger.notes.append(content)
        elif worker.job is not None and kind == "ask":
            worker.answer(self.ledger.asked(worker.job, content))
        elif worker.job is not None and kind == "progress":
            self.ledger.hear(worker.job, Progress.from_plain(content))
        elif worker.job is not None:
            job, worker.job = worker.job, None
            self.ledger.end(job, *content)

    def _bury(self, worker: _Worker) -> None:
        self._living.remove(worker)
        code = worker.process.wait()
        worker.close()
        if worker.job is not None:
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            self.ledger.died(worker.job, how)

    def _stop(self) -> None:
        """Have the workers write their checkpoints and end; those that take too long are killed by `run`."""
        if self.ledger.stop.is_set() and self._busy():
            self.ledger.say_stopping()
        for worker in self._living:
            worker.process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        while self._living and time.monotonic() < deadline:
            self._hear(0.2)


class _Worker:
    """A worker process, and the job that it has."""

    def __init__(
        self, folder: os.PathLike[str], options: JobOptions, heard: queue.Queue[tuple[_Worker, str | None]]
    ) -> None:
        self.job: Job | None = None
        words = (str(folder), json.dumps(asdict(options)))
        # In a group of its own: Ctrl-C is for this process to hear.
        self.process = training_process("ipe.experiments.worker", *words, process_group=0)
        threading.Thread(target=self._listen, args=(heard,), daemon=True).start()

    def give(self, job: Job) -> None:
        """Have the worker do a job."""
        self.job = job
        self._write(job.id)

    def answer(self, answer: dict[int, str]) -> None:
        """Answer the events that the worker has told of: the seeds that are to stop, and why."""
        self._write(f"{ANSWER}{json.dumps(answer)}")

    def _write(self, line: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it is gone, which its listener will say
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()

    def close(self) -> None:
        """Close the pipes of the process, which has ended."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _listen(self, heard: queue.Queue[tuple[_Worker, str | None]]) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError, OSError):  # closed, since nobody wants to hear any more
            for line in self.process.stdout:
                heard.put((self, line.decode()))
        heard.put((self, None))


def _end(workers: list[_Worker], patience: float) -> None:
    """Have workers save what they have and end; those that do not within so many seconds are killed."""
    for worker in workers:
        worker.process.terminate()
        with contextlib.suppress(OSError):  # nobody will answer its events any more
            assert worker.process.stdin is not None
            worker.process.stdin.close()
    try:
        for worker in workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(patience)
    finally:
        for worker in workers:
            worker.process.kill()  # does nothing to a process that has ended
            worker.process.wait()
            worker.close()
