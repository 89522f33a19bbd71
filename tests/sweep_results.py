"""Results of a sweep that nobody trained: learning curves simulated run by run, with real statistics of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ipe.experiments.declared import Setting, Sweep
from ipe.experiments.results import Results

Level = Callable[[Setting], float]


def simulated_results(
    sweep: Sweep,
    *,
    level: Level,
    spread: float = 20.0,
    episode: int = 400,
    seeds: Sequence[int] | None = None,
    bad: dict[tuple[int, int], tuple[str, int]] | None = None,
    problems: Sequence[str] = (),
) -> Results:
    """Every run climbs from -200 to its own asymptote, a normal around the setting's level.

    Args:
        sweep: the settings and seeds.
        level: the mean asymptote of a setting.
        spread: standard deviation of asymptotes over runs.
        episode: mean frames of an episode.
        seeds: other seeds than the sweep's.
        bad: (setting, seed) -> (status, the frame it stopped at; 0: before its first episode).
        problems: sentences of the reader.
    """
    episodes: dict[str, list[Any]] = {name: [] for name in ("setting", "seed", "frame", "return", "length")}
    progress: dict[str, list[Any]] = {name: [] for name in ("setting", "seed", "frame", "epsilon", "entropy")}
    outcomes: list[dict[str, Any]] = []
    for i, setting in enumerate(sweep.settings):
        frames, learns = setting.settings.frames, setting.settings.learns_policy
        for seed in sweep.seeds if seeds is None else seeds:
            rng = np.random.default_rng([i, seed])
            status, stop = (bad or {}).get((i, seed), ("done", frames))
            lengths = rng.integers(max(1, episode // 2), 3 * episode // 2, size=3 * frames // episode + 2)
            ends = np.cumsum(lengths)
            keep = ends <= stop
            top, rate = rng.normal(level(setting), spread), frames * rng.uniform(0.1, 0.2)
            returns = top - (top + 200.0) * np.exp(-ends / rate) + rng.normal(0.0, 40.0, size=ends.size)
            for name, column in (("frame", ends), ("return", returns), ("length", lengths)):
                episodes[name].append(column[keep])
            at = np.arange(frames // 100, stop + 1, max(1, frames // 100))
            shape = setting.settings.epsilon
            linear = np.maximum(shape.final, 1.0 - (1.0 - shape.final) * at / shape.steps)
            wander = 0.1 * rng.random(at.size)
            progress["frame"].append(at)
            progress["epsilon"].append(0.05 + 0.6 * np.exp(-at / rate) + wander if learns else linear)
            progress["entropy"].append(1.3 * np.exp(-at / rate) + wander if learns else np.full(at.size, np.nan))
            for table, count in ((episodes, int(keep.sum())), (progress, at.size)):
                table["setting"].append(np.full(count, i, dtype=np.int32))
                table["seed"].append(np.full(count, seed))
            reason = "" if status == "done" else "a value of the network is not finite"
            outcomes.append({"setting": i, "seed": seed, "status": status, "frame": stop, "reason": reason})
    return Results(sweep, _table(episodes), _table(progress), outcomes, list(problems))


def _table(columns: dict[str, list[Any]]) -> pa.Table:
    return pa.table({name: pa.array(np.concatenate(parts), from_pandas=True) for name, parts in columns.items()})
