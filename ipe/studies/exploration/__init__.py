"""Which exploration needs no tuning? Every known rule, many tasks, five settings each, and what not choosing costs."""

from ipe.studies.exploration.groups import group_names, group_tasks, report_group, run_group
from ipe.studies.exploration.run import TABULAR, TabularReport, read_tabular, report_tabular, run_tabular
from ipe.studies.exploration.settings import CONTENDERS, TASKS, UNIFORM, Contender, TabularSettings, Task

__all__ = [
    "CONTENDERS",
    "TABULAR",
    "TASKS",
    "UNIFORM",
    "Contender",
    "TabularReport",
    "TabularSettings",
    "Task",
    "group_names",
    "group_tasks",
    "read_tabular",
    "report_group",
    "report_tabular",
    "run_group",
    "run_tabular",
]
