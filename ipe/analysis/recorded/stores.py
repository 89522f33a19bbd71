"""Sweeps and training runs of ipe as recorded runs, to stand beside those of others."""

from __future__ import annotations

from pathlib import Path

from ipe.analysis.columns import runs_of
from ipe.analysis.recorded.record import RecordedRun, at_least_one
from ipe.base.nested import flatten
from ipe.errors import InputError
from ipe.experiments.halving import is_halving
from ipe.experiments.results import load_results


def store_runs(folder: Path) -> tuple[list[RecordedRun], list[str]]:
    """The training returns of every run of a store, its greedy evaluations where there are some, and what is wrong with
    the store, in sentences."""
    if is_halving(folder):
        raise InputError(
            f"{folder}: a sweep by successive halving cannot stand beside other runs; name one of its rungs"
        )
    results = load_results(folder, progress=False)
    runs = []
    for i, setting in enumerate(results.sweep.settings):
        outcomes = results.outcomes_of(i)
        seeds = [int(outcome["seed"]) for outcome in outcomes]
        episodes = runs_of(results.episodes_of(i), "return", seeds)
        evaluations = runs_of(results.evaluations_of(i), "mean", seeds, gaps=True)
        for outcome, trained, evaluated in zip(outcomes, episodes, evaluations, strict=True):
            run = RecordedRun(
                path=folder,
                steps=trained[0],
                returns=trained[1],
                kind="training",
                record="episode",
                source="a sweep of ipe",
                setting=setting.case or setting.settings.behaviour,
                environment=setting.settings.environment.id,
                run=str(outcome["seed"]),
                varied=dict(setting.varied),
                parameters=flatten(setting.settings.model_dump()),
                until=setting.settings.frames,
                ended=str(outcome["status"]),
            )
            runs.append(run)
            if evaluated[0].size:
                steps, source = at_least_one(evaluated[0]), "evaluations while training of a sweep of ipe"
                more = {"kind": "evaluation", "record": "mean", "source": source}
                runs.append(run.named(steps=steps, returns=evaluated[1], **more))
    return runs, results.problems
