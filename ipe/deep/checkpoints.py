"""Checkpoints: arrays and plain data of one frame, whole or not there, verified before they are used.

One is two files, `checkpoint-FRAME-TOKEN.safetensors` with the arrays and `checkpoint-FRAME-TOKEN.json`, the manifest,
with the data and the sha256 of everything. Each is flushed to disk before it gets its name, the manifest last:
who finds a manifest has a whole checkpoint, unless something damaged it since, and then the hashes say so and the one
before is used. Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ipe.base.atomic import write_atomic
from ipe.deep.plain import decode, encode, json_text
from ipe.deep.tensors import check_arrays, describe_arrays, hash_file, write_tensors
from ipe.errors import InputError

FORMAT = "ipe.checkpoint"
SCHEMA = 1
MAX_FRAME = 10**12 - 1

_NAME = re.compile(r"checkpoint-[0-9]{12}-[0-9a-f]{24}\.(json|safetensors)")
_PART = re.compile(r"\.[0-9a-f]{16}\.part")  # as ipe.base.atomic names a file before it is whole


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a run needs to go on as if it had never stopped."""

    frame: int
    """The number of frames done."""
    arrays: dict[str, NDArray[Any]]
    """By name; booleans, integers and floats of any shape."""
    data: dict[str, Any]
    """What JSON holds, and floats that are not finite."""


def under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Those whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class _RefusedError(Exception):
    """A checkpoint that cannot be used; the message is the rest of a sentence that begins with the manifest's name."""


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int = 2) -> Path:
    """Write a checkpoint, then remove all but the newest valid ones.

    A failure, or a kill at any moment, leaves those that were there. Arrays are not copied, but for one at a time of
    those that are not in C order. Damaged checkpoints and what killed writers left behind are removed too; for that
    the earlier checkpoints that stay are read and verified. Writers in one folder wait for each other.

    Args:
        folder: for checkpoints alone; made if it is not there.
        checkpoint: what to write.
        keep: how many valid checkpoints stay, 1 or more. The new one does in any case.

    Returns:
        The manifest.

    Raises:
        InputError: for an array or data that the format does not hold, and if the files cannot be written.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> with tempfile.TemporaryDirectory() as name:
        ...     _ = save_checkpoint(Path(name), Checkpoint(7, {"q": np.ones(2)}, {"state": 2**127}))
        ...     found = load_checkpoint(Path(name))
        >>> found
        Checkpoint(frame=7, arrays={'q': array([1., 1.])}, data={'state': 170141183460469231731687303715884105728})
    """
    if not 0 <= checkpoint.frame <= MAX_FRAME:
        raise InputError(f"frame = {checkpoint.frame} must lie between 0 and {MAX_FRAME}")
    if keep < 1:
        raise InputError(f"keep = {keep} must be 1 or more")
    arrays = check_arrays(checkpoint.arrays)
    data = encode(checkpoint.data, "data")
    json_text(data, "data")  # refuse before anything is written
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
    with _alone(folder) as alone:
        manifest = _write(folder, checkpoint.frame, arrays, data)
        _tidy(folder, manifest, keep, alone)
    return manifest


def _write(folder: Path, frame: int, arrays: dict[str, NDArray[Any]], data: Any) -> Path:
    # The time in the token orders checkpoints of the same frame, the rest keeps writers apart.
    stem = f"checkpoint-{frame:012d}-{time.time_ns():016x}{secrets.token_hex(4)}"
    tensors, manifest = folder / f"{stem}.safetensors", folder / f"{stem}.json"
    content: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA, "frame": frame, "tensors": tensors.name}
    try:
        written: list[tuple[str, int]] = []
        write_atomic(tensors, lambda file: written.append(write_tensors(file, arrays)))
        content["sha256"], content["size"] = written[0]
        content |= {"arrays": describe_arrays(arrays), "data": data}
        write_atomic(manifest, lambda file: file.write(_manifest_bytes(content)))
    except BaseException:
        if not manifest.exists():
            tensors.unlink(missing_ok=True)
        raise
    return manifest


def _manifest_bytes(content: Any) -> bytes:
    text = json_text(content, "data")
    return f'{{"sha256": "{hashlib.sha256(text.encode()).hexdigest()}", "content": {text}}}\n'.encode()


