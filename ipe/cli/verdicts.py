"""Claims with their verdicts, on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipe.analysis import Claim


def print_claims(claims: Sequence[Claim]) -> None:
    """Print claims with their verdicts, and how many verdicts there are of each kind."""
    from ipe.analysis import claims_text

    print(claims_text(claims))
    counts = [f"{sum(claim.verdict == v for claim in claims)} {v}" for v in ("holds", "does not hold", "depends")]
    print(f"\n{len(claims)} claims: {', '.join(counts)}.")
