"""Training runs side by side: their curves as far as each run got, and their areas over the frames that all have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ipe.analysis.columns import Frames
from ipe.analysis.curves import aucs, curves, frame_grid, mean_and_standard_error, recorded_curves
from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.experiments.results import SettingRuns


@dataclass(frozen=True, eq=False)
class TrainingCurves:
    """The curves of one training run.

    Attributes:
        run: the run.
        reached: the frame up to which all seeds of the run were trained.
        curves: the learning curves, shape (seeds, grid); NaN before a seed's first episode and after `reached`.
        epsilon: epsilon over time, shape (seeds, grid); None if the run did not record it.
        areas: the area under the curve of each seed, over the frames that all compared runs have.
        end: the mean return of the last episodes where the run ended, and its standard error over seeds.
    """

    run: SettingRuns
    reached: int
    curves: Array
    epsilon: Array | None
    areas: Array
    end: tuple[float, float]


def reached_frame(run: SettingRuns) -> int:
    """The frame up to which every seed of a run was trained.

    A seed that failed or diverged counts as trained to the end: it keeps its last mean, so that failures do not make a
    run look better. A seed that was stopped counts as far as it was trained.
    """
    frames = [run.settings.frames if outcome.lost else outcome.frame for outcome in run.outcomes]
    return min(frames, default=0)


def training_curves(runs: Mapping[str, SettingRuns]) -> tuple[Frames, int, dict[str, TrainingCurves]]:
    """The curves of several runs, by the names that the figure gives them, on one grid of frames.

    Returns:
        The grid, up to the frame that the longest run reached; the number of frames that all runs have, over which
        areas are compared; and the curves of each run.

    Raises:
        InputError: if a seed has not finished an episode within the frames that all runs have.
    """
    reached = {name: reached_frame(run) for name, run in runs.items()}
    common, grid = min(reached.values()), frame_grid(max(1, *reached.values()))
    found = {}
    for name, run in runs.items():
        if run.settings.data:
            raise InputError(f"{run.folder}: it learned from a data set, and has no training episodes to draw")
        episodes, after = run.episodes, grid > reached[name]
        areas = aucs(episodes, max(1, common), run.seeds)
        if np.isnan(areas).any():
            seed = run.seeds[int(np.argmax(np.isnan(areas)))]
            shortest = runs[min(reached, key=lambda each: reached[each])]
            got = "the run" if shortest is run else f"{shortest.folder}, the shortest of these runs,"
            raise InputError(
                f"{run.folder}: seed {seed} has not finished an episode within {common} frames, "
                f"which is how far {got} got"
            )
        values = np.where(after, np.nan, curves(episodes, grid, run.seeds))
        epsilon = np.where(after, np.nan, recorded_curves(run.progress, "epsilon", grid, run.seeds))
        end = mean_and_standard_error(curves(episodes, [reached[name]], run.seeds))
        found[name] = TrainingCurves(
            run=run,
            reached=reached[name],
            curves=values,
            epsilon=epsilon if np.isfinite(epsilon).any() else None,
            areas=areas,
            end=(float(end.mean[0]), float(end.error[0])),
        )
    return grid, common, found
