"""Analysis: what results say, computed from the data alone."""

from ipe.analysis.bands import bootstrap_band, tolerance_band
from ipe.analysis.bootstrap import Interval, bootstrap_interval
from ipe.analysis.claims import Claim, claims_markdown, claims_records, claims_text, verdict
from ipe.analysis.comparison import (
    PerformanceProfile,
    difference_interval,
    performance_profile,
    probability_of_improvement,
)
from ipe.analysis.curves import (
    CurveSummary,
    auc,
    auc_of_episodes,
    aucs,
    curves,
    frame_grid,
    mean_and_standard_error,
    recorded_curves,
    trailing_curve,
)
from ipe.analysis.dimensionality import (
    EffectiveDimensionality,
    HyperparameterSensitivity,
    effective_dimensionality,
    hyperparameter_sensitivity,
    normalised_scores,
)
from ipe.analysis.scores import score_failed, standard_error, worst_seen
from ipe.analysis.selection import RankedSetting, Selection, select_best
from ipe.analysis.sensitivity import (
    SensitivityCurve,
    one_at_a_time_curve,
    sensitivity_curve,
    sensitivity_curves,
    varied,
)
from ipe.analysis.shape import largest_fall, mean_curve_interval, relative_fall, rise
from ipe.analysis.statistics import (
    ToleranceInterval,
    interquartile_mean,
    runs_for_tolerance,
    tolerance_interval,
)

__all__ = [
    "Claim",
    "CurveSummary",
    "EffectiveDimensionality",
    "HyperparameterSensitivity",
    "Interval",
    "PerformanceProfile",
    "RankedSetting",
    "Selection",
    "SensitivityCurve",
    "ToleranceInterval",
    "auc",
    "auc_of_episodes",
    "aucs",
    "bootstrap_band",
    "bootstrap_interval",
    "claims_markdown",
    "claims_records",
    "claims_text",
    "curves",
    "difference_interval",
    "effective_dimensionality",
    "frame_grid",
    "hyperparameter_sensitivity",
    "interquartile_mean",
    "largest_fall",
    "mean_and_standard_error",
    "mean_curve_interval",
    "normalised_scores",
    "one_at_a_time_curve",
    "performance_profile",
    "probability_of_improvement",
    "recorded_curves",
    "relative_fall",
    "rise",
    "runs_for_tolerance",
    "score_failed",
    "select_best",
    "sensitivity_curve",
    "sensitivity_curves",
    "standard_error",
    "tolerance_band",
    "tolerance_interval",
    "trailing_curve",
    "varied",
    "verdict",
    "worst_seen",
]
