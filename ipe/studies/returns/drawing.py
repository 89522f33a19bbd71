"""The figures of the study of returns: the fixed grid as curves, what entropy sets as lines across."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ipe.figures.sensitivity import Curve, Panel, draw_sensitivity
from ipe.figures.style import CYCLE, new_figure, style
from ipe.studies.parts import Table, Tables, margin, rows_with
from ipe.studies.returns.closed_form import TASKS as CLOSED_FORM_TASKS
from ipe.studies.returns.closed_form import UPDATES, rewards_of
from ipe.studies.returns.computing import FIXED, NAMES
from ipe.studies.returns.settings import SOURCES, TASKS, TRACES, ReturnsSettings

QUANTITIES = {"reward": "average reward", "rmse": "final RMSE"}
DASHES = {"actions": "--", "coin": ":"}


def draw_lambda(settings: ReturnsSettings, tables: Tables) -> Figure:
    """A column per MDP, reward above RMSE; a colour per kind of traces."""
    groups = {f"{traces.capitalize()}'s traces": {"traces": traces} for traces in TRACES}
    return _draw(tables["lambda"], groups, "λ (fixed)", "λ from")


def draw_gamma(settings: ReturnsSettings, tables: Tables) -> Figure:
    """A column per MDP, reward above RMSE."""
    return _draw(tables["gamma"], {"one-step targets": {}}, "learning γ / the MDP's γ", "γ from")


def draw_closed_form(settings: ReturnsSettings, tables: Tables) -> Figure:
    """A column per MDP, a line per update."""
    table, grid, panels = tables["closed-form"], np.array(settings.policy_steps), []
    for task in CLOSED_FORM_TASKS:
        curves = []
        for update, label in UPDATES.items():
            rewards = rewards_of(table, settings, task, update)
            curves.append(Curve(label, grid, rewards.mean(axis=1), np.array([margin(each) / 2 for each in rewards])))
        panels.append(Panel(task, "policy step size", True, [curves]))
    figure = draw_sensitivity(panels, ("average reward\n(mean ± standard error)",), (None,))
    figure.set_size_inches(9.6, 3.0)
    return figure


def _draw(table: Table, groups: dict[str, dict[str, Any]], axis: str, prefix: str) -> Figure:
    with style():
        figure = new_figure(9.6, 4.8)
        axes = figure.subplots(2, len(TASKS), sharex=True, squeeze=False)
        for j, task in enumerate(TASKS):
            for i, (column, label) in enumerate(QUANTITIES.items()):
                ax = axes[i, j]
                for colour, (name, labels) in zip(CYCLE, groups.items(), strict=False):
                    at = rows_with(table, task=task.name, source=FIXED, **labels)
                    grid = np.unique(table["value"][at])
                    values = [table[column][at & (table["value"] == value)] for value in grid]
                    means, errors = np.array([_mean(each) for each in values]).T
                    ax.errorbar(grid, means, errors, color=colour, marker="o", markersize=3, label=f"{name}, fixed")
                    for source in SOURCES:
                        mean, error = _mean(table[column][rows_with(table, task=task.name, source=source, **labels)])
                        ax.axhline(
                            mean, color=colour, linestyle=DASHES[source], label=f"{name}, {prefix} {NAMES[source]}"
                        )
                        ax.axhspan(mean - error, mean + error, color=colour, alpha=0.12, linewidth=0)
                ax.grid(alpha=0.25, linewidth=0.5)
                if j == 0:
                    ax.set_ylabel(f"{label}\n(mean ± standard error)")
            axes[0, j].set_title(task.name)
            axes[1, j].set_xlabel(axis)
        handles, labels_ = axes[0, 0].get_legend_handles_labels()
        rows = -(-len(labels_) // 3)
        figure.tight_layout(rect=(0, 0.02 + 0.045 * rows, 1, 1))
        figure.legend(handles, labels_, loc="lower center", ncols=3)
    return figure


def _mean(values: Any) -> tuple[float, float]:
    """A mean and its standard error."""
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else 0.0
    return float(values.mean()), float(error)
