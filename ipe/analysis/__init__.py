"""Analysis: what results say, computed from the data alone.

The functions here take numbers and tables of any origin. What reads the store of a sweep is in modules of its own:
`ipe.analysis.series` (the runs of each setting), `ipe.analysis.findings` (their ranking and comparison) and
`ipe.analysis.panels` (their sensitivity curves); `ipe.analysis.halving` reads a sweep by successive halving,
and `ipe.analysis.recorded` the runs that other programs recorded.
"""

from ipe.analysis.bands import CurveBands, bootstrap_band, curve_bands, iqm_band, iqm_curve, tolerance_band
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
from ipe.analysis.many import holm, improvement_test, mean_ranks, rank_test
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
    range_coverage,
    runs_for_tolerance,
    tolerance_interval,
)
from ipe.analysis.survival import (
    LogRank,
    SurvivalCurve,
    log_rank,
    restricted_mean,
    restricted_mean_difference,
    survival_curve,
)

__all__ = [
    "Claim",
    "CurveBands",
    "CurveSummary",
    "Interval",
    "LogRank",
    "PerformanceProfile",
    "RankedSetting",
    "Selection",
    "SensitivityCurve",
    "SurvivalCurve",
    "ToleranceInterval",
    "auc",
    "auc_of_episodes",
    "aucs",
    "bootstrap_band",
    "bootstrap_interval",
    "claims_markdown",
    "claims_records",
    "claims_text",
    "curve_bands",
    "curves",
    "difference_interval",
    "frame_grid",
    "holm",
    "improvement_test",
    "interquartile_mean",
    "iqm_band",
    "iqm_curve",
    "largest_fall",
    "log_rank",
    "mean_and_standard_error",
    "mean_curve_interval",
    "mean_ranks",
    "one_at_a_time_curve",
    "performance_profile",
    "probability_of_improvement",
    "range_coverage",
    "rank_test",
    "recorded_curves",
    "relative_fall",
    "restricted_mean",
    "restricted_mean_difference",
    "rise",
    "runs_for_tolerance",
    "score_failed",
    "select_best",
    "sensitivity_curve",
    "sensitivity_curves",
    "standard_error",
    "survival_curve",
    "tolerance_band",
    "tolerance_interval",
    "trailing_curve",
    "varied",
    "verdict",
    "worst_seen",
]
