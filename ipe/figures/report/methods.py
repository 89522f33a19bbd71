"""The paragraph on methods that a paper needs, each sentence made from what the report did and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ipe.analysis.bootstrap import RESAMPLES
from ipe.analysis.findings import RESAMPLES as FEW_RESAMPLES
from ipe.analysis.findings import TOLERANCE, Findings
from ipe.analysis.provenance import RunCost
from ipe.analysis.series import Failed, Group
from ipe.base.words import listed

_MOST_SOURCES = 4


def methods_text(
    findings: Findings,
    *,
    failed: Failed,
    seed: int,
    cost: RunCost | None,
    made_with: Mapping[str, Sequence[str]] | None,
    version: str,
    halving: bool = False,
) -> str:
    """A paragraph that says what was run, measured and computed for one environment, in sentences that can be pasted.

    Args:
        findings: what the report says of the environment.
        failed: the score of a run that failed or ended early.
        seed: the seed of the bootstrap.
        cost: what the runs took.
        made_with: the versions that the runs were made with.
        version: the version of ipe that made the report.
        halving: whether the settings were chosen by successive halving.
    """
    group = findings.group
    sentences = [
        *_what(group),
        *_curves(group),
        *_choice(findings, halving),
        *_statistics(findings),
        *_failures(group, failed),
        *_made(cost, made_with),
        f"Statistics were computed with ipe {version} (bootstrap seed {seed}).",
    ]
    return " ".join(sentences)


def _what(group: Group) -> list[str]:
    n = [series.n for series in group.series]
    each = f"{n[0]} {_plural(n[0], 'run')}" if min(n) == max(n) else f"{min(n)} to {max(n)} runs"
    settings = f"{len(n)} {_plural(len(n), 'setting')}"
    out = [f"On {group.environment} we report {settings} with {each}{' each' if len(n) > 1 else ''} ({sum(n)} in all)."]
    if group.fresh:
        fresh = [series.n for series in group.fresh]
        count = str(fresh[0]) if min(fresh) == max(fresh) else f"{min(fresh)} to {max(fresh)}"
        out.append(
            f"{len(fresh)} {_plural(len(fresh), 'setting')} {_was(len(fresh))} run again with {count} fresh seeds."
        )
    sources = group.measure.sources
    if sources:
        more = f" and {len(sources) - _MOST_SOURCES} other sources" if len(sources) > _MOST_SOURCES else ""
        out.append(f"The returns ({group.measure.name}) were read from {'; '.join(sources[:_MOST_SOURCES])}{more}.")
    return out


def _curves(group: Group) -> list[str]:
    measure = group.measure
    out = [
        f"The learning curve of a run is its {measure.curve}, against {measure.steps}; its score is the area under "
        f"that curve (AUC), the mean of the curve over the first {group.frames:,} {measure.steps} from its first "
        f"{measure.record} on, in units of return."
    ]
    if any(series.evaluated is not None for series in [*group.series, *group.fresh]):
        out.append("Greedy returns, of evaluations while training, are shown beside it and have no part in the scores.")
    return out


def _choice(findings: Findings, halving: bool) -> list[str]:
    ranked, chosen = len(findings.ranking), len(findings.chosen)
    if ranked == len(findings.contenders) and not findings.fresh:
        return ["Settings were ranked by their mean AUC over runs."] if ranked > 1 else []
    cases = chosen > 1
    how = "by successive halving" if halving else "by the largest mean AUC"
    what = f"Of {ranked} settings the best of each of {chosen} cases was chosen {how}" if cases else (
        f"The {ranked} settings were ranked by their mean AUC"
    )  # fmt: skip
    if findings.contenders and findings.contenders[0].series.fresh:
        return [f"{what}; the comparison rests on fresh runs, which had no part in the choice."]
    return [f"{what}; the comparison is of the same runs, and flatters what was chosen."]


def _statistics(findings: Findings) -> list[str]:
    rows = [*findings.ranking, *findings.fresh]
    out = []
    if any(row.series.n > 1 for row in rows):
        out.append(
            "Runs are the unit of all statistics. Means are given with standard errors and with 95% percentile "
            "bootstrap intervals over runs (pointwise for curves, 1,000 resamples or more; for scores "
            f"{FEW_RESAMPLES:,}), beside the interquartile mean (Agarwal et al. 2021)."
        )
    if any(row.tolerance is not None for row in rows):
        out.append(
            f"Where at least 22 runs allow it, distribution-free tolerance intervals hold {TOLERANCE:.0%} of all runs "
            "to come with 95% confidence (Patterson et al. 2024)."
        )
    pairs = findings.comparisons
    if pairs:
        largest = max(pair.first.series.n + pair.second.series.n for pair in pairs)
        test = "exact two-sided Mann-Whitney tests" if largest <= 100 else "two-sided Mann-Whitney tests"
        family = f", corrected by Holm's method over the {len(pairs)} comparisons of this environment"
        corrected = family if len(pairs) > 1 else ""
        out.append(
            "Pairs of settings are compared by the probability that a run of one has the larger AUC than a run of the "
            f"other and by the difference of mean AUC, with 95% bootstrap intervals ({RESAMPLES:,} resamples), and by "
            f"{test}{corrected}."
        )
    return out


def _failures(group: Group, failed: Failed) -> list[str]:
    every = [*group.series, *group.fresh]
    counts = {status: sum(series.count(status) for series in every) for status in ("failed", "diverged", "short")}
    words = {"failed": "failed", "diverged": "diverged", "short": "ended early"}
    bad = {words[status]: count for status, count in counts.items() if count}
    without = sum(series.without for series in every)
    out = []
    if bad:
        said = listed(f"{count} {word}" for word, count in bad.items())
        scored = "scored as the worst of all runs" if failed == "worst" else "their last value kept to the end"
        out.append(f"Of the runs {said}; they stay in the statistics, {scored}.")
    if without:
        out.append(f"{without} {_plural(without, 'run')} finished no episode and scored as the worst of all runs.")
    return out


def _made(cost: RunCost | None, made_with: Mapping[str, Sequence[str]] | None) -> list[str]:
    out = []
    if cost is not None and cost.seconds > 0:
        where = f" on {'; '.join(cost.machines)}" if cost.machines else ""
        when = cost.first if cost.first == cost.last else f"{cost.first} to {cost.last}"
        out.append(f"The runs took {cost.words}{where}{f', {when}' if cost.first else ''}.")
    if made_with:
        packages = [name for name in ("ipe", "jax", "numpy", "gymnasium") if name in made_with]
        said = ", ".join(f"{name} {' and '.join(made_with[name])}" for name in packages)
        if said:
            out.append(f"They were made with {said}.")
    return out


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
