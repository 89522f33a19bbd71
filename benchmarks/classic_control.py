"""What the tuned settings of classic control reach, and a search around them.

    python benchmarks/classic_control.py                              # ten fresh seeds each
    python benchmarks/classic_control.py --search --environments CartPole-v1

Without `--search` the settings are those of `ipe.deep.default_settings`, the seeds 0 to 9. Printed for each environment
and behaviour: the mean greedy return of new episodes, its standard error over seeds, the worst seed, the return of the
last 20 episodes of training, and epsilon at the end.

With `--search` the seeds are 1000, 1001, ... which the report does not use, and every behaviour is tried with the same
number of settings: two step sizes of the Q-network by two values of what its exploration depends on (the step size of
the policy network, or the schedule of epsilon). All else is as tuned.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ipe.analysis import standard_error
from ipe.deep import default_settings, evaluate, train
from ipe.deep.defaults import TUNED

BEHAVIOURS = ("epsilon-ipe", "epsilon-greedy", "tau-ipe")
FIRST_OF_SEARCH = 1000


def candidates(environment: str, behaviour: str) -> Iterator[dict[str, Any]]:
    """The changes of the tuned settings that the search tries with a behaviour."""
    tuned = default_settings(environment, behaviour)
    for value_step_size in (tuned.value_step_size / 2, tuned.value_step_size):
        for factor in (1, 5):
            if tuned.learns_policy:
                yield {"value_step_size": value_step_size, "policy_step_size": tuned.policy_step_size * factor}
            else:
                steps = tuned.epsilon.steps * factor
                yield {"value_step_size": value_step_size, "epsilon": {"steps": steps}}


def reached(environment: str, behaviour: str, seeds: list[int], episodes: int, changes: dict[str, Any]) -> str:
    """Train and evaluate one setting, and say what it reached, in one line."""
    settings = default_settings(environment, behaviour, **changes)
    with tempfile.TemporaryDirectory() as folder:
        result = train(settings, seeds=seeds, out=Path(folder) / "run", progress=False)
        found = evaluate(result.folder, episodes=episodes)
    means = np.array([one.mean for one in found.seeds])
    of_seed, returns = result.episodes["seed"].to_numpy(), result.episodes["return"].to_numpy()
    last = [returns[of_seed == seed][-20:].mean() for seed in seeds]
    epsilon = result.progress["epsilon"].to_numpy()[result.progress["frame"].to_numpy() == settings.frames].mean()
    error = standard_error(means)
    said = f"greedy {means.mean():7.1f} +- {error:5.1f}, worst seed {means.min():7.1f}, training {np.mean(last):7.1f}"
    return f"{said}, epsilon {epsilon:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", nargs="+", default=list(TUNED), choices=list(TUNED))
    parser.add_argument("--behaviours", nargs="+", default=list(BEHAVIOURS), choices=BEHAVIOURS)
    parser.add_argument("--seeds", type=int, default=None, help="default: 10; 4 with --search")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--search", action="store_true")
    options = parser.parse_args()
    first = FIRST_OF_SEARCH if options.search else 0
    seeds = list(range(first, first + (options.seeds or (4 if options.search else 10))))
    for environment in options.environments:
        for behaviour in options.behaviours:
            for changes in candidates(environment, behaviour) if options.search else [{}]:
                said = reached(environment, behaviour, seeds, options.episodes, changes)
                print(f"{environment:<14} {behaviour:<14} {changes or ''} {said}", flush=True)


if __name__ == "__main__":
    main()
