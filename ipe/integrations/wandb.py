"""Weights & Biases: a training from Python, seed by seed, online or offline (extra `wandb`)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ipe.base.packages import missing_package
from ipe.deep.callbacks import Ended, Evaluated, Started
from ipe.integrations.tracking import Tracker, described


class WandbCallback(Tracker):
    """Logs a training to Weights & Biases: a run for every seed, in a group named after the run's folder.

    Each run has the settings as its config; at every thousand frames `training/return` (the mean of the last 20
    episodes), `training/episodes` and `progress/...`; at every evaluation `evaluation/return` and `evaluation/length`;
    and in its summary status, frame and reason of the seed's end, and `evaluation/best`. The step is the frame.

    Args:
        project: the project.
        options: what else `wandb.init` takes: `mode="offline"` writes to disk without a network, `dir` says where.

    Raises:
        InputError: wandb is not installed.
    """

    def __init__(self, project: str = "ipe", **options: Any) -> None:
        super().__init__()
        try:
            self._wandb = import_module("wandb")
        except ImportError:
            raise missing_package("WandbCallback", "wandb", extra="wandb") from None
        self._project, self._options = project, options
        self._runs: dict[int, Any] = {}

    def on_evaluation(self, event: Evaluated) -> None:
        """Log the mean return and the mean length of the evaluation at its frame."""
        super().on_evaluation(event)
        if event.best:
            self._runs[event.seed].summary["evaluation/best"] = event.mean

    def _begin(self, event: Started) -> dict[type, int]:
        if event.seed not in self._runs:
            given = {"group": event.run.name, "name": f"{event.run.name}, seed {event.seed}", "reinit": "create_new"}
            self._runs[event.seed] = self._wandb.init(
                project=self._project, **(given | {"config": described(event)} | self._options)
            )
        return {}

    def _log(self, seed: int, frame: int, metrics: dict[str, float]) -> None:
        self._runs[seed].log(metrics, step=frame)

    def _end(self, event: Ended) -> None:
        run = self._runs.pop(event.seed, None)
        if run is not None:
            run.summary.update({"status": event.status, "frame": event.frame, "reason": event.reason})
            run.finish(exit_code=1 if event.status in ("failed", "diverged") else 0)
