"""Print digests of results: two versions of this library that print the same lines compute the same numbers.

Six short trainings (networks, episodes, progress), the Parquet files of `make demo`, and twenty exact solutions in
each norm. Only public functions are used, so that the file runs with older versions of the library too:

    python benchmarks/digest.py                      the digests of the library beside this file
    PYTHONPATH=OTHER_CLONE python benchmarks/digest.py    those of another clone
    python benchmarks/digest.py --only exact         one part: training, demo or exact
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

TRAININGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "LunarLander, width 128, epsilon-IPE": ("LunarLander-v3", "epsilon-ipe", {"frames": 3_000}),
    "LunarLander, width 256, epsilon-greedy": ("LunarLander-v3", "epsilon-greedy", {"frames": 2_000}),
    "Freeway, epsilon-IPE": ("minatar/Freeway", "epsilon-ipe", {"frames": 1_500}),
    "CartPole, Adam and clipping, epsilon-IPE": (
        "CartPole-v1",
        "epsilon-ipe",
        {"frames": 4_000, "width": 64, "optimiser": {"kind": "adam", "decay": 0.999, "clip": 1.0}},
    ),
    "CartPole, IPE": ("CartPole-v1", "ipe", {"frames": 4_000}),
    "CartPole, Boltzmann": ("CartPole-v1", "boltzmann", {"frames": 4_000, "width": 128, "temperature": 0.5}),
}
NORMS: tuple[Literal["l2", "l1", "linf"], ...] = ("l2", "l1", "linf")


class Digest:
    """A SHA-256 over arrays, each with its name and type."""

    def __init__(self) -> None:
        self.sum = hashlib.sha256()

    def add(self, name: str, array: Any) -> None:
        """Add an array."""
        values = np.ascontiguousarray(array)
        self.sum.update(f"{name} {values.dtype} {values.shape}".encode())
        self.sum.update(values.tobytes())

    def __str__(self) -> str:
        return self.sum.hexdigest()[:16]


def training_digests() -> Iterator[tuple[str, Digest]]:
    """Yield, for each training of three seeds in two processes, the digests of its networks, episodes and progress."""
    from ipe.deep import paper_settings, train

    for title, (environment, behaviour, changes) in TRAININGS.items():
        settings = paper_settings(environment, behaviour, **changes)
        with tempfile.TemporaryDirectory() as folder:
            result = train(settings, seeds=3, out=Path(folder) / "run", processes=2)
            networks = Digest()
            for (seed, name), tensor in sorted(networks_of(Path(result.folder)).items()):
                networks.add(f"{seed} {name}", tensor)
            yield f"{title}: networks", networks
            for table, rows in (("episodes", result.episodes), ("progress", result.progress)):
                found = Digest()
                ordered = rows.sort_by([("seed", "ascending"), ("frame", "ascending")])
                for name in ordered.column_names:
                    if name != "frames_per_second":  # a time, not a result
                        found.add(name, ordered[name].to_numpy())
                yield f"{title}: {table}", found


def networks_of(folder: Path) -> dict[tuple[int, str], Any]:
    """Return the networks of a run by seed and name: in one file for all seeds, or in one for each batch of them."""
    from safetensors.numpy import load_file

    found = {}
    for file in [*folder.glob("networks.safetensors"), *folder.glob("results/*/*.safetensors")]:
        manifest = file.with_suffix(".json")
        about = json.loads((manifest if manifest.exists() else folder / "run.json").read_text())
        about = about.get("content", about)
        for name, tensor in load_file(file).items():
            for i, seed in enumerate(about.get("networks_seeds", about["seeds"])):
                found[seed, name] = tensor[i]
    return found


def demo_digests() -> Iterator[tuple[str, Digest]]:
    """Yield the digests of the Parquet files that `make demo` writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "demo"
        command = [sys.executable, "-m", "ipe", "reproduce", "switch-stay", "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for file in sorted(out.rglob("*.parquet")):
            found = Digest()
            found.sum.update(file.read_bytes())
            yield f"demo: {file.relative_to(out)}", found


def exact_digests() -> Iterator[tuple[str, Digest]]:
    """Yield, for each norm, the digest of twenty solutions: values of sweeps on MDPs of several kinds, both forms."""
    import ipe
    from ipe import zoo

    mdps = [zoo.garnet(n, 3, 3, gamma=0.9, seed=n) for n in (5, 10, 20, 40, 80, 160, 320)]
    mdps += [zoo.garnet(n, 4, 1, gamma=0.95, seed=n) for n in (10, 50, 250)]
    mdps += [zoo.switch_stay(), zoo.river_swim(), zoo.chain(12)]
    for norm in NORMS:
        found = Digest()
        for i in range(20):
            mdp = mdps[i % len(mdps)]
            rng = np.random.default_rng(i)
            q = np.where(mdp.allowed, rng.normal(size=(mdp.n_states, mdp.n_actions)), 0.0)
            for _ in range(i):
                q = ipe.planning.optimality_operator(mdp, q=q)
            values = {"q": q} if i < 15 else {"v": q.max(axis=1)}
            result = ipe.evaluation_policy(mdp, norm=norm, **values)
            for name in ("policy", "v", "residual", "gap"):
                found.add(name, getattr(result, name))
        yield f"exact: {norm}", found


PARTS = {"training": training_digests, "demo": demo_digests, "exact": exact_digests}


def main() -> None:
    """Print a line for each digest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(PARTS), help="one part (default: all)")
    only = parser.parse_args().only
    for name, digests in PARTS.items():
        if only in (None, name):
            for title, found in digests():
                print(f"{found}  {title}", flush=True)


if __name__ == "__main__":
    main()
