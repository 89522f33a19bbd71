"""Learning from one data set: the data made, the networks trained, what every way of acting earns; kept in one file.

::

    OUT/TASK/medium-ipe.json               what each run of a training earned, by way of acting; sealed
    OUT/TASK/trained/KEY/medium/source     the training of the network that made the data
    OUT/TASK/trained/KEY/medium/data.npz   the data
    OUT/TASK/trained/KEY/medium/ipe        the training on the data

The files at the top are all that the report reads. The folder `trained` can be deleted, and is made again for what is
missing. A training that was stopped goes on; KEY stands for all that is declared, so that no training goes on with
other numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ipe.base.atomic import write_bytes
from ipe.base.sealed import read_sealed, sealed_bytes
from ipe.deep.collecting import collect_run
from ipe.deep.defaults import default_settings
from ipe.deep.machine import describe_machine, versions
from ipe.deep.transitions import Transitions, load_transitions, save_transitions
from ipe.errors import InputError
from ipe.experiments.evaluation import evaluate
from ipe.experiments.trained import read_trained
from ipe.experiments.training import resume, train
from ipe.mdp import FiniteMDP
from ipe.studies.batches import exact
from ipe.studies.batches.settings import GREEDY, TRAININGS, Task, Training

FORMAT, SCHEMA = "ipe.batches", 1
TRAINED = "trained"
SOURCE_EPISODES = 100
"""The number of episodes by which the return of a data set's policy is estimated."""
EVALUATIONS = 20
"""How often a training is evaluated whose best networks make the data."""


@dataclass(frozen=True)
class Cell:
    """What was learned from a data set, read from its file.

    Attributes:
        task: the task's name.
        quality: the quality of the data.
        training: the training's name.
        returns: the mean return of each run, by way of acting.
        of_data: the returns of episodes of the policy that made the data; one number if it is exact.
        best: the largest expected return there is, if it is computed exactly; else None.
        seeds: the number of runs that were declared. Runs that diverged have no return.
    """

    task: str
    quality: str
    training: str
    returns: dict[str, list[float]]
    of_data: list[float]
    best: float | None
    seeds: int

    @property
    def data_return(self) -> float:
        """The mean return of the policy that made the data."""
        return sum(self.of_data) / len(self.of_data)


