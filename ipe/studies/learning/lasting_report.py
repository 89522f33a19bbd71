"""Does it last? The claims, the figure and the table of how long runs lasted (`ipe.studies.learning.lasting`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ipe.analysis import Claim
from ipe.analysis.survival import horizon_of, log_rank, restricted_mean, restricted_mean_difference, survival_curve
from ipe.figures.survival import SurvivalLine, draw_survival
from ipe.studies.learning.evidence import SEED, above
from ipe.studies.learning.lasting import COMPETENT, LASTS, Lastings

FIGURE = "lasting"
LEVEL = 0.05
"""The p-value of the log-rank test below which a difference counts."""
CHANGES = {"": "the bold setting", "huber": "Huber loss", "double-q": "double Q", "target-100": "target period 100"}
"""The changes of the bold settings, by the end of their cases' names."""


def lasting_claims(found: Sequence[Lastings]) -> list[Claim]:
    """The verdicts on what lasts longer: epsilon-IPE or epsilon-greedy, and each of them with or without a change.

    A sentence holds if the 95% bootstrap interval of the difference between the restricted means lies above 0 and the
    log-rank test's p-value is below 0.05: with few collapses, the bootstrap alone is too sure. Likewise it does not
    hold if the interval lies below 0; otherwise it depends. The horizon is the longest time for which both groups were
    watched. A group without a run at risk is left out.

    Args:
        found: how long the runs of each setting lasted.
    """
    by_case = {one.setting.case: one for one in found if one.at_risk}
    claims = []
    if {"epsilon-ipe", "epsilon-greedy"} <= by_case.keys():
        words = "ε-IPE lasts longer than ε-greedy: from competence to the first lasting collapse"
        claims.append(lasts_longer(FIGURE, words, by_case["epsilon-ipe"], by_case["epsilon-greedy"]))
    for behaviour in ("epsilon-ipe", "epsilon-greedy"):
        for change, words in list(CHANGES.items())[1:]:
            if {behaviour, case := f"{behaviour} {change}"} <= by_case.keys():
                sentence = f"{words[0].upper()}{words[1:]} makes {behaviour.replace('epsilon', 'ε')} last longer"
                name = f"{FIGURE}-{behaviour}-{change}"
                claims.append(lasts_longer(name, sentence, by_case[case], by_case[behaviour]))
    return claims


def lasts_longer(name: str, words: str, first: Lastings, second: Lastings) -> Claim:
    """The claim that the runs of one setting last longer than those of another."""
    pair = (first.times, second.times)
    horizon = horizon_of(*pair)
    difference = restricted_mean_difference(*pair, horizon, seed=SEED)
    test = log_rank(*pair)
    means = [restricted_mean(*times, horizon) for times in pair]
    told = [_told(one, mean) for one, mean in zip((first, second), means, strict=True)]
    finding = (
        f"{'; '.join(told)} of the first {horizon:,.0f} frames after competence; difference {difference.estimate:,.0f} "
        f"[{difference.low:,.0f}, {difference.high:,.0f}]; log-rank p = {test.p_value:.2g}"
    )
    numbers = {
        "first": means[0],
        "second": means[1],
        "difference": difference.estimate,
        "difference_low": difference.low,
        "difference_high": difference.high,
        "horizon": horizon,
        "p_value": test.p_value,
        "first_collapsed": float(first.times[1].sum()),
        "second_collapsed": float(second.times[1].sum()),
    }
    sure = above(difference) if test.p_value < LEVEL else "depends"
    return Claim(name, FIGURE, words, sure, finding, numbers, addition=True)


def draw_lasting(found: Sequence[Lastings]) -> Figure | None:
    """The survival curves: the behaviours at their bold settings, then each behaviour with its changes.

    Returns:
        The figure; None if no run ever became competent.
    """
    by_case = {one.setting.case: one for one in found if one.at_risk}
    bold = [case for case in ("epsilon-ipe", "epsilon-greedy") if case in by_case]
    panels = [("bold settings", [_line(by_case[case], case, case) for case in bold])] if bold else []
    for behaviour in ("epsilon-ipe", "epsilon-greedy"):
        cases = {words: f"{behaviour} {change}".strip() for change, words in CHANGES.items()}
        lines = [_line(by_case[case], words) for words, case in cases.items() if case in by_case]
        if len(lines) > 1:
            panels.append((behaviour.replace("epsilon", "ε"), lines))
    if not panels:
        return None
    return draw_survival(panels, axis="frames since competence", quantity="share of runs without a lasting collapse")


def lasting_csv(found: Sequence[Lastings]) -> bytes:
    """Every run: when it became competent, when it collapsed for good or was last seen not to have."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["setting", "seed", "competent_at", "end", "collapsed", "time"])
    for one in found:
        for run in one.runs:
            at = "" if run.competent is None else run.competent
            writer.writerow([one.setting.name, run.seed, at, run.end, str(run.collapsed).lower(), run.time])
    return buffer.getvalue().encode()


def lasting_words(found: Sequence[Lastings]) -> str:
    """The figure's caption: the definition, and the runs that never became competent."""
    never = [
        f"{len(one.runs) - len(one.at_risk)} of {one.setting.name}" for one in found if len(one.at_risk) < len(one.runs)
    ]
    left = f" Runs that never were, and are not at risk: {', '.join(never)}." if never else ""
    return (
        f"A run is competent when the mean return of its last 20 episodes first reaches {COMPETENT:g}. It collapses "
        "for good when that mean falls below half-way between its value at the 20th episode and its best so far, and "
        f"stays there for {LASTS:,} frames.{left}"
    )


def _line(one: Lastings, label: str, behaviour: str | None = None) -> SurvivalLine:
    times, seen = one.times
    shown = f"{label.replace('epsilon', 'ε')} ({int(seen.sum())} of {seen.size})"
    return SurvivalLine(shown, survival_curve(times, seen), behaviour)


def _told(one: Lastings, mean: float) -> str:
    _, seen = one.times
    share = f"{int(np.sum(seen))} of {seen.size}"
    return f"{share} runs of {one.setting.name} collapsed, which lasted {mean:,.0f} on average"
