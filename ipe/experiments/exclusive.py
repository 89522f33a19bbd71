"""Files that one of several processes creates, and how old a file is on a folder that machines share."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from pathlib import Path

_PART = re.compile(r"\.[0-9a-f]{16}\.part")  # as ipe.base.atomic names a file before it is whole, too
_PART_SECONDS = 3600.0


def create_exclusive(path: Path, data: bytes) -> bool:
    """Write a file that is not there yet, whole; of several processes that try, on any machine, one gets True.

    Args:
        path: of the file, whose folder must exist.
        data: its content.

    Returns:
        False if the file is there already.

    Raises:
        OSError: if it cannot be written; nothing is left of it.
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
    """Seconds since a file was last written to, by the clock of its file system at both ends: a new file is compared
    with it. Clocks of hosts do not come into it.
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
    """Remove what processes that were killed while they wrote a file have left: parts of it, an hour old."""
    for name in os.listdir(folder):
        if _PART.fullmatch(name):
            with contextlib.suppress(OSError):  # what stays now goes next time
                if age(folder / name) > _PART_SECONDS:
                    (folder / name).unlink()


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
