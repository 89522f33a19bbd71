"""What a training has come to, as a table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ipe.cli.tables import columns, number

if TYPE_CHECKING:
    from ipe.deep import TrainingResult


def result_lines(result: TrainingResult) -> list[str]:
    """A table with a row per seed, and where the run is."""
    import numpy as np

    from ipe.analysis import aucs
    from ipe.deep.runs import open_run

    seeds = [outcome.seed for outcome in result.outcomes]
    frames = open_run(result.folder).settings.frames
    areas = aucs(result.episodes, frames, seeds)
    seed_of, returns = (np.asarray(result.episodes[name]) for name in ("seed", "return"))
    rows = [["seed", "status", "episodes", "return (last 20)", "best (20)", "AUC"]]
    for outcome, area in zip(result.outcomes, areas, strict=True):
        own = returns[seed_of == outcome.seed]
        last, best = (None, None) if own.size == 0 else (float(own[-20:].mean()), best_trailing(own))
        cells = [number(last), number(best), number(float(area))]
        rows.append([str(outcome.seed), outcome.status, str(own.size), *cells])
    known = ("run.json", "episodes.parquet", "progress.parquet", "networks.safetensors")
    files = ", ".join(name for name in known if (result.folder / name).is_file())
    return [*columns(rows, left=[1]), "", f"wrote {result.folder}{os.sep}: {files}"]


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
