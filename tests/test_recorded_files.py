"""Stable-Baselines3's monitor and evaluation files, and tables: read as they are, refused with file and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from ipe.analysis.recorded import read_evaluations, read_monitor, read_table
from ipe.analysis.recorded.monitor import steps_of
from ipe.errors import InputError
from tests.recorded_cases import SAMPLES, evaluations, monitor

EPISODES = [(10.0, 10), (20.5, 20), (-3.0, 5)]


def test_a_monitor_file_has_every_episode(tmp_path: Path) -> None:
    found = read_monitor(monitor(tmp_path / "monitor.csv", EPISODES))
    assert found.returns.tolist() == [10.0, 20.5, -3.0]
    assert found.lengths.tolist() == [10, 20, 5]
    assert (found.environment, found.started, found.seconds, found.problems) == ("CartPole-v1", 1.7e9, 3.0, [])
    assert [each.tolist() for each in steps_of([found])] == [[10, 30, 35], [10.0, 20.5, -3.0]]


def test_gzip_and_an_unknown_environment(tmp_path: Path) -> None:
    plain = monitor(tmp_path / "monitor.csv", EPISODES, environment=None)
    packed = tmp_path / "monitor.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    found = read_monitor(packed)
    assert found.returns.tolist() == [10.0, 20.5, -3.0]
    assert found.environment == ""
    packed.write_bytes(packed.read_bytes()[:-9])
    assert "is cut off" in read_monitor(packed).problems[0]


def test_environments_of_one_run_step_together(tmp_path: Path) -> None:
    files = [monitor(tmp_path / f"{i}.monitor.csv", [(1.0, 10 + i), (2.0, 10)]) for i in range(3)]
    steps, values = steps_of([read_monitor(file) for file in files])
    assert steps.tolist() == [30, 33, 36, 60, 63, 66]
    assert values.tolist() == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]


def test_a_last_line_that_is_cut_off_is_said_and_left_out(tmp_path: Path) -> None:
    found = read_monitor(monitor(tmp_path / "monitor.csv", EPISODES, end="12.5,1"))
    assert found.returns.size == 3
    assert found.problems == [f"{tmp_path / 'monitor.csv'}: its last line, 6, is cut off (the run may still be going)"]


def test_a_run_that_was_gone_on_with_counts_both_times(tmp_path: Path) -> None:
    found = read_monitor(monitor(tmp_path / "monitor.csv", EPISODES, end="1.0,7,0.5\r\n2.0,7,4.0\r\n"))
    assert found.seconds == 3.0 + 4.0
    assert found.lengths.sum() == 49


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: Stable-Baselines3's monitor files begin"),
        ("r,l,t\n1,2,3\n", "line 1: Stable-Baselines3's monitor files begin"),
        ("#nonsense\nr,l,t\n", "line 1: Stable-Baselines3's monitor files begin"),
        ('#{"t_start": 1.0}\nr,t\n', "line 2: no column 'l'; the columns are r, t"),
        ('#{"t_start": 1.0}\nr,l,t\n1,2,3\nx,2,3\n', "line 4: r must be a finite number, found 'x'"),
        ('#{"t_start": 1.0}\nr,l,t\n1,2,3\nnan,2,3\n', "line 4: r must be a finite number, found 'nan'"),
        ('#{"t_start": 1.0}\nr,l,t\n1,0,3\n', "line 3: l must be a whole number of at least 1, found '0'"),
        ('#{"t_start": 1.0}\nr,l,t\n1,2\n', "line 3: 2 cells, and there are 3 columns"),
        ('#{"t_start": 1.0}\nr,l,t\n\x00\n', "line 3: not a text file"),
    ],
)
def test_a_wrong_monitor_file_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "monitor.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_monitor(path)
    assert str(error.value).startswith(f"{path}: {said}")


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "monitor.csv"
    path.write_bytes(b"#{}\nr,l,t\n\xff\xfe\n")
    with pytest.raises(InputError, match="line 3: not UTF-8 text"):
        read_monitor(path)
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        read_monitor(tmp_path / "none.csv")


def test_evaluations_are_means_of_their_episodes(tmp_path: Path) -> None:
    steps, values = read_evaluations(evaluations(tmp_path / "evaluations.npz", [100, 200], [[1, 2, 3], [4, 5, 9]]))
    assert (steps.tolist(), values.tolist()) == ([100, 200], [2.0, 6.0])


def test_wrong_evaluations_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.npz"
    for steps, results, said in (
        ([200, 100], [[1.0], [2.0]], "timesteps[1] = 100 comes after 200"),
        ([100], [[1.0], [2.0]], "results must have a row of returns for each of the 1 timesteps"),
    ):
        np.savez(path, timesteps=np.array(steps), results=np.array(results))
        with pytest.raises(InputError) as error:
            read_evaluations(path)
        assert str(error.value).startswith(f"{path}: {said}")
    np.savez(path, x=np.zeros(3))
    with pytest.raises(InputError, match="no array 'timesteps' in it, but x"):
        read_evaluations(path)


# Tables


def table(tmp_path: Path, text: str, **columns: str) -> list[tuple[str, str, str, list[int], list[float]]]:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return [
        (run.setting, run.environment, run.run, run.steps.tolist(), run.returns.tolist())
        for run in read_table(path, columns).runs
    ]


def test_a_table_has_a_run_for_every_name(tmp_path: Path) -> None:
    text = "algo,env,seed,step,return\na,E,0,10,1\nb,E,0,10,5\na,E,0,20,2\na,E,1,10,3"
    assert table(tmp_path, text) == [
        ("a", "E", "0", [10, 20], [1.0, 2.0]),
        ("b", "E", "0", [10], [5.0]),
        ("a", "E", "1", [10], [3.0]),
    ]


def test_columns_of_other_names_are_named_by_the_user(tmp_path: Path) -> None:
    text = "who;t;G;reward\nx;0;1.5;7\nx;5;2.5;7\n"
    assert table(tmp_path, text, setting="who", step="t", **{"return": "G"}) == [("x", "", "", [1, 5], [1.5, 2.5])]


def test_a_table_without_a_run_is_one(tmp_path: Path) -> None:
    """As TensorBoard lets one download it, and as Stable-Baselines3 writes `progress.csv`."""
    assert table(tmp_path, "Wall time,Step,Value\n1.0,3,2\n2.0,4,3\n") == [("", "", "", [3, 4], [2.0, 3.0])]
    text = "rollout/ep_rew_mean,time/total_timesteps,train/loss\n1,10,2\n,20,2\n3,30,2\n"
    assert table(tmp_path, text) == [("", "", "", [10, 30], [1.0, 3.0])]
    assert "1 rows without a return are left out" in read_table(tmp_path / "table.csv").problems[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("a,b\n1,2\n", "no column for the step; the columns are a, b; say which one it is: --columns step=NAME"),
        ("step,b\n1,2\n", "no column for the return; the columns are step, b; say which"),
        ("step,return\n1,x\n", "line 2: return must be a finite number, found 'x'"),
        ("step,return\n1.5,1\n", "line 2: step must be a whole number, 0 or more; found '1.5'"),
        ("step,return\n1,1\n2\n", "line 3: 1 cells, and there are 2 columns"),
        ("step,return\n1,\n", "no row has a return (column 'return')"),
        (
            "step,return,who\n5,1,a\n1,1,b\n",
            "line 3: step 1 comes after step 5 of the same run: runs must be told apart",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_its_columns_or_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_table(path)
    assert str(error.value).startswith(f"{path}: {said}")


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("step,return\n1,2\n")
    with pytest.raises(InputError, match=r"'steps' is none of step, return, .*did you mean step"):
        read_table(tmp_path / "t.csv", {"steps": "step"})
    with pytest.raises(InputError, match=r"no column 'retrun' \(for return\) \(did you mean return\?\)"):
        read_table(tmp_path / "t.csv", {"return": "retrun"})


def test_stable_baselines3s_own_files_are_read() -> None:
    for folder in sorted((SAMPLES / "sb3").glob("*/*")):
        found = read_monitor(folder / "monitor.csv")
        np.testing.assert_array_equal(found.returns, found.lengths)  # CartPole: a reward of 1 for every step
        steps, values = read_evaluations(folder / "evaluations.npz")
        assert steps.tolist() == sorted(steps.tolist())
        assert found.environment == "CartPole-v1"
        assert (values >= 8).all()
