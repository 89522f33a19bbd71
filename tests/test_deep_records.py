"""Records of a run, their tables and files; run.json of earlier versions; and the machine a run ran on."""

from __future__ import annotations

import getpass
import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipe.base.parquet import parquet_bytes, read_parquet
from ipe.deep import machine
from ipe.deep.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from ipe.deep.machine import describe_machine, versions
from ipe.deep.records import Records
from ipe.deep.settings import paper_settings
from ipe.errors import InputError
from ipe.experiments.old_runs import OldRun, read_old_run
from tests.old_layout import create_run, write_records

NAN = math.nan
Row = tuple[int, int, float, int]
ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 50), st.floats(allow_nan=False), st.integers(1, 2**40)), max_size=150
)


def filled(rows: list[Row]) -> Records:
    records = Records()
    for seed, frame, ret, length in rows:
        records.episode(seed, frame, ret, length)
        records.progress(seed, frame, 0.5, NAN, ret, NAN, -ret, 1e3)
    return records


def some(count: int = 300) -> list[Row]:
    return [(index % 3, 7 * index, 0.37 * index, 7) for index in range(count)]


@given(ROWS)
def test_tables_are_the_rows_by_seed_and_frame(rows: list[Row]) -> None:
    records = filled(rows)
    expected = sorted(rows, key=lambda row: row[:2])
    episodes = records.episodes_table()
    assert [str(kind) for kind in episodes.schema.types] == ["int64", "int64", "double", "int64"]
    assert list(zip(*episodes.to_pydict().values(), strict=True)) == expected
    progress = records.progress_table()
    assert [str(kind) for kind in progress.schema.types] == ["int64"] * 2 + ["double"] * 6
    wanted = [(seed, frame, 0.5, None, ret, None, -ret, 1e3) for seed, frame, ret, _ in expected]
    assert list(zip(*progress.to_pydict().values(), strict=True)) == wanted


@given(ROWS, st.data())
def test_arrays_bring_them_back_and_they_grow_on(rows: list[Row], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(rows)))
    arrays = filled(rows[:at]).arrays()
    assert {str(array.dtype) for array in arrays.values()} <= {"int64", "float64"}
    resumed = Records.from_arrays(arrays | {"other": np.zeros(3)})
    for seed, frame, ret, length in rows[at:]:
        resumed.episode(seed, frame, ret, length)
        resumed.progress(seed, frame, 0.5, NAN, ret, NAN, -ret, 1e3)
    whole = filled(rows)
    assert {name: array.tobytes() for name, array in resumed.arrays().items()} == {
        name: array.tobytes() for name, array in whole.arrays().items()
    }
    assert parquet_bytes(resumed.episodes_table()) == parquet_bytes(whole.episodes_table())


def test_arrays_are_a_copy() -> None:
    records = filled(some(3))
    records.arrays()["episodes.return"][:] = 9.0
    assert records.episodes_table()["return"].to_pylist() == [0.0, 0.37, 0.74]


def test_the_order_of_seeds_does_not_show() -> None:
    rows = some()
    one, other = filled(rows), filled(sorted(rows, key=lambda row: row[0]))
    for name in ("episodes_table", "progress_table"):
        assert parquet_bytes(getattr(one, name)()) == parquet_bytes(getattr(other, name)())
        assert getattr(Records(), name)().num_rows == 0


def test_through_a_checkpoint_and_a_file(tmp_path: Path) -> None:
    records = filled(some())
    records.progress(9, 1, 0.25, 0.5, math.inf, 0.125, -math.inf, NAN)
    save_checkpoint(tmp_path / "checkpoints", Checkpoint(1, records.arrays(), {}))
    found = load_checkpoint(tmp_path / "checkpoints")
    assert found is not None
    write_records(tmp_path, Records.from_arrays(found.arrays))
    assert read_episodes(tmp_path).equals(records.episodes_table())
    progress = read_parquet(tmp_path / "progress.parquet")
    assert progress.equals(records.progress_table())
    assert list(progress.to_pylist()[-1].values()) == [9, 1, 0.25, 0.5, math.inf, 0.125, -math.inf, None]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"episodes.length": None}, "episodes.length is missing"),
        ({"progress.seed": None}, "progress.seed is missing"),
        ({"progress.epsilon": np.zeros(2)}, r"progress.epsilon must be float64 of shape \(3,\), found float64 of .*2"),
        ({"episodes.seed": np.zeros(3)}, r"episodes.seed must be int64 .* found float64"),
        ({"episodes.seed": np.zeros((3, 1), int)}, r"episodes.seed must be int64 of shape \(3,\)"),
    ],
)
def test_other_arrays_are_refused(change: dict[str, Any], said: str) -> None:
    arrays = filled(some(3)).arrays() | change
    with pytest.raises(InputError, match=said):
        Records.from_arrays({name: array for name, array in arrays.items() if array is not None})


def read_episodes(folder: Path) -> pa.Table:
    """As a run of an earlier version has them."""
    return OldRun(folder, paper_settings("CartPole-v1"), [[0]], [], {}).table("episodes")


