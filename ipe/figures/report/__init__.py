"""The report of a sweep: one page that opens anywhere, the figures, and the tables behind them."""

from ipe.analysis.provenance import run_versions
from ipe.figures.report.write import write_recorded_report, write_report

__all__ = ["run_versions", "write_recorded_report", "write_report"]
