"""Checkpoints: the arrays and plain data of one frame, written whole or not at all, verified before they are used.

A checkpoint is two files: `checkpoint-FRAME-TOKEN.safetensors` with the arrays, and `checkpoint-FRAME-TOKEN.json`, the
manifest, with the data and the SHA-256 checksums of both files. Each file is flushed to disk before it gets its name,
and the manifest is written last. A reader who finds a manifest has a whole checkpoint, unless something damaged it
since; then the checksums say so, and the checkpoint before it is used. Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ipe.base.atomic import PART, write_bytes
from ipe.base.files import entries
from ipe.base.sealed import decode, open_sealed, sealed_bytes
from ipe.base.words import refusing
from ipe.deep.tensors import check_arrays, describe_arrays, hash_file, write_tensors
from ipe.errors import InputError

FORMAT = "ipe.checkpoint"
SCHEMA = 2
"""The schema that is written. In schema 1, which is read too, the replay stood whole, with the part that was empty."""
_READ = (1, SCHEMA)
MAX_FRAME = 10**12 - 1

_NAME = re.compile(r"checkpoint-[0-9]{12}-[0-9a-f]{24}\.(json|safetensors)")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a batch of seeds needs to go on as if it had never stopped."""

    frame: int
    """The number of frames that are done."""
    arrays: dict[str, NDArray[Any]]
    """The arrays by name: booleans, integers and floats of any shape."""
    data: dict[str, Any]
    """Plain data: what JSON holds, and floats that are not finite."""


