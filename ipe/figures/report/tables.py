"""The tables behind the report, as CSV: every run, the ranking, the comparisons, the sensitivity curves."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from ipe.figures.report.findings import Findings
from ipe.figures.report.sensitivity import SensitivityPanel

_RUNS = ("environment", "setting", "case", "key", "runs", "seed", "status", "frame", "auc", "final_return", "reason")
_RANKING = (
    "environment",
    "rank",
    "setting",
    "case",
    "key",
    "runs",
    "n",
    "planned",
    "failed",
    "diverged",
    "auc_mean",
    "auc_standard_error",
    "auc_iqm",
    "auc_iqm_low",
    "auc_iqm_high",
    "auc_worst",
    "final_return_mean",
    "final_return_standard_error",
    "probability_best",
)
_COMPARISONS = (
    "environment",
    "first",
    "second",
    "probability_of_improvement",
    "probability_low",
    "probability_high",
    "auc_difference",
    "difference_low",
    "difference_high",
)
_SENSITIVITY = (
    "environment",
    "case",
    "hyperparameter",
    "value",
    "kind",
    "auc_mean",
    "auc_standard_error",
    "n",
    "setting",
    "candidates",
)


def tables(found: Sequence[tuple[Findings, Sequence[SensitivityPanel]]]) -> dict[str, bytes]:
    """The content of every table by its file's name; those without a row are left out.

    Args:
        found: findings and sensitivity panels of each environment.
    """
    rows: dict[str, tuple[Sequence[str], Iterable[Sequence[Any]]]] = {
        "ranking.csv": (_RANKING, (row for findings, _ in found for row in _ranking(findings))),
        "runs.csv": (_RUNS, (row for findings, _ in found for row in _runs(findings))),
        "comparisons.csv": (_COMPARISONS, (row for findings, _ in found for row in _comparisons(findings))),
        "sensitivity.csv": (_SENSITIVITY, (row for pair in found for row in _sensitivity(*pair))),
    }
    contents = {name: _csv(header, list(body)) for name, (header, body) in rows.items()}
    return {name: content for name, content in contents.items() if content is not None}


def _csv(header: Sequence[str], rows: list[Sequence[Any]]) -> bytes | None:
    """Numbers with every digit, so that who reads them computes the same; NaN as an empty cell."""
    if not rows:
        return None
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if cell != cell else cell for cell in row] for row in rows])
    return buffer.getvalue().encode()


def _ranking(findings: Findings) -> Iterable[Sequence[Any]]:
    for row in [*findings.ranking, *findings.fresh]:
        own = row.series
        yield (
            *(findings.group.environment, row.rank or "", own.setting.name, own.setting.case, own.setting.key),
            *("fresh" if own.fresh else "sweep", own.n, own.planned, own.count("failed"), own.count("diverged")),
            *(row.mean, row.standard_error, row.iqm.estimate, row.iqm.low, row.iqm.high, row.worst),
            *(row.final, row.final_error, row.probability_best),
        )


def _runs(findings: Findings) -> Iterable[Sequence[Any]]:
    for row in [*findings.ranking, *findings.fresh]:
        own = row.series
        kind = "fresh" if own.fresh else "sweep"
        for outcome, area, last in zip(own.outcomes, own.auc.tolist(), own.final.tolist(), strict=True):
            yield (
                *(findings.group.environment, own.setting.name, own.setting.case, own.setting.key, kind),
                *(outcome["seed"], outcome["status"], outcome["frame"], area, last, outcome["reason"]),
            )


def _comparisons(findings: Findings) -> Iterable[Sequence[Any]]:
    for pair in findings.comparisons:
        probability, difference = pair.probability, pair.difference
        yield (
            *(findings.group.environment, pair.first.series.name, pair.second.series.name),
            *(probability.estimate, probability.low, probability.high),
            *(difference.estimate, difference.low, difference.high),
        )


def _sensitivity(findings: Findings, panels: Sequence[SensitivityPanel]) -> Iterable[Sequence[Any]]:
    for panel in panels:
        for case, curve in panel.curves.items():
            for i, value in enumerate(curve.values):
                yield (
                    *(findings.group.environment, case, panel.hyperparameter),
                    *(value if isinstance(value, str) else json.dumps(value), curve.kind),
                    *(float(curve.mean[i]), float(curve.error[i]), curve.n[i]),
                    *(panel.series[case][curve.settings[i]].setting.name, curve.candidates[i]),
                )
