"""The files of claims: their names and generations, what they say, and when one may be taken over."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from typing import Any

from ipe.errors import InputError
from ipe.experiments.exclusive import age, create_exclusive, moves
from ipe.experiments.owners import is_gone
from ipe.experiments.sealed import open_sealed, sealed_bytes

FORMAT, SCHEMA = "ipe.claim", 1
_BEATS_WATCHED = 3.0
_SIZE = 2048
_NAME = re.compile(r"(?P<name>.+)\.(?P<generation>[0-9]{1,9})\.json")


def read_claim(path: Path) -> dict[str, Any] | None:
    """What a claim's file says; None if it is damaged, or gone."""
    for _ in range(3):  # it may be in the middle of a heartbeat
        with contextlib.suppress(InputError, OSError):
            content = open_sealed(path.read_bytes())
            return content if content.get("format") == FORMAT and content.get("schema") == SCHEMA else None
        time.sleep(0.001)
    return None


def newest_claims(folder: Path) -> dict[str, Path]:
    """The file of the newest claim on each job that has one."""
    newest: dict[str, tuple[int, Path]] = {}
    try:
        entries = os.listdir(folder)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"cannot read the folder {folder}: {error.strerror or error}") from None
    for entry in entries:
        if found := _NAME.fullmatch(entry):
            name, generation = found["name"], int(found["generation"])
            if name not in newest or newest[name][0] < generation:
                newest[name] = (generation, folder / entry)
    return {name: path for name, (_, path) in newest.items()}


def claim_path(folder: Path, name: str, generation: int) -> Path:
    """The file of a claim."""
    return folder / f"{name}.{generation}.json"


def generations_of(folder: Path, name: str) -> list[int]:
    """The generations of the claims on a job, in no order."""
    found = [_NAME.fullmatch(entry) for entry in os.listdir(folder) if entry.startswith(f"{name}.")]
    return [int(own["generation"]) for own in found if own and own["name"] == name]


def attempts_until(path: Path, before: int) -> int:
    """How many have had the job until this claim; `before`, if it does not say."""
    content = read_claim(path)
    return int(content["attempt"]) if content is not None else before


def is_free(path: Path, beat_seconds: float, stale_seconds: float) -> bool:
    """Whether the newest claim on a job may be taken over; to know, one may have to watch it for three heartbeats."""
    content = read_claim(path)
    if content is not None:
        if content["state"] != "held" or is_gone(content["owner"]):
            return True
        beat_seconds = max(beat_seconds, float(content["beat_seconds"]))
    try:
        return age(path) >= stale_seconds and not moves(path, _BEATS_WATCHED * beat_seconds)
    except FileNotFoundError:  # just published and removed; the next call sees that
        return False


def create_claim(folder: Path, content: dict[str, Any]) -> bool:
    """Write a new claim; False if its generation is taken."""
    path = claim_path(folder, content["job"], content["generation"])
    return create_exclusive(path, claim_bytes(content))


def claim_bytes(content: dict[str, Any]) -> bytes:
    """The file of a claim; always as long, so that a full disk does not stop a heartbeat."""
    return sealed_bytes(content, "claim", _SIZE)
