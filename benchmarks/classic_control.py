"""What the tuned settings of classic control reach, and a search around them.

    python benchmarks/classic_control.py                              # ten fresh seeds each
    python benchmarks/classic_control.py --environments Acrobot-v1 --behaviours epsilon-ipe --first-seed 10
    python benchmarks/classic_control.py --search --environments Acrobot-v1 --seeds 20

Without `--search` the settings are those of `ipe.deep.default_settings`, the seeds 0 to 9. Printed for each environment
and behaviour: the mean greedy return of new episodes over the seeds with its 95% bootstrap interval, that of each seed,
the return of the last 20 episodes of training, and epsilon at the end.

With `--search` the seeds are 1000, 1001, ... which the report does not use. Each behaviour is tried with the tuned
settings and with the same changes of them, one at a time (`CHANGES`).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ipe.analysis import bootstrap_interval
from ipe.deep import default_settings, evaluate, train
from ipe.deep.defaults import TUNED

BEHAVIOURS = ("epsilon-ipe", "epsilon-greedy", "tau-ipe")
FIRST_OF_SEARCH = 1000
CHANGES: dict[str, dict[str, Any]] = {
    "as tuned": {},
    "half the value step size": {"value_step_size": 5e-4},
    "a copy every 250 frames": {"target_period": 250},
    "double Q": {"double_q": True},
    "Huber loss": {"huber": 1.0},
    "width 128": {"width": 128},
}


def reached(environment: str, behaviour: str, changes: dict[str, Any], options: argparse.Namespace) -> str:
    """Train and evaluate one setting, and say what it reached, in one line."""
    seeds = list(range(options.first_seed, options.first_seed + options.seeds))
    settings = default_settings(environment, behaviour, **changes)
    with tempfile.TemporaryDirectory() as folder:
        result = train(settings, seeds=seeds, out=Path(folder) / "run", progress=False, processes=options.processes)
        found = evaluate(result.folder, episodes=options.episodes)
    means = [one.mean for one in found.seeds]
    of_seed, returns = result.episodes["seed"].to_numpy(), result.episodes["return"].to_numpy()
    last = [returns[of_seed == seed][-20:].mean() for seed in seeds]
    epsilon = result.progress["epsilon"].to_numpy()[result.progress["frame"].to_numpy() == settings.frames].mean()
    interval = bootstrap_interval(means, seed=0)
    every = ", ".join(f"{mean:.0f}" for mean in means)
    said = f"greedy {interval.estimate:.1f} [{interval.low:.1f}, {interval.high:.1f}], seed by seed {every}"
    return f"{said}; training {np.mean(last):.1f}, epsilon {epsilon:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", nargs="+", default=list(TUNED), choices=list(TUNED))
    parser.add_argument("--behaviours", nargs="+", default=list(BEHAVIOURS), choices=BEHAVIOURS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, help=f"default: 0; {FIRST_OF_SEARCH} with --search")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--processes", type=int, help="default: one per core")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--changes", nargs="+", default=list(CHANGES), choices=list(CHANGES), help="with --search")
    options = parser.parse_args()
    if options.first_seed is None:
        options.first_seed = FIRST_OF_SEARCH if options.search else 0
    for environment in options.environments:
        for behaviour in options.behaviours:
            for name in options.changes if options.search else ["as tuned"]:
                said = reached(environment, behaviour, CHANGES[name], options)
                print(f"{environment}, {behaviour}, {name}: {said}", flush=True)


if __name__ == "__main__":
    main()
