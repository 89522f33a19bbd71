r"""Beyond the paper: a closed form of the policy in the place of its step size.

For a transition (s, a, r, s') the policy of the most entropy at s' with
:math:`\sum_b \pi_b Q(s', b) = (Q(s, a) - r) / \gamma` is known exactly: the lift. Lift-IPE learns the mean of what
transitions ask for, and lifts it; the cross-entropy update moves the policy towards the lift of each transition. Both
still have a rate. This part compares how much the rate matters, over five orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ipe.analysis import Claim, verdict
from ipe.mdp import FiniteMDP
from ipe.studies.parts import Progress, Table, Tables, margin, prefixed, rows_with, stacked
from ipe.studies.returns.computing import rows_of
from ipe.studies.returns.settings import ReturnsSettings
from ipe.tabular import simulate
from ipe.zoo import garnet, switch_stay

UPDATES = {"paper": "the paper's", "lift": "lift", "cross-entropy": "cross-entropy"}
"""The policy updates that are compared, with their names in the figure."""
TASKS: dict[str, tuple[Callable[[], FiniteMDP], int]] = {
    "Switch-Stay": (switch_stay, 500),
    "Garnet 0": (lambda: garnet(30, 4, 3, seed=0), 2000),
    "Garnet 2": (lambda: garnet(30, 4, 3, seed=2), 2000),
    "deterministic Garnet": (lambda: garnet(30, 4, 1, seed=0), 2000),
}
"""Switch-Stay, two random MDPs of 30 states, 4 actions and 3 successors, and one with a single successor; each with the
number of steps of a run."""
NAME = "closed-form"


def compute_closed_form(settings: ReturnsSettings, progress: Progress) -> Tables:
    """Epsilon-IPE with each update over five orders of magnitude of its step size."""
    rows, runs, grid = [], max(1, settings.runs // 2), settings.policy_steps
    cases = [(task, update) for task in TASKS for update in UPDATES]
    for k, (task, update) in enumerate(cases):
        progress(f"{task}, {update}", k, len(cases))
        make, steps = TASKS[task]
        result = simulate(
            make(), "epsilon-ipe", update=update, sweep={"alpha_pi": grid}, steps=steps, runs=runs, seed=settings.seed,
            alpha_q=settings.alpha_q,
        )  # fmt: skip
        rows.append(rows_of(result, grid, task=task, update=update))
    return {NAME: stacked(rows)}


def judge_closed_form(settings: ReturnsSettings, tables: Tables) -> Sequence[Claim]:
    """Whether the rate of a closed form matters less than the paper's step size, and what it earns at its best."""
    table = tables[NAME]
    compared = {task: {update: rewards_of(table, settings, task, update) for update in UPDATES} for task in TASKS}
    return [claim for update in ("lift", "cross-entropy") for claim in _claims(update, compared)]


def rewards_of(table: Table, settings: ReturnsSettings, task: str, update: str) -> Any:
    """The reward of each run at each step size, shape (step sizes, runs)."""
    at = rows_with(table, task=task, update=update)
    return np.stack([table["reward"][at & (table["value"] == step)] for step in settings.policy_steps])


def _claims(update: str, compared: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    name = {"lift": "Lift-IPE", "cross-entropy": "The cross-entropy update"}[update]
    kept, best = {}, {}
    for task, curves in compared.items():
        means = {each: curves[each].mean(axis=1) for each in ("paper", update)}
        kept[task] = {each: float(mean.min() / mean.max()) for each, mean in means.items()}
        ours, theirs = (curves[each][means[each].argmax()] for each in (update, "paper"))
        best[task] = {
            "ours": float(ours.mean()), "paper": float(theirs.mean()), "margin": margin(ours - theirs),
        }  # fmt: skip
    flatter = [each[update] > each["paper"] for each in kept.values()]
    as_good = [each["ours"] >= each["paper"] - each["margin"] for each in best.values()]
    return [
        Claim(
            f"{update}-depends-less-on-its-rate", NAME,
            f"{name} at its worst rate keeps a larger share of what it earns at its best than the paper's update, over "
            "the same five orders of magnitude.",
            verdict(*flatter),
            "Share kept: "
            + "; ".join(f"{task} {each[update]:.2f}, the paper's {each['paper']:.2f}" for task, each in kept.items())
            + ".",
            prefixed(**kept),
            addition=True,
        ),
        Claim(
            f"{update}-earns-as-much", NAME,
            f"{name} at its best rate earns what the paper's update earns at its best step size.",
            verdict(*as_good),
            "Mean reward: "
            + "; ".join(
                f"{task} {each['ours']:.3g}, the paper's {each['paper']:.3g} (± {each['margin']:.2g})"
                for task, each in best.items()
            )
            + ". In brackets twice the standard error of the difference; both were chosen on the same runs.",
            prefixed(**best),
            addition=True,
        ),
    ]  # fmt: skip
