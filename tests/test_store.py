"""The store: published whole or not at all, whatever is killed, full, damaged or done twice."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from ipe.base.sealed import open_sealed, read_sealed, sealed_bytes
from ipe.deep.records import Records
from ipe.deep.settings import paper_settings
from ipe.errors import InputError
from ipe.experiments.declared import Job, Setting, Sweep
from ipe.experiments.publications import JobResult
from ipe.experiments.results import load_results
from ipe.experiments.store import Store, create_store, open_store
from ipe.experiments.tables import COLUMNS, read_results_bytes, results_bytes
from tests.store_helpers import (
    files,
    make_jobs,
    make_outcomes,
    make_records,
    make_setting,
    make_store,
    make_sweep,
    publish,
    publish_all,
)
from tests.tiers import examples


def test_a_job_is_published_once(tmp_path: Path) -> None:
    store = make_store(tmp_path / "sweep")
    job = store.jobs[0]
    assert not store.published(job)
    assert publish(store, job)
    assert store.published(job)
    assert not store.published(store.jobs[1])
    assert store.lease(job) is None
    assert os.listdir(store.leases_folder) == []
    manifest = store.publication(job)
    assert manifest is not None
    assert manifest.content["settings"] == store.sweep.settings[0].settings.model_dump()
    assert manifest.outcomes == make_outcomes(job.seeds)
    assert manifest.rows == {"episodes": 40, "progress": 8}
    assert {"python", "ipe"} <= set(manifest.content["versions"])
    assert manifest.seconds == 1.5


def test_what_is_in_the_files(tmp_path: Path) -> None:
    store = make_store(tmp_path / "sweep")
    job = store.jobs[0]
    publish(store, job)
    manifest = store.publication(job)
    assert manifest is not None
    with pq.ParquetFile(manifest.file) as file:
        kinds = [set(file.read_row_group(i, columns=["kind"])["kind"].to_pylist()) for i in (0, 1)]
        said = file.schema_arrow.metadata
        assert file.metadata.num_row_groups == 2
    assert kinds == [{"episode"}, {"progress"}]
    assert said[b"ipe.setting"] == job.key.encode()
    assert said[b"ipe.schema"] == b"1"
    table = pq.read_table(manifest.file)
    assert "frames_per_second" not in table.column_names
    assert table.filter(pa.compute.equal(table["kind"], "episode"))["epsilon"].null_count == 40


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    """Whatever the order in which the seeds' rows came, and how fast they were."""
    order = Records()
    for seed in (1, 0):
        one = make_records([seed]).arrays()
        for row in zip(*(one[f"episodes.{name}"] for name in COLUMNS["episodes"]), strict=True):
            order.episode(*row)
        for row in zip(*(one[f"progress.{name}"] for name in COLUMNS["progress"]), strict=True):
            order.progress(*[*row, 123.0])
    assert results_bytes(order, "k", "j") == results_bytes(make_records([0, 1]), "k", "j")
    assert results_bytes(order, "k", "j") != results_bytes(make_records([0, 1], shift=1e-9), "k", "j")
    for name in "ab":
        publish_all(make_store(tmp_path / name))
    sets = [{path.read_bytes() for path in (tmp_path / name).rglob("*.parquet")} for name in "ab"]
    assert sets[0] == sets[1]
    assert len(sets[0]) == 4


finite = st.floats(allow_nan=False, allow_infinity=False)
maybe = finite | st.just(np.nan)
episode = st.tuples(st.integers(0, 2**63 - 1), st.integers(1, 2**62), finite, st.integers(1, 2**62))
row = st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**62), maybe, maybe, maybe, maybe, maybe)


@given(st.lists(episode, max_size=30), st.lists(row, max_size=30))
def test_records_come_back_to_the_bit(episodes: list[Any], progress: list[Any]) -> None:
    records = Records()
    for own in episodes:
        records.episode(*own)
    for own in progress:
        records.progress(*[*own, 1.0])
    data, rows = results_bytes(records, "key", "job")
    expected = {"episodes": records.episodes_table(), "progress": records.progress_table()}
    for kind, names in COLUMNS.items():
        found = read_results_bytes(data, kind, "key", rows[kind])
        assert found.to_pydict() == expected[kind].select(list(names)).to_pydict()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), json_values, max_size=5), st.integers(0, 500), st.data())
