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

A process is known by its host, by the boot and the pid namespace (a container's) in which its number counts, by its
number, and by when it started, because numbers are given again. Only a process that shares the host, the boot and the
namespace can see that it is gone; about processes elsewhere nothing is known but their heartbeat.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ipe.base.atomic import age, create_exclusive, remove_old_parts
from ipe.base.files import entries
from ipe.base.sealed import open_sealed, sealed_bytes
from ipe.base.words import refusing
from ipe.errors import InputError

FORMAT, SCHEMA = "ipe.claim", 1
BEAT_SECONDS = 10.0
STALE_SECONDS = 120.0
_BEATS_WATCHED = 3.0
_SIZE = 2048
_NAME = re.compile(r"(?P<name>.+)\.(?P<generation>[0-9]{1,9})\.json")
_PROC = Path("/proc")


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
    """Take the lease on a job, if it is free or its holder is gone; None if another process has it. A holder that
    cannot be seen is gone after `stale_seconds`, several heartbeats, without one. The folder is made if it is not
    there.

    Raises:
        InputError: if the lease cannot be written.
    """
    for field, seconds in (("beat_seconds", beat_seconds), ("stale_seconds", stale_seconds)):
        if not 0.0 < seconds < threading.TIMEOUT_MAX:
            raise InputError(f"{field} must be a number above 0, found {seconds}")
    with refusing(f"cannot take the lease on {name} in {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        attempt, generation = 1, 0
        if generations := generations_of(folder, name):
            newest = lease_path(folder, name, max(generations))
            if not is_free(newest, beat_seconds, stale_seconds):
                return None
            before = read_lease(newest)
            attempt = 1 + (len(generations) if before is None else int(before["attempt"]))
            generation = max(generations) + 1
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


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"
    return text[:800] or type(error).__name__


def read_lease(path: Path) -> dict[str, Any] | None:
    """Read what a lease's file says; None if the file is damaged, or gone."""
    for _ in range(3):  # its holder may be in the middle of a heartbeat
        with contextlib.suppress(InputError, OSError):
            content = open_sealed(path.read_bytes())
            return content if content.get("format") == FORMAT and content.get("schema") == SCHEMA else None
        time.sleep(0.001)
    return None


def newest_leases(folder: Path) -> dict[str, Path]:
    """Return the file of the newest lease on each job that has one."""
    newest: dict[str, tuple[int, Path]] = {}
    for path in entries(folder):
        if found := _NAME.fullmatch(path.name):
            name, generation = found["name"], int(found["generation"])
            if name not in newest or newest[name][0] < generation:
                newest[name] = (generation, path)
    return {name: path for name, (_, path) in newest.items()}


def lease_path(folder: Path, name: str, generation: int) -> Path:
    """Return the path of a lease's file."""
    return folder / f"{name}.{generation}.json"


def generations_of(folder: Path, name: str) -> list[int]:
    """Return the generations of the leases on a job, in no order."""
    found = [_NAME.fullmatch(entry) for entry in os.listdir(folder) if entry.startswith(f"{name}.")]
    return [int(match["generation"]) for match in found if match and match["name"] == name]


def is_free(path: Path, beat_seconds: float, stale_seconds: float) -> bool:
    """Whether the newest lease on a job may be taken over; to know, the file may be watched for three heartbeats."""
    content = read_lease(path)
    if content is not None:
        if content["state"] != "held" or is_gone(content["owner"]):
            return True
        beat_seconds = max(beat_seconds, float(content["beat_seconds"]))
    try:
        return age(path) >= stale_seconds and not moves(path, _BEATS_WATCHED * beat_seconds)
    except FileNotFoundError:  # just published and removed; the next call sees that
        return False


def create_lease(folder: Path, content: dict[str, Any]) -> bool:
    """Write a new lease; False if its generation is taken."""
    path = lease_path(folder, content["job"], content["generation"])
    return create_exclusive(path, lease_bytes(content))


def lease_bytes(content: dict[str, Any]) -> bytes:
    """Return the content of a lease's file, always of the same length: a full disk does not stop a heartbeat."""
    return sealed_bytes(content, "claim", _SIZE)


def moves(path: Path, seconds: float) -> bool:
    """Whether the content of a file changes within so many seconds."""
    before, deadline = path.read_bytes(), time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(min(0.5, seconds / 20))
        if path.read_bytes() != before:
            return True
    return False


def this_process() -> dict[str, Any]:
    """Describe this process as a lease's owner: host, space (boot and pid namespace), pid, and started, in ticks."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "space": _space(), "pid": pid, "started": _started(pid)}


def is_gone(owner: dict[str, Any]) -> bool:
    """Whether a process has certainly ended; False if it lives, and if this process cannot know.

    Example:
        >>> is_gone(this_process())
        False
        >>> is_gone(this_process() | {"host": "elsewhere", "pid": 2**30})
        False
    """
    here = this_process()
    pid, started = owner.get("pid"), owner.get("started")
    if not isinstance(pid, int) or (owner.get("host"), owner.get("space")) != (here["host"], here["space"]):
        return False
    if here["space"]:
        return _started(pid) != started or started is None
    if os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's process
        return False
    return False


@functools.cache
def _space() -> str:
    """Name the space in which process numbers mean the same; empty where the system does not say."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat(_PROC / 'self/ns/pid').st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """Return when a living process started, in ticks since the boot; None if there is none, or only its remains."""
    try:
        # The second field is the program's name in brackets, which may hold anything.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None
