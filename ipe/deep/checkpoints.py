"""Checkpoints: the arrays and plain data of one frame, written whole or not at all, verified before they are used.

A checkpoint is two files: `checkpoint-FRAME-TOKEN.safetensors` with the arrays, and `checkpoint-FRAME-TOKEN.json`, the
manifest, with the data and the SHA-256 checksums of both files. Each file is flushed to disk before it gets its name,
and the manifest is written last. A reader who finds a manifest has a whole checkpoint, unless something damaged it
since; then the checksums say so, and the checkpoint before it is used. Nothing is pickled.

Large arrays, as the replay of images is one, are not in the file of the arrays but in chunks, which the checkpoints of
a folder share (`ipe.deep.chunks`): what has not changed since the checkpoint before is not written again. A chunk that
is damaged damages all checkpoints that share it.
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
from ipe.deep import chunks
from ipe.deep.tensors import check_arrays, describe_arrays, hash_file, write_tensors
from ipe.errors import InputError

FORMAT = "ipe.checkpoint"
SCHEMA, CHUNKED = 2, 3
"""The schemas that are written: without and with chunks. In schema 1, which is read too, the replay stood whole, with
the part that was empty."""
_READ = (1, 2, 3)
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
    stay are read and verified, and so are the chunks that the new one shares with them.

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
    sound: set[str] = set()
    manifest = _write(folder, checkpoint.frame, arrays, checkpoint.data, sound)
    _tidy(folder, manifest, keep, alone, sound)
    return manifest


def _write(folder: Path, frame: int, arrays: dict[str, NDArray[Any]], data: dict[str, Any], sound: set[str]) -> Path:
    # The time in the token orders checkpoints of the same frame, the rest keeps writers apart.
    stem = f"checkpoint-{frame:012d}-{time.time_ns():016x}{secrets.token_hex(4)}"
    tensors, manifest = folder / f"{stem}.safetensors", folder / f"{stem}.json"
    large = {name: array for name, array in arrays.items() if array.nbytes >= chunks.LARGE}
    arrays = {name: array for name, array in arrays.items() if name not in large}
    schema = CHUNKED if large else SCHEMA
    content: dict[str, Any] = {"format": FORMAT, "schema": schema, "frame": frame, "tensors": tensors.name}
    new: list[Path] = [tensors]
    try:
        if large:
            content["chunked"] = _write_large(folder, large, sound, new)
        content["sha256"], content["size"] = write_tensors(tensors, arrays)
        content |= {"arrays": describe_arrays(arrays), "data": data}
        write_bytes(manifest, sealed_bytes(content, "checkpoint", finite=False))
    except BaseException:
        if not manifest.exists():
            for path in new:
                path.unlink(missing_ok=True)
        raise
    return manifest


def _write_large(
    folder: Path, large: dict[str, NDArray[Any]], sound: set[str], new: list[Path]
) -> dict[str, dict[str, Any]]:
    """Write arrays as chunks; return what the manifest says about each: type, shape, and the chunks' checksums."""
    about = describe_arrays(large)
    return {name: about[name] | {"chunks": chunks.write_chunks(folder, large[name], sound, new)} for name in large}


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
    content = _verify(manifest, only=only)
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
    for name, about in content.get("chunked", {}).items():
        if name.startswith(only):
            try:
                arrays[name] = chunks.read_chunks(manifest.parent, about)
            except ValueError as error:
                raise _RefusedError(f"has damaged arrays: {error}") from None
    return Checkpoint(content["frame"], arrays, decode(content["data"]))


def _verify(manifest: Path, sound: set[str] | None = None, only: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the content of a manifest, if its files hold what was written to them.

    Args:
        manifest: the manifest.
        sound: the checksums of chunks that are known to be whole.
        only: the arrays whose names begin so are verified by who reads them, if they are in chunks.
    """
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
    for name, about in content.get("chunked", {}).items():
        if only is not None and name.startswith(only):
            continue
        for chunk in about["chunks"]:
            if chunk not in (sound or ()) and not chunks.is_whole(chunks.chunk_path(manifest.parent, chunk), chunk):
                raise _RefusedError(f"has damaged arrays: the chunk {chunk[:12]} is missing or has another content")
    return content


def _manifest_content(manifest: Path) -> dict[str, Any]:
    try:
        content = open_sealed(manifest.read_bytes())
        if content["tensors"] != f"{manifest.stem}.safetensors":
            raise InputError("it is the manifest of other arrays")
        form, schema = content["format"], content["schema"]
    except OSError as error:
        raise _RefusedError(f"cannot be read: {error.strerror or error}") from None
    except (InputError, KeyError, TypeError):
        raise _RefusedError("is damaged: it is not what was written") from None
    if form != FORMAT or schema not in _READ:
        raise _RefusedError(f"is of schema {schema!r:.40}; this version of ipe reads {_READ[0]} to {_READ[-1]}")
    if not _is_sensible(content):
        raise _RefusedError("describes no checkpoint: a field is missing or of a wrong kind")
    return content


def _is_sensible(content: dict[str, Any]) -> bool:
    """Whether a manifest has the fields of a checkpoint, and its chunks are as many as its large arrays take."""
    kinds = {"frame": int, "size": int, "sha256": str, "arrays": dict, "data": dict}
    if not all(isinstance(content.get(name), kind) for name, kind in kinds.items()):
        return False
    chunked = content.get("chunked", {})
    return isinstance(chunked, dict) and all(map(chunks.is_described, chunked.values()))


def _chunks_of(manifest: Path, sound: set[str]) -> set[str] | None:
    """Return the checksums of a checkpoint's chunks, empty if it has none; None if the checkpoint is not valid."""
    try:
        content = _verify(manifest, sound)
    except _RefusedError:
        return None
    return {chunk for about in content.get("chunked", {}).values() for chunk in about["chunks"]}


def _tidy(folder: Path, written: Path, keep: int, alone: bool, sound: set[str]) -> None:
    """Remove what is not needed any more. Only who is alone can tell an unfinished file from an abandoned one, and a
    chunk that nobody needs from one that somebody is about to share."""
    present = list(_files(folder))  # before the newest are chosen: what another process writes meanwhile stays
    present_chunks = chunks.chunk_files(folder)
    valid = ((path, _chunks_of(path, sound)) for path in _manifests(folder))
    newest = itertools.islice(((path, shared) for path, shared in valid if shared is not None), keep)
    kept, needed = {written.stem}, {chunks.chunk_path(folder, name) for name in sound}
    for path, shared in newest:
        kept.add(path.stem)
        needed |= {chunks.chunk_path(folder, name) for name in shared}
    files = [path for path in present if path.stem not in kept]
    if alone:
        files += [path for path in folder.iterdir() if PART.fullmatch(path.name)]
        files += [path for path in present_chunks if path not in needed]
    else:
        files = [path for path in files if path.with_suffix(".json") in files]
    for path in sorted(files, key=lambda path: path.suffix != ".json"):  # manifests first: they vouch for the rest
        with contextlib.suppress(OSError):  # the checkpoint is written; what stays now goes next time
            path.unlink()
