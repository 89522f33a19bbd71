"""Files such as other programs write, made by hand; `tests/data/recorded` has some that these programs wrote."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ipe.analysis.recorded.checksums import masked_crcs

SAMPLES = Path(__file__).with_name("data") / "recorded"


def monitor(
    path: Path,
    episodes: Sequence[tuple[float, int]],
    environment: str | None = "CartPole-v1",
    started: float = 1.7e9,
    end: str = "",
) -> Path:
    """A monitor file; the time goes on by a second with every episode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = "null" if environment is None else f'"{environment}"'
    rows = [f"{r},{length},{i + 1.0}\r\n" for i, (r, length) in enumerate(episodes)]
    path.write_text(f'#{{"t_start": {started}, "env_id": {name}}}\nr,l,t\r\n' + "".join(rows) + end, newline="")
    return path


def evaluations(path: Path, steps: Sequence[int], results: Sequence[Sequence[float]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, timesteps=np.array(steps), results=np.array(results), ep_lengths=np.array(results, dtype=int))
    return path


def scalar_event(tag: str, step: int, value: float, time: float = 1.7e9) -> bytes:
    """An event with one scalar, as torch's `SummaryWriter` writes it."""
    name = tag.encode()
    inner = b"\x0a" + bytes([len(name)]) + name + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(inner)]) + inner
    return b"\x09" + struct.pack("<d", time) + b"\x10" + varint(step) + b"\x2a" + bytes([len(summary)]) + summary


def start_event(step: int) -> bytes:
    """The start of a session, which discards what was written with this step or a later one."""
    return b"\x09" + struct.pack("<d", 1.7e9) + b"\x10" + varint(step) + b"\x3a\x02\x08\x01"


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    crcs = masked_crcs([length, data])
    return length + struct.pack("<I", crcs[0]) + data + struct.pack("<I", crcs[1])


def events(path: Path, data: Iterable[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(record, data)))
    return path


def returns(path: Path, values: Sequence[tuple[int, float]], tag: str = "charts/episodic_return") -> Path:
    """An event file in a run's folder with the returns of one tag."""
    return events(path / "events.out.tfevents.1700000000.0", [scalar_event(tag, step, x) for step, x in values])
