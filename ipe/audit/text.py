"""Audits in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ipe.audit.decomposition import Decomposition
from ipe.audit.result import Exploration, SampleAudit, TableAudit

_SOURCES = {
    "fitted": "fitted to part of the batch, and judged by the rest",
    "network": "the policy network",
    "given": "as given",
}


def table_text(audit: TableAudit) -> str:
    """The audit of a table of action values."""
    model = audit.model
    kind = "deterministic, as far as it shows" if model.deterministic else "stochastic"
    lines = [
        f"Audit of Q on {audit.transitions} transitions: {len(model.count)} pairs of state and action, {kind}",
        f"  is Q the value of a policy?  {_verdict(audit)}",
        f"  distance to the nearest one  between {audit.distance_bounds[0]:.4g} and {audit.distance_bounds[1]:.4g} "
        "in the sup norm, on the empirical model",
    ]
    if model.left_out:
        share = model.left_out / audit.transitions
        lines.append(
            f"  left out                     {model.left_out} transitions ({share:.1%}) whose pair is there once"
        )
    if not audit.solution.converged:
        lines.append(f"  NOT CONVERGED                the solution's gap is {audit.solution.gap:.3g}")
    columns = [("evaluation policy", audit.evaluation), ("greedy policy", audit.greedy)]
    columns += [("given policy", audit.given)] if audit.given is not None else []
    lines += ["", *_decompositions(columns)]
    if not model.deterministic:
        lines += [
            "",
            "  The evaluation policy's residual is what no policy can remove (below 0: nothing is left but noise).",
            f"  Fitted to one half of the batch, it leaves {audit.crossed:.4g} on the other.",
        ]
    lines += ["", *_exploration(audit.exploration)]
    if audit.worst:
        rows = [["state", "visits", "residual", "greedy's", "worst action", "delta", "entropy", "epsilon"]]
        for own in audit.worst:
            delta = f"{own.delta:+.4g}" + ("" if model.deterministic else f" +- {own.standard_error:.2g}")
            sizes = [f"{own.residual:.4g}", f"{own.greedy_residual:.4g}"]
            random = [f"{own.entropy:.3f}", f"{own.epsilon:.3f}"]
            rows.append([str(own.state), str(own.visits), *sizes, str(own.action), delta, *random])
        lines += ["", "  The states with the largest residuals (delta below 0: Q promises more than follows)"]
        lines += _aligned(rows)
    return "\n".join(lines)


def sample_text(audit: SampleAudit) -> str:
    """The audit of action values per transition."""
    own, fitted = audit.evaluation, audit.training
    known = {True: "deterministic", False: "stochastic", None: "deterministic or not is not known"}
    lines = [
        f"Audit of Q on {audit.transitions} transitions, each by itself ({known[audit.deterministic]})",
        f"  is Q the value of a policy?  {_sample_verdict(audit)}",
        f"  beyond every policy          {audit.outside:.1%} of the transitions ({audit.promised_too_much:.1%} promise "
        f"too much), by {audit.sup_residual:.4g} at most",
    ]
    if audit.distance_bound is not None:
        lines.append(f"  distance to the nearest one  at least {audit.distance_bound:.4g} in the sup norm")
    lines += [
        f"  evaluation policy            {_SOURCES[audit.source]}",
        "",
        *_sample_parts(audit),
    ]
    if fitted is not None:
        lines += ["", f"  Judged by {own.transitions} transitions, fitted to the other {fitted.transitions}."]
    lines += ["", *_exploration(audit.exploration)]
    if audit.worst:
        rows = [["transition", "action", "reward", "Q(s,a)", "least", "most", "delta", ""]]
        for bad in audit.worst:
            numbers = [f"{x:.4g}" for x in (bad.reward, bad.q, bad.least, bad.most)]
            end = "terminated" if bad.terminated else ""
            rows.append([str(bad.index), str(bad.action), *numbers, f"{bad.delta:+.4g}", end])
        lines += [
            "",
            "  The transitions furthest from every policy: Q(s,a) is not between r + gamma min Q(s',.), least,",
        ]
        lines += ["  and r + gamma max Q(s',.), most (delta below 0: Q promises more than any action gives)"]
        lines += _aligned(rows)
    elif audit.outside == 0.0:
        lines += ["", "  No transition is beyond every policy: there is none to list."]
    return "\n".join(lines)


def _verdict(audit: TableAudit) -> str:
    own = audit.evaluation
    if audit.achievable:
        return "yes: its evaluation policy has no residual here"
    if audit.model.deterministic:
        return "no" if audit.achievable is False else "not decided at this tolerance"
    evidence = f"residual^2 is {own.residual:.4g}, its standard error {own.standard_error:.2g}"
    return f"no: {evidence}" if audit.achievable is False else f"nothing here speaks against it: {evidence}"


def _sample_verdict(audit: SampleAudit) -> str:
    if audit.achievable is False:
        return "no: transitions are deterministic, and some contradict every policy"
    if audit.outside == 0.0:
        return "no transition contradicts it by itself"
    return "no if transitions are deterministic; if not, single ones cannot tell"


def _decompositions(columns: Sequence[tuple[str, Decomposition]]) -> list[str]:
    parts = [
        ("mean squared TD error", [own.mean_squared_td_error for _, own in columns]),
        ("  noise of rewards and successors", [own.noise for _, own in columns]),
        ("  estimation: this sample's part of the residual", [own.estimation for _, own in columns]),
        ("  squared Bellman residual", [own.residual for _, own in columns]),
        ("    its standard error", [own.standard_error for _, own in columns]),
    ]
    rows = [["", *(name for name, _ in columns)]]
    rows += [[name, *(f"{value:.4g}" for value in values)] for name, values in parts]
    return _aligned(rows)


def _sample_parts(audit: SampleAudit) -> list[str]:
    own, greedy, estimation = audit.evaluation, audit.greedy, audit.estimation
    conflict = own.excess if estimation is None else own.excess - estimation
    rows = [
        ["", "evaluation policy", "greedy policy"],
        ["mean squared TD error", f"{own.mean_squared_td_error:.4g}", f"{greedy.mean_squared_td_error:.4g}"],
        ["  that no policy removes, transition by transition", f"{own.floor:.4g}", f"{greedy.floor:.4g}"],
        ["  that this policy leaves", f"{conflict:.4g}", f"{greedy.excess:.4g}"],
    ]
    if estimation is not None:
        rows.append(["  estimation: held out less fitted", f"{estimation:.4g}", "-"])
    return _aligned(rows)


def _exploration(own: Exploration) -> list[str]:
    if not len(own.weights) or math.isclose(float(own.weights.sum()), 0.0):
        return ["  Every transition terminates: there is no policy to find."]
    return [
        f"  The evaluation policy where transitions lead: entropy {own.mean_entropy:.3f} nats, "
        f"matched epsilon {own.mean_epsilon:.3f} on average"
    ]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        (
            "  "
            + row[0].ljust(widths[0])
            + "".join(f"  {c.rjust(w)}" for c, w in zip(row[1:], widths[1:], strict=True))
        ).rstrip()
        for row in rows
    ]
