"""The reader's tables, and the frames made of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ipe.analysis import curves, frame_grid
from ipe.errors import InputError
from ipe.experiments.declared import Sweep
from ipe.experiments.frames import connect, frame
from ipe.experiments.results import Results, load_results
from tests.store_helpers import (
    FRAMES,
    files,
    make_records,
    make_setting,
    make_store,
    make_sweep,
    publish,
    publish_all,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two settings by four seeds; seed 3 of the second failed, and seed 2 diverged."""
    folder = tmp_path_factory.mktemp("store") / "sweep"
    sweep = Sweep("two", [0, 1, 2, 3], [make_setting("a", width=16), make_setting("b", width=32)], False)
    store = make_store(folder, sweep)
    for job in store.jobs[:3]:
        publish(store, job)
    wrong = {"status": "failed", "frame": 700, "reason": "the environment raised"}
    publish(store, store.jobs[3], shift=5.0, seed_3=wrong, seed_2={"status": "diverged", "frame": 3, "reason": "inf"})
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return load_results(folder)


def test_the_tables_hold_every_row_in_order(results: Results) -> None:
    assert results.problems == []
    assert results.missing == []
    for kind, table in (("episodes", results.episodes), ("progress", results.progress)):
        key = np.stack([np.asarray(table[name]) for name in ("setting", "seed", "frame")])
        order = np.lexsort(key[::-1])
        assert (order == np.arange(table.num_rows)).all()
        assert table.num_rows == (160 if kind == "episodes" else 32)
    assert results.episodes.column_names == ["setting", "seed", "frame", "return", "length"]
    measured = ["epsilon", "entropy", "td_error", "ipe_error", "q_mean"]
    assert results.progress.column_names == ["setting", "seed", "frame", *measured]
    assert results.progress["entropy"].null_count == 32
    assert results.progress["epsilon"].null_count == 0


def test_outcomes_say_how_each_run_ended(results: Results) -> None:
    assert [(own["setting"], own["seed"]) for own in results.outcomes] == [(i, s) for i in (0, 1) for s in range(4)]
    assert results.outcomes_of(1)[2:] == [
        {"setting": 1, "seed": 2, "status": "diverged", "frame": 3, "reason": "inf"},
        {"setting": 1, "seed": 3, "status": "failed", "frame": 700, "reason": "the environment raised"},
    ]


def test_slices_of_a_setting(results: Results) -> None:
    expected = make_records(range(4)).episodes_table()
    assert results.episodes_of(0).drop_columns("setting").to_pydict() == expected.to_pydict()
    assert set(results.episodes_of(1)["setting"].to_pylist()) == {1}
    assert results.progress_of(1).num_rows == 16
    grid = frame_grid(FRAMES, 10)
    both = curves(results.episodes_of(0), grid, results.sweep.seeds)
    assert both.shape == (4, 10)
    np.testing.assert_array_equal(both, curves(expected, grid))


def test_some_settings_and_no_progress(folder: Path, results: Results) -> None:
    every: list[list[int | str]] = [[1], ["b width=32"], [1, "b width=32"]]
    for which in every:
        part = load_results(folder, progress=False, settings=which)
        assert part.episodes.equals(results.episodes_of(1))
        assert part.episodes_of(0).num_rows == 0
        assert part.progress.num_rows == 0
        assert part.progress.schema.equals(results.progress.schema)
        assert part.problems == []
    outside: list[int | str] = [2, -1, "c"]
    for wrong in outside:
        with pytest.raises(InputError, match=r"settings\[1\] = .* is none of the sweep's 2 settings"):
            load_results(folder, settings=[0, wrong])


def test_an_empty_store(tmp_path: Path) -> None:
    make_store(tmp_path)
    found = load_results(tmp_path)
    assert found.episodes.num_rows == found.progress.num_rows == len(found.outcomes) == 0
    assert found.problems == [f"setting 'width={width}': no result for seeds 0-3" for width in (16, 32)]
    assert len(found.missing) == 8


