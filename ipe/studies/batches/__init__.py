"""Beyond the paper: learning from a fixed batch, data of three qualities by ways of acting, on three environments."""

from ipe.studies.batches.run import Report, report_batches, run_batches
from ipe.studies.batches.settings import TASKS, Task, tasks

__all__ = ["TASKS", "Report", "Task", "report_batches", "run_batches", "tasks"]
