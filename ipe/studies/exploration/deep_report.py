"""What groups of deep tasks that were run together have come to: tables, figures and claims.

::

    OUT/report/deep.md             all groups that were asked for, on one page (a single group: GROUP.md)
    OUT/report/claims-deep.json    the claims as data
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ipe.analysis import Claim, claims_markdown, claims_records
from ipe.analysis.provenance import run_cost, seconds_by_case
from ipe.analysis.scores import score_failed, worst_seen
from ipe.analysis.series import Series, read_groups
from ipe.base.arrays import Array
from ipe.base.atomic import write_files
from ipe.errors import InputError
from ipe.experiments.declared import Setting
from ipe.experiments.results import Results, load_results
from ipe.figures.style import figure_bytes
from ipe.studies.exploration.choosing import Chosen, choose
from ipe.studies.exploration.claims import judged
from ipe.studies.exploration.deep import DEEP_CONTENDERS, DeepTask, settings_of_case
from ipe.studies.exploration.deep_run import (
    chosen_groups,
    chosen_settings,
    first_results,
    fresh_folder,
    setting_words,
    tasks_of,
)
from ipe.studies.exploration.drawing import Panel, price_figure, profile_figure, sensitivity_figure, tabular_panels
from ipe.studies.exploration.findings import Findings, Way, summed_up
from ipe.studies.exploration.run import read_tabular
from ipe.studies.exploration.scores import Choice, family_means, scores_of
from ipe.studies.exploration.settings import CONTENDERS, TASKS, TabularSettings
from ipe.studies.exploration.tables import family_table, tuned_table, untuned_table

DEEP = "deep"
"""The name of the page about several groups."""
LEAST = 2
"""The fewest fresh runs by which a task is reported on."""


@dataclass(frozen=True, eq=False)
class DeepReport:
    """What some groups have come to.

    Attributes:
        findings: the tables' numbers.
        claims: the claims with their verdicts.
        page: the page that was written.
        problems: what is damaged or missing among the runs, in sentences.
    """

    findings: Findings
    claims: list[Claim]
    page: Path
    problems: list[str]


@dataclass(frozen=True, eq=False)
class DeepFindings:
    """What the runs of some groups say.

    Attributes:
        findings: what the fresh runs say of the tasks that have some.
        chosen: the settings that were chosen, and by which scores.
        counts: in words, how many runs of each task chose, and how many fresh ones are reported on.
        waiting: the tasks that somebody solved, and that have no fresh runs of all chosen settings yet.
        problems: what is damaged or missing among the runs, in sentences.
    """

    findings: Findings
    chosen: Chosen
    counts: list[str]
    waiting: list[str]
    problems: list[str]


@dataclass(frozen=True, eq=False)
class _FreshRuns:
    """The fresh runs of the chosen settings of a task, each an array by the setting's key.

    Attributes:
        areas: areas under the curve.
        ends: mean returns of the greedy episodes at the end.
        seeds: the number of seeds that all the settings have; the runs are those.
        planned: the number of seeds that they shall have.
        problems: what is damaged or missing.
    """

    areas: dict[str, Array]
    ends: dict[str, Array]
    seeds: int
    planned: int
    problems: list[str]


def report_deep(groups: Sequence[str], out: Path, tabular: TabularSettings | None = None) -> DeepReport:
    """Write the tables, the figures and the claims of some groups from their stores, about the tasks that have fresh
    runs. All first runs must be there, because all of them choose.

    Args:
        groups: the groups' names.
        out: the study's folder.
        tabular: the numbers of the tabular part, if the figure of all settings is to show that part too.
    """
    found = findings_of_groups(groups, out)
    findings, chosen = found.findings, found.chosen
    name = groups[0] if len(groups) == 1 else DEEP
    claims = judged(findings, name)
    figures = {
        "price": price_figure(findings),
        "sensitivity": sensitivity_figure(_blocks(chosen, out, tabular)),
        "profiles": profile_figure(findings),
    }
    files = {
        f"{figure}-{name}{suffix}": figure_bytes(drawn, suffix)
        for figure, drawn in figures.items()
        for suffix in (".png", ".pdf")
    }
    tasks = [task.name for task in tasks_of(groups)]
    folders = [path for task in tasks for path in (out / task, fresh_folder(out, task)) if path.is_dir()]
    lines = [
        f"# {', '.join(groups)}",
        "",
        f"Runs that chose, and fresh runs: {'; '.join(found.counts)}. 95% intervals, over the fresh runs of the chosen "
        f"settings (that others might have been chosen is not in them). {run_cost(*folders).words}.",
        "",
        f"![What not tuning costs](price-{name}.png)",
        "",
        "## One setting for all tasks",
        "",
        untuned_table(findings),
        "## The best setting for each task",
        "",
        tuned_table(findings),
        "## By task, with one setting for all",
        "",
        family_table(findings, by_task=True),
        f"![Every setting of every behaviour](sensitivity-{name}.png)",
        "",
        f"![Performance profiles](profiles-{name}.png)",
        "",
        claims_markdown(claims),
    ]
    for title, names in (("Solved by nobody, and left out", chosen.unsolved), ("Not run yet", found.waiting)):
        if names:
            lines += [f"{title}: {', '.join(names)}.", ""]
    files[f"{name}.md"] = "\n".join(lines).encode()
    files[f"claims-{name}.json"] = f"{json.dumps(claims_records(claims), indent=1, ensure_ascii=False)}\n".encode()
    write_files(out / "report", files)
    return DeepReport(findings, claims, out / "report" / f"{name}.md", found.problems)


def findings_of_groups(groups: Sequence[str], out: Path) -> DeepFindings:
    """Choose the settings of every deep contender by the first runs of some groups, and sum up what the fresh runs
    say."""
    tasks = {task.name: task for task in tasks_of(groups)}
    first, chosen, fresh = _chosen_and_fresh(list(tasks.values()), out)
    if not fresh:
        raise InputError(f"{out}: there are no fresh runs of all chosen settings of a task yet")
    contenders = [contender for contender in DEEP_CONTENDERS if contender.name in chosen.means]
    choices: dict[str, dict[Way, Choice]] = {contender.name: {} for contender in contenders}
    for way, by_task in chosen.settings.items():
        for name, choice in choices.items():
            settings = {task: settings_of_case(first[task].sweep, name)[by_task[task][name]] for task in fresh}
            choice[way] = Choice(
                {task: setting_words(setting) for task, setting in settings.items()},
                {task: chosen.normalised(task, fresh[task].areas[each.key]) for task, each in settings.items()},
                {task: _ended(tasks[task], chosen, fresh[task], each.key) for task, each in settings.items()},
            )
    counts = [f"{task} {len(first[task].sweep.seeds)} and {_share(runs)}" for task, runs in fresh.items()]
    problems = [each for results in first.values() for each in results.problems]
    problems += [each for runs in fresh.values() for each in runs.problems]
    waiting = [task for task in chosen.family if task not in fresh]
    family = {task: chosen.family[task] for task in fresh}
    # Of the first runs alone: those are as many for every contender.
    seconds = seconds_by_case(*(out / task for task in first))
    return DeepFindings(summed_up(contenders, choices, family, seconds), chosen, counts, waiting, problems)


def settled_groups(out: Path) -> list[str]:
    """The names of the groups that a report is about if it names none: of the groups that have all their first runs,
    the first ones, as many as have fresh runs of all settings that they choose together. With another group, other
    settings may be chosen, which have no fresh runs before that group's own begin."""
    groups = chosen_groups(out)
    while len(groups) > 1:
        _, chosen, fresh = _chosen_and_fresh(tasks_of(groups), out)
        if len(fresh) == len(chosen.family):
            break
        groups = groups[:-1]
    return groups