def test_reading_changes_nothing(folder: Path) -> None:
    before = files(folder)
    load_results(folder)
    frame(folder, "settings")
    assert files(folder) == before


def test_what_does_not_belong_there_is_said(tmp_path: Path) -> None:
    larger = make_store(tmp_path / "larger", make_sweep((16, 32), range(4)))
    publish_all(larger)
    store = make_store(tmp_path / "sweep", make_sweep((16,), range(2)))
    (tmp_path / "larger" / "results").rename(tmp_path / "sweep" / "results")
    found = load_results(store.folder)
    assert found.episodes.num_rows == 40
    other = larger.sweep.settings[1].key
    assert sum(problem.endswith("it is of no job of this sweep; not used") for problem in found.problems) == 1
    assert f"{store.folder / 'results' / other}: it is of no setting of this sweep; not used" in found.problems


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(folder: Path, library: str) -> None:
    pytest.importorskip(library)
    episodes = frame(folder, "episodes", library)
    assert list(episodes.columns) == ["setting", "case", "seed", "frame", "return", "length"]
    assert len(episodes) == 160
    assert {str(value) for value in episodes["case"]} == {"a", "b"}
    outcomes = frame(folder, "outcomes", library)
    assert list(outcomes["status"]).count("done") == 6
    settings = frame(folder, "settings", library)
    assert list(settings["width"]) == [16, 32]
    assert list(settings["environment.id"]) == ["CartPole-v1"] * 2
    assert list(settings["setting"]) == ["a width=16", "b width=32"]
    assert len(frame(folder, "progress", library)) == 32


def test_pandas_groups_by_setting(folder: Path) -> None:
    pytest.importorskip("pandas")
    episodes = frame(folder)
    means = episodes.groupby("case", observed=True)["return"].mean()
    assert means["b"] > means["a"] + 2.0


def test_duckdb(folder: Path) -> None:
    pytest.importorskip("duckdb")
    query = """select s.width, count(*), avg(e."return") from episodes e join settings s using (setting)
               join outcomes o using (setting, seed) where o.status = 'done' group by 1 order by 1"""
    with connect(folder) as connection:
        rows = connection.execute(query).fetchall()
    assert [(width, count) for width, count, _ in rows] == [(16, 80), (32, 40)]


def test_the_files_can_be_read_by_others(folder: Path) -> None:
    """Without this library, at the price of no verification."""
    pattern = str(folder / "results" / "*" / "*.parquet")
    duckdb = pytest.importorskip("duckdb")
    counts = duckdb.sql(f"select kind, count(*) from '{pattern}' group by 1 order by 1").fetchall()
    assert counts == [("episode", 160), ("progress", 32)]
    polars = pytest.importorskip("polars")
    table = polars.read_parquet(pattern)
    assert table.filter(kind="episode").height == 160
    expected = load_results(folder).episodes["return"].to_pylist()
    assert sorted(table["return"].drop_nulls().to_list()) == sorted(expected)


def test_what_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="kind must be one of episodes, progress, evaluations, outcomes, settings"):
        frame(folder, "runs")
    with pytest.raises(InputError, match="library must be one of pandas, polars"):
        frame(folder, library="modin")
    calls: list[tuple[Any, str]] = [(lambda: frame(folder), "pandas"), (lambda: connect(folder), "duckdb")]
    for call, name in calls:
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(InputError, match=f"this table needs {name}, which is not installed: pip install {name}"):
            call()


def test_options_of_several_types(tmp_path: Path) -> None:
    sweep = make_sweep((16,), range(2))
    own = make_setting("x", environment={"options": {"level": "high"}})
    other = make_setting("y", environment={"options": {"level": 3}})
    make_store(tmp_path, Sweep("mixed", [0, 1], [*sweep.settings, own, other], False))
    pytest.importorskip("pandas")
    assert list(frame(tmp_path, "settings")["environment.options.level"]) == ["null", '"high"', "3"]
