"""What the report writes: files that agree with each other, and a page that is safe, small and alone."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import resource
import signal
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from ipe.analysis import Claim, mean_and_standard_error
from ipe.analysis.findings import findings_of
from ipe.analysis.panels import sensitivity_panels
from ipe.analysis.series import read_groups
from ipe.errors import InputError
from ipe.experiments.grids import make_sweep
from ipe.experiments.results import Results
from ipe.figures.report import write_report
from ipe.figures.report.data import environment_data
from ipe.figures.report.write import ENTRY, WEB
from ipe.pages import page_html
from ipe.pages.bundle import bundle
from tests.report_cases import HOSTILE, a_sweep, fresh_runs, results_of, rows_of, small_results


@pytest.fixture(scope="module")
def results() -> Results:
    return small_results()


# Files


@pytest.fixture(scope="module")
def written(results: Results, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    out = tmp_path_factory.mktemp("report") / "deep" / "out"
    claims = [Claim("larger-auc", "Figure 5", "It is larger.", "holds", "It is.", {"difference": 1.5})]
    confirm = fresh_runs([100, 101, 102])
    noted = replace(results, problems=[f"a file named {HOSTILE} is damaged"])
    made = {"numpy": ["2.0.0", "2.1.0"]}
    return out, write_report(noted, out, title=HOSTILE, claims=claims, made_with=made, confirm=confirm, grid_points=50)


def test_every_file_is_there(written: tuple[Path, list[Path]]) -> None:
    out, files = written
    assert sorted(path.name for path in files) == sorted(path.name for path in out.iterdir())
    for name in ("learning_curves", "exploration", "profiles", "sensitivity"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_the_tables_agree_with_each_other(written: tuple[Path, list[Path]]) -> None:
    out, _ = written
    runs, ranking = rows_of(out / "runs.csv"), rows_of(out / "ranking.csv")
    assert len(runs) == 12 * 4 + 2 * 3
    for row in ranking:
        own = [run for run in runs if (run["key"], run["runs"]) == (row["key"], row["runs"])]
        assert float(row["auc_mean"]) == pytest.approx(np.mean([float(run["auc"]) for run in own]), rel=1e-12)
        assert float(row["auc_worst"]) == min(float(run["auc"]) for run in own)
        assert int(row["failed"]) == sum(run["status"] == "failed" for run in own)
    assert {row["kind"] for row in rows_of(out / "sensitivity.csv")} == {"best over the others"}
    assert len(rows_of(out / "comparisons.csv")) == 1


@pytest.mark.slow
def test_the_same_results_give_the_same_bytes(results: Results, tmp_path: Path) -> None:
    small = results_of(a_sweep(seeds=2, grid={}))
    first = write_report(small, tmp_path / "a", grid_points=20)
    again = write_report(small, tmp_path / "b", grid_points=20)
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_a_folder_with_something_in_it_is_left_alone(results: Results, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        write_report(results, tmp_path)
    with pytest.raises(InputError, match="is a file, not a folder"):
        write_report(results, tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.slow
def test_overwriting_touches_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "report.html").write_text("old")
    small = results_of(a_sweep(seeds=2, grid={}))
    write_report(small, tmp_path, grid_points=20, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.slow
def test_a_report_that_cannot_be_finished_leaves_nothing(tmp_path: Path) -> None:
    small = results_of(a_sweep(seeds=2, grid={}))
    (tmp_path / "out" / "report.html").mkdir(parents=True)  # no file can go there
    with pytest.raises(InputError, match=r"cannot write .*report\.html: it is a folder"):
        write_report(small, tmp_path / "out", grid_points=20, overwrite=True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.html"]
    deep = tmp_path / "a" / "b"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))  # a disk that is full soon
    try:
        with pytest.raises(InputError, match="cannot write"):
            write_report(small, deep, grid_points=20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert not (tmp_path / "a").exists()


# The page


class _Page(HTMLParser):
    """Its scripts, styles, policy and title, as a browser's parser delimits them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.parts: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag in self.parts:
            self.parts[tag].append("")
            self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = "" if tag == self.inside else self.inside

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.parts[self.inside][-1] += data


@pytest.fixture(scope="module")
def page(written: tuple[Path, list[Path]]) -> _Page:
    return _Page(written[1][0].read_text(encoding="utf-8"))