def _chosen_and_fresh(tasks: Sequence[DeepTask], out: Path) -> tuple[dict[str, Results], Chosen, dict[str, _FreshRuns]]:
    """The first runs of some tasks, the settings that they choose, and the fresh runs of the tasks that have some of
    all these settings."""
    first = first_results(tasks, out)
    chosen = choose(first, tasks)
    found = {
        task: _fresh_runs(fresh_folder(out, task), chosen_settings(first[task], chosen.of_task(task)))
        for task in chosen.family
    }
    return first, chosen, {task: runs for task, runs in found.items() if runs is not None}


def deep_panels(chosen: Chosen) -> list[Panel]:
    """What the figure of all settings shows of the deep part, by the runs that chose."""
    panels = []
    for contender in DEEP_CONTENDERS:
        if contender.name in chosen.means:
            values = chosen.means[contender.name]
            best = np.asarray(values.reshape(len(values), -1, len(contender.grid)).max(axis=1))
            mean = family_means(best, list(chosen.family.values())).mean(axis=0)
            axis = "annealing, share of the run" if contender.in_frames else contender.path
            panels.append(Panel(contender.label, contender.behaviour, axis, contender.grid, best, mean))
    return panels


def _blocks(chosen: Chosen, out: Path, tabular: TabularSettings | None) -> dict[str, list[Panel]]:
    """What the figure of all settings shows: the deep part, below the tabular one if that is asked for."""
    if tabular is None:
        return {"": deep_panels(chosen)}
    scores = scores_of(read_tabular(out), CONTENDERS, TASKS, tabular)
    return {"tables": tabular_panels(scores), "networks": deep_panels(chosen)}


