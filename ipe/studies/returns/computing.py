"""What the study of returns runs, and what it says of the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ipe.analysis import Claim, verdict
from ipe.studies.parts import Progress, Table, Tables, labelled, margin, prefixed, rows_with, stacked
from ipe.studies.returns.settings import SOURCES, TASKS, TRACES, ReturnsSettings, Task
from ipe.tabular import TabularRuns, simulate

FIXED = "number"
NAMES = {"actions": "entropy over the actions", "coin": "entropy as a coin's"}


def compute_lambda(settings: ReturnsSettings, progress: Progress) -> Tables:
    """Epsilon-IPE with Watkins's and Peng's traces: lambda over a grid, and lambda from entropy."""
    cases = [(task, traces, source) for task in TASKS for traces in TRACES for source in (FIXED, *SOURCES)]
    rows = []
    for k, (task, traces, source) in enumerate(cases):
        progress(f"{task.name}, {traces}, {source}", k, len(cases))
        grid = settings.lambdas if source == FIXED else (np.nan,)
        options: dict[str, Any] = {"traces": traces, "trace_decay_from": source}
        if source == FIXED:
            options["sweep"] = {"trace_decay": grid}
        rows.append(rows_of(_run(settings, task, options), grid, task=task.name, traces=traces, source=source))
    return {"lambda": stacked(rows)}


def compute_gamma(settings: ReturnsSettings, progress: Progress) -> Tables:
    """Epsilon-IPE with one-step targets: their discount over a grid, and the discount from entropy."""
    cases = [(task, source) for task in TASKS for source in (FIXED, *SOURCES)]
    rows = []
    for k, (task, source) in enumerate(cases):
        progress(f"{task.name}, {source}", k, len(cases))
        gamma = task.make().gamma
        if source == FIXED:
            grid = settings.gamma_shares
            options: dict[str, Any] = {"sweep": {"learning_gamma": [share * gamma for share in grid]}}
        else:
            grid = (np.nan,)
            options = {"discount_from": source, "least_gamma": settings.least_share * gamma}
        rows.append(rows_of(_run(settings, task, options), grid, task=task.name, source=source))
    return {"gamma": stacked(rows)}


def _run(settings: ReturnsSettings, task: Task, options: Mapping[str, Any]) -> TabularRuns:
    return simulate(
        task.make(), "epsilon-ipe", steps=task.steps, runs=settings.runs, seed=settings.seed,
        alpha_q=settings.alpha_q, alpha_pi=task.alpha_pi, **options,
    )  # fmt: skip


def rows_of(result: TabularRuns, grid: Sequence[float], **labels: str) -> Table:
    """A row for each value of the grid and each run, with the labels."""
    settings, runs = result.reward.shape
    return {
        **labelled(result.reward.size, **labels),
        "value": np.repeat(np.array(grid), runs),
        "run": np.tile(np.arange(runs), settings),
        "reward": result.reward.ravel(),
        "rmse": result.rmse.ravel(),
    }


def judge_lambda(settings: ReturnsSettings, tables: Tables) -> Sequence[Claim]:
    """Whether lambda from entropy does without a lambda to tune, for each kind of traces."""
    return [
        _claim(
            f"lambda-from-entropy-{traces}", "lambda",
            f"With {traces.capitalize()}'s traces, λ from the evaluation policy's entropy earns what the best fixed λ "
            "of each MDP earns.",
            {task.name: _compared(tables["lambda"], 0.0, task=task.name, traces=traces) for task in TASKS},
            "λ = 0",
        )
        for traces in TRACES
    ]  # fmt: skip


def judge_gamma(settings: ReturnsSettings, tables: Tables) -> Sequence[Claim]:
    """Whether a discount from entropy does without one to tune."""
    compared = {task.name: _compared(tables["gamma"], 1.0, task=task.name) for task in TASKS}
    return [
        _claim(
            "gamma-from-entropy", "gamma",
            "A learning discount from the evaluation policy's entropy earns what the best fixed learning discount of "
            "each MDP earns.",
            compared,
            "the MDP's γ",
        )
    ]  # fmt: skip


def _compared(table: Table, usual: float, **labels: str) -> dict[str, float]:
    """Mean rewards: from entropy over the actions, at the best fixed value, at the usual one; and two standard errors
    of the difference between the first two, over runs that saw the same random numbers."""
    ours = table["reward"][rows_with(table, source="actions", **labels)]
    fixed = rows_with(table, source=FIXED, **labels)
    by_value = {value: table["reward"][fixed & (table["value"] == value)] for value in np.unique(table["value"][fixed])}
    best = max(by_value, key=lambda value: float(by_value[value].mean()))
    return {
        "entropy": float(ours.mean()),
        "best": float(by_value[best].mean()),
        "best_value": float(best),
        "usual": float(by_value[usual].mean()),
        "margin": margin(ours - by_value[best]),
    }


def _claim(name: str, part: str, sentence: str, compared: Mapping[str, dict[str, float]], usual: str) -> Claim:
    as_good = {task: each["entropy"] >= each["best"] - each["margin"] for task, each in compared.items()}
    found = "; ".join(
        f"{task} {each['entropy']:.3g}, the best fixed value ({each['best_value']:g}) {each['best']:.3g}, {usual} "
        f"{each['usual']:.3g} (± {each['margin']:.2g})"
        for task, each in compared.items()
    )
    return Claim(
        name, part, sentence, verdict(*as_good.values()),
        f"Mean reward from entropy over the actions: {found}. Twice the standard error of the difference to the best "
        "fixed value, which was chosen on the same runs, in brackets.",
        prefixed(**compared),
        addition=True,
    )  # fmt: skip
