"""How long the status and the curves of a store of 10,000 runs take.

The store is of plausible size: LunarLander, 500k frames, about 1,500 episodes and 500 rows of progress per run, 8 runs
a file. It is made by the store's own functions, with random numbers in the place of training, in a temporary folder or
in the one that is named; there it is kept, and used again.

    python benchmarks/sweep_store.py [FOLDER] [--runs N]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ipe.analysis import curves, frame_grid
from ipe.deep.records import Records
from ipe.deep.settings import paper_settings
from ipe.experiments.declared import Job, Setting, Sweep
from ipe.experiments.publications import JobResult
from ipe.experiments.results import load_results
from ipe.experiments.status import sweep_status
from ipe.experiments.store import Store, create_store

FRAMES, SEEDS, BATCH = 500_000, 40, 8


def make_store(folder: Path, runs: int) -> Store:
    settings = []
    for i in range(runs // SEEDS):
        varied = {"value_step_size": 1e-5 * (i + 1)}
        own = paper_settings("LunarLander-v3", "epsilon-ipe", frames=FRAMES, **varied)
        settings.append(Setting(f"value_step_size={varied['value_step_size']:g}", "", varied, own))
    sweep = Sweep("benchmark", list(range(SEEDS)), settings, False)
    batches = [tuple(range(first, first + BATCH)) for first in range(0, SEEDS, BATCH)]
    jobs = [Job(setting.key, batch) for setting in settings for batch in batches]
    store = create_store(folder, sweep, jobs)
    rng = np.random.default_rng(0)
    for number, job in enumerate(store.jobs):
        if store.published(job, verify=False):
            continue
        lease = store.lease(job)
        assert lease is not None
        outcomes = [{"seed": seed, "status": "done", "frame": FRAMES, "reason": ""} for seed in job.seeds]
        store.publish(lease, JobResult(random_records(rng, job.seeds), outcomes, 1000.0))
        if number % 100 == 99:
            print(f"made {number + 1} of {len(store.jobs)} files", file=sys.stderr)
    return store


def random_records(rng: np.random.Generator, seeds: tuple[int, ...]) -> Records:
    """Episodes of 333 frames in the mean, and a row of progress per thousand frames."""
    parts: dict[str, list[Any]] = {name: [] for name in Records().arrays()}
    for seed in seeds:
        lengths = np.clip(rng.gamma(4.0, 333 / 4, 2500).astype(np.int64), 60, 5000)
        ends = np.cumsum(lengths)
        ended = ends <= FRAMES
        frames = np.arange(1000, FRAMES + 1, 1000)
        columns = {"episodes.seed": np.full(ended.sum(), seed), "episodes.frame": ends[ended]}
        columns |= {"episodes.return": rng.normal(-100.0, 150.0, ended.sum()), "episodes.length": lengths[ended]}
        columns |= {"progress.seed": np.full(frames.size, seed), "progress.frame": frames}
        for name in parts:
            parts[name].append(columns[name] if name in columns else rng.random(frames.size))
    return Records.from_arrays({name: np.concatenate(columns) for name, columns in parts.items()})


def timed(name: str, limit: float, work: Callable[[], Any]) -> Any:
    begin, used = time.perf_counter(), time.process_time()
    out = work()
    seconds, used = time.perf_counter() - begin, time.process_time() - used
    verdict = "" if limit == np.inf else f" (at most {limit:g}: {'held' if seconds <= limit else 'NOT held'})"
    print(f"{name:<58} {seconds:6.2f} s, {used:6.2f} s of processors{verdict}")
    return out


def all_curves(folder: Path) -> int:
    """Read every episode of the store, and put every run's curve on a grid."""
    results = timed("  of which load_results(progress=False)", np.inf, lambda: load_results(folder, progress=False))
    assert not results.problems, results.problems[:3]
    grid = frame_grid(FRAMES)
    runs = 0
    for i in range(len(results.sweep.settings)):
        runs += len(curves(results.episodes_of(i), grid, results.sweep.seeds))
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", help="of the store: made if it is not there")
    parser.add_argument("--runs", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.folder or Path(temporary) / "store")
        store = make_store(folder, arguments.runs)
        size = sum(path.stat().st_size for path in (folder / "results").rglob("*.parquet"))
        print(f"{len(store.jobs) * BATCH} runs in {len(store.jobs)} files, {size / 1e6:.0f} MB")
        timed("status", 2.0, lambda: sweep_status(folder))
        timed("reading all curves", 5.0, lambda: all_curves(folder))
        timed("load_results, progress too", np.inf, lambda: load_results(folder))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"memory, at most {peak:.1f} GB")


if __name__ == "__main__":
    main()
