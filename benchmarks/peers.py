"""The peers of `training.py`: their own environment, and their frames per second on several cores at once.

Stable-Baselines3 and sbx live in a virtual environment apart from this project's: their torch, JAX and the rest shall
not decide its versions. `peers_environment` makes it once; `measure_peer` runs `training_peers.py` in it.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from side_by_side import SideBySideError, best_together, side_by_side

Library = Literal["sb3", "sbx"]
Task = Literal["lunar-lander", "freeway"]
NAMES: dict[Library, str] = {"sb3": "Stable-Baselines3", "sbx": "sbx"}
TORCH = "torch==2.13.0"
OTHERS = ("stable-baselines3>=2.4", "sbx-rl>=0.20", "gymnasium[box2d]>=1.0", "minatar>=1.0.15")
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / ".venv-peers"
SAME_ALGORITHM, FASTEST = 1, 8
"""Environments per process: as in the paper, and what served the peers well (`training_peers.py` has numbers).

Eight is as many as this library trains seeds per process; sbx gains from more, further from the algorithm."""
MARK = "made-for-the-benchmarks-of-ipe.txt"


class PeersError(RuntimeError):
    """The peers' environment cannot be made or used; the sentence says why."""


@dataclasses.dataclass(frozen=True)
class PeerResult:
    """A peer's speed, or the reason why there is none."""

    library: Library
    task: Task
    width: int
    environments: int
    """Stepped together by each process; after them as many updates."""
    frames_per_second: float
    """Of all processes together, in their best second. NaN if it failed."""
    core_share: float
    """The least share of its core that a process had: well under 1, something else ran beside."""
    versions: Mapping[str, str]
    """Of the packages that matter."""
    reason: str | None = None
    """Why it failed; None if it did not."""


def peers_environment(folder: Path = DEFAULT_FOLDER) -> Path:
    """The interpreter of the peers' environment, which is made at the first call (minutes, some GB from the index).

    An interrupted installation is taken up again. pip's own configuration says where packages come from.

    Args:
        folder: where it is or shall be.

    Returns:
        The path of its Python.

    Raises:
        PeersError: if the folder holds something else, or pip fails.
    """
    folder = folder.absolute()
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if _complete(python):
        return python
    if folder.exists() and not (folder / MARK).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PeersError(f"{folder} is there and is not an environment with the peers in it: name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARK).write_text("\n".join((TORCH, *OTHERS)) + "\n")
        print(f"installing the peers in {folder}", file=sys.stderr, flush=True)
        venv.EnvBuilder(with_pip=True, symlinks=os.name != "nt").create(folder)
        # torch first and alone: a dependant's resolution must not pick another one
        for requirements in ((TORCH,), OTHERS):
            subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        raise PeersError(f"installing the peers failed with status {error.returncode}: see pip's words above") from None
    except OSError as error:
        raise PeersError(f"cannot make {folder}: {error.strerror or error}") from None
    if not _complete(python):
        raise PeersError(f"pip succeeded, yet packages are missing in {folder}: remove it and try again")
    return python


def _complete(python: Path) -> bool:
    """Whether the environment has every package, and torch in its one version."""
    check = "from importlib.metadata import version as v; import sys; print(*(v(n) for n in sys.argv[1:]))"
    names = [TORCH.partition("==")[0], "stable-baselines3", "sbx-rl", "gymnasium", "box2d", "minatar"]
    try:
        found = subprocess.run([python, "-c", check, *names], capture_output=True, text=True, check=False)
    except OSError:
        return False
    wanted = TORCH.partition("==")[2]
    return found.returncode == 0 and found.stdout.split()[0].partition("+")[0] == wanted


def measure_peer(
    library: Library,
    task: Task,
    width: int,
    seconds: float,
    cores: Sequence[int],
    *,
    python: Path,
    environments: int = FASTEST,
) -> PeerResult:
    """A peer's DQN on every given core at once, one process each, with different seeds.

    Args:
        library: Stable-Baselines3 or sbx.
        task: LunarLander or MinAtar's Freeway.
        width: of the hidden layers.
        seconds: of the timed phase, which all processes enter together.
        cores: their numbers.
        python: the interpreter from `peers_environment`.
        environments: k > 1 makes the peer step k environments, then do k updates: one update per frame as well, but
            k frames late, in return for one call of everything around them.

    Returns:
        The sum over the cores in the best second; if a process failed, a result with the reason.
    """
    script = str(Path(__file__).with_name("training_peers.py"))
    command = [str(python), "-E", script, "--library", library, "--task", task, "--width", str(width), "--barrier"]
    command += ["--seconds", str(seconds), "--environments", str(environments)]
    try:
        results = side_by_side(
            [[*command, "--core", str(core), "--seed", str(seed)] for seed, core in enumerate(cores)],
            measurement=seconds + 60.0,
        )
    except SideBySideError as error:
        return PeerResult(library, task, width, environments, float("nan"), float("nan"), {}, str(error))
    rate = best_together([result["frames_per_second"] for result in results])
    share = min(float(result["core_share"]) for result in results)
    return PeerResult(library, task, width, environments, rate, share, results[0]["versions"])
