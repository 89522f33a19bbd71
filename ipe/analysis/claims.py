"""Claims: sentences of a paper, each with a verdict and the numbers behind the verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

Verdict: TypeAlias = Literal["holds", "does not hold", "depends"]


@dataclass(frozen=True)
class Claim:
    """One sentence, checked.

    Attributes:
        name: a short name, for programs.
        figure: the part of the study that the sentence is about.
        words: the sentence, as the paper (or, for additions, this library) says it.
        verdict: whether the data agree with the sentence.
        finding: the result with its number, in one sentence.
        numbers: the numbers behind the finding.
        addition: whether the sentence is this library's own, not the paper's.
    """

    name: str
    figure: str
    words: str
    verdict: Verdict
    finding: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    addition: bool = False


def verdict(*checks: bool) -> Verdict:
    """Holds if every check does, does not hold if none does, depends otherwise.

    Example:
        >>> verdict(True, True), verdict(True, False), verdict(False)
        ('holds', 'depends', 'does not hold')
    """
    if all(checks):
        return "holds"
    return "depends" if any(checks) else "does not hold"


def claims_records(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """The claims as plain dictionaries, for JSON."""
    return [{**asdict(claim), "numbers": {k: float(v) for k, v in claim.numbers.items()}} for claim in claims]


def claims_markdown(claims: Sequence[Claim]) -> str:
    """The claims as a Markdown table."""
    lines = ["| claim | verdict | what was found | the words |", "|---|---|---|---|"]
    for claim in claims:
        source = "*ours:* " if claim.addition else ""
        cells = (claim.name, f"**{claim.verdict}**", claim.finding, source + claim.words)
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def claims_text(claims: Sequence[Claim], width: int = 100) -> str:
    """The claims for a terminal: verdict and name, then what was found and the words it is about."""
    lines = []
    for claim in claims:
        mark = {"holds": "+", "does not hold": "-", "depends": "~"}[claim.verdict]
        lines.append(f"{mark} {claim.verdict.upper():14}{claim.name}  ({claim.figure})")
        lines += textwrap.wrap(claim.finding, width, initial_indent="    ", subsequent_indent="    ")
        quoted = f"ours: {claim.words}" if claim.addition else f'paper: "{claim.words}"'
        lines += textwrap.wrap(quoted, width, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)
