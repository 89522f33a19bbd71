"""Sweeps: grids of settings by seeds, declared in a file, run anywhere, interrupted and resumed at will."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipe.experiments.claims import Claim, ClaimLostError
    from ipe.experiments.engine import SweepResult, run_sweep
    from ipe.experiments.frames import connect, frame
    from ipe.experiments.grids import Job, Setting, Sweep, changed, make_sweep, read_sweep, shipped_sweeps
    from ipe.experiments.jobs import run_job
    from ipe.experiments.ledger import SweepProgress
    from ipe.experiments.planning import Plan, plan_sweep
    from ipe.experiments.results import Results, load_results
    from ipe.experiments.status import Status, sweep_status
    from ipe.experiments.store import Store, create_store, open_store

__all__ = [
    "Claim",
    "ClaimLostError",
    "Job",
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

# Imported when first asked for: Arrow, JAX and Dask take seconds, in which `ipe sweep --help` has long answered.
_HOMES = {
    "Claim": "claims",
    "ClaimLostError": "claims",
    "Job": "declared",
    "Plan": "planning",
    "Results": "results",
    "Setting": "declared",
    "Status": "status",
    "Store": "store",
    "Sweep": "declared",
    "SweepProgress": "ledger",
    "SweepResult": "engine",
    "changed": "grids",
    "connect": "frames",
    "create_store": "store",
    "frame": "frames",
    "load_results": "results",
    "make_sweep": "grids",
    "open_store": "store",
    "plan_sweep": "planning",
    "read_sweep": "grids",
    "run_job": "jobs",
    "run_sweep": "engine",
    "shipped_sweeps": "grids",
    "sweep_status": "status",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"ipe.experiments.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'ipe.experiments' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
