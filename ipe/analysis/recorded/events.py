"""TensorBoard's event files, read without TensorBoard or TensorFlow: scalars and texts, every checksum verified.

A file is a sequence of records: the length in 8 bytes, the length's masked CRC-32C, the data, the data's masked
CRC-32C. The data is an `Event`: a time, a step, and a summary of values, each with a tag.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from ipe.analysis.columns import Frames
from ipe.analysis.recorded.checksums import masked_crcs
from ipe.analysis.recorded.protobuf import fields, signed
from ipe.base.arrays import Array
from ipe.base.files import PathLike, naming, read_bytes
from ipe.errors import InputError

_LENGTH = struct.Struct("<QI")
_START = 1  # SessionLog.START: what was written before with this step or a later one was discarded
_FLOAT, _DOUBLE, _STRING = 1, 2, 7  # TensorProto.dtype
_Point = tuple[int, float, float]


@dataclass(frozen=True, eq=False)
class Scalar:
    """The values of one tag, in the order in which they were written."""

    steps: Frames
    """The step of each value."""
    values: Array
    """The values; NaN where a NaN was written."""
    times: Array
    """The wall-clock time of each value, in seconds since 1970."""


@dataclass(frozen=True, eq=False)
class Events:
    """What the event files of one folder hold."""

    scalars: dict[str, Scalar]
    """The scalars by their tags."""
    texts: dict[str, str]
    """The first text of each tag, as `SummaryWriter.add_text` writes it."""
    problems: list[str] = field(default_factory=list)
    """What a reader must know, in sentences: a record that is cut off, say."""


def is_events(path: Path) -> bool:
    """Whether a file's name is that of an event file."""
    return "tfevents" in path.name and path.is_file()


def read_events(files: Sequence[PathLike]) -> Events:
    """Read the event files of one run, in the order of their names, which begin with the time.

    A session that starts at a step (`SummaryWriter(purge_step=...)`, `ipe train --tensorboard` after a resume) discards
    what was written before with that step or a later one, as TensorBoard does. A second file whose values begin at a
    step that the first has passed, without saying so, goes on from a checkpoint: what it repeats is taken from the
    second file, and a problem says so.

    Args:
        files: the paths of the files.

    Raises:
        InputError: naming the file and the record, if a checksum is wrong or the steps of a tag go back within a file;
            and if two files both begin at the start, so that they are two runs. A last record that is cut off is a
            problem, not an error: the run may still be going.
    """
    points: dict[str, list[_Point]] = {}
    texts: dict[str, str] = {}
    problems: list[str] = []
    for path in sorted(map(Path, files), key=lambda path: path.name):
        new: dict[str, list[_Point]] = {}
        with naming(path):
            for number, (data, whole) in enumerate(_records(read_bytes(path))):
                if not whole:
                    problems.append(f"{path}: its last record, {number}, is cut off (the run may still be going)")
                    continue
                try:
                    _event(data, points, new, texts)
                except InputError as error:
                    raise InputError(f"record {number} is no event: {error}") from None
            for tag, values in new.items():
                _check_order(tag, values)
                if problem := _joined(points.setdefault(tag, []), values):
                    problems.append(f"{path}: {problem} of {tag}")
    return Events({tag: _scalar(values) for tag, values in points.items() if values}, texts, problems)


def _records(content: bytes) -> Iterator[tuple[bytes, bool]]:
    """The data of each record, checksums verified; the last one with False if the file ends within it."""
    at, found, lengths, sums, cut = 0, [], [], [], False
    while at < len(content):
        if at + _LENGTH.size > len(content):
            cut = True
            break
        size, length_crc = _LENGTH.unpack_from(content, at)
        lengths.append((content[at : at + 8], length_crc))
        at += _LENGTH.size
        if at + size + 4 > len(content):
            cut = True
            break
        found.append(content[at : at + size])
        sums.append(int.from_bytes(content[at + size : at + size + 4], "little"))
        at += size + 4
    for i, (crc, expected) in enumerate(zip(masked_crcs([raw for raw, _ in lengths]), lengths, strict=True)):
        if crc != expected[1]:
            what = "it is no event file of TensorBoard" if i == 0 else f"record {i} is damaged"
            raise InputError(f"{what} (the checksum of a record's length is wrong)")
    for i, (crc, wanted) in enumerate(zip(masked_crcs(found), sums, strict=True)):
        if crc != wanted:
            raise InputError(f"record {i} is damaged (its checksum is wrong)")
    yield from ((data, True) for data in found)
    if cut:
        yield b"", False


