"""`ipe curves`: the learning curves of training runs, side by side, and their areas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from ipe.cli.outputs import check_out
from ipe.cli.parsing import Flag
from ipe.errors import InputError


@dataclass(frozen=True)
class Arguments:
    """Draw the learning curves of one or more runs: mean return of the last 20 episodes against frames, mean and
    standard error over seeds, single seeds as thin lines, epsilon below. Prints the area under the curve (the mean of
    the curve over frames) and where it ends. A seed that failed or diverged keeps its last value.

    examples:
      ipe curves runs/LunarLander-v3-epsilon-ipe --out curves.png
      ipe curves runs/LunarLander-v3-epsilon-ipe runs/LunarLander-v3-epsilon-greedy --out both.pdf
    """

    runs: Annotated[Positional[tuple[str, ...]], arg(metavar="RUN [RUN ...]")]
    """Folders that `ipe train` made."""
    out: Annotated[str, arg(metavar="FILE")]
    """The figure: .svg, .png or .pdf."""
    overwrite: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Replace the file at --out if there is one."""


def run(arguments: Arguments) -> None:
    """Draw the figure and print the table."""
    from ipe.figures.style import check_figure_path

    if not arguments.runs:
        raise InputError("RUN is missing; see `ipe curves --help`")
    check_out(arguments.out, arguments.overwrite)
    check_figure_path(arguments.out)

    import numpy as np

    from ipe.analysis import aucs, curves, frame_grid, mean_and_standard_error, recorded_curves, standard_error
    from ipe.deep.records import read_episodes, read_progress
    from ipe.deep.runs import Run, open_run
    from ipe.figures.learning import learning_curves
    from ipe.figures.style import save_figure

    found: dict[str, Run] = {}
    for name in arguments.runs:
        own = open_run(Path(name))
        label = own.settings.behaviour if _different(arguments.runs) else Path(name).name
        found[label if label not in found else name] = own
    if not found:
        raise InputError("RUN is missing; see `ipe curves --help`")
    frames = min(own.settings.frames for own in found.values())
    grid = frame_grid(frames)
    groups, epsilon = {}, {}
    width = max(len(name) for name in found)
    print(f"{'':<{width}}  seeds   area under the curve   last 20 episodes   worst seed's area")
    for name, own in found.items():
        episodes = read_episodes(own.folder)
        groups[name] = curves(episodes, grid, own.seeds)
        areas = aucs(episodes, frames, own.seeds)
        if np.isnan(areas).any():
            which = own.seeds[int(np.argmax(np.isnan(areas)))]
            raise InputError(f"{own.folder}: seed {which} has not finished an episode within {frames} frames")
        recorded = recorded_curves(read_progress(own.folder), "epsilon", grid, own.seeds)
        if np.isfinite(recorded).any():
            epsilon[name] = recorded
        end = mean_and_standard_error(groups[name])
        error = standard_error(areas) if len(areas) > 1 else float("nan")
        print(
            f"{name:<{width}}  {len(areas):>5}   {areas.mean():>9.2f} +- {error:<8.2f}   "
            f"{end.mean[-1]:>6.1f} +- {end.error[-1]:<6.1f}   {areas.min():>8.2f}"
        )
    environments = sorted({own.settings.environment.id for own in found.values()})
    figure = learning_curves(groups, grid, epsilon=epsilon or None, title=", ".join(environments))
    save_figure(figure, arguments.out)
    print(f"wrote {arguments.out}: the first {frames} frames")


def _different(runs: tuple[str, ...]) -> bool:
    """Whether the runs' behaviours tell them apart."""
    from ipe.deep.runs import open_run

    behaviours = [open_run(Path(name)).settings.behaviour for name in runs]
    return len(set(behaviours)) == len(behaviours)
