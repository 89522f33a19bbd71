"""Small sweeps for tests, their stores compared to the byte, and processes that run them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ipe.experiments.declared import Sweep
from ipe.experiments.grids import jobs, make_sweep
from ipe.experiments.store import Store, create_store, open_store
from tests.needs import ROOT

TROUBLE = "tests.sweep_environments:Trouble-v0"
SMALL: dict[str, Any] = {"width": 16, "batch": 8, "replay": 64, "frames": 1500, "target_period": 7}


def small_sweep(seeds: Any = 2, grid: dict[str, Any] | None = None, options: Any = None, **base: Any) -> Sweep:
    """A sweep of runs that take a second each."""
    environment = {"id": TROUBLE, "options": options or {}}
    content = {"name": "small", "seeds": seeds, "base": SMALL | {"environment": environment} | base}
    return make_sweep(content | ({"grid": grid} if grid else {}))


def toml(sweep_seeds: int = 2, options: str = "", grid: str = "", **base: Any) -> str:
    """The same as a file."""
    lines = [f"{name} = {value}" for name, value in (SMALL | base).items()]
    table = f'environment = {{ id = "{TROUBLE}", options = {{ {options} }} }}'
    return "\n".join(['name = "small"', f"seeds = {sweep_seeds}", "[base]", table, *lines, "[grid]", grid, ""])


def stored(folder: Path, sweep: Sweep, batch_seeds: int | None = None) -> Store:
    return create_store(folder, sweep, jobs(sweep, batch_seeds))


def tables(folder: Path) -> dict[str, Any]:
    """All that a finished sweep has come to: per job the bytes of its one result, and its outcomes."""
    store = open_store(folder)
    out = {}
    for job in store.jobs:
        manifest = store.publication(job)
        assert manifest is not None, f"{job.id} is not published"
        (file,) = store.results_folder(job.key).glob(f"{job.id}-*.parquet")
        assert file == manifest.file
        out[job.id] = (file.read_bytes(), manifest.outcomes)
    return out


def nothing_is_left_over(folder: Path) -> None:
    """No checkpoint, lease, or half-written file."""
    left = [path for part in ("work", "claims") for path in (folder / part).glob("*")]
    assert left + list(folder.rglob("*.part")) == []


def ipe(*words: str | Path, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    """The command line in a process and a session of its own."""
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "ipe", *map(str, words)],
        cwd=cwd,
        env=variables,
        start_new_session=True,
        text=True,
        stdout=subprocess.PIPE,
        **({"stderr": subprocess.PIPE} | options),
    )


def descendants(pid: int) -> list[int]:
    """The living processes that a process has started, and those that they have."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for word in (task / "children").read_text().split():
                found += [int(word), *descendants(int(word))]
    return found


def pool_workers(pid: int) -> list[int]:
    """Those of them that are workers of the local pool."""
    return [child for child in descendants(pid) if b"ipe.experiments.worker" in _words(child)]


def _words(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None, seconds: float = 240) -> bool:
    """Until it holds; False if the process ended before."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process is not None and process.poll() is not None:
            return condition()
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
    return True


def checkpointed(folder: Path) -> Callable[[], bool]:
    """Whether there is a checkpoint of some frame of some job that was not there when this was called."""

    def found() -> set[Path]:
        return set(folder.glob("work/*/checkpoint-*.json"))

    before = found()
    return lambda: bool(found() - before)


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """A process of which nothing is left afterwards, whatever happens."""
    try:
        yield process
    finally:
        for pid in descendants(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate()
