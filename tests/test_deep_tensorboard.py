"""TensorBoard event files, read back record by record with their checksums."""

from __future__ import annotations

import math
import re
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ipe.deep.tensorboard import TensorBoard
from ipe.errors import InputError

pytest.importorskip("tensorboardX")
NAN = math.nan


def events(path: Path) -> Iterator[Any]:
    """The whole records of a file; a torn one at the end is where TensorBoard stops too."""
    event = import_module("tensorboardX.proto.event_pb2").Event
    masked_crc32c = import_module("tensorboardX.record_writer").masked_crc32c
    content, at = path.read_bytes(), 0
    while at + 12 <= len(content):
        length, check = struct.unpack("<QI", content[at : at + 12])
        assert check == masked_crc32c(content[at : at + 8])
        body = content[at + 12 : at + 16 + length]
        if len(body) < length + 4:
            return
        assert struct.unpack("<I", body[length:])[0] == masked_crc32c(body[:length])
        yield event.FromString(body[:length])
        at += 16 + length


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """What TensorBoard shows of a folder: a START discards the steps from its own on in the files before."""
    shown: dict[str, dict[int, float]] = {}
    for path in sorted(folder.iterdir()):
        for event in events(path):
            if event.HasField("session_log"):
                assert event.session_log.status == event.session_log.START
                for values in shown.values():
                    for step in [step for step in values if step >= event.step]:
                        del values[step]
            for value in event.summary.value:
                values = shown.setdefault(value.tag, {})
                assert event.step not in values, "a step stands twice"
                values[event.step] = value.simple_value
    return shown


def test_scalars_by_seed(tmp_path: Path) -> None:
    with TensorBoard(tmp_path / "tb") as board:
        board.episode(0, 10, -1.5, 10)
        board.episode(7, 12, 2.0, 12)
        board.progress(
            0, 10, epsilon=0.25, entropy=NAN, td_error=0.5, ipe_error=NAN, q_mean=-2.0, frames_per_second=8.0
        )
        board.progress(0, 20, epsilon=NAN, entropy=NAN)
        board.episode(0, 30, math.inf, 20)
    assert {path.name for path in (tmp_path / "tb").iterdir()} == {"seed-0", "seed-7"}
    assert scalars(tmp_path / "tb" / "seed-7") == {"episode/return": {12: 2.0}, "episode/length": {12: 12.0}}
    assert scalars(tmp_path / "tb" / "seed-0") == {
        "episode/return": {10: -1.5, 30: math.inf},
        "episode/length": {10: 10.0, 30: 20.0},
        "progress/epsilon": {10: 0.25},
        "progress/td_error": {10: 0.5},
        "progress/q_mean": {10: -2.0},
        "progress/frames_per_second": {10: 8.0},
    }


def test_the_first_record_is_the_version(tmp_path: Path) -> None:
    with TensorBoard(tmp_path) as board:
        board.episode(0, 10, 1.0, 10)
    (path,) = (tmp_path / "seed-0").iterdir()
    first, second = events(path)
    assert first.file_version == "brain.Event:2"
    assert first.wall_time <= second.wall_time


def test_resumed_shows_each_frame_once(tmp_path: Path) -> None:
    with TensorBoard(tmp_path) as board:
        for frame in (10, 20, 30, 40):
            board.episode(0, frame, 1.0, 10)
    for at in (20, 35):  # within the same second, and twice
        with TensorBoard(tmp_path, resumed_at=at) as board:
            for frame in (25, 35, 45):
                if frame > at:
                    board.episode(0, frame, float(at), 10)
    assert scalars(tmp_path / "seed-0")["episode/return"] == {10: 1.0, 20: 1.0, 25: 20.0, 35: 20.0, 45: 35.0}
    assert len(list((tmp_path / "seed-0").iterdir())) == 3


def test_a_new_file_comes_last_even_if_the_clock_was_set_back(tmp_path: Path) -> None:
    with TensorBoard(tmp_path) as board:
        board.episode(0, 10, 1.0, 10)
    (old,) = (tmp_path / "seed-0").iterdir()
    later = old.rename(old.with_name("events.out.tfevents.9000000000.elsewhere"))
    with TensorBoard(tmp_path, resumed_at=5) as board:
        board.episode(0, 10, 2.0, 10)
    assert next(iter(sorted((tmp_path / "seed-0").iterdir()))) == later
    assert scalars(tmp_path / "seed-0")["episode/return"] == {10: 2.0}


@pytest.mark.slow
def test_what_was_flushed_survives_a_kill(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from ipe.deep.tensorboard import TensorBoard
board = TensorBoard(Path(sys.argv[1]))
for frame in range(1, 101):
    board.episode(0, frame, float(frame), 1)
board.flush()
for frame in range(101, 5000):
    board.episode(0, frame, float(frame), 1)
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    with TensorBoard(tmp_path, resumed_at=100) as board:
        board.episode(0, 101, -1.0, 1)
    expected = {frame: float(frame) for frame in range(1, 101)} | {101: -1.0}
    assert scalars(tmp_path / "seed-0")["episode/return"] == expected


def test_without_tensorboardx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorboardX"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    sentence = 'needs tensorboardX, which is not installed: pip install "ipe-rl[tensorboard]"'
    with pytest.raises(InputError, match=re.escape(sentence)):
        TensorBoard(tmp_path)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with TensorBoard(tmp_path / "file") as board, pytest.raises(InputError, match=r"cannot write to .*file"):
        board.episode(0, 1, 1.0, 1)
