"""The figures of the study of updates: areas over the policy step size, and over lambda."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ipe.analysis.scores import standard_error
from ipe.analysis.series import Series
from ipe.experiments.results import Results
from ipe.figures.style import CYCLE, new_figure, style
from ipe.studies.updates.judging import ENTROPY, KINDS, PAPER, by_case, fixed_lambdas, step_sizes

GROUPS: dict[str, dict[str, str]] = {
    "another loss": {"absolute": "absolute error", "entropy-bonus": "entropy bonus 0.01", "fenchel": "Fenchel"},
    "another step": {"natural": "natural", "kl-proximal": "KL-proximal", "scale-free": "scale-free"},
    "a closed form": {"lift": "lift", "cross-entropy": "cross-entropy", "conservative": "conservative policy"},
    "another error": {
        "three-steps": "3 steps",
        "three-steps-corrected": "3 steps, corrected",
        "as-dqn": "as DQN's",
    },
}
"""The columns of the figure, each with its cases and their labels."""
GREY = "0.55"
MARKERS = "osD"
QUANTITY = "area under the curve\n(mean ± standard error)"


def draw_updates(environments: Mapping[str, Results]) -> Figure:
    """A row per environment, a column per group of updates; in grey the paper's update, in every column."""
    with style():
        figure = new_figure(9.6, 0.9 + 2.3 * len(environments))
        axes = figure.subplots(len(environments), len(GROUPS), sharex="row", sharey="row", squeeze=False)
        for row, (environment, results) in zip(axes, environments.items(), strict=True):
            cases = by_case(results)
            for ax, (title, group) in zip(row, GROUPS.items(), strict=True):
                if PAPER in cases:
                    _line(ax, cases[PAPER], "the paper's", GREY, "^")
                for colour, marker, (case, label) in zip(CYCLE, MARKERS, group.items(), strict=False):
                    if case in cases:
                        _line(ax, cases[case], label, colour, marker)
                ax.set_xscale("log")
                ax.grid(alpha=0.25, linewidth=0.5)
                ax.set_title(f"{environment}: {title}")
                ax.set_xlabel("policy step size")
            row[0].set_ylabel(QUANTITY)
        figure.tight_layout(rect=(0, 0.85 / figure.get_figheight(), 1, 1))
        for column in axes.T:  # an environment that has been run in part does not show every update
            shown = {label: line for ax in column for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
            box = column[-1].get_position()
            place = (box.x0 + box.width / 2, 0.0)
            figure.legend(shown.values(), shown.keys(), loc="lower center", bbox_to_anchor=place)
    return figure


def draw_lambda(results: Results) -> Figure:
    """Fixed values of lambda as curves, one per kind of mixed returns; lambda from entropy as lines across."""
    cases = {case: settings[0] for case, settings in by_case(results).items()}
    with style():
        figure = new_figure(5.2, 3.4)
        ax = figure.subplots()
        for colour, marker, kind in zip(CYCLE, MARKERS, KINDS, strict=False):
            fixed = fixed_lambdas(kind, cases)
            name = f"{kind.capitalize()}'s returns"
            _errorbars(ax, list(fixed), list(fixed.values()), f"{name}, fixed λ", colour, marker)
            if f"{kind}-{ENTROPY}" in cases:
                areas = cases[f"{kind}-{ENTROPY}"].auc
                mean, error = areas.mean(), standard_error(areas)
                ax.axhline(mean, color=colour, linestyle="--", label=f"{name}, λ from entropy")
                ax.axhspan(mean - error, mean + error, color=colour, alpha=0.12, linewidth=0)
        ax.set_xlabel("λ (0: one step; 1: up to eight steps)")
        ax.set_ylabel(QUANTITY)
        ax.grid(alpha=0.25, linewidth=0.5)
        figure.tight_layout(rect=(0, 0.16, 1, 1))
        figure.legend(loc="lower center", ncols=2)
    return figure


def _line(ax: Axes, settings: Sequence[Series], label: str, colour: str, marker: str) -> None:
    order = np.argsort(step_sizes(settings))
    _errorbars(ax, np.sort(step_sizes(settings)).tolist(), [settings[i] for i in order], label, colour, marker)


def _errorbars(ax: Axes, at: Sequence[float], settings: Sequence[Series], label: str, colour: str, marker: str) -> None:
    means = [float(series.auc.mean()) for series in settings]
    errors = [standard_error(series.auc) for series in settings]
    ax.errorbar(at, means, errors, color=colour, marker=marker, markersize=3.2, capsize=1.5, label=label)
