"""The report of a sweep: one page that opens anywhere, the figures, and the tables behind them."""

from ipe.figures.report.provenance import run_versions
from ipe.figures.report.write import check_folder, write_report

__all__ = ["check_folder", "run_versions", "write_report"]
