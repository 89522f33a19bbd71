"""How a sweep differs from the one that a store was made for, and which jobs it adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ipe.base.words import short
from ipe.errors import InputError
from ipe.experiments.declared import Job, Setting, Sweep


def check_contains(sweep: Sweep, stored: Sweep) -> None:
    """Refuse a sweep that lacks a setting or a seed of a stored one; it may have more, and other names.

    Raises:
        InputError: naming the setting, its first field that differs and both values; or the seed.
    """
    keys = {setting.key for setting in sweep.settings}
    for setting in stored.settings:
        if setting.key not in keys:
            raise InputError(f"{_missing(setting, sweep.settings)}; a sweep can be given more settings, not other ones")
    if missing := [seed for seed in stored.seeds if seed not in set(sweep.seeds)]:
        listed = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        which = f"seed {listed} is" if len(missing) == 1 else f"seeds {listed} are"
        raise InputError(f"its {which} not in this sweep, which can be given more seeds, not fewer")


def differences(one: Any, other: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Return the fields in which two nested dictionaries differ, by path, with both values; None for a missing one.

    Example:
        >>> differences({"width": 64, "epsilon": {"final": 0.1}}, {"width": 64, "epsilon": {"final": 0.2}})
        [('epsilon.final', 0.1, 0.2)]
    """
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        inner = [differences(one.get(name), other.get(name), f"{path}.{name}" if path else name) for name in names]
        return [difference for found in inner for difference in found]
    return [] if one == other and type(one) is type(other) else [(path, one, other)]


def merged_jobs(existing: Sequence[Job], jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs that are there, and new ones for the seeds that they do not cover.

    Example:
        >>> [job.seeds for job in merged_jobs([Job("k", (0, 1))], [Job("k", (0, 1, 2)), Job("k", (3, 4))])]
        [(0, 1), (2,), (3, 4)]
    """
    covered = {(job.key, seed) for job in existing for seed in job.seeds}
    left = ((job.key, tuple(seed for seed in job.seeds if (job.key, seed) not in covered)) for job in jobs)
    return [*existing, *(Job(key, seeds) for key, seeds in left if seeds)]


def check_jobs(sweep: Sweep, jobs: Sequence[Job]) -> None:
    """Refuse jobs that do not hold every seed of every setting once.

    Raises:
        InputError: naming the setting and the seed.
    """
    names, seeds = {setting.key: setting.name for setting in sweep.settings}, set(sweep.seeds)
    covered: set[tuple[str, int]] = set()
    for job in jobs:
        if job.key not in names:
            raise InputError(f"the job {job.id} is of a setting that is not in the sweep")
        for seed in job.seeds:
            where = f"setting {names[job.key]!r}, seed {seed}"
            if seed not in seeds:
                raise InputError(f"{where}: there is a job for it, and it is not in the sweep")
            if (job.key, seed) in covered:
                raise InputError(f"{where}: it is in two jobs")
            covered.add((job.key, seed))
    for key, name in names.items():
        if left := [seed for seed in sweep.seeds if (key, seed) not in covered]:
            raise InputError(f"setting {name!r}, seed {left[0]}: it is in no job")


def _missing(wanted: Setting, settings: Sequence[Setting]) -> str:
    """Name the setting that is missing, and how the one most like it differs."""
    mine = wanted.settings.model_dump()
    same_name = [setting for setting in settings if setting.name == wanted.name]
    found = [(differences(mine, other.settings.model_dump()), other) for other in same_name or settings]
    unlike, nearest = min(found, key=lambda pair: len(pair[0]))
    path, before, now = unlike[0]
    more = f" (and {len(unlike) - 1} more fields differ)" if len(unlike) > 1 else ""
    values = f"{path} is {short(before)} there and {short(now)}"
    if nearest.name == wanted.name:
        return f"in its setting {wanted.name!r}, {values} in this sweep{more}"
    return f"its setting {wanted.name!r} is not in this sweep; the nearest is {nearest.name!r}: {values} here{more}"
