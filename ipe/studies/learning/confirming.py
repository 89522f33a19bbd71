"""Fresh runs of the chosen settings of a sweep: on the runs that chose it, the best setting looks better than it is."""

from __future__ import annotations

from ipe.analysis.findings import findings_of
from ipe.analysis.series import read_groups
from ipe.errors import InputError
from ipe.experiments.declared import Sweep
from ipe.experiments.results import Results
from ipe.studies.learning.evidence import SEED

FIRST_FRESH = 1_000_000
"""The first fresh seed: far from the seeds of the runs that choose, so that more of those runs can be added later."""


def confirming_sweep(results: Results, seeds: int) -> Sweep:
    """The sweep of the best setting of each case and environment, with fresh seeds, 1,000,000 and those after it. It is
    refused while runs are missing: a setting cannot be chosen before all its runs are there."""
    if seeds < 1:
        raise InputError(f"confirm_seeds must be 1 or more, found {seeds}")
    if results.missing:
        setting, seed = results.missing[0]
        raise InputError(
            f"{len(results.missing)} runs are missing, the first seed {seed} of "
            f"{results.sweep.settings[setting].name!r}: the best setting is chosen when all are there"
        )
    first = max(FIRST_FRESH, max(results.sweep.seeds) + 1)
    chosen = [row.series.trained for group in read_groups(results) for row in findings_of(group, seed=SEED).chosen]
    name, fresh = f"{results.sweep.name}, fresh runs", list(range(first, first + seeds))
    return Sweep(name, fresh, chosen, one_at_a_time=False, evaluating=results.sweep.evaluating)
