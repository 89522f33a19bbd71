r"""Does it last? The time from a run's first competence to its first lasting collapse.

The definition, written down before the runs that it is applied to. Let c(t) be the mean return of the last 20 episodes
that ended by frame t, from the 20th episode on.

- The run's *first level* b is c at its 20th episode, when nothing has been learned. Its *best level so far* is
  :math:`M(t) = \max_{s \le t} c(s)`.
- The run is *competent* from the first frame :math:`t_0` with :math:`c(t_0) \ge 200`, the return at which LunarLander
  counts as solved.
- A *lasting collapse* begins at the first frame :math:`t > t_0` with :math:`c(t) < (b + M(t)) / 2`, half-way down, if c
  stays below that level for the 50,000 frames after t. A run that diverges after :math:`t_0` collapses there.
- The *time* of a run is :math:`t - t_0`. A run without a lasting collapse is censored at its end; a run that is below
  its half-way level when it ends, for less than 50,000 frames, is censored where that fall began, since nobody knows
  whether it would have lasted. A run whose environment fails is censored there. A run that never becomes competent has
  nothing to lose: it is not among the runs at risk, and is counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ipe.analysis.columns import Frames, runs_of
from ipe.analysis.curves import WINDOW, trailing_means
from ipe.base.arrays import Array, Mask
from ipe.experiments.declared import Setting
from ipe.experiments.results import Results

COMPETENT = 200.0
"""The mean return of 20 episodes from which on a run is competent."""
LASTS = 50_000
"""The frames that a collapse must last."""


@dataclass(frozen=True)
class Lasting:
    """How long a run lasted.

    Attributes:
        seed: the run's seed.
        competent: the frame at which the run became competent; None if it never did.
        end: the frame at which its lasting collapse began, or up to which it is known not to have collapsed.
        collapsed: whether there was a lasting collapse.
    """

    seed: int
    competent: int | None
    end: int
    collapsed: bool

    @property
    def time(self) -> int:
        """The frames from competence to the collapse, or to where the run is censored; 0 if it never was competent."""
        return 0 if self.competent is None else self.end - self.competent


@dataclass(frozen=True, eq=False)
class Lastings:
    """How long the runs of one setting lasted.

    Attributes:
        setting: the setting.
        runs: all its runs.
    """

    setting: Setting
    runs: list[Lasting]

    @property
    def at_risk(self) -> list[Lasting]:
        """The runs that became competent."""
        return [run for run in self.runs if run.competent is not None]

    @property
    def times(self) -> tuple[Array, Mask]:
        """The times of the runs at risk, and whether they collapsed: what `ipe.analysis.survival` takes."""
        return (
            np.array([run.time for run in self.at_risk], np.float64),
            np.array([run.collapsed for run in self.at_risk], np.bool_),
        )


def lasting_of(
    frames: Frames,
    returns: Array,
    outcome: Mapping[str, Any],
    *,
    competent: float = COMPETENT,
    lasts: int = LASTS,
) -> Lasting:
    """How long a run lasted, by this module's definition.

    Args:
        frames: the frame at which each of the run's episodes ended, in order.
        returns: the return of each episode.
        outcome: seed, status (done, failed or diverged) and frame of the run's end.
        competent: the level of competence.
        lasts: the frames that a collapse must last.

    Example:
        Forty episodes of 1000 frames: the run learns, is competent at frame 30,000, and falls for good.

        >>> returns = np.array([-200.0] * 20 + [250.0] * 50 + [-200.0] * 100)
        >>> ends = 1000 * np.arange(1, returns.size + 1)
        >>> lasting_of(ends, returns, {"seed": 3, "status": "done", "frame": 170_000})
        Lasting(seed=3, competent=38000, end=81000, collapsed=True)
    """
    seed, end = int(outcome["seed"]), int(outcome["frame"])
    curve, ends = trailing_means(returns, WINDOW)[WINDOW - 1 :], frames[WINDOW - 1 :]
    able = np.flatnonzero(curve >= competent)
    if able.size == 0:
        return Lasting(seed, None, end, False)
    first = int(able[0])
    half = (curve[0] + np.maximum.accumulate(curve)) / 2.0
    low = curve < half
    low[: first + 1] = False
    edges = np.diff(low.astype(np.int8), prepend=0)
    for begin in np.flatnonzero(edges == 1):
        later = np.flatnonzero(~low[begin:])
        until = int(ends[begin + later[0]]) if later.size else end
        if until - int(ends[begin]) >= lasts:
            return Lasting(seed, int(ends[first]), int(ends[begin]), True)
        if not later.size and outcome["status"] == "done":
            return Lasting(seed, int(ends[first]), int(ends[begin]), False)
    return Lasting(seed, int(ends[first]), end, outcome["status"] == "diverged")


def read_lasting(results: Sequence[Results]) -> list[Lastings]:
    """How long the runs of every setting of some sweeps lasted; settings without a run are left out."""
    found = []
    for part in results:
        for i, setting in enumerate(part.sweep.settings):
            outcomes = part.outcomes_of(i)
            pairs = runs_of(part.episodes_of(i), "return", [outcome["seed"] for outcome in outcomes])
            runs = [lasting_of(*pair, outcome) for pair, outcome in zip(pairs, outcomes, strict=True)]
            if runs:
                found.append(Lastings(setting, runs))
    return found
