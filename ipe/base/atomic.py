"""Files that are whole or not there: written beside their place, flushed to disk, then renamed into it."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from ipe.errors import InputError

PART = re.compile(r"\.[0-9a-f]{16}\.part")
"""The name of a file before it is whole."""
_PART_SECONDS = 3600.0


def write_atomic(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Call `write(file)` on a new file and put it at `path`, replacing what was there, only if that succeeds. The
    folder of the path must exist; a link is followed, not replaced."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {target.parent}")
    beside = _beside(target)
    try:
        _write_new(beside, write)
        os.replace(beside, target)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):  # still there only if something failed
            beside.unlink()
    _flush_folder(target.parent)


def write_bytes(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
    """`write_atomic` of a content that is there already."""
    write_atomic(path, lambda file: file.write(content))


def create_exclusive(path: Path, data: bytes) -> bool:
    """Write a file that is not there yet, whole, or leave nothing of it; of several processes that try, on any machine,
    one gets True."""
    beside = _beside(path)
    try:
        _write_new(beside, lambda file: file.write(data))
        try:
            os.link(beside, path)
        except FileExistsError:
            # The answer to a link that was made may be lost on the way, and the link asked for again.
            return beside.stat().st_nlink > 1
        except OSError:  # a file system without links: exclusive all the same, but it can be seen half-written
            try:
                _write_new(path, lambda file: file.write(data))
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


def remove_old_parts(folder: Path) -> None:
    """Remove the parts of files that processes left when they were killed, if the parts are an hour old."""
    for name in os.listdir(folder):
        if PART.fullmatch(name):
            with contextlib.suppress(OSError):  # what stays now goes next time
                if age(folder / name) > _PART_SECONDS:
                    (folder / name).unlink()


def check_folder(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that cannot be written to, or that holds files and must not be overwritten, before anything is
    computed for it. The folder need not exist."""
    if folder.is_dir() and any(folder.iterdir()) and not overwrite:
        raise InputError(f"out: {folder} is not empty; give --overwrite to replace files of the same names in it")
    nearest = folder.absolute()
    while not os.path.lexists(nearest):
        nearest = nearest.parent
    if not nearest.is_dir():
        raise InputError(f"out: {nearest if nearest != folder.absolute() else folder} is a file, not a folder")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"out: cannot write to {nearest}")


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all of them into a folder, which is made if need be; or, if one cannot be written, none that is new."""
    new = [path for path in [*reversed(folder.absolute().parents), folder.absolute()] if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _remove(new)
        raise InputError(f"out: cannot make the folder {folder}: {error.strerror or error}") from None
    new += [folder / name for name in files if not (folder / name).exists()]
    try:
        for name, content in files.items():
            write_bytes(folder / name, content)
    except BaseException:
        _remove(new)
        raise


def _remove(paths: Sequence[Path]) -> None:
    """Take away what was made, folders after what is in them: half of it would be taken for all."""
    for path in reversed(paths):
        with contextlib.suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()


def _flush_folder(folder: Path) -> None:
    """The rename itself survives a power cut only once the folder is on disk; not every system can flush one."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _beside(path: Path) -> Path:
    return path.parent / f".{secrets.token_hex(8)}.part"


def _write_new(path: Path, write: Callable[[BinaryIO], object]) -> None:
    with open(path, "xb") as file:
        try:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()
            raise