def load_checkpoint(folder: Path, report: Callable[[str], None] | None = None) -> Checkpoint | None:
    """The newest valid checkpoint: the one of the highest frame, and of those the last written.

    Args:
        folder: where `save_checkpoint` wrote it. Nothing in it is changed.
        report: called with one sentence for each newer checkpoint that is damaged.

    Returns:
        The checkpoint, or None if the folder has none or is not there.

    Raises:
        InputError: if there are checkpoints and all are damaged; the sentence says what the newest suffers from.
    """
    while True:
        manifests = _manifests(folder)
        refused = []
        for manifest in manifests:
            try:
                return _read(manifest)
            except _RefusedError as error:
                refused.append(f"{manifest.name} {error}")
                if report is not None and manifest.exists():
                    report(refused[-1])
        if not manifests:
            return None
        if _manifests(folder) == manifests:
            raise InputError(f"{folder}: none of the {len(manifests)} checkpoints is valid: {refused[0]}")
        # A writer was faster: it removed these after it had written newer ones.


def _manifests(folder: Path) -> list[Path]:
    """The newest first."""
    return sorted((path for path in _files(folder) if path.suffix == ".json"), reverse=True)


def _files(folder: Path) -> list[Path]:
    """The files of all checkpoints, whole or not."""
    try:
        return [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot read the folder {folder}: {error.strerror or error}") from None


def _read(manifest: Path) -> Checkpoint:
    content = _verify(manifest)
    try:
        arrays: dict[str, NDArray[Any]] = load_file(manifest.with_suffix(".safetensors"))
    except (OSError, SafetensorError) as error:
        raise _RefusedError(f"has arrays that cannot be read: {error}") from None
    if describe_arrays(arrays) != content["arrays"]:
        raise _RefusedError("does not describe its arrays")
    return Checkpoint(content["frame"], {name: arrays[name] for name in content["arrays"]}, decode(content["data"]))


def _verify(manifest: Path) -> dict[str, Any]:
    """The content of a manifest, if both files hold what was written to them."""
    content = _manifest_content(manifest)
    tensors = manifest.with_suffix(".safetensors")
    try:
        size = tensors.stat().st_size
        if size != content["size"]:
            raise _RefusedError(f"has arrays in {size} bytes instead of {content['size']}")
        if hash_file(tensors) != content["sha256"]:
            raise _RefusedError("has damaged arrays: their sha256 is another")
    except OSError as error:
        raise _RefusedError(f"has arrays that cannot be read: {error.strerror or error}") from None
    return content


def _manifest_content(manifest: Path) -> dict[str, Any]:
    try:
        found = manifest.read_bytes()
        content = json.loads(found)["content"]
        whole = _manifest_bytes(content) == found and content["tensors"] == f"{manifest.stem}.safetensors"
        if whole and (content["format"], content["schema"]) != (FORMAT, SCHEMA):
            raise _RefusedError(f"is of schema {content['schema']!r}; this version of ipe reads {SCHEMA}")
    except OSError as error:
        raise _RefusedError(f"cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError, RecursionError):  # whatever can be wrong with damaged JSON
        whole = False
    if not whole:
        raise _RefusedError("is damaged: it is not what was written")
    return dict(content)


def _is_valid(manifest: Path) -> bool:
    try:
        _verify(manifest)
    except _RefusedError:
        return False
    return True


def _tidy(folder: Path, written: Path, keep: int, alone: bool) -> None:
    """Remove what is not needed any more. Only who is alone can tell an unfinished file from an abandoned one."""
    valid = (path for path in _manifests(folder) if path == written or _is_valid(path))
    kept = {written.stem, *(path.stem for path in itertools.islice(valid, keep))}
    files = [path for path in _files(folder) if path.stem not in kept]
    if alone:
        files += [path for path in folder.iterdir() if _PART.fullmatch(path.name)]
    else:
        files = [path for path in files if path.with_suffix(".json") in files]
    for path in sorted(files, key=lambda path: path.suffix != ".json"):  # manifests first: they vouch for the rest
        with contextlib.suppress(OSError):  # the checkpoint is written; what stays now goes next time
            path.unlink()


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Wait until no other writer is in the folder, and keep others out; False where the system has no such locks.

    The lock is the process's: a kill releases it.
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:  # some network folders
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
