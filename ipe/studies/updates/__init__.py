"""Beyond the paper: every policy update of the deep agent, and lambda of its returns, each over its step sizes."""

from ipe.studies.updates.run import PARTS, Report, report_updates, run_updates, sweeps

__all__ = ["PARTS", "Report", "report_updates", "run_updates", "sweeps"]