def test_a_sealed_object_comes_back_and_any_other_byte_is_noticed(
    content: dict[str, Any], size: int, data: st.DataObject
) -> None:
    sealed = sealed_bytes(content, "x", size)
    assert open_sealed(sealed) == content
    assert len(sealed) >= size
    assert json.loads(sealed)["content"] == content
    at = data.draw(st.integers(0, len(sealed) - 1))
    bit = data.draw(st.integers(0, 7))
    flipped = bytearray(sealed)
    flipped[at] ^= 1 << bit
    for wrong in (bytes(flipped), sealed[:at], sealed + b" ", sealed[:at] + sealed[at + 1 :]):
        with pytest.raises(InputError, match="damaged"):
            open_sealed(wrong)


# Settings ------------------------------------------------------------------------------------------------------------


def test_the_same_sweep_opens_the_same_store(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    before = files(tmp_path)
    again = make_store(tmp_path, batch=4)  # the jobs are those that are there
    assert again == store
    assert files(tmp_path) == before
    assert open_store(tmp_path) == store


def test_other_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    make_store(tmp_path, Sweep("small", [0, 1], [make_setting("a", width=16), make_setting("b", width=32)], False))
    before = files(tmp_path)

    def refused(*others: Setting, seeds: tuple[int, ...] = (0, 1)) -> str:
        with pytest.raises(InputError) as caught:
            make_store(tmp_path, Sweep("small", list(seeds), list(others), False))
        assert files(tmp_path) == before
        return str(caught.value)

    one, two = make_setting("a", width=16), make_setting("b", width=32)
    changed = paper_settings("CartPole-v1", "epsilon-ipe", frames=1000, width=32, epsilon={"final": 0.2}, batch=8)
    said = refused(one, Setting(two.name, two.case, two.varied, changed))
    assert "in its setting 'b width=32', batch is 32 there and 8 in this sweep (and 1 more fields differ)" in said
    said = refused(one, make_setting("b", width=33))
    assert (
        "its setting 'b width=32' is not in this sweep; the nearest is 'a width=16': width is 32 there and 16" in said
    )
    assert "seed 1 is not in this sweep" in refused(one, two, seeds=(0, 2))


def test_a_larger_sweep_extends_the_store(tmp_path: Path) -> None:
    store = make_store(tmp_path, make_sweep((16,), range(3)))
    publish_all(store)
    results = files(tmp_path / "results")
    larger = Sweep("larger", [*range(6)], [make_setting("new", batch=8), make_setting("old", width=16)], True)
    again = create_store(tmp_path, larger, make_jobs(larger, batch=4))
    assert [job.seeds for job in again.jobs] == [(0, 1), (2,), (0, 1, 2, 3), (4, 5), (3,), (4, 5)]
    assert [again.published(job) for job in again.jobs] == [True, True, False, False, False, False]
    assert files(tmp_path / "results") == results
    publish_all_left(again)
    loaded = load_results(tmp_path)
    assert loaded.sweep == larger
    assert loaded.problems == []
    assert len(loaded.outcomes) == 12
    smaller = make_sweep((16,), range(3))
    with pytest.raises(
        InputError, match=r"its setting 'new batch=8' is not in this sweep; the nearest is 'width=16': width is"
    ):
        create_store(tmp_path, smaller, make_jobs(smaller))


def publish_all_left(store: Store) -> None:
    for job in store.jobs:
        if not store.published(job):
            publish(store, job)


def test_jobs_must_hold_every_run_once(tmp_path: Path) -> None:
    sweep = make_sweep((16,), range(2))
    key = sweep.settings[0].key
    for jobs, said in [
        ([Job(key, (0,))], "setting 'width=16', seed 1: it is in no job"),
        ([Job(key, (0, 1)), Job(key, (1,))], "setting 'width=16', seed 1: it is in two jobs"),
        ([Job(key, (0, 1, 2))], "seed 2: there is a job for it"),
        ([Job("other", (0, 1))], "a setting that is not in the sweep"),
    ]:
        with pytest.raises(InputError, match=said):
            create_store(tmp_path / "new", sweep, jobs)
    assert not (tmp_path / "new").exists()


def test_folders_that_are_no_store(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        open_store(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"holds no sweep and no training run: there is no sweep\.json"):
        open_store(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no sweep"):
        make_store(tmp_path)
    with pytest.raises(InputError, match="is a file, not a folder"):
        make_store(tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_later_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    publish(store, store.jobs[0])
    manifest = store.publication(store.jobs[0])
    assert manifest is not None
    manifest.path.write_bytes(sealed_bytes(manifest.content | {"schema": 2}, "x"))
    before = files(tmp_path)
    with pytest.raises(InputError, match=r"written by a later version of ipe \(schema 2, this one reads up to 1\)"):
        store.published(store.jobs[0])
    assert "later version" in load_results(tmp_path).problems[0]
    assert load_results(tmp_path).episodes.num_rows == 0
    assert files(tmp_path) == before
    found = read_sealed(tmp_path / "sweep.json", "ipe.sweep", 1)
    (tmp_path / "sweep.json").write_bytes(sealed_bytes(found | {"schema": 7}, "x"))
    for act in (open_store, load_results, make_store):
        with pytest.raises(InputError, match=r"sweep\.json: written by a later version of ipe \(schema 7"):
            act(tmp_path)


@pytest.mark.parametrize("change", [{"format": "other"}, {"schema": 0}, {"schema": "1"}, {"jobs": 3}, {"sweep": {}}])
def test_a_description_of_something_else(tmp_path: Path, change: dict[str, Any]) -> None:
    make_store(tmp_path)
    found = read_sealed(tmp_path / "sweep.json", "ipe.sweep", 1)
    (tmp_path / "sweep.json").write_bytes(sealed_bytes(found | change, "x"))
    with pytest.raises(InputError, match=r"sweep\.json: "):
        open_store(tmp_path)


# Publishing what is wrong --------------------------------------------------------------------------------------------


def test_outcomes_and_records_must_be_of_the_job(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    job = store.jobs[0]
    good = make_outcomes(job.seeds)
    cases: list[tuple[Records, list[dict[str, Any]], str]] = [
        (make_records((0, 1)), good[:1], r"the outcomes must be of the seeds \[0, 1\], found \[0\]"),
        (
            make_records((0, 1)),
            [good[0], good[1] | {"status": "running"}],
            "outcome of seed 1: status must be one of done, failed, diverged; found 'running'",
        ),
        (
            make_records((0, 1)),
            [good[0], {"seed": 1, "status": "done"}],
            "an outcome has seed, status, frame and reason",
        ),
        (make_records((0, 5)), good, "there are episodes of seed 5, which is not one of its seeds"),
    ]
    with store.lease(job) or pytest.fail("no claim") as lease:
        for records, outcomes, said in cases:
            with pytest.raises(InputError, match=said):
                store.publish(lease, JobResult(records, outcomes))
        assert not store.published(job)
        assert store.publish(lease, JobResult(make_records(job.seeds), good))


def test_seeds_that_failed_at_once_have_no_rows(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    failed = {"status": "failed", "frame": 0, "reason": "the environment raised"}
    with store.lease(store.jobs[0]) or pytest.fail("no claim") as lease:
        assert store.publish(lease, JobResult(Records(), make_outcomes((0, 1), seed_0=failed, seed_1=failed)))
    assert store.published(store.jobs[0])
    found = load_results(tmp_path)
    assert found.episodes.num_rows == found.progress.num_rows == 0
    assert [outcome["status"] for outcome in found.outcomes] == ["failed", "failed"]


@examples(15)
@given(st.permutations(range(6)), st.integers(1, 4))
def test_any_partition_in_any_order_gives_the_same_tables(order: list[int], batch: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        sweep = make_sweep((16,), range(6))
        jobs = [Job(sweep.settings[0].key, tuple(order[i : i + batch])) for i in range(0, 6, batch)]
        store = create_store(Path(name) / "sweep", sweep, jobs)
        publish_all(store)
        found = load_results(store.folder)
    expected = make_records(range(6))
    assert found.episodes.drop_columns("setting").to_pydict() == expected.episodes_table().to_pydict()
    assert [outcome["seed"] for outcome in found.outcomes] == [*range(6)]
    assert found.problems == []


def test_page_checksums_notice_what_the_hash_would(tmp_path: Path) -> None:
    """Of the pages; the footer behind them has no checksum of its own, only the file's hash."""
    data, rows = results_bytes(make_records([0, 1]), "key", "job")
    expected = read_results_bytes(data, "episodes", "key", rows["episodes"])
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    noticed = 0
    for at in range(4, footer, 3):
        wrong = bytearray(data)
        wrong[at] ^= 1 << (at % 8)
        try:
            assert read_results_bytes(bytes(wrong), "episodes", "key", rows["episodes"]).equals(expected)
        except InputError:
            noticed += 1
    assert noticed > 100
    renamed = data[:footer] + data[footer:].replace(b"frame", b"frema")
    with pytest.raises(InputError, match=r"its columns are not those of schema 1|damaged"):
        read_results_bytes(renamed, "episodes", "key", rows["episodes"])
    with pytest.raises(InputError, match="of the setting other"):
        read_results_bytes(data, "episodes", "other", rows["episodes"])
    with pytest.raises(InputError, match="it has 40 rows of episodes, and should have 39"):
        read_results_bytes(data, "episodes", "key", 39)
