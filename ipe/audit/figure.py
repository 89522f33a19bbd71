"""An audit as a figure: what the error is made of, promise and truth, the worst states, and exploration."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ipe.audit.result import Audit, SampleAudit, TableAudit
from ipe.base.arrays import Array
from ipe.base.looks import look_of
from ipe.figures.style import OKABE_ITO, new_figure, style

_EVALUATION, _GREEDY = look_of("ipe").colour, look_of("greedy").colour
_SHADES = {
    "noise": "#9a9a9a",
    "estimation": OKABE_ITO["sky"],
    "left": OKABE_ITO["orange"],
    "residual": OKABE_ITO["purple"],
}
_MOST_POINTS = 2000


def draw_audit(audit: Audit, title: str = "") -> Figure:
    """Draw an audit in four panels: the parts of the squared TD error; Q(s, a) and what follows it; the worst states
    or transitions; matched epsilon.

    Args:
        audit: what `ipe.audit.audit` returned.
        title: a title above the panels.

    Returns:
        The figure; `ipe.figures.save_figure` writes it.
    """
    with style():
        figure = new_figure(8.4, 6.2)
        axes = figure.subplots(2, 2)
        if isinstance(audit, TableAudit):
            _table_parts(axes[0, 0], audit)
            _table_promises(axes[0, 1], audit)
            _worst_states(axes[1, 0], audit)
        else:
            _sample_parts(axes[0, 0], audit)
            which = np.linspace(0, audit.transitions - 1, min(audit.transitions, _MOST_POINTS)).astype(np.intp)
            _promises(axes[0, 1], audit.promised[which], audit.followed[which], audit.greedy_followed[which], None)
            _worst_transitions(axes[1, 0], audit)
        _epsilons(axes[1, 1], audit)
        if title:
            figure.suptitle(title)
        figure.tight_layout()
    return figure


def _stacked(ax: Any, parts: list[tuple[str, str, list[float]]], names: list[str]) -> None:
    left = np.zeros(len(names))
    for label, colour, sizes in parts:
        widths = np.maximum(sizes, 0.0)  # an estimate can be below 0, a bar cannot
        ax.barh(names, widths, left=left, color=colour, label=label, height=0.55)
        left = left + widths
    ax.invert_yaxis()
    ax.set_xlabel("mean squared TD error")
    ax.set_title("What the error is made of")
    ax.set_ylim(len(names) - 0.4 + 0.55, -0.6)
    ax.locator_params(axis="x", nbins=5)
    ax.legend(loc="lower right", fontsize="x-small")


def _table_parts(ax: Any, audit: TableAudit) -> None:
    policies = [("evaluation", audit.evaluation), ("greedy", audit.greedy)]
    policies += [("given", audit.given)] if audit.given is not None else []
    parts = [
        ("noise", _SHADES["noise"], [found.noise for _, found in policies]),
        ("estimation", _SHADES["estimation"], [found.estimation for _, found in policies]),
        ("Bellman residual", _SHADES["residual"], [found.residual for _, found in policies]),
    ]
    _stacked(ax, parts, [name for name, _ in policies])


def _sample_parts(ax: Any, audit: SampleAudit) -> None:
    evaluation, greedy, estimation = audit.evaluation, audit.greedy, audit.estimation or 0.0
    parts = [
        ("no policy removes it", _SHADES["residual"], [evaluation.floor, greedy.floor]),
        ("left by this policy", _SHADES["left"], [evaluation.excess - estimation, greedy.excess]),
    ]
    if audit.training is not None:
        parts.append(("estimation", _SHADES["estimation"], [estimation, 0.0]))
    _stacked(ax, parts, ["evaluation", "greedy"])


def _table_promises(ax: Any, audit: TableAudit) -> None:
    model = audit.model
    promised = model.q[model.state, model.action]
    sizes = 8.0 + 40.0 * np.sqrt(model.share / model.share.max())
    _promises(ax, promised, promised + audit.evaluation_errors.mean, promised + audit.greedy_errors.mean, sizes)


def _promises(ax: Any, promised: Array, followed: Array, greedy: Array, sizes: Array | None) -> None:
    size = 5.0 if sizes is None else sizes
    ax.scatter(promised, greedy, s=size, color=_GREEDY, alpha=0.45, linewidths=0, label="greedy")
    ax.scatter(promised, followed, s=size, color=_EVALUATION, alpha=0.6, linewidths=0, label="evaluation")
    ends = [float(min(promised.min(), followed.min())), float(max(promised.max(), followed.max()))]
    ax.plot(ends, ends, color="#444444", linewidth=0.8, zorder=0)
    ax.set_xlabel("promised: Q(s, a)")
    ax.set_ylabel(r"follows: $r + \gamma v(s')$")
    ax.set_title("Promise and what follows")
    ax.legend(loc="upper left", fontsize="x-small")


def _worst_states(ax: Any, audit: TableAudit) -> None:
    names = [f"s{row.state}" for row in audit.worst]
    at = np.arange(len(names))
    ax.barh(at - 0.2, [row.residual for row in audit.worst], height=0.38, color=_EVALUATION, label="evaluation")
    ax.barh(at + 0.2, [row.greedy_residual for row in audit.worst], height=0.38, color=_GREEDY, label="greedy")
    ax.set_yticks(at, names)
    ax.invert_yaxis()
    ax.set_xlabel("root mean square residual")
    ax.set_title("States with the largest residuals")
    if names:
        ax.legend(loc="lower right", fontsize="x-small")


def _worst_transitions(ax: Any, audit: SampleAudit) -> None:
    ax.set_title("Transitions that no policy explains")
    if not audit.worst:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "none" if audit.outside == 0.0 else "not listed", ha="center", transform=ax.transAxes)
        return
    at = np.arange(len(audit.worst))
    for i, row in enumerate(audit.worst):
        ax.plot([row.least, row.most], [i, i], color="#9a9a9a", linewidth=4, solid_capstyle="butt")
        ax.plot([row.least, row.most], [i, i], color="#9a9a9a", linestyle="none", marker="|", markersize=7)
    ax.scatter([row.q for row in audit.worst], at, color=_EVALUATION, s=16, zorder=3, label="Q(s, a)")
    ax.set_yticks(at, [str(row.index) for row in audit.worst])
    ax.invert_yaxis()
    ax.set_xlabel("grey: what some policy can explain")
    ax.legend(loc="best", fontsize="x-small")


def _epsilons(ax: Any, audit: Audit) -> None:
    explored = audit.exploration
    ax.hist(explored.epsilon, bins=np.linspace(0.0, 1.0, 21).tolist(), weights=explored.weights, color=_EVALUATION)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel(r"matched $\epsilon$ where transitions lead")
    ax.set_ylabel("share")
    ax.set_title(rf"Exploration: mean $\epsilon$ = {explored.mean_epsilon:.3f}")
