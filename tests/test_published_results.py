"""The results that are published with the library: whole, and judged as the library judges them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ipe.analysis import claims_records
from ipe.experiments.results import load_results
from ipe.studies.lunar_lander import STUDY

RESULTS = Path(__file__).parent.parent / "results" / "lunar_lander"


def test_the_lunar_lander_runs_are_whole(tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "curves", tmp_path / "curves")  # reading must need nothing but the folder
    results = load_results(tmp_path / "curves")
    assert results.problems == []
    assert results.missing == []
    assert [(own["status"], own["frame"]) for own in results.outcomes] == [("done", 500_000)] * 60


def test_the_lunar_lander_claims_are_those_of_the_runs() -> None:
    published = json.loads((RESULTS / "claims.json").read_text())
    found = claims_records(STUDY.claims(load_results(RESULTS / "curves")))
    assert [(own["name"], own["verdict"]) for own in found] == [(own["name"], own["verdict"]) for own in published]
    for mine, theirs in zip(found, published, strict=True):
        assert mine["numbers"] == pytest.approx(theirs["numbers"], rel=1e-6)
