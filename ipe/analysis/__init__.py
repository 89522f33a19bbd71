"""Analysis: what results say, computed from the data alone."""

from ipe.analysis.claims import Claim, claims_markdown, claims_records, claims_text, verdict

__all__ = ["Claim", "claims_markdown", "claims_records", "claims_text", "verdict"]
