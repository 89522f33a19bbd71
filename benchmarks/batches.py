"""Learning from a fixed batch of CartPole-v1: data of three qualities by ways of acting, with intervals.

The data are made by this library from seeds: random actions; a DQN after 10,000 frames (medium); and the best networks
of a DQN of 60,000 frames (expert). The last two act epsilon-greedily with epsilon 0.1. Each data set has 10,000
transitions. Ten seeds learn from each in 10,000 updates, with the tuned settings. There, the target network is copied
every 500 frames, and every eighth frame is an update; here every frame is one, and it is copied every 60. Every seed is
evaluated in 10 new episodes. The table shows the mean over seeds of the mean return, and a 95% bootstrap
interval over seeds.

    python benchmarks/batches.py [--seeds 10] [--updates 10000]

Greedy DQN on the batch is the row `greedy`: Q is learned by the same updates whether a policy is learned beside it or
not.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ipe.audit import Transitions
from ipe.audit.runs import collect_run
from ipe.base.columns import columns
from ipe.deep import default_settings, evaluate, train
from ipe.experiments.trained import read_trained

ENVIRONMENT = "CartPole-v1"
TRANSITIONS = 10_000
QUIET: dict[str, Any] = {"processes": 1, "progress": False}
WAYS: dict[str, tuple[str, dict[str, Any], str]] = {
    "greedy": ("epsilon-ipe", {}, "greedy"),
    "epsilon-IPE": ("epsilon-ipe", {}, "epsilon-ipe"),
    "tau-IPE": ("epsilon-ipe", {}, "tau-ipe"),
    "IPE": ("epsilon-ipe", {}, "ipe"),
    "greedy, CQL's penalty of 1": ("epsilon-greedy", {"conservative_weight": 1.0}, "greedy"),
    "cloning": ("cloning", {}, "cloning"),
}
"""The behaviour and settings of the training of each way of acting, and the behaviour of its evaluation."""


def qualities(folder: Path) -> dict[str, Transitions]:
    """The three data sets, from seeds."""
    made = {}
    for name, epsilon, frames, which in (
        ("random", 1.0, 2_000, "last"),
        ("medium", 0.1, 10_000, "last"),
        ("expert", 0.1, 60_000, "best"),
    ):
        settings = default_settings(ENVIRONMENT, "fixed-epsilon", fixed_epsilon=epsilon, frames=frames)
        train(settings, out=folder / name, evaluate_every=2_000, **QUIET)
        made[name] = collect_run(read_trained(folder / name, which=which), 0, TRANSITIONS)
    return made


def returns_of(batch: Transitions) -> str:
    """The mean return of the episodes of a data set that are whole, and how many there are."""
    ends = np.flatnonzero(batch.terminated)
    lengths = np.diff([-1, *ends])
    return f"{len(ends)} terminated, of mean return {lengths.mean():.0f}" if len(ends) else "none terminated"


def interval(means: Any) -> str:
    """The mean over seeds and a 95% bootstrap interval."""
    drawn = np.random.default_rng(0).choice(means, (10_000, len(means))).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{np.mean(means):.0f} ({low:.0f} to {high:.0f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--updates", type=int, default=10_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = qualities(folder)
        rows = [["way of acting", *data]]
        for way, (behaviour, changes, acts) in WAYS.items():
            cells = []
            for quality, batch in data.items():
                run = folder / f"{quality}-{behaviour}-{'-'.join(changes)}"
                if not run.exists():
                    settings = default_settings(
                        ENVIRONMENT, behaviour, frames=chosen.updates, target_period=60, **changes
                    )
                    train(settings, seeds=chosen.seeds, data=batch, out=run, **QUIET)
                found = evaluate(run, episodes=10, behaviour=acts)
                cells.append(interval(np.array([seed.mean for seed in found.seeds])))
            rows.append([way, *cells])
            print(" | ".join(rows[-1]), flush=True)
        print("\n".join(columns(rows, left=[0])))
        for quality, batch in data.items():
            print(f"{quality}: {len(batch)} transitions, episodes: {returns_of(batch)}")


if __name__ == "__main__":
    main()
