"""What a job without a result has come to, at its newest checkpoint: records and networks, without the replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ipe.deep.checkpoints import load_checkpoint, under
from ipe.deep.progress import Outcome
from ipe.deep.records import Records
from ipe.experiments.declared import Job
from ipe.experiments.store import Store

_NETWORKS = ("state.q.", "state.policy.")


@dataclass(frozen=True)
class Snapshot:
    """A job at its newest checkpoint."""

    outcomes: list[Outcome]
    """How far each seed has come."""
    records: Records
    """The records so far."""
    networks: dict[str, NDArray[Any]]
    """The networks, as `ipe.deep.loop.Loop.networks` names them; the first axis is the seeds."""


def read_snapshot(store: Store, job: Job, report: Callable[[str], object] | None = None) -> Snapshot | None:
    """Read what a job has come to at its newest valid checkpoint.

    Args:
        store: the store.
        job: the job.
        report: called with a sentence for each damaged checkpoint.

    Returns:
        The snapshot, or None if the job has no checkpoint.
    """
    checkpoint = load_checkpoint(store.work_folder(job), report, only=("records.", *_NETWORKS))
    if checkpoint is None:
        return None
    outcomes = [Outcome(**outcome) for outcome in checkpoint.data["outcomes"]]
    for outcome in outcomes:
        if outcome.status == "running":
            outcome.frame = checkpoint.frame
    networks = {
        name: array[: len(job.seeds)]
        for name, array in under("state.", checkpoint.arrays).items()
        if name.startswith(("q.", "policy."))
    }
    return Snapshot(outcomes, Records.from_arrays(under("records.", checkpoint.arrays)), networks)
