"""Stable-Baselines3's `evaluations.npz`: the returns of the episodes that `EvalCallback` played at some steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ipe.analysis.columns import Frames, whole_numbers
from ipe.base.arrays import Array, numeric, refuse_where
from ipe.base.files import PathLike, naming, read_npz
from ipe.errors import InputError

NAME = "evaluations.npz"


def is_evaluations(path: Path) -> bool:
    """Whether a file's name is that of Stable-Baselines3's evaluations."""
    return path.name == NAME and path.is_file()


def read_evaluations(path: PathLike) -> tuple[Frames, Array]:
    """The steps at which a run was evaluated, and the mean return of the episodes of each evaluation.

    `EvalCallback` acts greedily (`deterministic=True`) unless it was told otherwise, which the file does not say.

    Raises:
        InputError: naming the file and what is wrong with it.
    """
    with naming(path):
        arrays = read_npz(path)
        for name in ("timesteps", "results"):
            if name not in arrays:
                raise InputError(f"no evaluations: there is no array {name!r} in it, but {', '.join(arrays) or 'none'}")
        steps = whole_numbers(arrays["timesteps"], "timesteps", least=0)
        results = numeric(arrays["results"], "results")
        if results.ndim != 2 or len(results) != steps.size or results.shape[1] == 0:
            raise InputError(
                f"results must have a row of returns for each of the {steps.size} timesteps; found {results.shape}"
            )
        refuse_where(~np.isfinite(results), results, "results", "not a finite number")
        back = np.diff(steps) < 0
        if back.any():
            i = int(np.argmax(back)) + 1
            raise InputError(f"timesteps[{i}] = {steps[i]} comes after {steps[i - 1]}: it holds more than one run")
        return steps, results.mean(axis=1)
