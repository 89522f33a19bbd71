"""What a sweep by successive halving will take, rung by rung, before anything is started."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ipe.experiments.calibration import Calibration, calibrate
from ipe.experiments.declared import Job, Setting, Sweep, merged_jobs
from ipe.experiments.grids import jobs as make_jobs
from ipe.experiments.halving import case_of, rung_sweep, rungs_of
from ipe.experiments.planning import Measure, like, makespan, measured_jobs, result_bytes
from ipe.experiments.rungs import Halving


@dataclass(frozen=True)
class RungPlan:
    """An estimate of what a rung takes."""

    settings: int
    """The settings of all cases together."""
    runs: int
    """The runs of each setting."""
    run_frames: int
    """The frames of a run at the end of the rung."""
    frames: int
    """The frames that the rung trains: those that its runs have from the rung before are not trained again."""
    result_bytes: int
    """The bytes of the rung's results on disk."""
    checkpoint_bytes: int
    """The bytes of the checkpoints that the rung keeps for the next one."""
    seconds: dict[int, float]
    """The seconds, by the number of cores of this kind."""


def plan_halving(
    sweep: Sweep, cores: Iterable[int], batch_seeds: int | None = None, measure: Measure = calibrate
) -> list[RungPlan]:
    """Estimate what a sweep by successive halving takes. Trains for some seconds to measure it; writes nothing.

    Which settings go on is not known before: a rung is reckoned with settings at even distances among the case's.

    Args:
        sweep: the sweep, with its rungs or without.
        cores: the numbers of cores to estimate for.
        batch_seeds: the most seeds in a job.
        measure: measures settings with a number of seeds at once.
    """
    halving, numbers = rungs_of(sweep), sorted(set(cores))
    longest = rung_sweep(sweep, halving, halving.rungs - 1)  # which has the most seeds in a job
    found, _, _ = measured_jobs(longest, make_jobs(longest, batch_seeds), measure)
    speed = {longest.by_key[job.key].stem: one for job, one in reversed(found)}
    plans, before = [], list[tuple[str, tuple[int, ...]]]()
    for rung in range(halving.rungs):
        part = rung_sweep(sweep, halving, rung)
        keys = {setting.stem: setting.key for setting in part.settings}
        going_on = [Job(keys[stem], seeds) for stem, seeds in before]
        old, have = {job.id for job in going_on}, halving.frames[rung - 1] if rung else 0
        jobs = merged_jobs(going_on, make_jobs(part, batch_seeds))
        stems, kept = {key: stem for stem, key in keys.items()}, set(_some(sweep, halving, rung))
        before = [(stems[job.key], job.seeds) for job in jobs]
        jobs = [job for job in jobs if stems[job.key] in kept]
        frames = [halving.frames[rung] - (have if job.id in old else 0) for job in jobs]
        costs = [like(speed[stems[job.key]], len(job.seeds)) for job in jobs]
        last = rung == halving.rungs - 1
        plans.append(_plan(len(kept), halving.runs[rung], halving.frames[rung], jobs, frames, costs, numbers, last))
    return plans


def _plan(
    settings: int,
    runs: int,
    each: int,
    jobs: list[Job],
    frames: list[int],
    costs: list[Calibration],
    cores: list[int],
    last: bool,
) -> RungPlan:
    lengths = [one.start_seconds + count * one.seconds_per_frame for one, count in zip(costs, frames, strict=True)]
    return RungPlan(
        settings=settings,
        runs=runs,
        run_frames=each,
        frames=sum(count * len(job.seeds) for job, count in zip(jobs, frames, strict=True)),
        result_bytes=round(sum(result_bytes(each, one) for one in costs)),
        checkpoint_bytes=0 if last else sum(one.memory * one.seeds for one in costs),
        seconds={n: makespan(lengths, n) for n in cores},
    )


def _some(sweep: Sweep, halving: Halving, rung: int) -> list[str]:
    """Return the stems of as many settings of each case as a rung has, at even distances."""
    cases: dict[tuple[str, str], list[Setting]] = {}
    for setting in sweep.settings:
        cases.setdefault(case_of(setting), []).append(setting)
    stems = []
    for members in cases.values():
        count, n = halving.sizes(len(members))[rung], len(members)
        stems += [members[i * n // count].stem for i in range(count)]
    return stems
