"""Beyond the paper: lambda and gamma of Q-learning's returns, set by the entropy of the evaluation policy."""

from ipe.studies.parts import Part
from ipe.studies.returns.computing import compute_gamma, compute_lambda, judge_gamma, judge_lambda
from ipe.studies.returns.drawing import draw_gamma, draw_lambda
from ipe.studies.returns.settings import ReturnsSettings

PARTS: tuple[Part, ...] = (
    Part("lambda", "λ from entropy beside fixed λ", compute_lambda, draw_lambda, judge_lambda, True),
    Part("gamma", "γ from entropy beside fixed γ", compute_gamma, draw_gamma, judge_gamma, True),
)


def settings_for(runs: int | None = None, seed: int = 0) -> ReturnsSettings:
    """The study's settings, or those with another number of runs."""
    return ReturnsSettings(seed=seed) if runs is None else ReturnsSettings(seed=seed, runs=runs)


__all__ = ["PARTS", "ReturnsSettings", "settings_for"]
