"""Audits as plain numbers, lists and strings: what `ipe audit --json` prints."""

from __future__ import annotations

import dataclasses
from typing import Any

from ipe.audit.decomposition import Decomposition
from ipe.audit.result import Audit, Exploration, Parts, SampleAudit, TableAudit


def audit_contents(audit: Audit) -> dict[str, Any]:
    """An audit as plain data.

    Args:
        audit: what `ipe.audit.audit` returned.

    Returns:
        Keys in the order of the printed table. Squared errors are means over the transitions that count.
    """
    return _table(audit) if isinstance(audit, TableAudit) else _sample(audit)


def _table(audit: TableAudit) -> dict[str, Any]:
    model = audit.model
    return {
        "kind": "table",
        "gamma": audit.gamma,
        "transitions": audit.transitions,
        "left_out": model.left_out,
        "pairs": len(model.count),
        "deterministic": model.deterministic,
        "achievable": audit.achievable,
        "distance_bounds": list(audit.distance_bounds),
        "sup_residual": list(audit.sup_residual),
        "unachievable": audit.unachievable,
        "crossed": audit.crossed,
        "evaluation": _decomposition(audit.evaluation),
        "greedy": _decomposition(audit.greedy),
        "given": None if audit.given is None else _decomposition(audit.given),
        "solution": {
            "residual": audit.solution.residual,
            "residual_lower_bound": audit.solution.residual_lower_bound,
            "gap": audit.solution.gap,
            "converged": audit.solution.converged,
            "method": audit.solution.method,
        },
        "exploration": _exploration(audit.exploration),
        "worst": [dataclasses.asdict(own) for own in audit.worst],
        "policy": audit.policy.tolist(),
    }


def _sample(audit: SampleAudit) -> dict[str, Any]:
    return {
        "kind": "samples",
        "gamma": audit.gamma,
        "transitions": audit.transitions,
        "deterministic": audit.deterministic,
        "achievable": audit.achievable,
        "distance_lower_bound": audit.distance_bound,
        "outside": audit.outside,
        "promised_too_much": audit.promised_too_much,
        "sup_residual": audit.sup_residual,
        "policy_source": audit.source,
        "evaluation": _parts(audit.evaluation),
        "training": None if audit.training is None else _parts(audit.training),
        "estimation": audit.estimation,
        "greedy": _parts(audit.greedy),
        "exploration": _exploration(audit.exploration),
        "worst": [dataclasses.asdict(own) for own in audit.worst],
    }


def _decomposition(own: Decomposition) -> dict[str, Any]:
    return dataclasses.asdict(own)


def _parts(own: Parts) -> dict[str, Any]:
    return {**dataclasses.asdict(own), "excess": own.excess}


def _exploration(own: Exploration) -> dict[str, float]:
    return {"mean_entropy": own.mean_entropy, "mean_epsilon": own.mean_epsilon}
