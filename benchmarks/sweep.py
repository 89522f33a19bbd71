"""A sweep of 64 short jobs: its throughput on all cores beside one process, and what the engine adds to a job.

    python benchmarks/sweep.py                 # a table
    python benchmarks/sweep.py --frames 20000  # longer jobs

Required: at least 1.8 times the throughput of one process on two cores; an overhead per job below 1% of a job of one
minute, 0.6 s. The time to start (Python, JAX, Dask) is shown beside it: it is paid once, whatever the number of jobs.
Run it on a quiet machine. For `ipe status` and for reading 10,000 runs see benchmarks/sweep_store.py.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SEEDS, SETTINGS = 16, 8
JOBS = 64
_FILE = """
name = "short jobs"
seeds = {seeds}
[base]
environment = "CartPole-v1"
frames = {frames}
width = 64
replay = 10000
[grid]
value_step_size = [{steps}]
"""


def sweep_file(folder: Path, frames: int) -> Path:
    """Eight settings by sixteen seeds, two seeds to a job; one compiled program."""
    steps = ", ".join(f"{2.0**-k}" for k in range(6, 6 + SETTINGS))
    path = folder / "short.toml"
    path.write_text(_FILE.format(seeds=SEEDS, frames=frames, steps=steps), encoding="utf-8")
    return path


def run(file: Path, out: Path, *how: str) -> float:
    """Seconds that the command takes, from its start to its end."""
    words = [sys.executable, "-m", "ipe", "sweep", str(file), "--out", str(out), "--batch-seeds", "2", *how]
    begin = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return time.perf_counter() - begin


def work_of(out: Path) -> tuple[int, float]:
    """Jobs published, and the seconds that they took by their own clocks."""
    from ipe.experiments import open_store

    store = open_store(out)
    found = [manifest for job in store.jobs if (manifest := store.publication(job)) is not None]
    return len(found), sum(own.seconds for own in found)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a sweep of 64 short jobs.")
    parser.add_argument("--frames", type=int, default=10_000, help="of a job")
    parser.add_argument("--repeats", type=int, default=2, help="of each side; the best counts")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = sweep_file(folder, options.frames)
        warm = folder / "warm.toml"
        warm.write_text(_FILE.format(seeds=2, frames=100, steps="0.1"), encoding="utf-8")
        run(warm, folder / "warm", "--shard", "0/1")  # compiled programs in the cache
        print(f"{JOBS} jobs of {options.frames} frames of two seeds, {cores} cores")
        print(f"{'':16} {'seconds':>8} {'to start':>9} {'jobs/s':>7} {'per job':>9} {'its own':>8} {'added':>7}")
        rates = {}
        for side, how, width in (
            ("one process", ("--shard", "0/1"), 1),
            ("the engine", ("--workers", str(cores)), cores),
        ):
            starts = run(warm, folder / f"start-{side}", *how)
            best, own = float("inf"), 0.0
            for repeat in range(options.repeats):
                out = folder / f"{side}-{repeat}"
                seconds = run(file, out, *how)
                jobs, worked = work_of(out)
                if jobs != JOBS:
                    sys.exit(f"{jobs} of {JOBS} jobs are published")
                if seconds < best:
                    best, own = seconds, worked
            busy = (best - starts) * width
            rates[side] = JOBS / best
            print(
                f"{side:16} {best:8.1f} {starts:9.1f} {rates[side]:7.2f} {busy / JOBS:9.3f} {own / JOBS:8.3f} "
                f"{(busy - own) / JOBS:7.3f}"
            )
        print(f"throughput of the engine: {rates['the engine'] / rates['one process']:.2f} times (required: 1.8)")
        print("added: seconds of a core per job beyond the job's own (required: below 0.6)")


if __name__ == "__main__":
    main()