def test_the_policy_allows_this_program_and_this_style_alone(page: _Page) -> None:
    policy = next(a["content"] for tag, a in page.attributes if a.get("http-equiv") == "Content-Security-Policy")

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    (style,) = page.parts["style"]
    data, program = page.parts["script"]
    assert rules == {
        "default-src": "'none'",
        "script-src": hashed(program),
        "style-src": hashed(style),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert json.loads(data)["format"] == "ipe.report"


def test_names_that_are_markup_stay_data(page: _Page, written: tuple[Path, list[Path]]) -> None:
    assert page.parts["title"] == [HOSTILE]
    data = json.loads(page.parts["script"][0])
    assert data["title"] == HOSTILE
    assert HOSTILE in data["problems"][0]
    assert "<script>alert" not in written[1][0].read_text(encoding="utf-8")


def test_the_page_points_nowhere(page: _Page) -> None:
    assert not [
        attributes for _, attributes in page.attributes if {"src", "href", "srcset", "action"} & set(attributes)
    ]
    addresses = set(re.findall(r"https?://[^\s\"'`)]+", page.parts["script"][1] + page.parts["style"][0]))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a namespace, which no browser fetches
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|sendBeacon|import)\b *\(", page.parts["script"][1])


def test_text_is_never_put_in_as_markup() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", bundle(ENTRY))


def test_data_is_never_taken_for_the_templates_names() -> None:
    text = page_html("{{program}} {{data}}", WEB, ENTRY, {"title": "{{program}} {{data}}", "format": "ipe.report"})
    assert _Page(text).parts["title"] == ["{{program}} {{data}}"]


def test_the_pages_numbers_are_the_findings(results: Results) -> None:
    (group,) = read_groups(results, grid_points=60)
    found = findings_of(group, seed=0, resamples=200)
    data = environment_data(found, sensitivity_panels(results.sweep, group), seed=0)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    for row, plain in zip(found.ranking, data["settings"], strict=True):
        assert plain["mean"] == pytest.approx(row.mean, rel=1e-5)
        mean = mean_and_standard_error(row.series.curves).mean
        np.testing.assert_allclose(np.array(plain["curve"]["mean"], dtype=float), mean, atol=0.06, equal_nan=True)
        assert [run["seed"] for run in plain["runs"]] == [0, 1, 2, 3]
    first = data["settings"][data["shown"][0]]
    assert first["case"] == "epsilon-ipe"
    panel = data["sensitivity"][0]
    for curve in panel["curves"]:
        for point in curve["points"]:
            (shown,) = [one for one in data["settings"] if one["name"] == point["setting"]]
            assert shown["varied"][panel["hyperparameter"]] == panel["values"][point["x"]]


def test_a_large_sweep_keeps_the_page_small() -> None:
    """Of many settings the best have their single runs in it, so the size grows by the curves of a setting alone."""
    grid = {"width": [64, 128, 256], "value_step_size": [1e-2, 1e-3], "target_period": [1, 2, 3]}
    base = {"environment": "LunarLander-v3", "frames": 100_000}
    results = results_of(make_sweep({"name": "many", "seeds": 5, "base": base, "grid": grid}), episode=1500)
    (group,) = read_groups(results)
    data = environment_data(findings_of(group, seed=0, resamples=100), [], seed=0)
    with_runs = [len(json.dumps(one)) for one in data["settings"] if one["runs"]]
    without = [len(json.dumps(one)) for one in data["settings"] if not one["runs"]]
    assert len(with_runs) == 12
    assert 243 * max(without) + 18 * 30 / 5 * max(with_runs) < 10e6


@pytest.mark.slow
def test_the_papers_largest_grid_makes_a_page_that_can_be_mailed(tmp_path: Path) -> None:
    grid = {
        "width": [64, 128, 256],
        "value_step_size": [1e-2, 1e-3, 1e-4],
        "target_period": [1, 500, 1000],
        "epsilon.final": [0.2, 0.1, 0.01],
        "epsilon.steps": [25_000, 100_000, 250_000],
    }
    base = {"environment": "LunarLander-v3", "behaviour": "epsilon-greedy", "frames": 500_000}
    sweep = make_sweep({"name": "appendix", "seeds": 30, "base": base, "grid": grid})
    files = write_report(results_of(sweep, episode=2000), tmp_path / "out")
    assert files[0].stat().st_size < 10e6
