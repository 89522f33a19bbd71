"""What the callbacks for trackers of experiments share: one tracked run per seed, and no frame logged twice."""

from __future__ import annotations

from typing import Any

from ipe.base.nested import flatten
from ipe.deep.callbacks import Callback, Ended, Evaluated, Started, Window


class Tracker(Callback):
    """Logs every seed as a run of its own. A frame that comes again, after a crash, is not logged again."""

    def __init__(self) -> None:
        self._logged: dict[tuple[int, type], int] = {}

    def on_start(self, event: Started) -> None:
        """Begin a run for the seed, or go on with the one that is open."""
        last = self._begin(event)
        for kind in (Window, Evaluated):
            self._logged[event.seed, kind] = max(last.get(kind, -1), self._logged.get((event.seed, kind), -1))
        for each in event.past:  # what another process trained and did not log
            self._log_once(each)

    def on_window(self, event: Window) -> None:
        """Log the numbers of the window at its frame."""
        self._log_once(event)

    def on_evaluation(self, event: Evaluated) -> None:
        """Log the mean return and the mean length of the evaluation at its frame."""
        self._log_once(event)

    def on_end(self, event: Ended) -> None:
        """End the seed's run with its status, frame and reason."""
        self._end(event)
        for kind in (Window, Evaluated):
            self._logged.pop((event.seed, kind), None)

    def _log_once(self, event: Window | Evaluated) -> None:
        key = event.seed, type(event)
        if event.frame > self._logged.get(key, -1):
            self._logged[key] = event.frame
            if metrics := event.metrics():
                self._log(event.seed, event.frame, metrics)

    def _begin(self, event: Started) -> dict[type, int]:
        """Begin or open the run of a seed; returns the last frame that it has of each kind of event."""
        raise NotImplementedError

    def _log(self, seed: int, frame: int, metrics: dict[str, float]) -> None:
        raise NotImplementedError

    def _end(self, event: Ended) -> None:
        raise NotImplementedError


def described(event: Started) -> dict[str, Any]:
    """The settings of a seed by their paths, with the seed and the evaluation, for a tracker's table of parameters."""
    settings = flatten(event.settings.model_dump())
    evaluation = {} if event.evaluating is None else flatten({"evaluation": event.evaluating.plain()})
    return {**settings, **evaluation, "seed": event.seed}
