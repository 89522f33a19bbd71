"""Runs that other programs recorded: Stable-Baselines3's files, anyone's TensorBoard files, and tables."""

from ipe.analysis.recorded.evaluations import read_evaluations
from ipe.analysis.recorded.events import Events, Scalar, read_events
from ipe.analysis.recorded.groups import RecordedSetting, recorded_groups
from ipe.analysis.recorded.monitor import Monitor, read_monitor
from ipe.analysis.recorded.reading import RecordedRuns, read_recorded
from ipe.analysis.recorded.record import RecordedRun
from ipe.analysis.recorded.tables import Table, read_table

__all__ = [
    "Events",
    "Monitor",
    "RecordedRun",
    "RecordedRuns",
    "RecordedSetting",
    "Scalar",
    "Table",
    "read_evaluations",
    "read_events",
    "read_monitor",
    "read_recorded",
    "read_table",
    "recorded_groups",
]
