"""Which exploration needs no tuning? Every known rule, many tasks, five settings each, and what not choosing costs."""

from ipe.studies.exploration.deep_report import DeepReport, report_deep, settled_groups
from ipe.studies.exploration.deep_run import chosen_groups, group_names, run_deep, tasks_of
from ipe.studies.exploration.run import TABULAR, TabularReport, read_tabular, report_tabular, run_tabular
from ipe.studies.exploration.settings import CONTENDERS, TASKS, UNIFORM, Contender, TabularSettings, Task

__all__ = [
    "CONTENDERS",
    "TABULAR",
    "TASKS",
    "UNIFORM",
    "Contender",
    "DeepReport",
    "TabularReport",
    "TabularSettings",
    "Task",
    "chosen_groups",
    "group_names",
    "read_tabular",
    "report_deep",
    "report_tabular",
    "run_deep",
    "run_tabular",
    "settled_groups",
    "tasks_of",
]
