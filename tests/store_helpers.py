"""Stores of small sweeps in tests: declared in a line, filled with records that depend on the seed alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ipe.deep.records import Records
from ipe.deep.settings import paper_settings
from ipe.experiments.declared import Job, Setting, Sweep
from ipe.experiments.publications import JobResult
from ipe.experiments.store import Store, create_store

FRAMES = 1000


def make_setting(case: str = "", **varied: Any) -> Setting:
    own = paper_settings("CartPole-v1", "epsilon-ipe", frames=FRAMES, **varied)
    name = " ".join([*([case] if case else []), *(f"{path}={value}" for path, value in varied.items())])
    return Setting(name, case, varied, own)


def make_sweep(widths: Sequence[int] = (16, 32), seeds: Sequence[int] = (0, 1, 2, 3)) -> Sweep:
    return Sweep("small", list(seeds), [make_setting(width=width) for width in widths], False)


def make_jobs(sweep: Sweep, batch: int = 2) -> list[Job]:
    batches = [tuple(sweep.seeds[i : i + batch]) for i in range(0, len(sweep.seeds), batch)]
    return [Job(setting.key, seeds) for setting in sweep.settings for seeds in batches]


def make_store(folder: Path, sweep: Sweep | None = None, batch: int = 2) -> Store:
    sweep = sweep or make_sweep()
    return create_store(folder, sweep, make_jobs(sweep, batch))


def make_records(seeds: Sequence[int], shift: float = 0.0) -> Records:
    records = Records()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for frame in range(50, FRAMES + 1, 50):
            records.episode(seed, frame, shift + rng.normal(), 50)
            if frame % 250 == 0:
                records.progress(seed, frame, 0.5, np.nan, rng.random(), np.nan, rng.random(), rng.random())
    return records


def make_outcomes(seeds: Sequence[int], **other: dict[str, Any]) -> list[dict[str, Any]]:
    """All done, but for `seed_3={"status": "failed"}` and the like."""
    done = {"status": "done", "frame": FRAMES, "reason": ""}
    return [{"seed": seed, **done, **other.get(f"seed_{seed}", {})} for seed in seeds]


def publish(store: Store, job: Job, shift: float = 0.0, **other: dict[str, Any]) -> bool:
    lease = store.lease(job, beat_seconds=0.2, stale_seconds=1.0)
    assert lease is not None
    with lease:
        return store.publish(lease, JobResult(make_records(job.seeds, shift), make_outcomes(job.seeds, **other), 1.5))


def publish_all(store: Store) -> None:
    for job in store.jobs:
        publish(store, job)


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
