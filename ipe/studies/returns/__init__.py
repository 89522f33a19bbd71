"""Beyond the paper: lambda and gamma of returns from the evaluation policy's entropy; a closed form of that policy."""

from ipe.studies.parts import Part
from ipe.studies.returns.closed_form import compute_closed_form, judge_closed_form
from ipe.studies.returns.computing import compute_gamma, compute_lambda, judge_gamma, judge_lambda
from ipe.studies.returns.drawing import draw_closed_form, draw_gamma, draw_lambda
from ipe.studies.returns.settings import ReturnsSettings

PARTS: tuple[Part, ...] = (
    Part("lambda", "λ from entropy beside fixed λ", compute_lambda, draw_lambda, judge_lambda, True),
    Part("gamma", "γ from entropy beside fixed γ", compute_gamma, draw_gamma, judge_gamma, True),
    Part(
        "closed-form", "A closed form instead of a step size", compute_closed_form, draw_closed_form, judge_closed_form,
        True,
    ),
)  # fmt: skip


def settings_for(runs: int | None = None, seed: int = 0) -> ReturnsSettings:
    """The study's settings, or those with another number of runs."""
    return ReturnsSettings(seed=seed) if runs is None else ReturnsSettings(seed=seed, runs=runs)


__all__ = ["PARTS", "ReturnsSettings", "settings_for"]
