"""What the study of updates says of its runs: each update beside the paper's, lambda from entropy beside fixed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

import numpy as np

from ipe.analysis import Claim, Interval, difference_interval
from ipe.analysis.bootstrap import RESAMPLES, check_generator
from ipe.analysis.series import Series, read_groups
from ipe.base.arrays import Array
from ipe.experiments.results import Results
from ipe.studies.learning.evidence import SEED, above

PAPER = "paper"
STEP_SIZE = "policy_step_size"
NAMES = {
    PAPER: "the paper's update",
    "absolute": "the absolute error",
    "entropy-bonus": "an entropy bonus of 0.01",
    "natural": "the natural gradient",
    "kl-proximal": "the KL-proximal update",
    "scale-free": "the scale-free update",
    "fenchel": "Fenchel's dual update",
    "cross-entropy": "the cross-entropy update",
    "lift": "the lift",
    "three-steps": "an error of three steps",
    "three-steps-corrected": "an error of three steps, corrected by the tree backup",
    "as-dqn": "an error as DQN's",
    "conservative": "a conservative policy",
}
"""The cases of the sweeps, in words."""
STEADIER = ("lift", "cross-entropy", "as-dqn")
"""The cases of which a claim says that the step size matters less: those with a closed form, and one that is ahead of
the paper's update at small step sizes."""
ENTROPY = "entropy"
KINDS = ("peng", "watkins")
"""The kinds of mixed returns."""


def by_case(results: Results) -> dict[str, list[Series]]:
    """The settings of each case that have two runs or more, by case; a single run says nothing about the others."""
    (group,) = read_groups(results)
    found: dict[str, list[Series]] = {}
    for series in group.series:
        if series.n > 1:
            found.setdefault(series.setting.case, []).append(series)
    return found


def whole_cases(results: Results) -> dict[str, list[Series]]:
    """The settings of each case of which no run is missing: only those can be at their best step size."""
    declared = Counter(setting.case for setting in results.sweep.settings)
    return {
        case: settings
        for case, settings in by_case(results).items()
        if len(settings) == declared[case] and all(series.n == series.planned for series in settings)
    }


def step_sizes(settings: Sequence[Series]) -> list[float]:
    """The policy step size of each setting."""
    return [float(series.setting.varied[STEP_SIZE]) for series in settings]


def judge_updates(part: str, results: Results) -> list[Claim]:
    """Whether each update has a larger area under the curve than the paper's, each at its best step size of those that
    both have; and whether the step size of some matters less. Cases with missing runs are left
    out."""
    cases = whole_cases(results)
    if PAPER not in cases:
        return []
    paper = cases.pop(PAPER)
    claims = []
    for case, settings in cases.items():
        shared = set(step_sizes(settings)) & set(step_sizes(paper))
        claims.append(_earns_more(part, case, _best(settings, shared), _best(paper, shared)))
    claims += [_matters_less(part, case, cases[case], paper) for case in STEADIER if case in cases]
    return claims


def judge_lambda(part: str, results: Results) -> list[Claim]:
    """Whether lambda from entropy has a larger area under the curve than returns of one step, and than the best fixed
    lambda, for each kind of mixed returns."""
    cases = {case: settings[0] for case, settings in whole_cases(results).items()}
    claims = []
    for kind in KINDS:
        fixed = fixed_lambdas(kind, cases)
        if f"{kind}-{ENTROPY}" not in cases or 0.0 not in fixed:
            continue
        ours, name = cases[f"{kind}-{ENTROPY}"], f"{kind.capitalize()}'s returns"
        best = max(fixed, key=lambda value: float(fixed[value].auc.mean()))
        claims += [
            _larger(
                f"{part}-{kind}-beats-one-step", part,
                f"{name} with λ from the evaluation policy's entropy have a larger area under the curve than returns "
                "of one step.",
                {"λ from entropy": ours, "one step": fixed[0.0]},
            ),
            _larger(
                f"{part}-{kind}-beats-fixed", part,
                f"{name} with λ from the evaluation policy's entropy have a larger area under the curve than with the "
                "best fixed λ.",
                {"λ from entropy": ours, f"the best fixed λ ({best:g})": fixed[best]},
                " The fixed λ was chosen on the same runs.",
            ),
        ]  # fmt: skip
    return claims


