"""Audits in words and numbers, from the plain data that `ipe.audit.audit_contents` makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ipe.base.columns import columns

Contents = Mapping[str, Any]

_SOURCES = {
    "fitted": "fitted to part of the batch, and judged by the rest",
    "network": "the policy network",
    "given": "as given",
}


def table_text(audit: Contents, all_terminated: bool) -> str:
    """The audit of a table of action values, for a terminal."""
    kind = "deterministic, as far as it shows" if audit["deterministic"] else "stochastic"
    least, most = audit["distance_bounds"]
    lines = [
        f"Audit of Q on {audit['transitions']} transitions: {audit['pairs']} pairs of state and action, {kind}",
        f"  is Q the value of a policy?  {_verdict(audit)}",
        f"  distance to the nearest one  between {least:.4g} and {most:.4g} in the sup norm, on the empirical model",
    ]
    if audit["left_out"]:
        share = audit["left_out"] / audit["transitions"]
        lines.append(
            f"  left out                     {audit['left_out']} transitions ({share:.1%}) whose pair is there once"
        )
    if not audit["solution"]["converged"]:
        lines.append(f"  NOT CONVERGED                the solution's gap is {audit['solution']['gap']:.3g}")
    lines += ["", *_decompositions(audit)]
    if not audit["deterministic"]:
        lines += [
            "",
            "  The evaluation policy's residual is what no policy can remove (below 0: nothing is left but noise).",
            f"  Fitted to one half of the batch, it leaves {audit['crossed']:.4g} on the other.",
        ]
    lines += ["", _exploration(audit["exploration"], all_terminated), *_support(audit)]
    if audit["worst"]:
        lines += ["", "  The states with the largest residuals (delta below 0: Q promises more than follows)"]
        lines += _worst_states(audit)
    return "\n".join(lines)


def sample_text(audit: Contents, all_terminated: bool) -> str:
    """The audit of action values per transition, for a terminal."""
    known = {True: "deterministic", False: "stochastic", None: "deterministic or not is not known"}
    lines = [
        f"Audit of Q on {audit['transitions']} transitions, each by itself ({known[audit['deterministic']]})",
        f"  is Q the value of a policy?  {_sample_verdict(audit)}",
        f"  beyond every policy          {audit['outside']:.1%} of the transitions ({audit['promised_too_much']:.1%} "
        f"promise too much), by {audit['sup_residual']:.4g} at most",
    ]
    if audit["distance_lower_bound"] is not None:
        lines.append(f"  distance to the nearest one  at least {audit['distance_lower_bound']:.4g} in the sup norm")
    lines += [f"  evaluation policy            {_SOURCES[audit['policy_source']]}", "", *_sample_parts(audit)]
    if audit["training"] is not None:
        judged, fitted = audit["evaluation"]["transitions"], audit["training"]["transitions"]
        lines += ["", f"  Judged by {judged} transitions, fitted to the other {fitted}."]
    lines += ["", _exploration(audit["exploration"], all_terminated), *_support(audit)]
    if audit["worst"]:
        lines += [
            "",
            "  The transitions furthest from every policy: Q(s,a) is not between r + gamma min Q(s',.), least,",
            "  and r + gamma max Q(s',.), most (delta below 0: Q promises more than any action gives)",
            *_worst_transitions(audit),
        ]
    elif audit["outside"] == 0.0:
        lines += ["", "  No transition is beyond every policy: there is none to list."]
    return "\n".join(lines)


def _verdict(audit: Contents) -> str:
    if audit["achievable"]:
        return "yes: its evaluation policy has no residual here"
    refused = audit["achievable"] is False
    if audit["deterministic"]:
        return "no" if refused else "not decided at this tolerance"
    found = audit["evaluation"]
    evidence = f"residual^2 is {found['residual']:.4g}, its standard error {found['standard_error']:.2g}"
    return f"no: {evidence}" if refused else f"nothing here speaks against it: {evidence}"


def _sample_verdict(audit: Contents) -> str:
    if audit["achievable"] is False:
        return "no: transitions are deterministic, and some contradict every policy"
    if audit["outside"] == 0.0:
        return "no transition contradicts it by itself"
    return "no if transitions are deterministic; if not, single ones cannot tell"


def _decompositions(audit: Contents) -> list[str]:
    names = [name for name in ("evaluation", "greedy", "given") if audit[name] is not None]
    rows = [["", *(f"{name} policy" for name in names)]]
    for part, label in (
        ("mean_squared_td_error", "mean squared TD error"),
        ("noise", "  noise of rewards and successors"),
        ("estimation", "  estimation: this sample's part of the residual"),
        ("residual", "  squared Bellman residual"),
        ("standard_error", "    its standard error"),
    ):
        rows.append([label, *(f"{audit[name][part]:.4g}" for name in names)])
    return _aligned(rows)


def _sample_parts(audit: Contents) -> list[str]:
    evaluation, greedy, estimation = audit["evaluation"], audit["greedy"], audit["estimation"]
    left = evaluation["excess"] - (estimation or 0.0)
    rows = [
        ["", "evaluation policy", "greedy policy"],
        [
            "mean squared TD error",
            f"{evaluation['mean_squared_td_error']:.4g}",
            f"{greedy['mean_squared_td_error']:.4g}",
        ],
        ["  that no policy removes, transition by transition", f"{evaluation['floor']:.4g}", f"{greedy['floor']:.4g}"],
        ["  that this policy leaves", f"{left:.4g}", f"{greedy['excess']:.4g}"],
    ]
    if estimation is not None:
        rows.append(["  estimation: held out less fitted", f"{estimation:.4g}", "-"])
    return _aligned(rows)


def _worst_states(audit: Contents) -> list[str]:
    rows = [["state", "visits", "residual", "greedy's", "worst action", "delta", "entropy", "epsilon"]]
    for state in audit["worst"]:
        error = "" if audit["deterministic"] else f" +- {state['standard_error']:.2g}"
        sizes = [f"{state['residual']:.4g}", f"{state['greedy_residual']:.4g}"]
        randomness = [f"{state['entropy']:.3f}", f"{state['epsilon']:.3f}"]
        delta = f"{state['delta']:+.4g}{error}"
        rows.append([str(state["state"]), str(state["visits"]), *sizes, str(state["action"]), delta, *randomness])
    return _aligned(rows)


def _worst_transitions(audit: Contents) -> list[str]:
    rows = [["transition", "action", "reward", "Q(s,a)", "least", "most", "delta", ""]]
    for found in audit["worst"]:
        numbers = [f"{found[name]:.4g}" for name in ("reward", "q", "least", "most")]
        end = "terminated" if found["terminated"] else ""
        rows.append([str(found["index"]), str(found["action"]), *numbers, f"{found['delta']:+.4g}", end])
    return _aligned(rows)


def _exploration(means: Contents, all_terminated: bool) -> str:
    if all_terminated:
        return "  Every transition terminates: there is no policy to find."
    return (
        f"  The evaluation policy where transitions lead: entropy {means['mean_entropy']:.3f} nats, "
        f"matched epsilon {means['mean_epsilon']:.3f} on average"
    )


def _support(audit: Contents) -> list[str]:
    if (found := audit.get("support")) is None:
        return []
    near = "" if found["neighbours"] is None else f" in any of the {found['neighbours']} nearest states"
    return [
        f"  Beyond the data's support: at {found['beyond']:.1%} of {found['transitions']} next states, the data never "
        f"take the greedy action{near};",
        f"  max Q is {found['excess']:.4g} above the best action that they take, on average",
    ]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"  {line}" for line in columns(rows, left=[0])]
