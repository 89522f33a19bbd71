"""The figures of the study, from its tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ipe.base.arrays import Array, Mask
from ipe.base.looks import look_of
from ipe.figures.polytope import draw_value_map
from ipe.figures.sensitivity import Curve, Panel, draw_sensitivity
from ipe.figures.style import CYCLE, new_figure, style
from ipe.figures.trajectories import draw_epsilon, draw_paths
from ipe.studies.parts import Table, Tables, rows_with
from ipe.studies.switch_stay.beyond import OURS, UPDATES
from ipe.studies.switch_stay.sensitivity import means, standard_errors
from ipe.studies.switch_stay.settings import SwitchStaySettings
from ipe.zoo import switch_stay

REWARD, RMSE = "average reward", "final RMSE"
ROWS = (f"{REWARD}\n(mean ± standard error)", f"{RMSE}\n(mean ± standard error)")


def figure_2a(settings: SwitchStaySettings, tables: Tables) -> Figure:
    """Four panels on the polytope: estimates, behaviour values, starts."""
    table = tables["figure-2a"]
    paths = {}
    for behaviour in settings.trajectories:
        rows = rows_with(table, behaviour=behaviour.name)
        paths[behaviour.label] = (_pair(table, "estimate", rows), _pair(table, "value", rows))
    return draw_paths(switch_stay(settings.gamma), paths)


def figure_2b(settings: SwitchStaySettings, tables: Tables) -> Figure:
    """Epsilon over time."""
    return draw_epsilon(tables["figure-2b"], tables["figure-2b-median"], settings.table_size)


def figure_3(settings: SwitchStaySettings, tables: Tables) -> Figure:
    """The value maps."""
    table = tables["figure-3"]
    images, points = {}, np.empty((0, 2))
    for policy, title in (("ipe", "Evaluation policy"), ("greedy", "Greedy policy")):
        rows = rows_with(table, policy=policy)
        points, images[title] = _pair(table, "v", rows), _pair(table, "image", rows)
    return draw_value_map(switch_stay(settings.gamma), points, images)


def _pair(table: Table, name: str, rows: Mask) -> Array:
    """The columns of the two states, name0 and name1, side by side."""
    return np.stack([table[f"{name}{state}"][rows] for state in (0, 1)], axis=1)


def sensitivity(name: str) -> Any:
    """The drawing of a table of sweeps: a column per behaviour, reward above RMSE."""

    def draw(settings: SwitchStaySettings, tables: Tables) -> Figure:
        table, panels = tables[name], []
        for sweep in settings.sweeps:
            grid, reward, rmse = means(table, sweep.name)
            curves = [
                [Curve(sweep.label, grid, mean, standard_errors(table, sweep.name, column), sweep.name)]
                for mean, column in ((reward, "reward"), (rmse, "rmse"))
            ]
            title = sweep.label + (" (added)" if sweep.addition else "")
            panels.append(Panel(title, sweep.axis, sweep.logarithmic, curves))
        return draw_sensitivity(panels, ROWS, (None, 0.0))

    return draw


def updates(settings: SwitchStaySettings, tables: Tables) -> Figure:
    """A column per behaviour, a line per variant of the update."""
    table, panels = tables["updates"], []
    grid = np.array(settings.update_grid)
    for behaviour, title in zip(OURS, ("IPE", "ε-IPE"), strict=True):
        quantities: list[list[Curve]] = [[], []]
        for update in UPDATES:
            rows = [rows_with(table, behaviour=behaviour, update=update, alpha_pi=a) for a in grid]
            for curves, column in zip(quantities, ("reward", "rmse"), strict=True):
                x = [table[column][at] for at in rows]
                mean = np.array([part.mean() for part in x])
                error = np.array([part.std(ddof=1) / np.sqrt(part.size) if part.size > 1 else 0.0 for part in x])
                curves.append(Curve(update, grid, mean, error))
        panels.append(Panel(title, "policy step size", True, quantities))
    figure = draw_sensitivity(panels, ROWS, (None, 0.0))
    figure.set_size_inches(7.2, 4.8)
    return figure


def slip(settings: SwitchStaySettings, tables: Tables) -> Figure:
    """The distribution of average reward over runs, with and without Fenchel's estimate."""
    table = tables["slip"]
    with style():
        figure = new_figure(6.6, 2.8)
        ax = figure.subplots()
        for behaviour in OURS:
            for j, update in enumerate(("paper", "fenchel")):
                x = np.sort(table["reward"][rows_with(table, behaviour=behaviour, update=update)])
                name = {"ipe": "IPE", "epsilon-ipe": "ε-IPE"}[behaviour]
                label = f"{name}, " + ("the paper's update" if update == "paper" else "with Fenchel's estimate")
                share = np.arange(1, x.size + 1) / x.size
                ax.step(x, share, color=look_of(behaviour).colour, linestyle=("--", "-")[j], label=label, where="post")
        title = f"Slippery Switch-Stay (slip {settings.slip:g}), {settings.slip_steps} steps"
        ax.set(xlabel=REWARD, ylabel="share of runs at or below", title=title, ylim=(0, 1))
        ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))
        figure.tight_layout()
    return figure


def exact(settings: SwitchStaySettings, tables: Tables) -> Figure:
    """Bellman error and entropy over time, of the learned and of the exact evaluation policy."""
    table = tables["exact"]
    steps = np.unique(table["step"])
    with style():
        figure = new_figure(7.2, 4.8)
        axes = figure.subplots(2, 2, sharex=True, sharey="row")
        for j, (behaviour, title) in enumerate(zip(OURS, ("IPE", "ε-IPE"), strict=True)):
            rows = [rows_with(table, behaviour=behaviour, step=step) for step in steps]
            for i, (prefix, label) in enumerate((("", "Bellman error (l2)"), ("entropy_", "entropy (nats)"))):
                for k, kind in enumerate(("learned", "exact")):
                    values = [table[prefix + kind][at] for at in rows]
                    quartiles = np.array([np.quantile(v, [0.25, 0.5, 0.75]) for v in values]).T
                    axes[i, j].plot(
                        steps, quartiles[1], color=CYCLE[k], label=f"{kind} policy", linestyle="-" if k else "--"
                    )
                    axes[i, j].fill_between(steps, quartiles[0], quartiles[2], color=CYCLE[k], alpha=0.2, linewidth=0)
                axes[i, 0].set_ylabel(label)
            axes[0, j].set_title(f"{title}: median and quartiles over runs")
            axes[1, j].set_xlabel("step")
        axes[0, 0].legend(loc="upper right")
        figure.tight_layout()
    return figure