def _event(data: bytes, before: dict[str, list[_Point]], new: dict[str, list[_Point]], texts: dict[str, str]) -> None:
    """Add the values of one event to `new`; the start of a session takes later values away from `before` and `new`."""
    time, step = math.nan, 0
    summaries: list[bytes] = []
    starts = False
    for number, value in fields(data):
        if number == 1 and isinstance(value, float):
            time = value
        elif number == 2 and isinstance(value, int):
            step = signed(value)
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
        elif number == 7 and isinstance(value, bytes):
            starts = (1, _START) in fields(value)
    if starts:
        for points in (before, new):
            for tag, kept in points.items():
                points[tag] = [point for point in kept if point[0] < step]
    for summary in summaries:
        for number, value in fields(summary):
            if number == 1 and isinstance(value, bytes):
                _value(value, step, time, new, texts)


def _value(message: bytes, step: int, time: float, new: dict[str, list[_Point]], texts: dict[str, str]) -> None:
    tag, simple, tensor = "", math.nan, b""
    there = False
    for number, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            tag = value.decode("utf-8", "replace")
        elif number == 2 and isinstance(value, float):
            simple, there = value, True
        elif number == 8 and isinstance(value, bytes):
            tensor = value
    if tensor and not there:
        kind, found = _tensor(tensor)
        if kind == _STRING and isinstance(found, str):
            texts.setdefault(tag, found)
        elif isinstance(found, float):
            simple, there = found, True
    if there and tag:
        new.setdefault(tag, []).append((step, simple, time))


def _tensor(message: bytes) -> tuple[int, float | str | None]:
    """The kind of a tensor and its one value; None if it has not exactly one."""
    kind, content = 0, b""
    numbers: list[float] = []
    strings: list[bytes] = []
    for number, value in fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number in (5, 6) and isinstance(value, float):
            numbers.append(value)
        elif number in (5, 6) and isinstance(value, bytes):  # packed
            form = "f" if number == 5 else "d"
            numbers += struct.unpack(f"<{len(value) // struct.calcsize(form)}{form}", value)
        elif number == 8 and isinstance(value, bytes):
            strings.append(value)
    if content and kind in (_FLOAT, _DOUBLE):
        form = "f" if kind == _FLOAT else "d"
        numbers = list(struct.unpack(f"<{len(content) // struct.calcsize(form)}{form}", content))
    if kind == _STRING:
        return kind, strings[0].decode("utf-8", "replace") if strings else None
    return kind, numbers[0] if len(numbers) == 1 else None


def _check_order(tag: str, values: Sequence[_Point]) -> None:
    for (before, *_), (after, *_) in pairwise(values):
        if after < before:
            raise InputError(f"the steps of {tag} go back, from {before} to {after}: it holds more than one run")


def _joined(before: list[_Point], new: Sequence[_Point]) -> str | None:
    """Add the values of the next file; says what was taken away for it."""
    problem = None
    if before and new and new[0][0] <= before[-1][0]:
        if new[0][0] <= before[0][0]:
            raise InputError(
                f"the values begin at step {new[0][0]} again: more than one run wrote into this folder; "
                "give each run a folder of its own"
            )
        kept = [point for point in before if point[0] < new[0][0]]
        problem = f"it begins at step {new[0][0]}: it replaces {len(before) - len(kept)} values of an earlier file"
        before[:] = kept
    before += new
    return problem


def _scalar(points: Sequence[_Point]) -> Scalar:
    return Scalar(
        steps=np.array([point[0] for point in points], dtype=np.int64),
        values=np.array([point[1] for point in points], dtype=np.float64),
        times=np.array([point[2] for point in points], dtype=np.float64),
    )
