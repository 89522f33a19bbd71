"""Files that are whole or not there: written beside their place, flushed to disk, then renamed into it."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ipe.errors import InputError


def write_atomic(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Call `write(file)` on a new file and put it at `path`, replacing what was there, only if that succeeds.

    Args:
        path: where the file goes. Its folder must exist. A link is followed, not replaced.
        write: writes the content to the open binary file.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {target.parent}")
    beside = target.parent / f".{secrets.token_hex(8)}.part"
    try:
        with open(beside, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):  # still there only if something failed
            beside.unlink()
    _flush_folder(target.parent)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """`write_atomic` of a content that is there already."""
    write_atomic(path, lambda file: file.write(content))


def _flush_folder(folder: Path) -> None:
    """The rename itself survives a power cut only once the folder is on disk; not every system can flush one."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
