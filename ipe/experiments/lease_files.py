"""The files of leases: how one of several processes creates a file, who holds it, and when it may be taken over.

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
import time
from pathlib import Path
from typing import Any

from ipe.base.sealed import open_sealed, sealed_bytes
from ipe.errors import InputError

FORMAT, SCHEMA = "ipe.claim", 1
_BEATS_WATCHED = 3.0
_SIZE = 2048
_NAME = re.compile(r"(?P<name>.+)\.(?P<generation>[0-9]{1,9})\.json")
_PART = re.compile(r"\.[0-9a-f]{16}\.part")  # as ipe.base.atomic names a file before it is whole, too
_PART_SECONDS = 3600.0
_PROC = Path("/proc")


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
    try:
        entries = os.listdir(folder)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"cannot read the folder {folder}: {error.strerror or error}") from None
    for entry in entries:
        if found := _NAME.fullmatch(entry):
            name, generation = found["name"], int(found["generation"])
            if name not in newest or newest[name][0] < generation:
                newest[name] = (generation, folder / entry)
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


def create_exclusive(path: Path, data: bytes) -> bool:
    """Write a file that is not there yet, whole; of several processes that try, on any machine, one gets True.

    Args:
        path: the file, whose folder must exist.
        data: the file's content.

    Returns:
        False if the file is there already.

    Raises:
        OSError: if the file cannot be written; nothing is left of it.
    """
    beside = _beside(path)
    try:
        _write_new(beside, data)
        try:
            os.link(beside, path)
        except FileExistsError:
            # The answer to a link that was made may be lost on the way, and the link asked for again.
            return beside.stat().st_nlink > 1
        except OSError:  # a file system without links: exclusive all the same, but it can be seen half-written
            try:
                _write_new(path, data)
            except FileExistsError:
                return False
        return True
    finally:
        beside.unlink(missing_ok=True)


def age(path: Path) -> float:
    """Return the seconds since a file was last written to, by the clock of its file system alone.

    A new file in the same folder is compared with it, so that the clocks of hosts do not matter.
    """
    beside = _beside(path)
    try:
        beside.write_bytes(b"\n")
        now = beside.stat().st_mtime
    finally:
        beside.unlink(missing_ok=True)
    return now - path.stat().st_mtime


def moves(path: Path, seconds: float) -> bool:
    """Whether the content of a file changes within so many seconds."""
    before, deadline = path.read_bytes(), time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(min(0.5, seconds / 20))
        if path.read_bytes() != before:
            return True
    return False


def remove_old_parts(folder: Path) -> None:
    """Remove the parts of files that processes left when they were killed, if the parts are an hour old."""
    for name in os.listdir(folder):
        if _PART.fullmatch(name):
            with contextlib.suppress(OSError):  # what stays now goes next time
                if age(folder / name) > _PART_SECONDS:
                    (folder / name).unlink()


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


def _beside(path: Path) -> Path:
    return path.parent / f".{secrets.token_hex(8)}.part"


def _write_new(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()
            raise
