"""Claims: verdicts and how they are shown."""

from __future__ import annotations

import json

from ipe.analysis import Claim, claims_markdown, claims_records, claims_text, verdict

CLAIMS = [
    Claim("first", "figure-1", "Water is | wet.", "holds", "It was, in 3 of 3 tries.", {"share": 1}),
    Claim("second", "figure-2", "Ours.", "depends", "Now and then.", addition=True),
]


def test_a_verdict_needs_every_check() -> None:
    assert verdict(True, True) == "holds"
    assert verdict(False, True) == "depends"
    assert verdict(False, False) == "does not hold"


def test_markdown_keeps_its_columns() -> None:
    lines = claims_markdown(CLAIMS).splitlines()
    assert len(lines) == 4
    assert lines[2] == "| first | **holds** | It was, in 3 of 3 tries. | Water is \\| wet. |"
    assert "*ours:*" in lines[3]


def test_text_quotes_the_paper_and_names_additions() -> None:
    text = claims_text(CLAIMS)
    assert "+ HOLDS         first  (figure-1)" in text
    assert 'paper: "Water is | wet."' in text
    assert "ours: Ours." in text


def test_records_are_plain_json() -> None:
    records = json.loads(json.dumps(claims_records(CLAIMS)))
    assert records[0]["numbers"] == {"share": 1.0}
    assert records[1]["addition"] is True
