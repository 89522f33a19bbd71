"""The figures of a sweep for paper and print: learning curves, exploration, profiles and sensitivity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ipe.analysis import bootstrap_band, mean_and_standard_error
from ipe.analysis.differences import differences_sentence
from ipe.analysis.findings import Findings, Row
from ipe.analysis.panels import SensitivityPanel
from ipe.analysis.series import ComparedSetting
from ipe.figures.learning import learning_curves
from ipe.figures.lines import draw_range, legend_below, set_frames
from ipe.figures.sensitivity import Curve, Panel, draw_sensitivity
from ipe.figures.style import line_styles, new_figure, style

_COLUMNS = 3
"""The most panels beside each other in the picture of all environments."""


def draw_curves(findings: Findings, *, seed: int = 0) -> Figure | None:
    """The contenders' learning curves: mean, 95% bootstrap interval of it, single runs; None if no contender has a
    curve."""
    rows = [row for row in findings.contenders if np.isfinite(row.series.curves).any()]
    if not rows:
        return None
    groups = {name: row.series.curves for name, row in zip(short_names(rows), rows, strict=True)}
    bands = {name: bootstrap_band(values, seed=seed) for name, values in groups.items()}
    chosen = dict(zip(groups, (row.series.setting for row in rows), strict=True))
    fields = {name: {**setting.fields()} for name, setting in chosen.items()}
    for each in fields.values():
        each.pop("behaviour", None)  # the legend tells it
    return learning_curves(
        groups,
        findings.group.grid,
        bands=bands,
        band="95% bootstrap interval",
        behaviours={name: setting.behaviour for name, setting in chosen.items()},
        title=findings.group.title,
        note=differences_sentence(fields),
        steps=findings.group.measure.steps,
        label=None if findings.group.measure.steps == "frames" else findings.group.measure.curve,
    )


def draw_all_curves(found: Sequence[Findings], *, seed: int = 0) -> Figure | None:
    """The contenders' learning curves on several environments as one picture, a panel for each environment: mean and
    95% bootstrap interval of it. A name looks the same in every panel. None if fewer than two environments have curves.
    """
    drawn = [(one, [row for row in one.contenders if np.isfinite(row.series.curves).any()]) for one in found]
    drawn = [(one, rows) for one, rows in drawn if rows]
    if len(drawn) < 2:
        return None
    behaviours = {
        name: row.series.setting.behaviour
        for _, rows in drawn
        for name, row in zip(short_names(rows), rows, strict=True)
    }
    looks = dict(zip(behaviours, line_styles(list(behaviours.values())), strict=True))
    columns = min(len(drawn), _COLUMNS)
    lines = -(-len(drawn) // columns)
    with style():
        figure = new_figure(3.6 * columns, 2.7 * lines + 0.6)
        axes = figure.subplots(lines, columns, squeeze=False).ravel()
        for ax, (findings, rows) in zip(axes, drawn, strict=False):
            _draw_means(ax, findings, rows, looks, seed)
        for ax in axes[len(drawn) :]:
            ax.remove()
        legend_below(figure, axes[: len(drawn)], "mean over runs and 95% bootstrap interval")
    return figure


def _draw_means(
    ax: Axes, findings: Findings, rows: Sequence[Row], looks: Mapping[str, dict[str, Any]], seed: int
) -> None:
    group = findings.group
    for name, row in zip(short_names(rows), rows, strict=True):
        low, high = bootstrap_band(row.series.curves, seed=seed)
        ax.fill_between(group.grid, low, high, color=looks[name]["color"], alpha=0.2, linewidth=0)
        ax.plot(group.grid, mean_and_standard_error(row.series.curves).mean, label=name, **looks[name])
    runs = sorted({row.series.n for row in rows})
    ax.set_title(f"{group.title} (n = {' to '.join(str(n) for n in dict.fromkeys((runs[0], runs[-1])))})")
    ax.set_ylabel(group.measure.curve.replace(", ", ",\n"))
    set_frames(ax, float(group.grid[-1]), group.measure.steps)


def draw_exploration(findings: Findings) -> Figure | None:
    """Epsilon and the policy's entropy over time, mean and range over runs; None if neither was recorded."""
    labels = {"epsilon": "ε", "entropy": "entropy of π (nats)"}
    have = [name for name in labels if any(getattr(row.series, name) is not None for row in findings.contenders)]
    if not have:
        return None
    names, looks = short_names(findings.contenders), _looks(findings.contenders)
    with style():
        figure = new_figure(5.6, 2.3 * len(have) + 0.9)
        axes = figure.subplots(len(have), 1, sharex=True, squeeze=False)[:, 0]
        for ax, name in zip(axes, have, strict=True):
            for label, row, look in zip(names, findings.contenders, looks, strict=True):
                values = getattr(row.series, name)
                if values is not None:
                    draw_range(ax, findings.group.grid, values, look, label)
            ax.set_ylabel(labels[name])
            ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        set_frames(axes[-1], float(findings.group.grid[-1]))
        axes[0].set_title(findings.group.title)
        legend_below(figure, axes, "mean and range over runs")
    return figure


