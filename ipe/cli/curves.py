"""`ipe curves`: the learning curves of training runs, side by side, and their areas."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ipe.cli.naming import named_apart
from ipe.cli.next_steps import next_line, run_steps
from ipe.cli.options import argument, flag, option
from ipe.cli.outputs import FIGURE, OVERWRITE, check_out

if TYPE_CHECKING:
    from ipe.experiments.results import SettingRuns


@dataclass(frozen=True)
class Arguments:
    """Draw the learning curves of one or more runs: mean return of the last 20 episodes against frames, mean and
    standard error over seeds, single seeds as thin lines, epsilon below. Prints the area under the curve (the mean of
    the curve over the frames that all runs have), where each curve ends, and the settings in which the runs differ. The
    curve of a run that was stopped ends where it stopped; a seed that failed or diverged keeps its last value.

    examples:
      ipe curves runs/LunarLander-v3-epsilon-ipe --out curves.png
      ipe curves runs/LunarLander-v3-epsilon-ipe runs/LunarLander-v3-epsilon-greedy --out both.pdf
    """

    runs: tuple[str, ...] = argument(
        "RUN", "The folder of a training run, or of a sweep, whose settings are then drawn side by side."
    )
    out: str = option("The figure: .svg, .png or .pdf.", metavar="FILE")
    overwrite: bool = flag(OVERWRITE)


def run(arguments: Arguments) -> None:
    """Draw the figure and print the table."""
    check_out(arguments.out, arguments.overwrite, FIGURE)

    from ipe.analysis.differences import differences_sentence, differences_text
    from ipe.analysis.scores import standard_error
    from ipe.analysis.training import training_curves
    from ipe.experiments.results import read_runs
    from ipe.figures.learning import learning_curves
    from ipe.figures.style import save_figure

    runs = named_apart([runs for folder in arguments.runs for runs in read_runs(folder)])
    grid, common, found = training_curves(runs)
    width = max(len(name) for name in found)
    for name, training in found.items():
        if training.reached < training.run.settings.frames:
            reached = f"its seeds are at frame {training.reached} of {training.run.settings.frames}"
            print(f"{name}: {reached}; its curve ends there")
    print(f"{'':<{width}}  seeds   area under the curve   last 20 episodes   worst seed's area")
    for name, training in found.items():
        mean, error = training.end
        print(
            f"{name:<{width}}  {len(training.areas):>5}   "
            f"{training.areas.mean():>9.2f} {_error(standard_error(training.areas), 2):<11}   "
            f"{mean:>6.1f} {_error(error, 1):<9}   {training.areas.min():>8.2f}"
        )
    print(f"area over the first {common} frames" + (", which all of these runs have" if len(found) > 1 else ""))
    settings = {name: run.settings.model_dump(exclude={"behaviour"}) for name, run in runs.items()}
    print("".join(f"{line}\n" for line in differences_text(settings)), end="")
    environments = sorted({run.settings.environment.id for run in runs.values()})
    figure = learning_curves(
        {name: training.curves for name, training in found.items()},
        grid,
        epsilon={name: training.epsilon for name, training in found.items() if training.epsilon is not None} or None,
        behaviours={name: run.settings.behaviour for name, run in runs.items()},
        title=", ".join(environments),
        note=differences_sentence(settings),
    )
    save_figure(figure, arguments.out)
    print(f"wrote {arguments.out}: the first {grid[-1]} frames")
    print(next_line(*_steps(arguments.runs, runs.values())))


def _steps(folders: Sequence[str], runs: Iterable[SettingRuns]) -> list[str]:
    """The report of each folder that holds several settings; new episodes of each other folder."""
    settings = Counter(run.folder for run in runs)
    commands = {folder: "report" if settings[Path(folder)] > 1 else "evaluate" for folder in folders}
    return [step for folder, command in commands.items() for step in run_steps(folder, None, command)]


def _error(error: float, digits: int) -> str:
    """A standard error behind its mean; nothing if there is none, as for one seed."""
    return "" if math.isnan(error) else f"+- {error:.{digits}f}"