def under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class _RefusedError(Exception):
    """A checkpoint cannot be used; the message is the rest of a sentence that begins with the manifest's name."""


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int = 2, *, alone: bool = True) -> Path:
    """Write a checkpoint, then remove all but the newest valid ones.

    A failure or a kill, at any moment, leaves the checkpoints that were there. Arrays are not copied, except one at a
    time of those that are not in C order. Damaged checkpoints are removed too; for that, the earlier checkpoints that
    stay are read and verified.

    Args:
        folder: a folder for checkpoints alone; it is made if it is not there.
        checkpoint: what to write.
        keep: how many valid checkpoints stay, 1 or more. The new one stays in any case.
        alone: whether no other process writes checkpoints into this folder, as for the holder of a job's lease. Files
            without a manifest are then what a killed writer left behind, and are removed.

    Returns:
        The path of the manifest.

    Raises:
        InputError: for an array or data that the format cannot hold, and if the files cannot be written.

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
    sealed_bytes(checkpoint.data, "data", finite=False)  # refused before anything is written
    with refusing(f"cannot make the folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    manifest = _write(folder, checkpoint.frame, arrays, checkpoint.data)
    _tidy(folder, manifest, keep, alone)
    return manifest


def _write(folder: Path, frame: int, arrays: dict[str, NDArray[Any]], data: dict[str, Any]) -> Path:
    # The time in the token orders checkpoints of the same frame, the rest keeps writers apart.
    stem = f"checkpoint-{frame:012d}-{time.time_ns():016x}{secrets.token_hex(4)}"
    tensors, manifest = folder / f"{stem}.safetensors", folder / f"{stem}.json"
    content: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA, "frame": frame, "tensors": tensors.name}
    try:
        content["sha256"], content["size"] = write_tensors(tensors, arrays)
        content |= {"arrays": describe_arrays(arrays), "data": data}
        write_bytes(manifest, sealed_bytes(content, "checkpoint", finite=False))
    except BaseException:
        if not manifest.exists():
            tensors.unlink(missing_ok=True)
        raise
    return manifest


def load_checkpoint(
    folder: Path, report: Callable[[str], object] | None = None, only: tuple[str, ...] = ("",)
) -> Checkpoint | None:
    """Read the newest valid checkpoint: the one of the highest frame, and of those the last one written; None if the
    folder has none or is not there. Nothing is changed, and all files are verified whole, though `only` the arrays
    whose names begin so are loaded. `report` hears one sentence for each newer checkpoint that is damaged.

    Raises:
        InputError: if there are checkpoints and all are damaged; the sentence says what is wrong with the newest.
    """
    while True:
        manifests = _manifests(folder)
        refused = []
        for manifest in manifests:
            try:
                return _read(manifest, only)
            except _RefusedError as error:
                refused.append(f"{manifest.name} {error}")
                if report is not None and manifest.exists():
                    report(refused[-1])
        if not manifests:
            return None
        if _manifests(folder) == manifests:
            raise InputError(f"{folder}: none of the {len(manifests)} checkpoints is valid: {refused[0]}")
        # A writer was faster: it removed these after it had written newer ones.


def newest_frame(folder: Path) -> int | None:
    """Return the frame of the newest checkpoint in a folder, valid or not; None if there is none."""
    found = _manifests(folder)
    return int(found[0].name.split("-")[1]) if found else None


def _manifests(folder: Path) -> list[Path]:
    """List the manifests in a folder, the newest first."""
    return sorted((path for path in _files(folder) if path.suffix == ".json"), reverse=True)


def _files(folder: Path) -> list[Path]:
    """List the files of all checkpoints, whole or not."""
    return [path for path in entries(folder) if _NAME.fullmatch(path.name)]


def _read(manifest: Path, only: tuple[str, ...]) -> Checkpoint:
    content = _verify(manifest)
    wanted = [name for name in content["arrays"] if name.startswith(only)]
    try:
        with safe_open(manifest.with_suffix(".safetensors"), framework="np") as file:
            if set(file.keys()) != set(content["arrays"]):
                raise _RefusedError("does not describe its arrays")
            arrays: dict[str, NDArray[Any]] = {name: file.get_tensor(name) for name in wanted}
    except (OSError, SafetensorError) as error:
        raise _RefusedError(f"has arrays that cannot be read: {error}") from None
    if describe_arrays(arrays) != {name: content["arrays"][name] for name in wanted}:
        raise _RefusedError("does not describe its arrays")
    return Checkpoint(content["frame"], arrays, decode(content["data"]))


def _verify(manifest: Path) -> dict[str, Any]:
    """Return the content of a manifest, if both files hold what was written to them."""
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
        content = open_sealed(manifest.read_bytes())
        if content["tensors"] != f"{manifest.stem}.safetensors":
            raise InputError("it is the manifest of other arrays")
        form, schema = content["format"], content["schema"]
    except OSError as error:
        raise _RefusedError(f"cannot be read: {error.strerror or error}") from None
    except (InputError, KeyError):
        raise _RefusedError("is damaged: it is not what was written") from None
    if form != FORMAT or schema not in _READ:
        raise _RefusedError(f"is of schema {schema!r}; this version of ipe reads {_READ[0]} and {_READ[1]}")
    return content


def _is_valid(manifest: Path) -> bool:
    try:
        _verify(manifest)
    except _RefusedError:
        return False
    return True


def _tidy(folder: Path, written: Path, keep: int, alone: bool) -> None:
    """Remove what is not needed any more. Only who is alone can tell an unfinished file from an abandoned one."""
    present = list(_files(folder))  # before the newest are chosen: what another process writes meanwhile stays
    valid = (path for path in _manifests(folder) if path == written or _is_valid(path))
    kept = {written.stem, *(path.stem for path in itertools.islice(valid, keep))}
    files = [path for path in present if path.stem not in kept]
    if alone:
        files += [path for path in folder.iterdir() if PART.fullmatch(path.name)]
    else:
        files = [path for path in files if path.with_suffix(".json") in files]
    for path in sorted(files, key=lambda path: path.suffix != ".json"):  # manifests first: they vouch for the rest
        with contextlib.suppress(OSError):  # the checkpoint is written; what stays now goes next time
            path.unlink()
