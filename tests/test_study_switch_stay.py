"""The Switch-Stay study: its declaration, its measures on known curves, and the whole of it at a small scale."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from ipe.errors import InputError
from ipe.studies.parts import Part
from ipe.studies.run import choose_parts, run_study
from ipe.studies.switch_stay import PARTS, SwitchStaySettings, settings_for
from ipe.studies.switch_stay.sensitivity import judge as judge_sensitivity
from ipe.studies.switch_stay.trajectories import _most_bent, fit_schedule, fit_sigmoid, sagitta

COLUMNS = {
    "figure-2a": ["behaviour", "step", "estimate0", "estimate1", "value0", "value1"],
    "figure-2b": ["step", "state", "epsilon", "epsilon_table"],
    "figure-3": ["policy", "v0", "v1", "image0", "image1"],
    "figure-4": ["behaviour", "parameter", "value", "run", "reward", "rmse"],
}


def small(seed: int = 0) -> SwitchStaySettings:
    return SwitchStaySettings(
        seed=seed, runs=6, trajectory_runs=6, extra_runs=4, steps=60, slip_steps=80, other_steps=60,
        update_grid=(0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
    )  # fmt: skip


QUICK = choose_parts(PARTS, ["figure-2b", "figure-3"])
"""The two figures with the fewest programs to compile."""
PAPER = choose_parts(PARTS, ["figure-2a", "figure-2b", "figure-3", "figure-4"])


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small study of two figures."""
    out = tmp_path_factory.mktemp("study") / "switch-stay"
    run_study("Switch-Stay", QUICK, small(), out)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small study of all of the paper's figures."""
    out = tmp_path_factory.mktemp("study") / "switch-stay"
    run_study("Switch-Stay", PAPER, small(), out)
    return out


def check_folder(folder: Path, parts: Sequence[Part]) -> None:
    """Every part has its figure, its tables and its claims, and no file is left over."""
    for part in parts:
        assert (folder / f"{part.name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{part.name}.pdf").read_bytes().startswith(b"%PDF")
        assert pq.read_table(folder / f"{part.name}.parquet", page_checksum_verification=True).num_rows > 0
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    names = [claim["name"] for claim in claims]
    assert len(set(names)) == len(names)
    assert {claim["verdict"] for claim in claims} <= {"holds", "does not hold", "depends"}
    assert all(claim["numbers"] for claim in claims)
    assert {part.name for part in parts} == {claim["figure"] for claim in claims}
    text = (folder / "claims.md").read_text(encoding="utf-8")
    assert all(name in text for name in names)
    assert not [file for file in folder.iterdir() if file.name.startswith(".")]


def test_the_grids_are_those_of_the_paper() -> None:
    grids = {sweep.name: sweep.grid for sweep in SwitchStaySettings().sweeps}
    assert list(grids["epsilon-greedy"]) == [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert list(grids["linear"]) == [1, 25, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500]
    assert grids["ipe"] == grids["epsilon-ipe"]
    np.testing.assert_allclose(grids["ipe"], [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], rtol=1e-12)
    assert min(len(grid) for grid in grids.values()) >= 10
    assert SwitchStaySettings().runs == 1000
    assert SwitchStaySettings().steps == 500


def test_settings_are_strict() -> None:
    with pytest.raises(ValidationError, match="runs"):
        SwitchStaySettings(runs=0)
    with pytest.raises(ValidationError, match="run_s"):
        SwitchStaySettings(run_s=3)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="gamma"):
        SwitchStaySettings(gamma=float("nan"))


def test_fewer_runs_are_fewer_everywhere() -> None:
    settings = settings_for(runs=50, seed=3)
    assert (settings.runs, settings.trajectory_runs, settings.extra_runs, settings.seed) == (50, 50, 50, 3)
    assert settings_for(runs=5000).trajectory_runs == SwitchStaySettings().trajectory_runs


def test_a_part_writes_its_figure_tables_and_claims(quick: Path) -> None:
    check_folder(quick, QUICK)


@pytest.mark.slow
def test_every_part_of_the_paper_does(folder: Path) -> None:
    check_folder(folder, PAPER)
    for name, columns in COLUMNS.items():
        assert pq.read_table(folder / f"{name}.parquet").column_names == columns


@pytest.mark.slow
def test_the_whole_study_with_what_goes_beyond_the_paper(tmp_path: Path) -> None:
    run_study("Switch-Stay", PARTS, small(), tmp_path / "all")
    check_folder(tmp_path / "all", PARTS)


@pytest.mark.slow
def test_tables_have_a_row_for_everything(folder: Path) -> None:
    settings = small()
    figure_2a = pq.read_table(folder / "figure-2a.parquet")
    assert figure_2a.num_rows == 4 * settings.steps
    figure_4 = pq.read_table(folder / "figure-4.parquet")
    assert figure_4.num_rows == settings.runs * sum(len(sweep.grid) for sweep in settings.sweeps)
    figure_3 = pq.read_table(folder / "figure-3.parquet")
    assert figure_3.num_rows == 2 * 195
    epsilon = pq.read_table(folder / "figure-2b.parquet").column("epsilon").to_numpy()
    assert ((epsilon >= 0) & (epsilon <= 1)).all()


