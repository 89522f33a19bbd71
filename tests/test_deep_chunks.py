"""Large arrays of checkpoints in chunks: only what is new is written, and nothing that is needed is ever removed."""

from __future__ import annotations

import contextlib
import os
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ipe.base.sealed import open_sealed, sealed_bytes
from ipe.deep import chunks
from ipe.deep.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from ipe.errors import InputError

CHUNK = 64


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK", CHUNK)
    monkeypatch.setattr(chunks, "LARGE", 4 * CHUNK)


def ring(frame: int, rows: int = 100, width: int = 5) -> np.ndarray[Any, Any]:
    """A ring of rows that are written one after the other, as it is after so many frames; each row tells its frame."""
    out = np.zeros((rows, width), np.int32)
    for number in range(max(0, frame - rows), frame):
        out[number % rows] = number + 1
    return out


def of(frame: int) -> Checkpoint:
    return Checkpoint(frame, {"a": np.full(3, frame), "replay": ring(frame)}, {"frame": frame})


def check(found: Checkpoint | None, frame: int) -> None:
    assert found is not None
    assert found.frame == frame
    np.testing.assert_array_equal(found.arrays["replay"], ring(frame), strict=True)
    np.testing.assert_array_equal(found.arrays["a"], np.full(3, frame), strict=True)


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in chunks.chunk_files(folder)}


def test_only_what_is_new_is_written(tmp_path: Path) -> None:
    """Of 2000 bytes in 32 chunks, eight new rows of 20 bytes lie in four at most."""
    save_checkpoint(tmp_path, of(300))
    before = sizes(tmp_path)
    assert len(before) == 32
    save_checkpoint(tmp_path, of(308))
    after = sizes(tmp_path)
    assert all(after[name] == before[name] for name in before)  # the earlier checkpoint needs them
    assert 1 <= len(after) - len(before) <= 4
    check(load_checkpoint(tmp_path, report=pytest.fail), 308)


@pytest.mark.slow
def test_chunks_that_no_checkpoint_needs_are_removed(tmp_path: Path) -> None:
    for frame in range(100, 400, 7):
        save_checkpoint(tmp_path, of(frame))
        check(load_checkpoint(tmp_path, report=pytest.fail), frame)
        assert len(chunks.chunk_files(tmp_path)) <= 32 + 4
    save_checkpoint(tmp_path, of(401), keep=1)
    assert len(chunks.chunk_files(tmp_path)) == 32
    stranger = tmp_path / "chunk-mine.bin"
    stranger.write_bytes(b"mine")
    save_checkpoint(tmp_path, Checkpoint(402, {"a": np.zeros(2)}, {}), keep=1)
    assert chunks.chunk_files(tmp_path) == []
    assert stranger.exists()


def test_small_arrays_stay_in_one_file_and_in_the_earlier_schema(tmp_path: Path) -> None:
    manifest = save_checkpoint(tmp_path, Checkpoint(1, {"a": np.zeros(4 * CHUNK - 1, np.uint8)}, {}))
    assert open_sealed(manifest.read_bytes())["schema"] == 2
    assert chunks.chunk_files(tmp_path) == []


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_chunk_is_noticed_and_written_anew(tmp_path: Path, damage: str) -> None:
    save_checkpoint(tmp_path, of(300))
    draw = random.Random(1)
    for frame in range(301, 306):
        path = draw.choice(chunks.chunk_files(tmp_path))
        content = bytearray(path.read_bytes())
        if damage == "remove":
            path.unlink()
        else:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            path.write_bytes(content if damage == "flip" else content[:-1])
        with pytest.raises(InputError, match=r"has damaged arrays: the chunk [0-9a-f]{12}"):
            load_checkpoint(tmp_path)
        with pytest.raises(InputError, match=r"has damaged arrays: the chunk [0-9a-f]{12}"):
            load_checkpoint(tmp_path, only=("a",))
        save_checkpoint(tmp_path, of(frame), keep=1)
        check(load_checkpoint(tmp_path, report=pytest.fail), frame)


def test_a_chunk_of_the_newest_checkpoint_alone_leaves_the_one_before(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, of(300))
    before = sizes(tmp_path)
    save_checkpoint(tmp_path, of(308))
    (tmp_path / next(name for name in sizes(tmp_path) if name not in before)).unlink()
    said: list[str] = []
    check(load_checkpoint(tmp_path, said.append), 300)
    assert len(said) == 1


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, of(300))
    before = sorted(tmp_path.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # the chunks fit, the other arrays do not
    try:
        with pytest.raises(InputError, match=r"cannot write .*File too large"):
            save_checkpoint(
                tmp_path, Checkpoint(308, {"a": np.zeros(250, np.uint8), "replay": ring(308)}, {"x": "y" * 900})
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(tmp_path.iterdir()) == before
    check(load_checkpoint(tmp_path, report=pytest.fail), 300)


class KilledError(BaseException):
    """The process is gone: nothing more is done."""


@pytest.mark.parametrize("call", range(1, 26, 3))
def test_a_kill_at_any_moment_leaves_a_valid_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """A writer that gets no further than its n-th rename or removal, and the one that goes on after it."""
    save_checkpoint(tmp_path, of(300))
    save_checkpoint(tmp_path, of(308))
    left = call

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:  # what would be done after it, is not done either
                raise KilledError
            return real(*arguments, **options)

        return instead

    with monkeypatch.context() as patch, contextlib.suppress(KilledError):
        patch.setattr(os, "replace", dying(os.replace))
        patch.setattr(os, "unlink", dying(os.unlink))
        save_checkpoint(tmp_path, of(330))
    found = load_checkpoint(tmp_path, report=pytest.fail)
    assert found is not None
    check(found, 330 if left > 0 or found.frame == 330 else 308)
    save_checkpoint(tmp_path, of(333), keep=1)
    check(load_checkpoint(tmp_path, report=pytest.fail), 333)
    assert len(chunks.chunk_files(tmp_path)) == 32
    assert len(list(tmp_path.iterdir())) == 34


@pytest.mark.parametrize(
    "change",
    [
        {"chunked": 3},
        {"chunked": {"replay": {}}},
        {"chunked": {"replay": {"dtype": "int32", "shape": [100, 5], "chunks": ["../../x"] * 32}}},
        {"chunked": {"replay": {"dtype": "int32", "shape": [10**30, 5], "chunks": ["0" * 64] * 32}}},
        {"chunked": {"replay": {"dtype": "no type", "shape": [100, 5], "chunks": ["0" * 64] * 32}}},
        {"chunked": {"replay": {"dtype": "int32", "shape": [-100, -5], "chunks": ["0" * 64] * 32}}},
        {"size": None},
        {"arrays": []},
        {"frame": "x"},
    ],
)
def test_a_manifest_without_sense_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    """Its checksum is right, its content is not."""
    manifest = save_checkpoint(tmp_path, of(300))
    manifest.write_bytes(sealed_bytes(open_sealed(manifest.read_bytes()) | change, "checkpoint", finite=False))
    with pytest.raises(InputError, match="describes no checkpoint: a field is missing or of a wrong kind"):
        load_checkpoint(tmp_path)
