"""The runs of one setting, as far as they have come: what a training returns, and what curves are drawn from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ipe.deep.progress import Outcome
from ipe.deep.settings import TrainingSettings
from ipe.errors import InputError
from ipe.experiments.results import load_results


@dataclass(frozen=True, eq=False)
class SettingRuns:
    """The runs of one setting, one for each seed."""

    folder: Path
    """The folder of the training run or the sweep."""
    name: str
    """The name of the setting in its sweep."""
    settings: TrainingSettings
    outcomes: list[Outcome]
    """How far each seed has come."""
    episodes: pa.Table
    """seed, frame, return, length; sorted by the first two."""
    progress: pa.Table
    """seed, frame, epsilon, entropy, td_error, ipe_error, q_mean, frames_per_second; sorted by the first two."""

    @property
    def seeds(self) -> list[int]:
        """The seeds."""
        return [outcome.seed for outcome in self.outcomes]


def read_runs(folder: str | os.PathLike[str]) -> list[SettingRuns]:
    """Read the runs of each setting of a training run or a sweep, as far as they have come.

    Args:
        folder: the folder of a store, or of a training run of an earlier version.

    Raises:
        InputError: if there is neither.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"there is no run {path}")
    results = load_results(path, unfinished=True, speeds=True)
    runs = []
    for i, setting in enumerate(results.sweep.settings):
        outcomes = {seed: Outcome(seed) for seed in results.sweep.seeds}
        for outcome in results.outcomes_of(i):
            fields = {name: value for name, value in outcome.items() if name != "setting"}
            outcomes[outcome["seed"]] = Outcome(**fields)
        episodes, progress = (
            table.drop_columns(["setting"]) for table in (results.episodes_of(i), results.progress_of(i))
        )
        runs.append(SettingRuns(path, setting.name, setting.settings, list(outcomes.values()), episodes, progress))
    return runs
