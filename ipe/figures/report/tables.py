"""The tables behind the report, as CSV: every run, the ranking, the comparisons, the sensitivity curves."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ipe.analysis.findings import Findings
from ipe.analysis.panels import SensitivityPanel
from ipe.analysis.series import Series

Records: TypeAlias = Iterator[dict[str, Any]]


def tables(found: Sequence[tuple[Findings, Sequence[SensitivityPanel]]]) -> dict[str, bytes]:
    """The content of every table by the name of its file; a table without a row is left out."""
    contents = {
        "ranking.csv": _csv(record for findings, _ in found for record in _ranking(findings)),
        "runs.csv": _csv(record for findings, _ in found for record in _runs(findings)),
        "comparisons.csv": _csv(record for findings, _ in found for record in _comparisons(findings)),
        "sensitivity.csv": _csv(record for findings, panels in found for record in _sensitivity(findings, panels)),
    }
    return {name: content for name, content in contents.items() if content is not None}


def _csv(records: Iterable[dict[str, Any]]) -> bytes | None:
    """Records as CSV. Numbers keep every digit, so that a reader computes the same; NaN is an empty cell."""
    rows = [{name: "" if value != value else value for name, value in record.items()} for record in records]
    if not rows:
        return None
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode()


def _identity(findings: Findings, series: Series) -> dict[str, Any]:
    return {
        "environment": findings.group.environment,
        "measure": findings.group.measure.name,
        "setting": series.setting.name,
        "case": series.setting.case,
        "key": series.setting.key,
        "runs": "fresh" if series.fresh else "sweep",
    }


def _ranking(findings: Findings) -> Records:
    for row in [*findings.ranking, *findings.fresh]:
        series, tolerance = row.series, row.tolerance
        identity = _identity(findings, series)
        yield {
            "environment": identity.pop("environment"),
            "measure": identity.pop("measure"),
            "rank": row.rank or "",
            **identity,
            "n": series.n,
            "planned": series.planned,
            "failed": series.count("failed"),
            "diverged": series.count("diverged"),
            "ended_early": series.count("short"),
            "auc_mean": row.mean,
            "auc_standard_error": row.standard_error,
            "auc_mean_low": row.interval.low,
            "auc_mean_high": row.interval.high,
            "auc_iqm": row.iqm.estimate,
            "auc_iqm_low": row.iqm.low,
            "auc_iqm_high": row.iqm.high,
            "auc_worst": row.worst,
            "auc_greatest": row.greatest,
            "share_of_runs_between_worst_and_greatest": row.covered,
            "final_return_mean": row.final,
            "final_return_standard_error": row.final_error,
            "probability_best": row.probability_best,
            "auc_tolerance_low": math.nan if tolerance is None else tolerance.low,
            "auc_tolerance_high": math.nan if tolerance is None else tolerance.high,
        }


def _runs(findings: Findings) -> Records:
    for row in [*findings.ranking, *findings.fresh]:
        series = row.series
        for outcome, auc, final in zip(series.outcomes, series.auc.tolist(), series.final.tolist(), strict=True):
            yield {
                **_identity(findings, series),
                **{name: outcome[name] for name in ("seed", "status", "frame")},
                "auc": auc,
                "final_return": final,
                "reason": outcome["reason"],
            }


def _comparisons(findings: Findings) -> Records:
    for pair in findings.comparisons:
        yield {
            "environment": findings.group.environment,
            "measure": findings.group.measure.name,
            "first": pair.first.series.name,
            "second": pair.second.series.name,
            "probability_of_improvement": pair.probability.estimate,
            "probability_low": pair.probability.low,
            "probability_high": pair.probability.high,
            "auc_difference": pair.difference.estimate,
            "difference_low": pair.difference.low,
            "difference_high": pair.difference.high,
            "p_value": pair.p_value,
            "p_value_holm": pair.corrected,
            "comparisons": len(findings.comparisons),
        }


def _sensitivity(findings: Findings, panels: Sequence[SensitivityPanel]) -> Records:
    for panel in panels:
        for case, curve in panel.curves.items():
            for i, value in enumerate(curve.values):
                yield {
                    "environment": findings.group.environment,
                    "measure": findings.group.measure.name,
                    "case": case,
                    "hyperparameter": panel.hyperparameter,
                    "value": value if isinstance(value, str) else json.dumps(value),
                    "kind": curve.kind,
                    "auc_mean": float(curve.mean[i]),
                    "auc_standard_error": float(curve.error[i]),
                    "n": curve.n[i],
                    "setting": panel.series[case][curve.settings[i]].setting.name,
                    "candidates": curve.candidates[i],
                    **({"cut_at_frames": getattr(curve.cut[i], "frames", "")} if curve.cut else {}),
                }
