"""Faults of a store, injected: kills, full disks, damaged and missing files, claims that were lost, work done twice."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ipe.base.atomic import write_bytes
from ipe.errors import InputError
from ipe.experiments import publications
from ipe.experiments.declared import Job
from ipe.experiments.leases import LeaseLostError, take_lease
from ipe.experiments.publications import JobResult, read_manifest
from ipe.experiments.results import load_results
from ipe.experiments.store import Store, open_store
from tests.store_helpers import make_outcomes, make_records, make_store, make_sweep, publish, publish_all
from tests.tiers import tiered

_CUT = """
import os, sys
from pathlib import Path
from ipe.experiments.store import open_store
from tests.store_helpers import JobResult, make_outcomes, make_records, make_store

folder, begin = Path(sys.argv[1]), sys.argv[2]
STEPS = ["fsync", "replace", "link", "unlink", "rename", "mkdir", "write", "ftruncate", "open", "close"]

def work(cut):
    # Ends the process before its cut-th touch of the disk.
    left = [cut]
    def counted(real):
        def touch(*args, **named):
            left[0] -= 1
            if left[0] < 0:
                os._exit(77)
            return real(*args, **named)
        return touch
    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    store = make_store(folder)
    if store.published(store.jobs[0]):
        os._exit(0)
    lease = store.lease(store.jobs[0], beat_seconds=1000.0)
    store.publish(lease, JobResult(make_records(store.jobs[0].seeds), make_outcomes(store.jobs[0].seeds)))
    store.clean(store.jobs[0])
    os._exit(0)

cut, seen = 0, []
while True:
    child = os.fork()
    if child == 0:
        try:
            work(cut)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, 77):
        sys.exit(f"cut {cut}: exit code {code}")
    from ipe.experiments.results import load_results
    if (folder / "sweep.json").exists():
        results = load_results(folder)
        damaged = [problem for problem in results.problems if "no result for" not in problem]
        store = open_store(folder)
        published = store.published(store.jobs[0])
        if damaged or results.episodes.num_rows not in (0, 40) or (results.episodes.num_rows == 40) != published:
            sys.exit(f"cut {cut}: {damaged} {results.episodes.num_rows} {published}")
        seen.append(published)
    elif any(path.suffix != ".part" for path in folder.rglob("*")):
        sys.exit(f"cut {cut}: files without a description")
    if begin == "anew":  # every cut meets the same store, rather than what the one before has left
        import shutil
        if code != 0:
            shutil.rmtree(folder, ignore_errors=True)
    if code == 0:
        break
    cut += 1
    if cut > 500:
        sys.exit("it never came to an end")
print(cut, seen.count(False), seen.count(True))
"""


@pytest.mark.parametrize("begin", tiered(["anew", "on"], "anew"))
def test_a_kill_between_any_two_steps_leaves_nothing_half_written(tmp_path: Path, begin: str) -> None:
    """`on`: each attempt begins with what all those before have left, until one comes through."""
    command = [sys.executable, "-c", _CUT, str(tmp_path / "sweep"), begin]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    cuts, before, after = map(int, done.stdout.split())
    assert cuts > 15
    assert before > 5
    assert after > 0
    store = open_store(tmp_path / "sweep")
    assert store.published(store.jobs[0])
    assert os.listdir(store.leases_folder) == [] or begin == "on"
    results = [path for path in store.results_folder(store.jobs[0].key).iterdir() if path.suffix != ".part"]
    if begin == "anew":
        assert sorted(path.suffix for path in results) == [".json", ".parquet"]


_FULL = """
import json, os, resource, signal, sys
from pathlib import Path
from ipe.errors import InputError
from tests.store_helpers import JobResult, make_outcomes, make_records, make_store

store = make_store(Path(sys.argv[1]))
lease = store.lease(store.jobs[0])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limits = {"parquet": 3000, "claim": 1000}
resource.setrlimit(resource.RLIMIT_FSIZE, (limits[sys.argv[2]], resource.RLIM_INFINITY))
try:
    with lease:
        store.publish(lease, JobResult(make_records(store.jobs[0].seeds), make_outcomes(store.jobs[0].seeds)))
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("what", "said"), [("parquet", "cannot write .*parquet: File too large"), ("claim", "cannot confirm")]
)
def test_a_full_disk(tmp_path: Path, what: str, said: str) -> None:
    command = [sys.executable, "-c", _FULL, str(tmp_path / "sweep"), what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert re.search(said, done.stdout), done.stdout + done.stderr
    store = open_store(tmp_path / "sweep")
    job = store.jobs[0]
    assert not store.published(job)
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.rglob("*.parquet"))
    assert publish(store, job)
    assert load_results(store.folder).episodes.num_rows == 40


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_is_read_only(tmp_path: Path) -> None:
    store = make_store(tmp_path / "sweep")
    publish(store, store.jobs[0])
    tmp_path.joinpath("sweep").chmod(0o500)
    store.leases_folder.chmod(0o500)
    try:
        assert load_results(store.folder).episodes.num_rows == 40
        with pytest.raises(InputError, match=r"cannot take the lease .*Permission denied"):
            store.lease(store.jobs[1])
    finally:
        tmp_path.joinpath("sweep").chmod(0o700)
        store.leases_folder.chmod(0o700)


