"""The figures of the study: what not tuning costs, every setting of every contender, performance profiles."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from ipe.base.looks import LOOKS, slots_for
from ipe.figures.style import OKABE_ITO, new_figure, style
from ipe.studies.exploration.findings import Findings, Row, Way
from ipe.studies.exploration.scores import Scores
from ipe.studies.exploration.settings import Contender

_COLUMNS = 5
_DISTINCT = 8
"""The number of contenders, from the best on, that have a line of their own look among the profiles."""
_MARKS: tuple[tuple[Way, str, bool, float, float], ...] = (
    ("one for all", "o", True, 5.5, 0.13),
    ("unseen", "|", True, 9.0, 0.0),
    ("per task", "o", False, 5.5, -0.13),
)
"""The marker of each way of choosing a setting, whether it is filled, its size, and how far it is above its line."""


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
        ax.set_title(
            "●  one setting for all tasks    |  chosen on other kinds of tasks    ○  best for each task", fontsize=8
        )
        figure.tight_layout()
    return figure


def sensitivity_figure(scores: Scores) -> Figure:
    """A panel per contender: every task over the five settings, and the mean over the families."""
    count = len(scores.contenders)
    rows = math.ceil(count / _COLUMNS)
    looks = [LOOKS[slot] for slot in slots_for([contender.behaviour for contender in scores.contenders])]
    with style():
        figure = new_figure(1.75 * _COLUMNS + 0.5, 1.85 * rows + 0.5)
        axes = figure.subplots(rows, _COLUMNS, sharey=True, squeeze=False)
        for k, ax in enumerate(axes.flat):
            if k >= count:
                ax.set_axis_off()
                continue
            contender = scores.contenders[k]
            values = _over_the_grid(scores, contender)
            x = np.arange(len(contender.grid))
            ax.plot(x, values.T, color="0.72", linewidth=0.5, zorder=1)
            ax.plot(
                x, scores.family_means(values).mean(axis=0), color=looks[k].colour, marker=looks[k].marker, zorder=2,
                linewidth=1.8, markersize=4,
            )  # fmt: skip
            ax.set_xticks(x, [f"{value:g}" for value in contender.grid], fontsize=6)
            ax.set_title(contender.label, fontsize=8)
            ax.set_xlabel(_axis(contender), fontsize=7)
            ax.set_ylim(-0.25, 1.1)
            ax.axhline(0.0, color="0.4", linewidth=0.5)
            ax.grid(alpha=0.2, linewidth=0.5)
        for row in axes:
            row[0].set_ylabel("normalised score", fontsize=7)
        figure.tight_layout()
    return figure


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


def _over_the_grid(scores: Scores, contender: Contender) -> np.ndarray:
    """The mean score of each task at each value of the grid, shape (tasks, values), at the better value step size."""
    means = scores.scores[contender.name].mean(axis=-1)
    sizes = means.shape[1] // len(contender.grid)
    return np.asarray(means.reshape(len(means), len(contender.grid), sizes).max(axis=-1))


def _axis(contender: Contender) -> str:
    words = {"alpha_pi": "policy step size", "anneal_steps": "annealing, share of the run", "epsilon": "ε"}
    return words.get(contender.parameter, contender.parameter.replace("_", " "))


def _bold(row: Row) -> str:
    return f"{row.contender.label} ◆" if row.contender.ours else row.contender.label
