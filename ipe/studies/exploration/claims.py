"""The sentences that the study judges."""

from __future__ import annotations

from collections.abc import Sequence

from ipe.analysis import Claim, Interval
from ipe.analysis.claims import Verdict
from ipe.studies.exploration.findings import Comparison, Findings, Way
from ipe.studies.learning.evidence import above, both

SURE = 0.05
"""The corrected p-value below which a difference counts."""
PAPERS, OURS = "epsilon-ipe", "tau-ipe"
SCHEDULES = ("epsilon-greedy", "linear")


def judged(findings: Findings) -> list[Claim]:
    """Every claim for which the contenders have runs."""
    names = [row.contender.name for row in findings.rows]
    rivals = [row.contender.name for row in findings.rows if not row.contender.ours]
    if PAPERS not in names or not set(SCHEDULES) <= set(names):
        return []
    claims = [
        _compared(
            findings, "untuned-against-schedules", PAPERS, SCHEDULES, "one for all",
            "With one setting for all tasks, ε-IPE earns more than ε-greedy with a fixed and with an annealed ε.",
        ),
        _compared(
            findings, "unseen-against-schedules", PAPERS, SCHEDULES, "unseen",
            "On a kind of task that had no part in choosing the setting, ε-IPE earns more than ε-greedy with a fixed "
            "and with an annealed ε.",
        ),
        _compared(
            findings, "tuned-against-schedules", PAPERS, SCHEDULES, "per task",
            "With the best setting for each task, ε-IPE earns more than ε-greedy with a fixed and with an annealed ε.",
        ),
        _compared(
            findings, "untuned-against-all-rivals", PAPERS, rivals, "one for all",
            "With one setting for all tasks, ε-IPE earns more than every other known rule.",
        ),
        _compared(
            findings, "greedy-policy-at-the-end", PAPERS, SCHEDULES, "one for all",
            "With one setting for all tasks, the greedy policy that is left after training is better with ε-IPE than "
            "with ε-greedy, fixed or annealed.", at_the_end=True,
        ),
        _price(findings, "price-of-not-tuning", PAPERS, rivals,
               "Not tuning costs ε-IPE less than it costs any other known rule."),
    ]  # fmt: skip
    if OURS in names:
        claims += [
            _compared(
                findings, "tau-against-epsilon", OURS, [PAPERS], "one for all",
                "With one setting for all tasks, τ-IPE earns more than ε-IPE.",
            ),
            _compared(
                findings, "tau-against-all-rivals", OURS, rivals, "one for all",
                "With one setting for all tasks, τ-IPE earns more than every other known rule.",
            ),
            _compared(
                findings, "tau-unseen-against-all-rivals", OURS, rivals, "unseen",
                "On a kind of task that had no part in choosing the setting, τ-IPE earns more than every other known "
                "rule.",
            ),
        ]  # fmt: skip
    return claims


def agreed(comparison: Comparison) -> Verdict:
    """Whether the first is better: both the mean's interval and the corrected test must say so, or say the opposite.

    Example:
        >>> better = Comparison("a", "b", Interval(0.2, 0.1, 0.3, 0.95), Interval(0.7, 0.6, 0.8, 0.95), 0.001)
        >>> agreed(better)
        'holds'
    """
    if comparison.p >= SURE:
        return "depends"
    return both(above(comparison.difference), above(comparison.probability, 0.5))


def of_every(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a sentence about every one of several: one that is refuted refutes it.

    Example:
        >>> of_every(["holds", "holds"]), of_every(["holds", "depends"]), of_every(["holds", "does not hold"])
        ('holds', 'depends', 'does not hold')
    """
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if set(verdicts) == {"holds"} else "depends"


def _compared(
    findings: Findings, name: str, first: str, others: Sequence[str], way: Way, words: str, *, at_the_end: bool = False
) -> Claim:
    found = findings.comparisons(first, others, way, at_the_end)
    verdict = of_every([agreed(each) for each in found])
    labels = {row.contender.name: row.contender.label for row in findings.rows}
    rows = {row.contender.name: (row.ends if at_the_end else row.mean)[way] for row in findings.rows}
    finding = f"{labels[first]} {rows[first].estimate:.3f}; " + "; ".join(
        f"{labels[each.second]} {rows[each.second].estimate:.3f}, difference {_words(each.difference, '+.3f')}, "
        f"better in {_words(each.probability, '.2f')} of pairs of runs, p {_small(each.p)}"
        for each in found
    )
    numbers = {f"{each.second}/difference": each.difference.estimate for each in found}
    numbers |= {f"{each.second}/low": each.difference.low for each in found}
    numbers |= {f"{each.second}/high": each.difference.high for each in found}
    numbers |= {f"{each.second}/probability": each.probability.estimate for each in found}
    numbers |= {f"{each.second}/p": each.p for each in found}
    return Claim(name, "tabular", words, verdict, finding + ".", numbers, addition=True)


def _price(findings: Findings, name: str, first: str, others: Sequence[str], words: str) -> Claim:
    prices = {row.contender.name: row.prices["one for all"] for row in findings.rows}
    labels = {row.contender.name: row.contender.label for row in findings.rows}
    lower = [above(findings.price_difference(other, first)) for other in others]
    listed = sorted([first, *others], key=lambda each: prices[each].estimate)
    finding = "Price, lowest first: " + ", ".join(f"{labels[each]} {_words(prices[each], '.3f')}" for each in listed)
    numbers = {f"price/{each}": prices[each].estimate for each in listed}
    return Claim(name, "tabular", words, of_every(lower), finding + ".", numbers, addition=True)


def _words(interval: Interval, form: str) -> str:
    estimate, low, high = (format(x, form) for x in (interval.estimate, interval.low, interval.high))
    return f"{estimate} [{low}, {high}]"


def _small(p: float) -> str:
    return "below .001" if p < 0.001 else f"{p:.3f}"
