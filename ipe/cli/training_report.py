"""The result of a training, as a table."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from ipe.base.columns import columns
from ipe.cli.wording import decimal

if TYPE_CHECKING:
    from ipe.deep import TrainingResult


def result_lines(result: TrainingResult) -> list[str]:
    """A table with a row per seed, the files of the run, and what to do next."""
    import numpy as np

    from ipe.analysis import aucs
    from ipe.experiments.training import open_run

    seeds = [outcome.seed for outcome in result.outcomes]
    settings = open_run(result.folder).sweep.settings[0].settings
    areas = aucs(result.episodes, settings.frames, seeds)
    seed_of, returns = (np.asarray(result.episodes[name]) for name in ("seed", "return"))
    greedy = _greedy(result)
    heads = ["greedy (last)", "greedy (best)"] if greedy else []
    rows = [["seed", "status", "episodes", "return (last 20)", "best (20)", *heads, "AUC"]]
    for outcome, area in zip(result.outcomes, areas, strict=True):
        of_seed = returns[seed_of == outcome.seed]
        last, best = (None, None) if of_seed.size == 0 else (float(of_seed[-20:].mean()), best_trailing(of_seed))
        ends = [decimal(value) for value in greedy.get(outcome.seed, (None, None))] if greedy else []
        cells = [decimal(last), decimal(best), *ends, decimal(float(area))]
        rows.append([str(outcome.seed), outcome.status, str(of_seed.size), *cells])
    known = ("sweep.json", "results", "work", "data", "tensorboard")
    files = ", ".join(name for name in known if (result.folder / name).exists())
    run = shlex.quote(str(result.folder))
    best_too = f"; ipe evaluate {run} --best" if greedy else ""
    look = f"ipe curves {run} --out curves.png"
    if settings.data:  # no episodes to draw, and policies to compare
        rows = [[*row[:2], *row[5:-1]] for row in rows]
        look = f"ipe audit {run}"
    return [
        *columns(rows, left=[1]),
        "",
        *(["it learned from a data set: there are no training episodes", ""] if settings.data else []),
        f"wrote {result.folder}{os.sep}: {files}",
        f"next: ipe evaluate {run}{best_too}; {look}; ipe watch {run} --out run.gif",
    ]


def _greedy(result: TrainingResult) -> dict[int, tuple[float | None, float | None]]:
    """The means of the last and of the best evaluation of each seed that was evaluated while it trained."""
    means: dict[int, list[float | None]] = {}
    for row in result.evaluations.select(["seed", "mean"]).to_pylist():
        means.setdefault(row["seed"], []).append(row["mean"])
    known = {seed: [mean for mean in each if mean is not None] for seed, each in means.items()}
    return {seed: (each[-1], max(known[seed], default=None)) for seed, each in means.items()}


def best_trailing(returns: Any, window: int = 20) -> float:
    """The best mean of `window` returns in a row; of all of them if there are fewer.

    Example:
        >>> best_trailing([5.0, 1.0, 2.0, 3.0], window=2)
        3.0
    """
    import numpy as np

    values = np.asarray(returns, dtype=np.float64)
    sums = np.convolve(values, np.ones(min(window, values.size)), mode="valid")
    return float(sums.max() / min(window, values.size))
