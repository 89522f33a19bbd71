"""Leases: which process works on a job, in folders that several machines share.

The lease on a job is a file `JOB.GENERATION.json`. It is written beside its place and then linked into it, which fails
if the name is taken: of all processes that try, one gets the generation. The highest generation is the lease; the
earlier files stay, so that no name is given twice, until the job is published. The holder's heartbeat, with its frame
and its speed, goes into the file that the holder has open, and never to a name: a process that wakes up after its lease
was taken over cannot write into its successor's file. To find out whether it is still the holder, it does not look,
which a network folder may answer from its memory: `Lease.confirm` links the next generation, as a newcomer would.

A lease may be taken over if its holder released it; if the holder's process is gone, which another process on the same
host can see; or if the file is older than `stale_seconds`, by the file system's own clock, and then no heartbeat comes
while one watches for three of them. The last is for machines that were suspended: a process that wakes up beats within
that time.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ipe.base.sealed import sealed_bytes
from ipe.errors import InputError
from ipe.experiments.lease_files import (
    FORMAT,
    SCHEMA,
    create_lease,
    generations_of,
    is_free,
    lease_bytes,
    lease_path,
    read_lease,
    remove_old_parts,
    this_process,
)

BEAT_SECONDS = 10.0
STALE_SECONDS = 120.0


class LeaseLostError(RuntimeError):
    """Another process has taken the lease over: what this process did for the job must not be published."""


class Lease:
    """A lease that this process holds: a context manager, whose heartbeat a thread keeps up.

    An exception that leaves the block marks the attempt as failed, with the reason; Ctrl-C and SystemExit only release
    the lease.
    """

    def __init__(self, folder: Path, content: dict[str, Any]) -> None:
        self.folder, self.name = folder, str(content["job"])
        self._content = content
        self._lock = threading.Lock()
        self._lost = False
        self._over = threading.Event()
        self._wake = threading.Event()
        self._file = self._open()
        threading.Thread(target=self._keep_up, name=f"lease {self.name}", daemon=True).start()

    @property
    def generation(self) -> int:
        """The number of this lease among the leases on the job."""
        return int(self._content["generation"])

    @property
    def attempt(self) -> int:
        """How many processes have had the job, this one included."""
        return int(self._content["attempt"])

    @property
    def path(self) -> Path:
        """The file of the lease."""
        return lease_path(self.folder, self.name, self.generation)

    @property
    def lost(self) -> bool:
        """Whether another process has taken over, as far as the last heartbeat saw. `confirm` makes sure."""
        return self._lost

    def note(self, **values: Any) -> None:
        """Write what the status shows of this job: frame, frames, frames_per_second, ...; with the next heartbeat."""
        sealed_bytes(values, "note")  # refused here, not in the thread
        self._content["note"] = values
        self._wake.set()

    def beat(self) -> None:
        """Write a heartbeat now."""
        with self._lock:
            if self._over.is_set() or self._lost:
                return
            if self._superseded():
                self._lost = True
                return
            self._content["beat"] += 1
            with contextlib.suppress(OSError):  # the next one may go through; if none does, the lease becomes stale
                self._write()

    def confirm(self) -> bool:
        """Make sure that this process still holds the lease, and renew it. False: the lease is lost."""
        with self._lock:
            if self._over.is_set() or self._lost:
                return False
            content = self._content | {"generation": self.generation + 1, "beat": self._content["beat"] + 1}
            if self._superseded() or not create_lease(self.folder, content):
                self._lost = True
                return False
            self._content = content
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = self._open()
            return True

    def release(self, reason: str = "") -> None:
        """Release the lease: another process may take the job at once.

        Args:
            reason: why the attempt failed. Default: it did not fail.
        """
        self._end({"state": "failed" if reason else "released", "reason": reason})

    def finish(self) -> None:
        """Release the lease on a job that is published: the files of all its leases are removed."""
        self._end(None)

    def _end(self, last: dict[str, Any] | None) -> None:
        with self._lock:
            if self._over.is_set():
                return
            self._over.set()
            self._wake.set()
            with contextlib.suppress(OSError):
                if last is None:
                    self._remove()
                elif not self._lost:
                    self._content |= last
                    self._content["beat"] += 1
                    self._write()
            with contextlib.suppress(OSError):
                os.close(self._file)

    def _remove(self) -> None:
        """Remove the files, the highest generation last: while it is there, no lower one can be taken for the lease."""
        for generation in sorted(generations_of(self.folder, self.name)):
            if generation <= self.generation:
                lease_path(self.folder, self.name, generation).unlink(missing_ok=True)
        remove_old_parts(self.folder)

    def _superseded(self) -> bool:
        try:
            held, found = os.fstat(self._file), os.stat(self.path)
        except FileNotFoundError:  # published and removed by another, or removed by hand
            return True
        except OSError:  # a network folder that does not answer says nothing
            return False
        same = (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino)
        return not same or os.path.lexists(lease_path(self.folder, self.name, self.generation + 1))

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))

    def _write(self) -> None:
        data = lease_bytes(self._content)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, data)
        os.ftruncate(self._file, len(data))
        os.fsync(self._file)  # a network folder's other readers see it from now on

    def _keep_up(self) -> None:
        seconds = float(self._content["beat_seconds"])
        while not self._over.is_set() and not self._lost:
            self._wake.wait(seconds)
            self._wake.clear()
            self.beat()
            self._over.wait(min(1.0, seconds / 10))  # notes that come quickly go together

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        failed = isinstance(error, Exception) and not isinstance(error, LeaseLostError)
        self.release(_said(error) if failed and error is not None else "")


def take_lease(
    folder: Path, name: str, *, beat_seconds: float = BEAT_SECONDS, stale_seconds: float = STALE_SECONDS
) -> Lease | None:
    """Take the lease on a job, if it is free or its holder is gone.

    Args:
        folder: the folder of the leases; it is made if it is not there.
        name: the name of the job, safe as a file's.
        beat_seconds: the seconds between heartbeats.
        stale_seconds: the seconds without a heartbeat after which a lease is taken over whose holder cannot be seen:
            several heartbeats.

    Returns:
        The lease; None if another process has it.

    Raises:
        InputError: if the lease cannot be written.
    """
    for field, seconds in (("beat_seconds", beat_seconds), ("stale_seconds", stale_seconds)):
        if not 0.0 < seconds < threading.TIMEOUT_MAX:
            raise InputError(f"{field} must be a number above 0, found {seconds}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        attempt, generation = 1, 0
        if generations := generations_of(folder, name):
            newest = lease_path(folder, name, max(generations))
            if not is_free(newest, beat_seconds, stale_seconds):
                return None
            attempt, generation = _attempts(newest, len(generations)) + 1, max(generations) + 1
        content = {
            "format": FORMAT,
            "schema": SCHEMA,
            "job": name,
            "generation": generation,
            "attempt": attempt,
            "state": "held",
            "reason": "",
            "owner": this_process(),
            "token": secrets.token_hex(8),
            "since": time.time(),
            "beat_seconds": float(beat_seconds),
            "beat": 0,
            "note": {},
        }
        return Lease(folder, content) if create_lease(folder, content) else None
    except OSError as error:
        raise InputError(f"cannot take the lease on {name} in {folder}: {error.strerror or error}") from None


def _attempts(newest: Path, before: int) -> int:
    """Return how many processes have had the job up to this lease; `before`, if the lease does not say."""
    content = read_lease(newest)
    return int(content["attempt"]) if content is not None else before


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"
    return text[:800] or type(error).__name__