def _fresh_runs(folder: Path, settings: Sequence[Setting]) -> _FreshRuns | None:
    """The fresh runs of some settings of a task, of the seeds that all these settings have; None if these are too
    few."""
    if not folder.is_dir():
        return None
    results = load_results(folder, progress=False)
    (group,) = read_groups(results) if results.outcomes else (None,)
    found = {} if group is None else {series.setting.key: series for series in group.series}
    if not all(setting.key in found for setting in settings):
        return None
    series = {setting.key: found[setting.key] for setting in settings}
    shared = set.intersection(*({outcome["seed"] for outcome in one.outcomes} for one in series.values()))
    if len(shared) < LEAST:
        return None
    ends = {key: _greedy_returns(folder, one) for key, one in series.items()}
    worst = worst_seen(*ends.values())
    which = {key: [outcome["seed"] in shared for outcome in one.outcomes] for key, one in series.items()}
    return _FreshRuns(
        {key: one.auc[which[key]] for key, one in series.items()},
        {key: score_failed(values, worst)[which[key]] for key, values in ends.items()},
        len(shared),
        len(results.sweep.seeds),
        results.problems,
    )


def _greedy_returns(folder: Path, series: Series) -> Array:
    """The mean return of each run's greedy episodes at its end; NaN for a run that failed or diverged before."""
    if series.evaluated is not None:
        return series.evaluated[:, -1]
    if series.count("done"):
        raise InputError(
            f"{folder}: the runs of {series.setting.name!r} have no greedy evaluation at their end; delete the folder, "
            "and run the same command"
        )
    return np.full(series.n, np.nan)


def _ended(task: DeepTask, chosen: Chosen, runs: _FreshRuns, key: str) -> Array:
    """Where runs ended: 0 is what uniform behaviour earns, 1 the return that solves the task; if that is not known, the
    best mean of any chosen setting."""
    goal = max(float(values.mean()) for values in runs.ends.values()) if task.goal is None else task.goal
    low = chosen.low[task.name]
    return np.asarray((runs.ends[key] - low) / (goal - low))


def _share(runs: _FreshRuns) -> str:
    return str(runs.seeds) if runs.seeds == runs.planned else f"{runs.seeds} of {runs.planned}"
