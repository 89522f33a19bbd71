"""MLflow: a training from Python, seed by seed, to a tracking server, a database or a folder (extra `mlflow`)."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from ipe.base.packages import missing_package
from ipe.deep.callbacks import Ended, Evaluated, Started, Window
from ipe.integrations.tracking import Tracker, described

_STATUS = {"done": "FINISHED", "failed": "FAILED", "diverged": "FAILED", "interrupted": "KILLED"}
_LONGEST = 500  # characters of a parameter's value, in every backend of MLflow


class MlflowCallback(Tracker):
    """Logs a training to MLflow: a run for every seed, in one experiment.

    Each run has the settings as its parameters; at every thousand frames `training/return` (the mean of the last 20
    episodes), `training/episodes` and `progress/...`; at every evaluation `evaluation/return` and `evaluation/length`;
    and as tags the run's folder, the seed, and status and reason of its end. The step is the frame. A training that is
    resumed goes on in the same runs of MLflow.

    Args:
        experiment: the name of the experiment, which is made if it is not there.
        tracking_uri: where MLflow keeps its runs: a server's address, `sqlite:///FILE`, or a folder. Default: as MLflow
            is configured.

    Raises:
        InputError: MLflow is not installed.
    """

    def __init__(self, experiment: str = "ipe", tracking_uri: str | None = None) -> None:
        super().__init__()
        try:
            tracking, self._entities = import_module("mlflow.tracking"), import_module("mlflow.entities")
        except ImportError:
            raise missing_package("MlflowCallback", "MLflow", extra="mlflow") from None
        self._client = tracking.MlflowClient(tracking_uri)
        self._experiment = experiment
        self._runs: dict[int, str] = {}

    def _begin(self, event: Started) -> dict[type, int]:
        tags = {"ipe.run": str(event.run.resolve()), "ipe.seed": str(event.seed)}
        experiment = self._experiment_id()
        same = " and ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items() if "'" not in value)
        found = self._client.search_runs([experiment], same, max_results=1)
        if found:
            run = found[0]
            self._client.update_run(run.info.run_id, status="RUNNING")
        else:
            name = f"{event.run.name}, seed {event.seed}"
            run = self._client.create_run(experiment, tags=tags, run_name=name)
            values = {name: str(value)[:_LONGEST] for name, value in described(event).items()}
            parameters = [self._entities.Param(name, value) for name, value in values.items()]
            self._client.log_batch(run.info.run_id, params=parameters)
        self._runs[event.seed] = run.info.run_id
        return {
            Window: self._last(run.info.run_id, "training/episodes"),
            Evaluated: self._last(run.info.run_id, "evaluation/return"),
        }

    def _experiment_id(self) -> str:
        known = self._client.get_experiment_by_name(self._experiment)
        return str(self._client.create_experiment(self._experiment) if known is None else known.experiment_id)

    def _last(self, run: str, metric: str) -> int:
        """The last step at which a run has a metric; -1 if it has none."""
        return max((int(each.step) for each in self._client.get_metric_history(run, metric)), default=-1)

    def _log(self, seed: int, frame: int, metrics: dict[str, float]) -> None:
        now = int(1000 * time.time())
        values = [self._entities.Metric(name, value, now, frame) for name, value in metrics.items()]
        self._client.log_batch(self._runs[seed], metrics=values)

    def _end(self, event: Ended) -> None:
        run = self._runs.pop(event.seed, None)
        if run is not None:
            tags: dict[str, Any] = {"ipe.status": event.status, "ipe.reason": event.reason}
            entries = [self._entities.RunTag(name, value) for name, value in tags.items()]
            self._client.log_batch(run, tags=entries)
            self._client.set_terminated(run, _STATUS[event.status])
