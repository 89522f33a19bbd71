"""The results that are published with the library: whole, and judged as the library judges them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ipe.analysis import claims_records
from ipe.analysis.series import read_groups
from ipe.cli import main
from ipe.deep import resume
from ipe.errors import InputError
from ipe.experiments.results import load_results, read_runs
from ipe.experiments.status import sweep_status
from ipe.experiments.trained import read_trained
from ipe.studies import freeway, lunar_lander
from ipe.studies.learning.reporting import open_study, study_claims
from ipe.studies.learning.study import LearningStudy, joined

PUBLISHED = Path(__file__).parent.parent / "results"
RESULTS = PUBLISHED / "lunar_lander"


def test_everything_that_is_published_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sweeps, and training runs in the layout of earlier versions: by the reader, the status and the curves."""
    shutil.copytree(PUBLISHED, tmp_path / "results", ignore=shutil.ignore_patterns("exploration"))
    stores = sorted(path.parent for path in (tmp_path / "results").rglob("sweep.json"))
    old = sorted(path.parent for path in (tmp_path / "results" / "freeway_first").rglob("run.json"))
    assert (len(stores), len(old)) == (6, 2)
    for folder in stores + old:
        results = load_results(folder)
        assert (results.missing, results.problems) == ([], [])
        status = sweep_status(folder)
        assert (status.finished, status.total.done, status.problems) == (True, len(results.outcomes), [])
        assert [len(runs.outcomes) for runs in read_runs(folder)] == [len(results.sweep.seeds)] * len(status.settings)
    assert main(["curves", *map(str, old), "--out", str(tmp_path / "curves.png")]) == 0
    assert main(["status", str(old[0])]) == 0
    said = capsys.readouterr().out
    assert "minatar/Freeway epsilon-greedy: 1 setting, 2 runs" in said
    assert load_results(old[0]).episodes.num_rows == 398
    with pytest.raises(InputError, match=r"networks.safetensors; it is written when training ends"):
        read_trained(old[0])
    with pytest.raises(InputError, match="has not kept its networks, which this needs; run the sweep with keep_netw"):
        read_trained(stores[-1], setting=load_results(stores[-1]).sweep.settings[0].name)
    before = {path: path.read_bytes() for path in old[0].iterdir()}
    with pytest.raises(InputError, match="is a run of an earlier version without checkpoints; train it anew"):
        resume(old[0])
    assert {path: path.read_bytes() for path in old[0].iterdir() if path.is_file()} == before


@pytest.mark.slow
def test_the_deep_runs_of_the_study_of_exploration_are_read() -> None:
    """A store of fresh runs may wait for more of them; nothing else may be missing, and nothing damaged."""
    folders = sorted(path.parent for path in (PUBLISHED / "exploration").rglob("sweep.json"))
    assert folders
    for folder in folders:
        results = load_results(folder)
        assert all(": no result for " in problem for problem in results.problems), folder.name
        assert folder.name.endswith("-fresh") or not results.missing, folder.name


@pytest.mark.parametrize(
    ("part", "runs", "frames"), [("curves", 60, 500_000), ("ipe", 10, 500_000), ("sensitivity", 100, 200_000)]
)
def test_the_lunar_lander_runs_are_whole(part: str, runs: int, frames: int, tmp_path: Path) -> None:
    shutil.copytree(RESULTS / part, tmp_path / part)  # reading must need nothing but the folder
    results = load_results(tmp_path / part)
    assert results.problems == []
    assert results.missing == []
    assert [(own["status"], own["frame"]) for own in results.outcomes] == [("done", frames)] * runs


@pytest.mark.parametrize("study", [lunar_lander.STUDY, freeway.STUDY], ids=lambda study: study.name)
def test_the_claims_are_those_of_the_runs(study: LearningStudy) -> None:
    folder = PUBLISHED / study.name.replace("-", "_")
    if not folder.exists():
        pytest.skip("not published yet")
    published = json.loads((folder / "claims.json").read_text())
    judged = study_claims(study, open_study(folder))
    found = claims_records([claim for part in judged.values() for claim in part])
    assert [(own["name"], own["verdict"]) for own in found] == [(own["name"], own["verdict"]) for own in published]
    for mine, theirs in zip(found, published, strict=True):
        assert mine["numbers"] == pytest.approx(theirs["numbers"], rel=1e-6)


def test_the_lunar_lander_claims_rest_on_all_runs() -> None:
    results = joined([load_results(RESULTS / part) for part in ("curves", "ipe")])
    assert [(own.n, own.planned) for own in read_groups(results)[0].series] == [(30, 30), (30, 30), (10, 10)]
