"""Stable-Baselines3's DQN with epsilon-IPE beside the same DQN with its schedule of epsilon.

    python benchmarks/sb3_comparison.py --out results/stable_baselines3
    python benchmarks/sb3_comparison.py --out out/try --frames 3000 --seeds 2

CartPole-v1 and LunarLander-v3, five seeds each, two processes with one thread each. Hyperparameters are those of RL
Baselines3 Zoo for DQN (its `hyperparams/dqn.yml`), tuned there for the schedule, which keeps its own
(`exploration_fraction`, `exploration_final_eps`); epsilon-IPE gets all but those, and `policy_learning_rate`. Nothing
was tuned for it.

A run that is finished is not run again: stop it at any time, and start the same command to go on. The folder of a run
has `episodes.parquet`, `progress.parquet` and, written last, `run.json`. At the end a figure per environment and a
table of the areas under the curves (Markdown) are written beside them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ipe.analysis import aucs, curves, difference_interval, frame_grid, recorded_curves, standard_error
from ipe.base.atomic import write_atomic
from ipe.base.parquet import parquet_bytes, read_parquet
from ipe.errors import InputError

ALGORITHMS = {"epsilon-IPE": "epsilon-ipe", "epsilon schedule": "dqn"}
"""Names in figures, and of folders."""
FRAMES = {"CartPole-v1": 50_000, "LunarLander-v3": 100_000}
"""The Zoo's budgets."""
SHARED: dict[str, dict[str, Any]] = {
    "CartPole-v1": {
        "learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000, "gamma": 0.99,
        "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
    "LunarLander-v3": {
        "learning_rate": 6.3e-4, "batch_size": 128, "buffer_size": 50_000, "learning_starts": 0, "gamma": 0.99,
        "target_update_interval": 250, "train_freq": 4, "gradient_steps": -1,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
}  # fmt: skip
SCHEDULES: dict[str, dict[str, float]] = {
    "CartPole-v1": {"exploration_fraction": 0.16, "exploration_final_eps": 0.04},
    "LunarLander-v3": {"exploration_fraction": 0.12, "exploration_final_eps": 0.1},
}
RECORD_EVERY = 500
"""Frames per record of the mean epsilon."""


class Run(NamedTuple):
    """One run: what it is, and where it is kept."""

    environment: str
    algorithm: str
    seed: int
    frames: int
    policy_learning_rate: float
    out: Path

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.out / self.environment / self.algorithm / f"seed-{self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """What the run rests on; a finished one with others is refused."""
        own: dict[str, Any] = {"policy_learning_rate": self.policy_learning_rate}
        if self.algorithm == "dqn":
            own = SCHEDULES[self.environment]
        keys = {"environment": self.environment, "algorithm": self.algorithm, "seed": self.seed, "frames": self.frames}
        return keys | SHARED[self.environment] | own


def finished(run: Run) -> bool:
    """Whether the run is there. One with other settings is an error that names the first difference."""
    path = run.folder / "run.json"
    if not path.is_file():
        return False
    there = json.loads(path.read_text())["settings"]
    for name, value in run.settings.items():
        if there.get(name) != value:
            raise InputError(f"{path}: was run with {name} = {there.get(name)!r}, not {value!r}; choose another --out")
    return True


def work(run: Run) -> float:
    """Train, write, and return the seconds that it took."""
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.callbacks import BaseCallback

    from ipe.integrations.stable_baselines3 import EpsilonIPEDQN

    torch.set_num_threads(1)

    class Recorder(BaseCallback):  # type: ignore[misc]
        """Every finished episode, and the mean epsilon since the last record."""

        def __init__(self) -> None:
            super().__init__()
            self.episodes: list[tuple[int, float, int]] = []
            self.progress: list[tuple[int, float]] = []
            self.epsilons: list[float] = []

        def _on_step(self) -> bool:
            self.epsilons.append(float(self.model.exploration_rate))
            for info in self.locals["infos"]:
                if "episode" in info:
                    self.episodes.append((self.num_timesteps, float(info["episode"]["r"]), int(info["episode"]["l"])))
            if self.num_timesteps % RECORD_EVERY == 0:
                self.progress.append((self.num_timesteps, float(np.mean(self.epsilons))))
                self.epsilons.clear()
            return True

    recorder = Recorder()
    names = {"environment", "algorithm", "seed", "frames"}
    arguments = {name: value for name, value in run.settings.items() if name not in names}
    algorithm = DQN if run.algorithm == "dqn" else EpsilonIPEDQN
    start = time.perf_counter()
    model = algorithm("MlpPolicy", run.environment, seed=run.seed, device="cpu", **arguments)
    model.learn(run.frames, callback=recorder)
    seconds = time.perf_counter() - start
    publish(run, recorder.episodes, recorder.progress, seconds)
    return seconds


def publish(
    run: Run, episodes: list[tuple[int, float, int]], progress: list[tuple[int, float]], seconds: float
) -> None:
    """Write the tables, and last what says that they are whole."""
    run.folder.mkdir(parents=True, exist_ok=True)
    table = np.array(episodes, dtype=[("frame", np.int64), ("return", np.float64), ("length", np.int64)])
    records = np.array(progress, dtype=[("frame", np.int64), ("epsilon", np.float64)])
    for name, rows in (("episodes", table), ("progress", records)):
        seed = np.full(len(rows), run.seed, np.int64)
        columns = {"seed": seed} | {field: rows[field] for field in rows.dtype.names or ()}
        write(run.folder / f"{name}.parquet", parquet_bytes(columns))
    packages = ("stable_baselines3", "torch", "gymnasium", "numpy", "ipe")
    manifest = {
        "settings": run.settings,
        "seconds": round(seconds, 1),
        "versions": {name: version(name) for name in packages},
    }
    write(run.folder / "run.json", json.dumps(manifest, indent=1).encode())


def write(path: Path, content: bytes) -> None:
    write_atomic(path, lambda file: file.write(content))


def together(runs: list[Run], name: str) -> dict[str, Any]:
    """One table of all runs."""
    tables = [read_parquet(run.folder / f"{name}.parquet").to_pydict() for run in runs]
    return {column: np.concatenate([np.asarray(t[column]) for t in tables]) for column in tables[0]}


def report(runs: list[Run], out: Path) -> str:
    """A figure per environment, and the table of areas; of the runs that are there."""
    from ipe.figures import save_figure
    from ipe.figures.learning import learning_curves

    lines = ["| environment | exploration | runs | AUC (standard error) | last 20 episodes |", "|---|---|---|---|---|"]
    for environment in dict.fromkeys(run.environment for run in runs):
        frames = next(run.frames for run in runs if run.environment == environment)
        grid = frame_grid(frames, min(frames, 200))
        groups, exploration, areas = {}, {}, {}
        for label, algorithm in ALGORITHMS.items():
            chosen = [r for r in runs if (r.environment, r.algorithm) == (environment, algorithm) and finished(r)]
            if not chosen:
                continue
            seeds = [run.seed for run in chosen]
            episodes = together(chosen, "episodes")
            groups[label] = curves(episodes, grid, seeds)
            exploration[label] = recorded_curves(together(chosen, "progress"), "epsilon", grid, seeds)
            areas[label] = aucs(episodes, frames, seeds)
            last = groups[label][:, -1]
            cells = [f"{np.mean(values):.1f} ({error(values)})" for values in (areas[label], last)]
            lines.append(f"| {environment} | {label} | {len(seeds)} | {cells[0]} | {cells[1]} |")
        if groups:
            figure = learning_curves(groups, grid, epsilon=exploration, title=f"{environment}, Stable-Baselines3's DQN")
            for suffix in ("png", "svg"):
                save_figure(figure, out / f"{environment}.{suffix}")
        if len(areas) == 2 and all(len(values) > 1 and np.isfinite(values).all() for values in areas.values()):
            ours, theirs = areas.values()
            lines.append(f"| | difference of AUC, 95% interval | | {difference_interval(ours, theirs, seed=0)} | |")
    text = "\n".join(lines) + "\n"
    write(out / "table.md", text.encode())
    return text


def error(values: Any) -> str:
    return f"{standard_error(values):.1f}" if len(values) > 1 else "one run"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--environments", nargs="+", choices=list(FRAMES), default=list(FRAMES))
    parser.add_argument("--seeds", type=int, default=5, help="runs per environment and algorithm")
    parser.add_argument("--frames", type=int, help="per run; by default the Zoo's budget")
    parser.add_argument("--policy-learning-rate", type=float, default=1e-3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report-only", action="store_true", help="figures and table of what is there")
    options = parser.parse_args()
    # Seeds outermost: whenever it is stopped, the algorithms have had about as many runs.
    runs = [
        Run(
            environment,
            algorithm,
            seed,
            options.frames or FRAMES[environment],
            options.policy_learning_rate,
            options.out,
        )
        for seed in range(options.seeds)
        for environment in options.environments
        for algorithm in ALGORITHMS.values()
    ]
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        waiting = [] if options.report_only else [run for run in runs if not finished(run)]
        print(f"{len(runs)} runs, {len(waiting)} to do", flush=True)
        train(waiting, options.processes)
        print(report(runs, options.out))
    except InputError as wrong:
        sys.exit(str(wrong))


def train(waiting: list[Run], processes: int) -> None:
    """Run them, so many at a time, and say how long is left."""
    if not waiting:
        return
    start, done, total = time.perf_counter(), 0, sum(run.frames for run in waiting)
    # Spawned: a fork would take torch's and JAX's threads along, and hang.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = {pool.submit(work, run): run for run in waiting}
        for job in as_completed(jobs):
            run, seconds = jobs[job], job.result()
            done += run.frames
            left = (time.perf_counter() - start) * (total - done) / done / 60
            where = f"{run.environment} {run.algorithm} seed {run.seed}"
            print(f"{where}: {seconds:.0f} s; about {left:.0f} min left", flush=True)


if __name__ == "__main__":
    main()
