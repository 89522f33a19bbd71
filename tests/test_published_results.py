"""The results that are published with the library: whole, and judged as the library judges them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ipe.analysis import claims_records
from ipe.analysis.series import read_groups
from ipe.experiments.results import load_results
from ipe.studies.learning.study import joined
from ipe.studies.lunar_lander import STUDY

RESULTS = Path(__file__).parent.parent / "results" / "lunar_lander"


@pytest.mark.parametrize(
    ("part", "runs", "frames"), [("curves", 60, 500_000), ("ipe", 10, 500_000), ("sensitivity", 100, 200_000)]
)
def test_the_lunar_lander_runs_are_whole(part: str, runs: int, frames: int, tmp_path: Path) -> None:
    shutil.copytree(RESULTS / part, tmp_path / part)  # reading must need nothing but the folder
    results = load_results(tmp_path / part)
    assert results.problems == []
    assert results.missing == []
    assert [(own["status"], own["frame"]) for own in results.outcomes] == [("done", frames)] * runs


def test_the_lunar_lander_claims_are_those_of_the_runs() -> None:
    published = json.loads((RESULTS / "claims.json").read_text())
    results = joined([load_results(RESULTS / part) for part in ("curves", "ipe")])
    assert [(own.n, own.planned) for own in read_groups(results)[0].series] == [(30, 30), (30, 30), (10, 10)]
    found = claims_records(STUDY.claims(results))
    assert [(own["name"], own["verdict"]) for own in found] == [(own["name"], own["verdict"]) for own in published]
    for mine, theirs in zip(found, published, strict=True):
        assert mine["numbers"] == pytest.approx(theirs["numbers"], rel=1e-6)
