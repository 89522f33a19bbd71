"""What the compiled program has counted: a row of progress for each seed, and which seeds have diverged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.deep.actors import Actors
from ipe.deep.learner import COUNTS
from ipe.deep.programs import Program
from ipe.deep.records import MEASURED
from ipe.deep.schedules import Timetable


def record_progress(
    actors: Actors, timetable: Timetable, program: Program, counts: NDArray[Any], frame: int, speed: float
) -> None:
    """Add a row of progress for each seed that is running; stop those whose errors are not finite. `counts` are the
    sums since they were last read, one row for each seed, one column for each of `COUNTS`."""
    for i, seed in enumerate(actors.seeds):
        if actors.outcomes[i].status != "running":
            continue
        seen = _named(counts[i])
        if not all_sound(counts[i]):
            stop_diverged(actors, timetable, i, counts[i], frame)
            continue
        actions = seen["frames"] or np.nan  # who learns from a data set takes none
        values = {name: seen[name] / actions for name in ("epsilon", "entropy")}
        updates = seen["updates"] or np.nan
        values |= {name: seen[name] / updates for name in ("td_error", "ipe_error", "q_mean")}
        values |= dict.fromkeys(_missing(program), np.nan)
        actors.records.progress(seed, frame, *(values[name] for name in MEASURED), speed)


def all_sound(counts: NDArray[Any]) -> bool:
    """Whether the errors of all updates of a seed have been finite since its counts, one for each of `COUNTS`, were
    last read."""
    seen = _named(counts)
    return seen["sound"] >= seen["updates"]


def stop_diverged(actors: Actors, timetable: Timetable, i: int, counts: NDArray[Any], frame: int) -> None:
    """Stop a seed at its first update of errors that are not finite; if there was none, at its next action."""
    seen = _named(counts)
    if back := int(seen["updates"] - seen["sound"]):
        wrong = timetable.frame_of_update(i, frame, back)
        actors.stop(i, "diverged", wrong, "the temporal-difference errors are not finite")
    else:
        actors.stop(i, "diverged", frame + 1, "the action values are not finite")


def _named(counts: NDArray[Any]) -> dict[str, float]:
    return dict(zip(COUNTS, counts.tolist(), strict=True))


def _missing(program: Program) -> Sequence[str]:
    """The measurements that a behaviour does not have."""
    without = [] if program.policy_update is not None else ["ipe_error"]
    without += [] if program.learns_policy else ["entropy"]
    return [*without, "epsilon"] if program.behaviour.epsilon is None else without
