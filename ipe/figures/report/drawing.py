"""The figures of a sweep for paper and print: learning curves, exploration, profiles and sensitivity."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ipe.analysis import bootstrap_band
from ipe.analysis.columns import Frames
from ipe.analysis.findings import Findings, Row
from ipe.analysis.panels import SensitivityPanel
from ipe.base.arrays import Array
from ipe.experiments.declared import Setting
from ipe.figures.learning import learning_curves
from ipe.figures.sensitivity import Curve, Panel, draw_sensitivity
from ipe.figures.style import CYCLE, new_figure, style

_DASHES = ("-", "--", "-.", ":")


def draw_curves(findings: Findings, *, seed: int = 0) -> Figure | None:
    """The contenders' learning curves: mean, 95% bootstrap interval of it, single runs.

    Args:
        findings: of one environment.
        seed: of the bootstrap.

    Returns:
        The figure; None if no contender has a curve.
    """
    rows = [row for row in findings.contenders if np.isfinite(row.series.curves).any()]
    if not rows:
        return None
    groups = {name: row.series.curves for name, row in zip(short_names(rows), rows, strict=True)}
    bands = {name: bootstrap_band(values, seed=seed) for name, values in groups.items()}
    return learning_curves(
        groups, findings.group.grid, bands=bands, band="95% bootstrap interval", title=findings.group.environment
    )


def draw_exploration(findings: Findings) -> Figure | None:
    """Epsilon and the policy's entropy over time, mean and range over runs; None if neither was recorded."""
    labels = {"epsilon": "ε", "entropy": "entropy of π (nats)"}
    have = [name for name in labels if any(getattr(row.series, name) is not None for row in findings.contenders)]
    if not have:
        return None
    names = short_names(findings.contenders)
    with style():
        figure = new_figure(5.6, 2.3 * len(have) + 0.9)
        axes = figure.subplots(len(have), 1, sharex=True, squeeze=False)[:, 0]
        for ax, name in zip(axes, have, strict=True):
            for i, (label, row) in enumerate(zip(names, findings.contenders, strict=True)):
                values = getattr(row.series, name)
                if values is not None:
                    _draw_range(ax, findings.group.grid, values, label, _look(i))
            ax.set_ylabel(labels[name])
            ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        axes[-1].set_xlabel("frames (thousands)")
        axes[-1].xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}")
        axes[-1].set_xlim(0.0, findings.group.grid[-1])
        axes[0].set_title(findings.group.environment)
        _legend_below(figure, axes, "mean and range over runs")
    return figure


def draw_profiles(findings: Findings) -> Figure:
    """The share of the contenders' runs whose AUC is above each threshold, with 95% bootstrap intervals."""
    with style():
        figure = new_figure(5.6, 3.6)
        ax = figure.subplots()
        names, profiles = short_names(findings.contenders), findings.profiles
        for i, (row, name, profile) in enumerate(zip(findings.contenders, names, profiles, strict=True)):
            look = _look(i)
            ax.fill_between(profile.tau, profile.low, profile.high, color=look["color"], alpha=0.2, linewidth=0)
            ax.plot(profile.tau, profile.fraction, label=f"{name} (n = {row.series.n})", **look)
        ax.set(xlabel="AUC threshold τ", ylabel="share of runs with AUC > τ", ylim=(-0.02, 1.02))
        ax.set_xlim(findings.profiles[0].tau[0], findings.profiles[0].tau[-1])
        ax.set_title(findings.group.environment)
        _legend_below(figure, [ax], "share and 95% bootstrap interval")
    return figure


def draw_panels(panels: Sequence[SensitivityPanel], cases: Sequence[str]) -> Figure | None:
    """The sensitivity curves, a panel per hyperparameter and a line per case; None if nothing was varied.

    Values stand at equal distances, each with its tick: grids are geometric, irregular, or words.

    Args:
        panels: what to draw.
        cases: in the order of their colours.
    """
    if not panels:
        return None
    kinds = {curve.kind.replace("others", "rest") for panel in panels for curve in panel.curves.values()}
    drawn = []
    for panel in panels:
        lines = [_line(panel, case) for case in cases]
        drawn.append(Panel(panel.hyperparameter, "", False, [lines]))
    figure = draw_sensitivity(drawn, [f"AUC ± standard error,\n{' and '.join(sorted(kinds))}"], [None])
    for ax, panel in zip(figure.axes, panels, strict=True):
        crowded = len(panel.values) > 5 or sum(len(words(value)) for value in panel.values) > 22
        ax.set_xticks(range(len(panel.values)), [words(value) for value in panel.values], rotation=45 if crowded else 0)
        ax.set_xlim(-0.4, len(panel.values) - 0.6)
    return figure


def words(value: Any) -> str:
    """A hyperparameter's value as a tick says it.

    Example:
        >>> [words(value) for value in (0.001, 1e-05, 64, True, "paper", None)]
        ['0.001', '1e-05', '64', 'true', 'paper', 'none']
    """
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def short_names(rows: Sequence[Row]) -> list[str]:
    """What tells these settings apart, for a legend: their cases, or the values in which they differ."""
    settings = [row.series.setting for row in rows]
    names = [setting.case for setting in settings]
    if len(set(names)) < len(names):
        paths = dict.fromkeys(path for setting in settings for path in setting.varied)
        differ = [path for path in paths if len({words(setting.varied.get(path)) for setting in settings}) > 1]
        names = [_values(setting, differ) for setting in settings]
    if len(set(names)) < len(names) or not all(names):
        names = [setting.name for setting in settings]
    return [f"{name} (fresh runs)" if row.series.fresh else name for name, row in zip(names, rows, strict=True)]


def _values(setting: Setting, paths: Sequence[str]) -> str:
    named = [f"{path}={words(setting.varied[path])}" for path in paths if path in setting.varied]
    return " ".join([setting.case, *named] if setting.case else named)


def _line(panel: SensitivityPanel, case: str) -> Curve:
    curve = panel.curves.get(case)
    if curve is None:  # a case that does not have this hyperparameter: an empty line keeps the others' colours
        empty = np.empty(0)
        return Curve(case, empty, empty, empty)
    at = np.array([panel.values.index(value) for value in curve.values], dtype=np.float64)
    return Curve(case or "AUC", at, curve.mean, np.nan_to_num(curve.error))


def _draw_range(ax: Axes, grid: Frames, values: Array, label: str, look: dict[str, Any]) -> None:
    seen = ~np.isnan(values).all(axis=0)
    some = values[:, seen]
    low, high = np.nanmin(some, axis=0), np.nanmax(some, axis=0)
    ax.fill_between(grid[seen], low, high, color=look["color"], alpha=0.2, linewidth=0)
    ax.plot(grid[seen], np.nanmean(some, axis=0), label=label, **look)


def _legend_below(figure: Figure, axes: Iterable[Axes], caption: str) -> None:
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    columns = 1 if max(map(len, entries)) > 30 else min(3, len(entries))
    rows = -(-len(entries) // columns)
    figure.legend(entries.values(), entries, loc="lower center", ncols=columns, title=caption, title_fontsize=8)
    figure.tight_layout(rect=(0, (0.3 + 0.18 * rows) / figure.get_figheight(), 1, 1))


def _look(i: int) -> dict[str, Any]:
    return {"color": CYCLE[i % len(CYCLE)], "linestyle": _DASHES[(i + i // len(CYCLE)) % len(_DASHES)]}