def draw_evaluation(findings: Findings, *, seed: int = 0) -> Figure | None:
    """The contenders' greedy evaluations beside their training returns, on one scale: mean and 95% bootstrap interval;
    None if no contender was evaluated while it trained."""
    rows = [row for row in findings.contenders if row.series.evaluated is not None]
    if not rows:
        return None
    with style():
        figure = new_figure(7.2, 3.4)
        axes = figure.subplots(1, 2, sharex=True, sharey=True)
        panels = {"greedy evaluation": "evaluated", "training, mean of the last 20 episodes": "curves"}
        for ax, (title, name) in zip(axes, panels.items(), strict=True):
            for label, row, look in zip(short_names(rows), rows, _looks(rows), strict=True):
                values = getattr(row.series, name)
                low, high = bootstrap_band(values, seed=seed)
                ax.fill_between(findings.group.grid, low, high, color=look["color"], alpha=0.2, linewidth=0)
                mean = mean_and_standard_error(values).mean
                ax.plot(findings.group.grid, mean, label=f"{label} (n = {row.series.n})", **look)
            ax.set_title(title)
            set_frames(ax, float(findings.group.grid[-1]))
        axes[0].set_ylabel(f"return, {findings.group.environment}")
        legend_below(figure, axes, "mean and 95% bootstrap interval")
    return figure


def draw_profiles(findings: Findings) -> Figure:
    """The share of the contenders' runs whose AUC is above each threshold, with 95% bootstrap intervals."""
    with style():
        figure = new_figure(5.6, 3.6)
        ax = figure.subplots()
        rows = findings.contenders
        for row, name, look, profile in zip(rows, short_names(rows), _looks(rows), findings.profiles, strict=True):
            ax.fill_between(profile.tau, profile.low, profile.high, color=look["color"], alpha=0.2, linewidth=0)
            ax.plot(profile.tau, profile.fraction, label=f"{name} (n = {row.series.n})", **look)
        ax.set(xlabel="AUC threshold τ", ylabel="share of runs with AUC > τ", ylim=(-0.02, 1.02))
        ax.set_xlim(findings.profiles[0].tau[0], findings.profiles[0].tau[-1])
        ax.set_title(findings.group.title)
        legend_below(figure, [ax], "share and 95% bootstrap interval")
    return figure


def draw_panels(panels: Sequence[SensitivityPanel], chosen: Sequence[Row]) -> Figure | None:
    """The sensitivity curves, a panel per hyperparameter and a line per case; None if nothing was varied.

    Values stand at equal distances, each with its tick: grids are geometric, irregular, or words.
    """
    if not panels:
        return None
    kinds = {curve.kind.replace("others", "rest") for panel in panels for curve in panel.curves.values()}
    drawn = []
    for panel in panels:
        lines = [_line(panel, row) for row in chosen]
        drawn.append(Panel(panel.hyperparameter, "", False, [lines]))
    cut = any(any(curve.cut) for panel in panels for curve in panel.curves.values())
    hollow = "\n(hollow: cut off)" if cut else ""
    figure = draw_sensitivity(drawn, [f"AUC ± standard error,\n{' and '.join(sorted(kinds))}{hollow}"], [None])
    for ax, panel in zip(figure.axes, panels, strict=True):
        crowded = len(panel.values) > 5 or sum(len(words(value)) for value in panel.values) > 22
        ax.set_xticks(range(len(panel.values)), [words(value) for value in panel.values], rotation=45 if crowded else 0)
        ax.set_xlim(-0.4, len(panel.values) - 0.6)
    return figure


def words(value: Any) -> str:
    """A hyperparameter's value as the label of a tick.

    Example:
        >>> [words(value) for value in (0.001, 1e-05, 64, True, "paper", None)]
        ['0.001', '1e-05', '64', 'true', 'paper', 'none']
    """
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def short_names(rows: Sequence[Row]) -> list[str]:
    """Short names that tell the settings apart in a legend: their cases, or the values in which they differ."""
    settings = [row.series.setting for row in rows]
    names = [setting.case for setting in settings]
    if len(set(names)) < len(names):
        paths = dict.fromkeys(path for setting in settings for path in setting.varied)
        differ = [path for path in paths if len({words(setting.varied.get(path)) for setting in settings}) > 1]
        names = [_values(setting, differ) for setting in settings]
    if len(set(names)) < len(names) or not all(names):
        names = [setting.name for setting in settings]
    return [f"{name} (fresh runs)" if row.series.fresh else name for name, row in zip(names, rows, strict=True)]


def _values(setting: ComparedSetting, paths: Sequence[str]) -> str:
    named = [f"{path}={words(setting.varied[path])}" for path in paths if path in setting.varied]
    return " ".join([setting.case, *named] if setting.case else named)


def _line(panel: SensitivityPanel, row: Row) -> Curve:
    case, behaviour = row.series.setting.case, row.series.setting.behaviour
    curve = panel.curves.get(case)
    if curve is None:  # this case does not have the hyperparameter; its empty line keeps its place in the legend
        return Curve(case, np.empty(0), np.empty(0), np.empty(0), behaviour)
    at = np.array([panel.values.index(value) for value in curve.values], dtype=np.float64)
    cut = np.array([np.nan if one is None else one.chosen for one in curve.cut]) if curve.cut else None
    return Curve(case or "AUC", at, curve.mean, np.nan_to_num(curve.error), behaviour, cut)


def _looks(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return line_styles([row.series.setting.behaviour for row in rows])
