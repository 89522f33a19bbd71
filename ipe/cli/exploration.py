"""`ipe reproduce exploration`: its parts one after the other, each going on with what is in the folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.cli.display import Display, say_some
from ipe.cli.interrupt import stoppable
from ipe.cli.next_steps import next_line
from ipe.cli.program import DONE, FAILED
from ipe.cli.sweep_progress import shown_in_turn
from ipe.cli.verdicts import print_claims

if TYPE_CHECKING:
    from ipe.studies.exploration import TabularSettings


def run(study: Any) -> int:
    """Run the parts that a study's options name; returns the exit code."""
    from ipe.studies.exploration import TABULAR, group_names, settled_groups
    from ipe.studies.parts import check_only

    parts = check_only([TABULAR, *group_names()], study.parts)
    if study.report and study.parts is None:
        deep = settled_groups(study.folder)
        parts = [TABULAR] * ((study.folder / TABULAR).is_dir() or not deep) + deep
    settings = _settings(study.runs)
    if study.plan:
        return _plan(study, parts, settings)
    if TABULAR in parts:
        _tabular(study.folder, settings, study.report)
    if deep := [part for part in parts if part != TABULAR]:
        return _deep(study, deep, settings if TABULAR in parts else None)
    return DONE


def _settings(runs: int | None) -> TabularSettings:
    from ipe.studies.exploration import TabularSettings

    usual = TabularSettings()
    if runs is None:
        return usual
    return TabularSettings(choosing_runs=min(runs, usual.choosing_runs), fresh_runs=min(runs, usual.fresh_runs))


def _plan(study: Any, parts: list[str], settings: TabularSettings) -> int:
    from ipe.cli.sweep_plan import print_plan
    from ipe.studies.exploration import CONTENDERS, TABULAR, TASKS, UNIFORM, tasks_of
    from ipe.studies.exploration.deep import choosing_sweep

    for part in parts:
        if part == TABULAR:
            count = sum(len(c.grid) * len(settings.value_step_sizes) for c in (UNIFORM, *CONTENDERS))
            steps = count * settings.runs * sum(task.steps for task in TASKS)
            print(
                f"tabular: {len(CONTENDERS)} behaviours, {len(TASKS)} tasks, {count * len(TASKS)} settings of "
                f"{settings.runs} runs, {steps / 1e6:,.0f} million steps: within an hour of one core"
            )
            continue
        for task in tasks_of([part]):
            print_plan(choosing_sweep(task, study.runs, study.frames), workers=study.workers)
            fresh = task.fresh if study.runs is None else min(study.runs, task.fresh)
            print(f"then {fresh} fresh runs of at most three settings of each behaviour")
    print(next_line("the same command without --plan starts the study, or goes on with it"))
    return DONE


def _tabular(out: Path, settings: TabularSettings, only_report: bool) -> None:
    from ipe.studies.exploration import CONTENDERS, report_tabular, run_tabular
    from ipe.studies.exploration.tables import tuned_table, untuned_table

    start = time.perf_counter()
    names = ["uniform", *(contender.name for contender in CONTENDERS)]
    if not only_report:
        said = "stopped; what is done is kept, and the same command goes on"
        with stoppable(lambda _: said), Display("ipe reproduce", keep=False) as display:

            def show(contender: str, task: str, done: int, total: int) -> None:
                place = f"[{names.index(contender) + 1}/{len(names)}] {contender}: {task} ({done}/{total})"
                display.show([f"{place}   {time.perf_counter() - start:.0f} s"], place, about=contender)

            run_tabular(out, settings, show)
    report = report_tabular(out, settings)
    print(untuned_table(report.findings))
    print(tuned_table(report.findings))
    print_claims(report.claims)
    if report.missing:
        print(f"without runs: {', '.join(report.missing)}")
    print(f"wrote {report.page}")
    print(next_line(f"open {report.page}, which shows tables, figures and claims on one page"))


def _deep(study: Any, groups: list[str], tabular: TabularSettings | None) -> int:
    from ipe.studies.exploration import report_deep, run_deep
    from ipe.studies.exploration.tables import tuned_table, untuned_table

    said = "stopped, with checkpoints; the same command goes on"
    if not study.report:
        with stoppable(lambda _: said), Display("ipe reproduce") as display:
            result = run_deep(
                groups,
                study.folder,
                runs=study.runs,
                frames=study.frames,
                workers=study.workers,
                callback=shown_in_turn(display, study.folder),
            )
        say_some("ipe reproduce", result.notes)
        if result.status != "done":
            print(next_line("the same command tries again what is missing, and keeps what is done"))
            return FAILED
    report = report_deep(groups, study.folder, tabular)
    say_some("ipe reproduce", report.problems)
    print(untuned_table(report.findings))
    print(tuned_table(report.findings))
    print_claims(report.claims)
    print(f"wrote {report.page}")
    return DONE