class Batch:
    """A data set of a task, which is made when it is first needed."""

    def __init__(self, folder: Path, task: Task, quality: str, processes: int | None) -> None:
        self.folder, self.task, self.quality, self.processes = folder, task, quality, processes
        self.source = task.sources[quality]

    @cached_property
    def table(self) -> FiniteMDP:
        """The MDP of the environment, for a task with an exact truth."""
        return exact.table_of(self.task.environment)

    @cached_property
    def data(self) -> Transitions:
        """The transitions."""
        file = self.folder / "data.npz"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            save_transitions(self._collected(), file)
        return load_transitions(file)

    @cached_property
    def of_data(self) -> list[float]:
        """The returns of episodes of the policy that made the data; its expected return if that is known exactly."""
        if self.task.exact:
            return [exact.expected_return(self.table, exact.epsilon_optimal(self.table, self.source.epsilon))]
        self._train_source()
        which: Any = self.source.which
        found = evaluate(self._source, episodes=SOURCE_EPISODES, behaviour=True, which=which)
        return [float(each) for seed in found.seeds for each in seed.returns]

    @property
    def _source(self) -> Path:
        return self.folder / "source"

    def _train_source(self) -> None:
        source = self.source
        settings = default_settings(
            self.task.environment, "fixed-epsilon", fixed_epsilon=source.epsilon, frames=source.frames
        )
        every = max(1, source.frames // EVALUATIONS) if source.which == "best" else None
        train_or_resume(self._source, settings, processes=self.processes, evaluate_every=every)

    def _collected(self) -> Transitions:
        count, epsilon = self.task.transitions, self.source.epsilon
        if self.task.exact:
            return exact.collect(self.task.environment, exact.epsilon_optimal(self.table, epsilon), count, seed=0)
        self._train_source()
        which: Any = self.source.which
        return collect_run(read_trained(self._source, which=which), 0, count)


def train_or_resume(folder: Path, settings: Any, *, processes: int | None, **options: Any) -> None:
    """Train, or go on with the training that is in the folder.

    Raises:
        InputError: some seeds could not be trained.
    """
    if folder.exists() and any(folder.iterdir()):
        result = resume(folder, processes=processes, progress=False)
    else:
        result = train(settings, out=folder, processes=processes, progress=False, **options)
    if result.status != "done":
        raise InputError(f"{folder}: the training {result.status}: {'; '.join(result.notes) or 'no reason is known'}")


def run_task(folder: Path, task: Task, processes: int | None, tell: Callable[[str, int, int], None]) -> None:
    """Learn from every data set of a task in every way; what is in the folder already is kept.

    Args:
        folder: the task's folder.
        task: the task.
        processes: the number of processes. None: one per core.
        tell: a function that is called with what begins, how many trainings are done, and how many there are.

    Raises:
        InputError: the folder has results of another declaration.
    """
    plan = [(quality, training) for quality in task.sources for training in TRAININGS]
    work = folder / TRAINED / _key(task)
    batches = {quality: Batch(work / quality, task, quality, processes) for quality in task.sources}
    for done, (quality, training) in enumerate(plan):
        file = file_of(folder, quality, training.name)
        if file.exists():
            read_cell(file, task)
            continue
        tell(f"{quality} data, {training.name}", done, len(plan))
        write_bytes(file, sealed_bytes(_learned(task, batches[quality], training), "returns"))


def file_of(folder: Path, quality: str, training: str) -> Path:
    """The file of a training's returns."""
    return folder / f"{quality}-{training}.json"


def read_cell(file: Path, task: Task | None = None) -> Cell:
    """Read what was learned, verified; with a task, refuse results that were declared otherwise."""
    content = read_sealed(file, FORMAT, SCHEMA)
    if task is not None and content["declared"] != _declared(task):
        raise InputError(f"{file} has results with other settings than these; choose another folder")
    return Cell(
        content["declared"]["name"],
        content["quality"],
        content["training"],
        content["returns"],
        content["of_data"],
        content["best"],
        content["declared"]["seeds"],
    )


def _declared(task: Task) -> dict[str, Any]:
    """The task as JSON gives it back."""
    return {**task.declared(), "sources": {name: dict(vars(each)) for name, each in task.sources.items()}}


def _key(task: Task) -> str:
    """Some hexadecimal digits that stand for all that is declared of a task and of the trainings."""
    every = [_declared(task), [asdict(training) for training in TRAININGS]]
    return hashlib.sha256(json.dumps(every, sort_keys=True).encode()).hexdigest()[:12]


def _learned(task: Task, batch: Batch, training: Training) -> dict[str, Any]:
    run = batch.folder / training.name
    settings = default_settings(
        task.environment, training.behaviour, frames=task.updates, target_period=task.target_period,
        **task.fields, **training.fields,
    )  # fmt: skip
    train_or_resume(run, settings, processes=batch.processes, seeds=task.seeds, data=batch.data)
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "declared": _declared(task),
        "quality": batch.quality,
        "training": training.name,
        "returns": {way: _returns(task, batch, run, behaviour) for way, behaviour in training.ways.items()},
        "of_data": batch.of_data,
        "best": exact.largest_return(batch.table) if task.exact else None,
        "versions": versions(),
        "machine": describe_machine(),
    }


def _returns(task: Task, batch: Batch, run: Path, behaviour: str) -> list[float]:
    acts: bool | str = False if behaviour == GREEDY else behaviour
    if task.exact:
        return exact.returns_of(read_trained(run), batch.table, acts)
    return [seed.mean for seed in evaluate(run, episodes=task.episodes, behaviour=acts).seeds]
