"""The tables of the study as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ipe.analysis import Interval
from ipe.studies.exploration.findings import Findings

END = "greedy policy at the end"
"""What the column of `Choice.ends` is called."""


def untuned_table(findings: Findings, against: str = "epsilon-ipe") -> str:
    """The first table: one setting for all tasks, what that costs against the best setting for each task, and a column
    about the ends of runs; all contenders are compared with one."""
    others = [row.contender.name for row in findings.rows if row.contender.name != against]
    compared = {each.second: each for each in findings.comparisons(against, others, "one for all")}
    lines = []
    for row in findings.rows:
        choice, better = row.choices["one for all"], compared.get(row.contender.name)
        lines.append(
            (
                row.contender.label,
                next(iter(choice.settings.values())),
                _words(row.mean["one for all"]),
                _words(row.iqm["one for all"]),
                _words(row.rank["one for all"], ".1f"),
                "" if better is None else _words(_reversed(better.probability), ".2f"),
                "" if better is None else _p(better.p),
                _words(row.ends["one for all"]),
                _words(row.prices["one for all"]),
            )
        )
    label = next((row.contender.label for row in findings.rows if row.contender.name == against), against)
    head = (
        "behaviour", "its setting", "mean over families", "IQM over runs", "rank", f"beats {label}", "p (Holm)",
        END, "price of not tuning",
    )  # fmt: skip
    return _markdown(head, lines)


def tuned_table(findings: Findings) -> str:
    """The second table: the best setting for each task; and settings for kinds of tasks that did not choose them."""
    rows = sorted(findings.rows, key=lambda row: -row.mean["per task"].estimate)
    unseen = "unseen" in rows[0].mean
    lines = []
    for row in rows:
        best = (row.mean["per task"], row.iqm["per task"], row.ends["per task"])
        other = (row.mean["unseen"], row.prices["unseen"]) if unseen else ()
        minutes = "" if math.isnan(row.seconds) else f"{row.seconds / 60:.1f}"
        cells = [_words(best[0]), _words(best[1]), _words(row.rank["per task"], ".1f"), _words(best[2])]
        lines.append((row.contender.label, *cells, *(_words(each) for each in other), minutes))
    head = ("behaviour", "best for each task: mean over families", "IQM over runs", "rank", END)
    more = ("unseen family: mean over families", "its price") if unseen else ()
    return _markdown((*head, *more, "core-minutes"), lines)


def family_table(findings: Findings, by_task: bool = False) -> str:
    """The mean score of each family, or of each task, with one setting for all tasks."""
    family = {task: task if by_task else family for task, family in findings.family.items()}
    families = list(dict.fromkeys(family.values()))
    lines = []
    for row in findings.rows:
        found = row.choices["one for all"].scores
        tasks = {each: [task for task in found if family[task] == each] for each in families}
        means = [sum(found[task].mean() for task in names) / len(names) for names in tasks.values()]
        lines.append((row.contender.label, *(f"{mean:.2f}" for mean in means)))
    return _markdown(("behaviour", *families), lines)


def _words(interval: Interval, form: str = ".3f") -> str:
    return f"{interval.estimate:{form}} [{interval.low:{form}}, {interval.high:{form}}]"


def _reversed(interval: Interval) -> Interval:
    return Interval(1.0 - interval.estimate, 1.0 - interval.high, 1.0 - interval.low, interval.level)


def _p(p: float) -> str:
    return "< .001" if p < 0.001 else f"{p:.3f}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