def fixed_lambdas(kind: str, cases: Mapping[str, Series]) -> dict[float, Series]:
    """The settings of one kind of mixed returns with a fixed lambda, in the order of lambda. Lambda 0 is the return of
    one step for both kinds, lambda 1 that of all steps for Peng's."""
    names = {"one-step": 0.0} | ({"eight-steps": 1.0} if kind == "peng" else {})
    for case in cases:
        if case.startswith(f"{kind}-") and not case.endswith(ENTROPY):
            names[case] = float(case.removeprefix(f"{kind}-"))
    return {value: cases[case] for case, value in sorted(names.items(), key=lambda item: item[1]) if case in cases}


def _best(settings: Sequence[Series], sizes: Set[float]) -> Series:
    """The setting with the largest mean area, among those with these step sizes."""
    among = [one for one, at in zip(settings, step_sizes(settings), strict=True) if at in sizes]
    return max(among, key=lambda series: float(series.auc.mean()))


def _earns_more(part: str, case: str, ours: Series, paper: Series) -> Claim:
    name = NAMES[case]
    at = {words: f"{step_sizes([one])[0]:g}" for words, one in ((name, ours), (NAMES[PAPER], paper))}
    return _larger(
        f"{part}-{case}-earns-more",
        part,
        f"{name[0].upper()}{name[1:]} has a larger area under the curve than {NAMES[PAPER]}, each at its best step "
        "size.",
        {f"{words} (step size {at[words]})": one for words, one in ((name, ours), (NAMES[PAPER], paper))},
        " Both step sizes were chosen on the same runs.",
    )


def _larger(name: str, part: str, words: str, pair: Mapping[str, Series], more: str = "") -> Claim:
    """The claim that the first of two settings has the larger area under the curve."""
    first, second = pair.values()
    difference = difference_interval(first.auc, second.auc, seed=SEED)
    told = "; ".join(f"{label} {one.auc.mean():.4g} ({one.n} runs)" for label, one in pair.items())
    finding = f"Mean area: {told}; difference {_words(difference)}.{more}"
    numbers = {"first": float(first.auc.mean()), "second": float(second.auc.mean()), **_ends(difference)}
    return Claim(name, part, words, above(difference), finding, numbers, addition=True)


def _matters_less(part: str, case: str, ours: Sequence[Series], paper: Sequence[Series]) -> Claim:
    """The claim that a setting falls less from its best to its worst step size, of those that both have."""
    shared = set(step_sizes(ours)) & set(step_sizes(paper))
    falls, drawn = [], []
    rng = check_generator(SEED)
    for settings in (ours, paper):
        areas = [series.auc for series, at in zip(settings, step_sizes(settings), strict=True) if at in shared]
        falls.append(_fall(np.array([area.mean() for area in areas])))
        means = [area[rng.integers(area.size, size=(RESAMPLES, area.size))].mean(axis=1) for area in areas]
        drawn.append(_fall(np.stack(means, axis=-1)))
    low, high = np.quantile(drawn[1] - drawn[0], [0.025, 0.975])
    difference = Interval(float(falls[1] - falls[0]), float(low), float(high), 0.95)
    name, span = NAMES[case], f"{min(shared):g} to {max(shared):g}"
    finding = (
        f"From the best to the worst step size of {span} the mean area falls by {falls[0]:.4g}, that of {NAMES[PAPER]} "
        f"by {falls[1]:.4g}; difference {_words(difference)}."
    )
    numbers = {"first": float(falls[0]), "second": float(falls[1]), **_ends(difference)}
    words = f"The step size of {name} matters less than that of {NAMES[PAPER]}."
    return Claim(f"{part}-{case}-matters-less", part, words, above(difference), finding, numbers, addition=True)


def _fall(means: Array) -> Array:
    return np.asarray(means.max(axis=-1) - means.min(axis=-1))


def _words(interval: Interval) -> str:
    return f"{interval.estimate:.4g} [{interval.low:.4g}, {interval.high:.4g}]"


def _ends(interval: Interval) -> dict[str, float]:
    return {"difference": interval.estimate, "difference_low": interval.low, "difference_high": interval.high}
