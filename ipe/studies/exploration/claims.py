"""The sentences that the study judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ipe.analysis import Claim, Interval
from ipe.analysis.claims import Verdict
from ipe.studies.exploration.findings import Comparison, Findings, Way
from ipe.studies.learning.evidence import above, both

SURE = 0.05
"""The corrected p-value below which a difference counts."""
PAPERS, OURS = "epsilon-ipe", "tau-ipe"
SCHEDULES = ("epsilon-greedy", "linear")


@dataclass(frozen=True)
class Sentence:
    """A sentence about one contender and others.

    Attributes:
        name: the claim's name.
        words: the sentence.
        first: the contender that the sentence is about.
        others: those it is compared with; None: all that are not derived from an evaluation policy.
        way: how the settings are chosen.
        at_the_end: whether it is about the greedy policy at the end, and not about what is earned in training.
    """

    name: str
    words: str
    first: str = PAPERS
    others: tuple[str, ...] | None = None
    way: Way = "one for all"
    at_the_end: bool = False


SENTENCES = (
    Sentence(
        "untuned-against-schedules",
        "With one setting for all tasks, ε-IPE earns more than ε-greedy with a fixed and with an annealed ε.",
        others=SCHEDULES,
    ),
    Sentence(
        "unseen-against-schedules",
        "On a kind of task that had no part in choosing the setting, ε-IPE earns more than ε-greedy with a fixed and "
        "with an annealed ε.",
        others=SCHEDULES,
        way="unseen",
    ),
    Sentence(
        "tuned-against-schedules",
        "With the best setting for each task, ε-IPE earns more than ε-greedy with a fixed and with an annealed ε.",
        others=SCHEDULES,
        way="per task",
    ),
    Sentence(
        "untuned-against-all-rivals",
        "With one setting for all tasks, ε-IPE earns more than every other known rule.",
    ),
    Sentence(
        "greedy-policy-at-the-end",
        "With one setting for all tasks, the greedy policy that is left after training is better with ε-IPE than with "
        "ε-greedy, fixed or annealed.",
        others=SCHEDULES,
        at_the_end=True,
    ),
    Sentence(
        "tau-against-epsilon",
        "With one setting for all tasks, τ-IPE earns more than ε-IPE.",
        first=OURS,
        others=(PAPERS,),
    ),
    Sentence(
        "tau-against-all-rivals",
        "With one setting for all tasks, τ-IPE earns more than every other known rule.",
        first=OURS,
    ),
    Sentence(
        "tau-unseen-against-all-rivals",
        "On a kind of task that had no part in choosing the setting, τ-IPE earns more than every other known rule.",
        first=OURS,
        way="unseen",
    ),
)
PRICE = "price-of-not-tuning"


def judged(findings: Findings, part: str) -> list[Claim]:
    """Every claim about a part of the study for which its contenders have runs."""
    names = [row.contender.name for row in findings.rows]
    rivals = [row.contender.name for row in findings.rows if not row.contender.ours]
    if PAPERS not in names or not set(SCHEDULES) <= set(names):
        return []
    claims = [
        _compared(findings, part, sentence, sentence.others or rivals)
        for sentence in SENTENCES
        if sentence.first in names and sentence.way in findings.rows[0].choices
    ]
    return [*claims, _price(findings, part, rivals)]


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


def _compared(findings: Findings, part: str, sentence: Sentence, others: Sequence[str]) -> Claim:
    first, way, at_the_end = sentence.first, sentence.way, sentence.at_the_end
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
    return Claim(sentence.name, part, sentence.words, verdict, finding + ".", numbers, addition=True)


def _price(findings: Findings, part: str, others: Sequence[str]) -> Claim:
    words, first = "Not tuning costs ε-IPE less than it costs any other known rule.", PAPERS
    prices = {row.contender.name: row.prices["one for all"] for row in findings.rows}
    labels = {row.contender.name: row.contender.label for row in findings.rows}
    lower = [above(findings.price_difference(other, first)) for other in others]
    listed = sorted([first, *others], key=lambda each: prices[each].estimate)
    finding = "Price, lowest first: " + ", ".join(f"{labels[each]} {_words(prices[each], '.3f')}" for each in listed)
    numbers = {f"price/{each}": prices[each].estimate for each in listed}
    return Claim(PRICE, part, words, of_every(lower), finding + ".", numbers, addition=True)


def _words(interval: Interval, form: str) -> str:
    estimate, low, high = (format(x, form) for x in (interval.estimate, interval.low, interval.high))
    return f"{estimate} [{low}, {high}]"


def _small(p: float) -> str:
    return "below .001" if p < 0.001 else f"{p:.3f}"
