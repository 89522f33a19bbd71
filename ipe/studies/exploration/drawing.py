"""The figures of the study: what not tuning costs, every setting of every contender, performance profiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ipe.base.arrays import Array
from ipe.base.looks import LOOKS, Look, slots_for
from ipe.figures.style import OKABE_ITO, new_figure, style
from ipe.studies.exploration.findings import Findings, Row, Way
from ipe.studies.exploration.scores import Scores

_COLUMNS = 6
_DISTINCT = 8
"""The number of contenders, from the best on, that have a line of their own look among the profiles."""
_MARKS: tuple[tuple[Way, str, bool, float, float], ...] = (
    ("one for all", "o", True, 5.5, 0.13),
    ("unseen", "|", True, 9.0, 0.0),
    ("per task", "o", False, 5.5, -0.13),
)
"""The marker of each way of choosing a setting, whether it is filled, its size, and how far it is above its line."""

_PARAMETERS = {
    "alpha_pi": "policy step size",
    "anneal_steps": "annealing, share of the run",
    "epsilon": "ε",
    "epsilon.final": "ε",
    "fixed_epsilon": "ε",
}
"""What numbers are called at the axes, where they are not called by their names."""


def price_figure(findings: Findings) -> Figure:
    """A line per contender: its mean score with one setting for all tasks, for unseen kinds of tasks, and tuned."""
    rows = findings.rows[::-1]
    with style():
        figure = new_figure(6.4, 0.32 * len(rows) + 1.1)
        ax = figure.subplots()
        for y, row in enumerate(rows):
            colour = OKABE_ITO["blue"] if row.contender.ours else "0.35"
            ends = [row.mean[way].estimate for way in ("one for all", "per task")]
            ax.plot(ends, [y, y], color=colour, linewidth=1.6, alpha=0.45, zorder=1)
            for way, marker, filled, size, lift in _MARKS:
                if way not in row.mean:
                    continue
                point = row.mean[way]
                errors = [[point.estimate - point.low], [point.high - point.estimate]]
                ax.errorbar(
                    [point.estimate], [y + lift], xerr=errors if way != "unseen" else None, marker=marker,
                    markersize=size, color=colour, markerfacecolor=colour if filled else "white", capsize=1.5,
                    linestyle="none",
                )  # fmt: skip
        ax.set_yticks(range(len(rows)), [_bold(row) for row in rows])
        ax.set_xlabel("normalised score, mean over the families of tasks\n(0: uniform behaviour, 1: the best found)")
        ax.grid(axis="x", alpha=0.25, linewidth=0.5)
        unseen = "|  chosen on other kinds of tasks    " if "unseen" in rows[0].mean else ""
        ax.set_title(f"●  one setting for all tasks    {unseen}○  best for each task", fontsize=8)
        figure.tight_layout()
    return figure


@dataclass(frozen=True, eq=False)
class Panel:
    """What the figure of all settings shows of a contender.

    Attributes:
        label: the contender's name.
        behaviour: the behaviour's name, which decides the look of the line.
        parameter: the number that the grid varies.
        grid: the values of that number.
        tasks: the score on each task at each value, shape (tasks, values), at the better value step size.
        mean: the mean over the families at each value.
    """

    label: str
    behaviour: str
    parameter: str
    grid: Sequence[float]
    tasks: Array
    mean: Array


def tabular_panels(scores: Scores) -> list[Panel]:
    """What the figure of all settings shows of the tabular part."""
    panels = []
    for contender in scores.contenders:
        means = scores.scores[contender.name].mean(axis=-1)
        best = np.asarray(means.reshape(len(means), len(contender.grid), -1).max(axis=-1))
        mean = scores.family_means(best).mean(axis=0)
        panels.append(Panel(contender.label, contender.behaviour, contender.parameter, contender.grid, best, mean))
    return panels


def sensitivity_figure(blocks: Mapping[str, Sequence[Panel]]) -> Figure:
    """A panel per contender: every task over the five settings, and the mean over the families.

    Args:
        blocks: the panels of each part of the study, by the part's name at the axis; each begins a new row.
    """
    places = [panel for panels in blocks.values() for panel in [*panels, *[None] * (-len(panels) % _COLUMNS)]]
    rows = len(places) // _COLUMNS
    shown = [panel for panel in places if panel is not None]
    behaviours = list(dict.fromkeys(panel.behaviour for panel in shown))
    slots = dict(zip(behaviours, slots_for(behaviours), strict=True))
    lowest = max(-1.0, min(-0.25, *(float(panel.tasks.min()) - 0.05 for panel in shown)))
    with style():
        figure = new_figure(1.75 * _COLUMNS + 0.5, 1.85 * rows + 0.5)
        axes = figure.subplots(rows, _COLUMNS, sharey=True, squeeze=False)
        for ax, panel in zip(axes.flat, places, strict=True):
            if panel is None:
                ax.set_axis_off()
            else:
                _draw_panel(ax, panel, LOOKS[slots[panel.behaviour]], lowest)
        names = [name for name, panels in blocks.items() for _ in range(math.ceil(len(panels) / _COLUMNS))]
        for row, name in zip(axes, names, strict=True):
            row[0].set_ylabel(f"{name}: normalised score" if name else "normalised score", fontsize=7)
        figure.tight_layout()
    return figure


def _draw_panel(ax: Axes, panel: Panel, look: Look, lowest: float) -> None:
    x = np.arange(len(panel.grid))
    ax.plot(x, panel.tasks.T, color="0.72", linewidth=0.5, zorder=1)
    ax.plot(x, panel.mean, color=look.colour, marker=look.marker, zorder=2, linewidth=1.8, markersize=4)
    ax.set_xticks(x, [f"{value:g}" for value in panel.grid], fontsize=6)
    ax.set_title(panel.label, fontsize=8)
    ax.set_xlabel(_PARAMETERS.get(panel.parameter, panel.parameter.replace("_", " ")), fontsize=7)
    ax.set_ylim(lowest, 1.1)
    ax.axhline(0.0, color="0.4", linewidth=0.5)
    ax.grid(alpha=0.2, linewidth=0.5)


def profile_figure(findings: Findings) -> Figure:
    """The share of runs above each score, with one setting for all tasks and with the best for each."""
    tau = np.linspace(-0.1, 1.1, 121)
    first = [row.contender for row in findings.rows[:_DISTINCT]]
    slots = slots_for([each.behaviour if each.name == each.behaviour else None for each in first])
    looks = {contender.name: LOOKS[slot] for contender, slot in zip(first, slots, strict=True)}
    with style():
        figure = new_figure(7.2, 3.4)
        axes = figure.subplots(1, 2, sharey=True)
        ways: tuple[tuple[Way, str], ...] = (
            ("one for all", "one setting for all tasks"),
            ("per task", "best for each task"),
        )
        for ax, (way, title) in zip(axes, ways, strict=True):
            profiles = findings.profiles(way, tau)
            for row in findings.rows[::-1]:
                look = looks.get(row.contender.name)
                ax.plot(
                    tau, profiles[row.contender.name].fraction,
                    color="0.8" if look is None else look.colour,
                    linestyle="-" if look is None else look.line,
                    linewidth=0.7 if look is None else 1.5,
                    label=None if look is None else row.contender.label,
                )  # fmt: skip
            ax.set_xlabel("normalised score τ")
            ax.set_title(title)
            ax.grid(alpha=0.25, linewidth=0.5)
        axes[0].set_ylabel("share of runs that score above τ")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="center right", fontsize=7)
        figure.tight_layout(rect=(0, 0, 0.79, 1))
    return figure


def _bold(row: Row) -> str:
    return f"{row.contender.label} ◆" if row.contender.ours else row.contender.label