def test_damage_is_never_read_as_something_else(tmp_path: Path) -> None:
    write_records(tmp_path, filled(some()))
    path = tmp_path / "episodes.parquet"
    good, table = path.read_bytes(), read_episodes(tmp_path)
    refused = 0
    for position in range(0, len(good), 7):
        content = bytearray(good)
        content[position] ^= 1 << position % 8
        path.write_bytes(content)
        try:
            found = read_episodes(tmp_path)
        except InputError:
            refused += 1
        else:
            assert found.equals(table)  # a byte that carries nothing
    assert refused > 0.7 * len(good) / 7
    for length in range(0, len(good), 101):
        path.write_bytes(good[:length])
        with pytest.raises(InputError, match=r"episodes.parquet: not a readable Parquet file"):
            read_episodes(tmp_path)


def test_a_flipped_value_in_a_page_is_noticed(tmp_path: Path) -> None:
    """Stored as they are, the values of a page change without a trace; only its checksum tells."""
    table = pa.table({"x": np.arange(100, dtype=np.float64)})
    path = tmp_path / "plain.parquet"
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = path.read_bytes()
    at = content.index(np.float64(42.0).tobytes())
    path.write_bytes(content[:at] + np.float64(-1e9).tobytes() + content[at + 8 :])
    assert pq.read_table(path)["x"].to_pylist()[42] == -1e9
    with pytest.raises(InputError, match=r"plain.parquet: .*CRC"):
        read_parquet(path)


def test_parquet_of_columns_and_of_a_table_in_pieces() -> None:
    columns = {"a": np.arange(200_000), "b": np.random.default_rng(0).random(200_000)}
    whole = pa.table(columns)
    pieces = pa.concat_tables([whole.slice(start, 5000) for start in range(0, 200_000, 5000)])
    assert parquet_bytes(columns) == parquet_bytes(whole) == parquet_bytes(pieces)


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    run = tmp_path / "seed=3"
    run.mkdir()
    write_records(run, filled(some(5)))
    assert read_episodes(run).equals(filled(some(5)).episodes_table())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no such file"),
        ("", "not valid JSON"),
        ('{"format": "ipe.run", "schema": 1', "not valid JSON"),
        ("[1]", "not a run of ipe"),
        ('{"schema": 1}', "not a run of ipe"),
        ('{"format": "ipe.run"}', "schema must be 1, found None"),
        ('{"format": "ipe.run", "schema": 2}', "schema must be 1, found 2"),
        ('{"format": "ipe.run", "schema": 1}', "'settings'.* is missing or wrong"),
        ('{"format": "ipe.run", "schema": 1, "a": 1, "a": 2}', "'a' stands twice"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=rf"run.json: .*{said}"):
        read_old_run(tmp_path)


def test_other_tables_are_refused_by_name(tmp_path: Path) -> None:
    create_run(tmp_path / "run", paper_settings("CartPole-v1"), [[0]])
    run = read_old_run(tmp_path / "run")
    assert run.table("episodes").num_rows == 0
    (tmp_path / "run" / "progress.parquet").mkdir()
    with pytest.raises(InputError, match=r"progress.parquet: it is a folder"):
        run.table("progress")
    columns = {"seed": np.arange(3), "frame": np.zeros(3)}
    (tmp_path / "run" / "episodes.parquet").write_bytes(parquet_bytes(columns))
    with pytest.raises(
        InputError, match=r"episodes.parquet: the columns must be seed, frame, .*; found seed int64, fr"
    ):
        run.table("episodes")


def test_the_machine_without_names() -> None:
    found = describe_machine()
    text = json.dumps({"machine": found, "versions": versions()})
    private = {platform.node(), getpass.getuser(), str(Path.home()), os.getcwd(), sys.prefix}
    assert not [name for name in private if len(name) > 4 and name in text]
    assert found["cpu"]
    assert isinstance(found["memory"], int)
    assert found["memory"] > 2**28
    assert found["system"].startswith(platform.system())


def test_the_cores_are_those_left_to_the_process() -> None:
    script = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    script += "from ipe.deep.machine import describe_machine; print(describe_machine()['cores'])"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "1\n"
    assert describe_machine()["cores"] == len(os.sched_getaffinity(0))


def test_the_model_of_the_cpu(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel\t\t: 17\nmodel name\t: A CPU @ 2.0: GHz\n\nprocessor\t: 1\n")
    assert machine._cpu(cpuinfo) == "A CPU @ 2.0: GHz"
    cpuinfo.write_text("processor\t: 0\nCPU part\t: 0xd0c\n")
    for path in (cpuinfo, tmp_path / "missing"):
        assert machine._cpu(path) == (platform.processor() or platform.machine())


def test_the_versions() -> None:
    found = versions()
    assert found["python"] == platform.python_version()
    assert found["numpy"] == np.__version__
    assert {"ipe", "jax", "jaxlib"} <= set(found)
