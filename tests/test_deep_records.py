"""Records of a run: tables, their files and run.json; and the machine it ran on."""

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
from ipe.deep.records import Records, merge_records, read_episodes, read_progress, read_run, write_records, write_run
from ipe.errors import InputError

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


def test_the_order_of_seeds_and_batches_does_not_show(tmp_path: Path) -> None:
    rows = some()
    by_seed = [filled([row for row in rows if row[0] == seed]) for seed in (2, 0, 1)]
    for name, records in (("one", filled(rows)), ("merged", merge_records(by_seed)), ("none", merge_records([]))):
        (tmp_path / name).mkdir()
        write_records(tmp_path / name, records)
    for name in ("episodes.parquet", "progress.parquet"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "merged" / name).read_bytes()
        assert read_parquet(tmp_path / "none" / name).num_rows == 0
    assert {path.name for path in (tmp_path / "one").iterdir()} == {"episodes.parquet", "progress.parquet"}


def test_through_a_checkpoint_and_a_file(tmp_path: Path) -> None:
    records = filled(some())
    records.progress(9, 1, 0.25, 0.5, math.inf, 0.125, -math.inf, NAN)
    save_checkpoint(tmp_path / "checkpoints", Checkpoint(1, records.arrays(), {}))
    found = load_checkpoint(tmp_path / "checkpoints")
    assert found is not None
    write_records(tmp_path, Records.from_arrays(found.arrays))
    assert read_episodes(tmp_path).equals(records.episodes_table())
    assert read_progress(tmp_path).equals(records.progress_table())
    assert list(read_progress(tmp_path).to_pylist()[-1].values()) == [9, 1, 0.25, 0.5, math.inf, 0.125, -math.inf, None]


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


def test_files_that_are_not_there_or_something_else(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"episodes.parquet: no such file"):
        read_episodes(tmp_path)
    (tmp_path / "progress.parquet").mkdir()
    with pytest.raises(InputError, match=r"progress.parquet: it is a folder"):
        read_progress(tmp_path)
    (tmp_path / "episodes.parquet").write_bytes(parquet_bytes({"seed": np.arange(3), "frame": np.zeros(3)}))
    with pytest.raises(
        InputError, match=r"episodes.parquet: the columns must be seed, frame, .*; found seed int64, fr"
    ):
        read_episodes(tmp_path)
    with pytest.raises(InputError, match=r"cannot write .*missing"):
        write_records(tmp_path / "missing", Records())


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    run = tmp_path / "seed=3"
    run.mkdir()
    write_records(run, filled(some(5)))
    assert read_episodes(run).equals(filled(some(5)).episodes_table())


CONTENT = {"settings": {"gamma": 0.1 + 0.2, "name": "é\ud800"}, "seeds": [0, 1], "state": 2**127, "outcome": None}


def test_run_json_round_trip(tmp_path: Path) -> None:
    write_run(tmp_path, CONTENT)
    assert read_run(tmp_path) == CONTENT
    first = (tmp_path / "run.json").read_bytes()
    assert json.loads(first)["schema"] == 1
    write_run(tmp_path, read_run(tmp_path))
    assert (tmp_path / "run.json").read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"a": [1.0, NAN]}, r"run\.a\[1\] = nan is not a finite number"),
        ({"a": {"b": np.zeros(1)}}, r"run\.a\.b is a ndarray"),
        ({"schema": 1}, r"run\.schema is the file's own"),
    ],
)
def test_what_run_json_cannot_hold(tmp_path: Path, content: dict[str, Any], said: str) -> None:
    write_run(tmp_path, CONTENT)
    with pytest.raises(InputError, match=said):
        write_run(tmp_path, content)
    assert read_run(tmp_path) == CONTENT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no such file"),
        ("", "not valid JSON"),
        ('{"format": "ipe.run", "schema": 1', "not valid JSON"),
        ("[1]", "not a run of ipe"),
        ('{"schema": 1}', "not a run of ipe"),
        ('{"format": "ipe.run"}', "schema must be a whole number from 1 on, found None"),
        ('{"format": "ipe.run", "schema": true}', "found True"),
        ('{"format": "ipe.run", "schema": 2}', r"later version of ipe \(schema 2, this one reads 1\)"),
        ('{"format": "ipe.run", "schema": 1, "a": [NaN]}', r"run\.a\[0\] = nan"),
        ('{"format": "ipe.run", "schema": 1, "a": 1, "a": 2}', "'a' stands twice"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=rf"run.json: .*{said}"):
        read_run(tmp_path)


def test_the_machine_without_names(tmp_path: Path) -> None:
    found = describe_machine()
    write_run(tmp_path, {"machine": found, "versions": versions()})
    text = (tmp_path / "run.json").read_text()
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