def flips(data: bytes) -> list[bytes]:
    """One bit wrong at every place of a kind: the ends, and steps through the middle; and pieces cut off or added."""
    places = sorted(
        {0, 3, 4, len(data) - 1, len(data) - 5, len(data) - 9, *range(0, len(data), max(1, len(data) // 97))}
    )
    out = []
    for at in places:
        wrong = bytearray(data)
        wrong[at] ^= 1 << (at % 8)
        out.append(bytes(wrong))
    return [*out, b"", data[:1], data[: len(data) // 2], data[:-1], data + b"\0", bytes(len(data))]


@pytest.mark.parametrize("what", ["parquet", "json"])
def test_damaged_files_are_never_used_and_a_rerun_replaces_them(tmp_path: Path, what: str) -> None:
    store = make_store(tmp_path, make_sweep((16,), range(4)))
    publish_all(store)
    sound = load_results(tmp_path)
    job = store.jobs[0]
    manifest = store.publication(job)
    assert manifest is not None
    path = manifest.file if what == "parquet" else manifest.path
    data = path.read_bytes()
    for wrong in flips(data):
        path.write_bytes(wrong)
        assert not store.published(job)
        found = load_results(tmp_path)
        assert found.missing == [(0, 0), (0, 1)]
        assert found.episodes.equals(sound.episodes.slice(40))
        assert [outcome["seed"] for outcome in found.outcomes] == [2, 3]
        assert path.name in found.problems[0]
        assert found.problems[0].endswith("not used")
        assert found.problems[1] == "setting 'width=16': no result for seeds 0-1"
    path.write_bytes(wrong)
    assert publish(store, job)
    again = load_results(tmp_path)
    assert again.problems == []
    assert again.episodes.equals(sound.episodes)
    assert again.progress.equals(sound.progress)
    aside = sorted(own.name for own in store.results_folder(job.key).iterdir() if own.suffix == ".damaged")
    assert aside == [f"{manifest.path.name}.damaged", f"{manifest.file.name}.damaged"]
    assert (path.parent / f"{path.name}.damaged").read_bytes() == wrong


@pytest.mark.parametrize("what", ["parquet", "json"])
def test_missing_files_are_gaps(tmp_path: Path, what: str) -> None:
    store = make_store(tmp_path)
    publish_all(store)
    manifest = store.publication(store.jobs[3])
    assert manifest is not None
    (manifest.file if what == "parquet" else manifest.path).unlink()
    assert not store.published(store.jobs[3])
    assert not store.published(store.jobs[3], verify=False)
    problems = load_results(tmp_path).problems
    assert problems[-1] == "setting 'width=32': no result for seeds 2-3"
    assert len(problems) == (2 if what == "parquet" else 1)
    assert publish(store, store.jobs[3])
    assert load_results(tmp_path).problems == []
    kept = [path for path in store.results_folder(manifest.key).iterdir() if path.suffix == ".parquet"]
    assert len(kept) == 2  # the file without a manifest is gone


def test_a_damaged_description_is_refused(tmp_path: Path) -> None:
    make_store(tmp_path)
    path = tmp_path / "sweep.json"
    data = path.read_bytes()
    for wrong in flips(data):
        path.write_bytes(wrong)
        with pytest.raises(InputError, match=r"sweep\.json: it is damaged"):
            open_store(tmp_path)
    path.write_bytes(data)
    open_store(tmp_path)


def test_who_has_lost_the_lease_does_not_publish(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    job = store.jobs[0]
    slow = store.lease(job, beat_seconds=1000.0)
    assert slow is not None
    (store.leases_folder / f"{job.id}.1.json").write_bytes(b"a successor's")
    with pytest.raises(LeaseLostError), slow:
        store.publish(slow, JobResult(make_records(job.seeds), make_outcomes(job.seeds)))
    assert not list(tmp_path.rglob("*.parquet"))
    assert not list(tmp_path.rglob("results/*/*"))


def test_a_lease_lost_between_the_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store(tmp_path)
    job = store.jobs[0]
    slow = store.lease(job, beat_seconds=1000.0)
    assert slow is not None
    real = write_bytes

    def overtaken(path: Path, write: Any) -> None:
        real(path, write)
        slow._lost = True  # as its thread sets it

    monkeypatch.setattr(publications, "write_bytes", overtaken)
    with pytest.raises(LeaseLostError), slow:
        store.publish(slow, JobResult(make_records(job.seeds), make_outcomes(job.seeds)))
    assert not list(tmp_path.rglob("results/*/*"))


def worst_race(store: Store, job: Job, shift: float) -> None:
    """Two that both had the lease confirmed, and both write."""
    setting = store.sweep.by_key[job.key]
    for own in (0.0, shift):
        lease = store.lease(job, beat_seconds=1000.0) if own == 0.0 else None
        if lease is None:  # the second one: it hung after its confirmation until the first was done
            lease = take_lease(store.leases_folder, job.id, beat_seconds=1000.0)
        assert lease is not None
        folder = store.results_folder(job.key)
        publications.write_publication(
            folder, setting, job, lease, JobResult(make_records(job.seeds, own), make_outcomes(job.seeds), 1.0)
        )
        lease.finish()


def test_two_publications_of_a_job_count_once(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    worst_race(store, store.jobs[0], shift=-0.0)
    worst_race(store, store.jobs[1], shift=1.0)
    found = load_results(tmp_path)
    assert found.episodes.num_rows == 80
    assert len(found.outcomes) == 4
    same, different, *gaps = found.problems
    assert "seeds 0-1: published 2 times, with the same content" in same
    assert "seeds 2-3: published 2 times, with DIFFERENT content; the earliest, " in different
    assert gaps == ["setting 'width=32': no result for seeds 0-3"]
    first = make_records(store.jobs[1].seeds).episodes_table()
    assert found.episodes.slice(40)["return"].to_pylist() == first["return"].to_pylist()


def test_a_manifest_under_another_name_is_not_believed(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    publish(store, store.jobs[0])
    manifest = store.publication(store.jobs[0])
    assert manifest is not None
    token = manifest.path.stem.rpartition("-")[2]
    for own in (manifest.path, manifest.file):
        own.rename(own.with_name(f"{store.jobs[1].id}-{token}{own.suffix}"))
    assert not store.published(store.jobs[1])
    found = load_results(tmp_path)
    assert found.episodes.num_rows == 0
    assert "under another name" in found.problems[0]
    with pytest.raises(InputError, match="under another name"):
        read_manifest(manifest.path.with_name(f"{store.jobs[1].id}-{token}.json"))


def test_work_is_removed_after_publication(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    job = store.jobs[0]
    store.clean(job)  # nothing is there
    store.work_folder(job).mkdir(parents=True)
    (store.work_folder(job) / "checkpoint").write_bytes(b"x")
    store.clean(job)
    assert not store.work_folder(job).exists()


def work(folder: str) -> None:
    """What a worker does: every job that is neither published nor somebody else's."""
    store = open_store(folder)
    while not all(store.published(job, verify=False) for job in store.jobs):
        for job in store.jobs:
            lease = None if store.published(job) else store.lease(job)
            if lease is not None:
                with lease:
                    time.sleep(0.05)
                    store.publish(lease, JobResult(make_records(job.seeds), make_outcomes(job.seeds), 1.0))


@pytest.mark.slow
def test_workers_that_are_killed_all_the_time(tmp_path: Path) -> None:
    """Three at once; what they leave is what an undisturbed one does, file by file."""
    sweep = make_sweep((8, 16), range(8))
    undisturbed = make_store(tmp_path / "undisturbed", sweep)
    publish_all(undisturbed)
    store = make_store(tmp_path / "disturbed", sweep)
    context = multiprocessing.get_context("spawn")
    draw = random.Random(0)
    workers: list[Any] = []
    kills = 0
    deadline = time.monotonic() + 300.0
    while not all(store.published(job, verify=False) for job in store.jobs):
        assert time.monotonic() < deadline, "the workers do not come to an end"
        workers = [worker for worker in workers if worker.is_alive()]
        while len(workers) < 3:
            workers.append(context.Process(target=work, args=(str(store.folder),)))
            workers[-1].start()
        time.sleep(draw.uniform(0.1, 0.4))
        if kills < 5 and any(path.suffix == ".json" for path in store.folder.glob("claims/*")):
            draw.choice(workers).kill()
            kills += 1
    for worker in workers:
        worker.join(60.0)
    assert kills > 0
    expected, found = load_results(undisturbed.folder), load_results(store.folder)
    assert found.problems == []
    assert found.episodes.equals(expected.episodes)
    assert found.progress.equals(expected.progress)
    assert found.outcomes == expected.outcomes
    published = [sorted(path.read_bytes() for path in own.folder.rglob("*.parquet")) for own in (undisturbed, store)]
    assert published[0] == published[1]


def test_parts_of_files_that_killed_processes_left_are_removed_in_the_end(tmp_path: Path) -> None:
    store = make_store(tmp_path, make_sweep((16,), range(4)))
    publish(store, store.jobs[0])
    results = store.results_folder(store.jobs[0].key)
    old = [folder / f".{'0' * 16}.part" for folder in (results, store.leases_folder)]
    new = [folder / f".{'1' * 16}.part" for folder in (results, store.leases_folder)]
    for path in old + new:
        path.write_bytes(b"half")
    for path in old:
        os.utime(path, (time.time() - 4000.0,) * 2)
    publish(store, store.jobs[1])
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in new)
