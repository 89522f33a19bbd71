"""What the study of batches says of its runs: ways of acting, compared on data of each quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ipe.analysis import Claim, Interval, difference_interval
from ipe.analysis.claims import Verdict
from ipe.studies.batches.cells import Cell
from ipe.studies.batches.settings import CLONING, CONSERVATIVE, GREEDY, POLICIES
from ipe.studies.learning.evidence import SEED, above

Returns = Mapping[str, Mapping[str, Sequence[float]]]
"""The mean return of each run, by quality of the data and way of acting."""
DATA = "the data"


def returns_by(cells: Sequence[Cell]) -> dict[str, dict[str, list[float]]]:
    """The returns of a task, by quality of the data and way of acting."""
    found: dict[str, dict[str, list[float]]] = {}
    for cell in cells:
        found.setdefault(cell.quality, {}).update(cell.returns)
    return found


def judge(task: str, cells: Sequence[Cell]) -> list[Claim]:
    """The verdicts on the ways of acting on one task. A sentence is about data of all qualities (`of_all`)."""
    found, of_data = returns_by(cells), {cell.quality: cell.of_data for cell in cells}
    claims = [
        _better(task, f"{way} beats greedy", f"acting as {way} on the evaluation policy earns more than acting "
                "greedily on the same values", found, way, GREEDY)
        for way in POLICIES
    ]  # fmt: skip
    claims += [
        _better(task, "greedy beats cloning", "acting greedily on values from the batch (DQN) earns more than cloning",
                found, GREEDY, CLONING),
        _better(task, "CQL beats greedy", "conservative Q-learning earns more than DQN on the batch", found,
                CONSERVATIVE, GREEDY),
        _better(task, "CQL beats cloning", "conservative Q-learning earns more than cloning", found, CONSERVATIVE,
                CLONING),
    ]  # fmt: skip
    with_data = {quality: {**ways, DATA: of_data[quality]} for quality, ways in found.items()}
    claims.append(
        _better(task, "CQL beats the data", "conservative Q-learning earns more than the policy that made the data",
                with_data, CONSERVATIVE, DATA)
    )  # fmt: skip
    return [claim for claim in claims if claim is not None]


def _better(task: str, name: str, words: str, found: Returns, first: str, second: str) -> Claim | None:
    compared = {
        quality: difference_interval(ways[first], ways[second], seed=SEED)
        for quality, ways in found.items()
        if first in ways and second in ways
    }
    if not compared:
        return None
    means = {
        quality: (sum(found[quality][first]) / len(found[quality][first]),
                  sum(found[quality][second]) / len(found[quality][second]))
        for quality in compared
    }  # fmt: skip
    finding = "; ".join(
        f"{quality} data {means[quality][0]:.4g} against {means[quality][1]:.4g}, difference {_words(interval)}"
        for quality, interval in compared.items()
    )
    numbers = {quality: interval.estimate for quality, interval in compared.items()}
    return _claim(task, name, words, [above(interval) for interval in compared.values()], finding, numbers)


def _claim(
    task: str, name: str, words: str, verdicts: Sequence[Verdict], finding: str, numbers: Mapping[str, float]
) -> Claim:
    slug = f"{task}-{name.replace('ε', 'epsilon').replace('τ', 'tau').replace(' ', '-').lower()}"
    sentence = f"On data of every quality, {words}."
    return Claim(slug, task, sentence, of_all(verdicts), f"Mean return: {finding}.", numbers, addition=True)


def of_all(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a sentence about data of every quality, from those for each: it holds if it holds for each, does
    not hold if it is refuted for some and holds for none, and depends otherwise.

    Example:
        >>> of_all(["holds", "holds"]), of_all(["depends", "does not hold"]), of_all(["holds", "does not hold"])
        ('holds', 'does not hold', 'depends')
    """
    if set(verdicts) == {"holds"}:
        return "holds"
    return "does not hold" if "does not hold" in verdicts and "holds" not in verdicts else "depends"


def _words(interval: Interval) -> str:
    return f"{interval.estimate:.4g} [{interval.low:.4g}, {interval.high:.4g}]"
