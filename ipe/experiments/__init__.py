"""Sweeps: grids of settings by seeds, declared in a file, run anywhere, interrupted and resumed at will."""

from typing import TYPE_CHECKING

from ipe.base.lazy import load_when_asked

if TYPE_CHECKING:
    from ipe.experiments.engine import SweepResult, run_sweep
    from ipe.experiments.frames import connect, frame
    from ipe.experiments.grids import Job, Setting, Sweep, changed, make_sweep, read_sweep, shipped_sweeps
    from ipe.experiments.jobs import run_job
    from ipe.experiments.leases import Lease, LeaseLostError
    from ipe.experiments.ledger import SweepProgress
    from ipe.experiments.planning import Plan, plan_sweep
    from ipe.experiments.results import Results, load_results
    from ipe.experiments.status import Status, sweep_status
    from ipe.experiments.store import Store, create_store, open_store
else:
    __getattr__, __dir__ = load_when_asked(__name__)

__all__ = [
    "Job",
    "Lease",
    "LeaseLostError",
    "Plan",
    "Results",
    "Setting",
    "Status",
    "Store",
    "Sweep",
    "SweepProgress",
    "SweepResult",
    "changed",
    "connect",
    "create_store",
    "frame",
    "load_results",
    "make_sweep",
    "open_store",
    "plan_sweep",
    "read_sweep",
    "run_job",
    "run_sweep",
    "shipped_sweeps",
    "sweep_status",
]