def test_value_map_claims_have_their_reference_numbers(quick: Path) -> None:
    claims = {claim["name"]: claim for claim in json.loads((quick / "claims.json").read_text(encoding="utf-8"))}
    numbers = claims["inside-maps-to-itself"]["numbers"]
    assert numbers == {"inside": 18, "strictly_inside": 7, "kept": 18, "points": 195}
    assert claims["greedy-forgets-the-values"]["numbers"] == {"greedy_images": 3}
    assert claims["deterministic-stays-unless-delta-is-large"]["verdict"] == "depends"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    parts = choose_parts(PARTS, ["figure-2b", "figure-4"])
    run_study("Switch-Stay", parts, small(), tmp_path / "again")
    for name in ("figure-2b", "figure-2b-median", "figure-4", "figure-4-late-switches"):
        assert (tmp_path / "again" / f"{name}.parquet").read_bytes() == (folder / f"{name}.parquet").read_bytes()
    run_study("Switch-Stay", parts, small(), tmp_path / "thrice")
    for file in (tmp_path / "again").iterdir():
        assert file.read_bytes() == (tmp_path / "thrice" / file.name).read_bytes(), file.name
    run_study("Switch-Stay", choose_parts(PARTS, ["figure-2b"]), small(seed=1), tmp_path / "other")
    assert (tmp_path / "other" / "figure-2b.parquet").read_bytes() != (folder / "figure-2b.parquet").read_bytes()


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keep.txt").write_text("mine")
    parts = choose_parts(PARTS, ["figure-3"])
    with pytest.raises(InputError, match="is not empty; give --overwrite"):
        run_study("Switch-Stay", parts, small(), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["keep.txt"]
    run_study("Switch-Stay", parts, small(), tmp_path, overwrite=True)
    assert (tmp_path / "keep.txt").read_text() == "mine"
    assert (tmp_path / "figure-3.parquet").exists()


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file, not a folder"):
        run_study("Switch-Stay", choose_parts(PARTS, ["figure-3"]), small(), tmp_path / "file")


def test_a_wrong_part_lists_the_right_ones() -> None:
    with pytest.raises(InputError, match=r"there is no part 'figure-9'; the parts are figure-2a, figure-2b, figure-3"):
        choose_parts(PARTS, ["figure-9"])


def test_what_stops_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(part: str, what: str, done: int, total: int) -> None:
        if part == "figure-3":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study("x", choose_parts(PARTS, ["figure-2b", "figure-3"]), small(), tmp_path / "out", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_sagitta_of_a_half_circle_and_of_a_line() -> None:
    angle = np.linspace(0, np.pi, 101)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    never = np.zeros(100, dtype=bool)
    assert sagitta(circle) == pytest.approx(0.5)
    assert _most_bent(circle, never, 101) == pytest.approx(0.5)
    assert sagitta(np.stack([angle, 2 * angle], axis=1)) == pytest.approx(0.0, abs=1e-12)
    switch = never.copy()
    switch[49] = True  # cut in two: each quarter bends by (1 - cos 45°) over its chord
    assert _most_bent(circle, switch, 101) == pytest.approx((1 - np.sqrt(0.5)) / np.sqrt(2), rel=0.05)


def test_fits_know_a_sigmoid_from_a_linear_schedule() -> None:
    t = np.arange(500.0)
    sigmoid = 0.05 + 0.9 / (1 + np.exp((t - 120) / 25))
    assert fit_sigmoid(t, sigmoid) == pytest.approx(1.0, abs=1e-6)
    assert fit_schedule(t, sigmoid) < 0.99
    assert fit_schedule(t, np.maximum(0.1, 1 - 0.9 * t / 100)) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.slow
def test_verdicts_follow_the_data() -> None:
    """Exchange reward for its negative, and claims on correlations turn over."""
    settings = small()
    parts = {part.name: part for part in PARTS}
    tables = dict(parts["figure-4"].compute(settings, lambda *_: None))
    before = {claim.name: claim for claim in judge_sensitivity(settings, tables)}
    table = dict(tables["figure-4"])
    table["reward"] = -table["reward"]
    after = {claim.name: claim for claim in judge_sensitivity(settings, {**tables, "figure-4": table})}
    name = "epsilon-greedy-reward-against-rmse"
    for key, value in before[name].numbers.items():
        assert after[name].numbers[key] == pytest.approx(-value)


def test_no_part_is_not_every_part() -> None:
    with pytest.raises(InputError, match="only: it names no part; the parts are figure-2a"):
        choose_parts(PARTS, [])
