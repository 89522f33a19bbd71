"""Sweeps over processes: killed, interrupted, shared, hung, poisoned; the tables are those of an undisturbed one."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("distributed")
if os.name != "posix" or not Path("/proc/self").exists():
    pytest.skip("signals and /proc", allow_module_level=True)

from ipe.deep.environments import episode_seed
from ipe.deep.evaluating import Evaluating
from ipe.errors import InputError
from ipe.experiments.engine import run_sweep
from ipe.experiments.grids import changed, jobs
from ipe.experiments.jobs import run_job
from ipe.experiments.results import load_results
from ipe.experiments.store import create_store, open_store
from tests.needs import ROOT
from tests.sweep_helpers import (
    alive,
    checkpointed,
    descendants,
    ended,
    ipe,
    nothing_is_left_over,
    pool_workers,
    small_sweep,
    tables,
    toml,
    wait_for,
)

GRID = "value_step_size = [1e-3, 1e-2]"
SLOW = "pause = 0.0005"
QUICK = ("--checkpoint-seconds", "0.3")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tables of a sweep that nothing happened to, by one process."""
    folder = tmp_path_factory.mktemp("reference")
    (folder / "grid.toml").write_text(toml(4, SLOW, GRID, frames=2000))
    assert finish(folder, "--shard", "0/1")[0] == 0
    return tables(folder / "out")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "grid.toml").write_text(toml(4, SLOW, GRID, frames=2000))
    return tmp_path


def start(place: Path, *words: str, quick: tuple[str, ...] = QUICK) -> subprocess.Popen[str]:
    return ipe("sweep", "grid.toml", "--out", "out", "--batch-seeds", "2", *quick, *words, cwd=place)


def finish(place: Path, *words: str, quick: tuple[str, ...] = QUICK) -> tuple[int, str, str]:
    with ended(start(place, *words, quick=quick)) as process:
        out, err = process.communicate(timeout=400)
        return process.returncode, out, err


def same(place: Path, reference: dict[str, Any]) -> None:
    assert tables(place / "out") == reference
    nothing_is_left_over(place / "out")


def listening(pids: list[int]) -> set[str]:
    """The addresses that processes can be reached at."""
    psutil = importlib.import_module("psutil")  # Dask needs it
    found = [own for pid in pids for own in psutil.Process(pid).net_connections() if own.status == "LISTEN"]
    return {own.laddr.ip for own in found}


# ---- on this machine


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_its_job_resumed(place: Path, reference: dict[str, Any]) -> None:
    with ended(start(place)) as process:
        assert wait_for(checkpointed(place / "out"), process)
        workers = pool_workers(process.pid)
        assert len(workers) == min(4, len(os.sched_getaffinity(0)))
        assert listening([process.pid, *workers]) == set(), "nothing can be reached from outside"
        os.kill(workers[0], signal.SIGKILL)
        out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    assert out.splitlines()[0] == "4 of 4 jobs done: 8 runs done, 0 failed, 0 diverged; in out"
    assert "Traceback" not in err
    assert "4 of 4 jobs done, 16k of 16k frames (100%); done" in err
    same(place, reference)


@pytest.mark.slow
def test_control_c_stops_with_checkpoints_and_the_same_command_goes_on(place: Path, reference: dict[str, Any]) -> None:
    with ended(start(place)) as process:
        assert wait_for(checkpointed(place / "out"), process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to all of them
        out, err = process.communicate(timeout=200)
        assert descendants(process.pid) == []
    assert (process.returncode, out) == (130, "")
    again = "ipe sweep grid.toml --out out --batch-seeds 2 --checkpoint-seconds 0.3"
    assert err.splitlines()[-1] == f"ipe sweep: stopped, with checkpoints; go on with: {again}"
    assert "Traceback" not in err
    store = open_store(place / "out")
    assert not all(store.published(job) for job in store.jobs)
    assert list((place / "out" / "claims").glob("*")), "the claims say that they were let go of"
    assert finish(place)[0] == 0
    same(place, reference)


@pytest.mark.slow
def test_a_second_control_c_does_not_wait(place: Path) -> None:
    trouble(place, "hang")
    with ended(start(place)) as process:
        assert wait_for(checkpointed(place / "out"), process)
        time.sleep(5.0)  # some environment hangs by now
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(2.0)
        assert process.poll() is None, "the first one waits for the step to end"
        begin = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=100)
        assert time.monotonic() - begin < 60.0
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith(
        "ipe sweep: stopped at once; go on from the last checkpoints with: ipe sweep"
    )
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_worker_that_is_killed_again_and_again_is_replaced_as_long_as_its_job_gets_somewhere(tmp_path: Path) -> None:
    killed: list[int] = []
    at: list[int] = []

    def callback(progress: Any) -> None:
        (worker,) = pool_workers(os.getpid()) or [0]
        newest = max((int(path.name.split("-")[1]) for path in tmp_path.glob("work/*/checkpoint-*.json")), default=0)
        if worker and worker not in killed and len(killed) < 4 and newest > max(at, default=0):
            killed.append(worker)
            at.append(newest)
            os.kill(worker, signal.SIGKILL)

    sweep = small_sweep(options={"pause": 0.002}, frames=6000)
    result = run_sweep(sweep, tmp_path, workers=1, checkpoint_seconds=0.2, callback=callback)
    assert (result.status, len(killed)) == ("done", 4)
    nothing_is_left_over(tmp_path)


@pytest.mark.slow
def test_the_process_that_runs_the_sweep_is_killed(place: Path, reference: dict[str, Any]) -> None:
    with ended(start(place)) as process:
        assert wait_for(checkpointed(place / "out"), process)
        workers = pool_workers(process.pid)
        process.kill()
        process.communicate()
        wait_for(lambda: not any(map(alive, workers)), seconds=100.0)  # nothing goes on unwatched
    assert finish(place)[0] == 0
    same(place, reference)


@pytest.mark.slow
def test_everything_is_killed_again_and_again(place: Path, reference: dict[str, Any]) -> None:
    for _ in range(4):
        with ended(start(place)) as process:
            wait_for(checkpointed(place / "out"), process)
    assert finish(place)[0] == 0
    same(place, reference)


@pytest.mark.slow
def test_two_sweeps_on_one_folder(place: Path, reference: dict[str, Any]) -> None:
    with ended(start(place, "--workers", "1")) as one, ended(start(place, "--shard", "0/1")) as other:
        for process in (one, other):
            out, err = process.communicate(timeout=400)
            assert process.returncode == 0, err
            assert out.startswith("4 of 4 jobs done: 8 runs done")
    same(place, reference)


@pytest.mark.slow
def test_shards(place: Path, reference: dict[str, Any]) -> None:
    with ended(start(place, "--shard", "0/2")) as one, ended(start(place, "--shard", "1/2")) as other:
        for process in (one, other):
            out, err = process.communicate(timeout=400)
            assert process.returncode == 0, err
            assert out.startswith("2 of 2 jobs done: 4 runs done")
    same(place, reference)


# ---- jobs that are trouble


def trouble(place: Path, fault: str, **base: Any) -> Path:
    """A sweep in which seed 1 of each setting is trouble, unless there is a file that says otherwise."""
    mended = place / "mended"
    options = f'bad = {episode_seed(1, 4)}, fault = "{fault}", unless = "{mended}"'
    (place / "grid.toml").write_text(toml(4, options, GRID, frames=600, **base))
    return mended


@pytest.mark.slow
def test_a_job_that_ends_its_process_is_given_up_and_the_others_go_on(place: Path) -> None:
    mended = trouble(place, "exit")
    code, out, err = finish(place, quick=())  # with many checkpoints it would get a little further every time
    assert (code, out) == (1, "2 of 4 jobs done: 4 runs done, 0 failed, 0 diverged; in out\n")
    assert err.count("its process ended 3 times before the next checkpoint") == 2
    assert "2 jobs could not be done; try again with: ipe sweep grid.toml --out out" in err.splitlines()[-1]
    mended.touch()
    assert finish(place)[0] == 0
    nothing_is_left_over(place / "out")


@pytest.mark.slow
def test_a_job_that_fails_is_said_and_the_others_go_on(place: Path) -> None:
    mended = trouble(place, "quit")
    code, out, err = finish(place)
    assert (code, out) == (1, "2 of 4 jobs done: 4 runs done, 0 failed, 0 diverged; in out\n")
    assert "ipe sweep: value_step_size=0.001, seeds 0, 1: SystemExit: 3 (see " in err
    mended.touch()
    assert finish(place)[0] == 0


@pytest.mark.slow
def test_an_environment_that_hangs_costs_its_seed_alone(place: Path) -> None:
    trouble(place, "hang")
    code, out, err = finish(place, "--hang-seconds", "3")
    assert (code, out.splitlines()[0]) == (0, "4 of 4 jobs done: 6 runs done, 2 failed, 0 diverged; in out")
    assert err.count("seed 1 failed at frame ") == 2
    assert err.count(": the environment did not return within 3 seconds") == 2
    nothing_is_left_over(place / "out")


# ---- a running scheduler


@contextlib.contextmanager
def scheduler(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A scheduler and two workers of Dask's own, in processes of theirs; yields the scheduler's and its address."""
    address = folder / "address.json"
    common: dict[str, Any] = {
        "cwd": folder,
        "env": os.environ | {"PYTHONPATH": str(ROOT)},
        "text": True,
        "stderr": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
    }
    dask = [sys.executable, "-m", "dask"]
    words = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
    words += ["--scheduler-file", str(address)]
    with ended(subprocess.Popen([*dask, "scheduler", *words], **common)) as boss:
        wait_for(lambda: address.exists() and address.read_text().rstrip().endswith("}"), boss)
        words = [
            "--scheduler-file",
            str(address),
            "--nthreads",
            "1",
            "--nworkers",
            "2",
            "--dashboard-address",
            "127.0.0.1:0",
        ]
        words += ["--host", "127.0.0.1", "--preload", "ipe.experiments.workers", "--local-directory", str(folder)]
        with ended(subprocess.Popen([*dask, "worker", *words], **common)):
            yield boss, json.loads(address.read_text())["address"]


@pytest.mark.slow
def test_a_running_scheduler_and_its_end(place: Path, reference: dict[str, Any]) -> None:
    with scheduler(place) as (boss, address):
        with ended(start(place, "--scheduler", address)) as process:
            assert wait_for(checkpointed(place / "out"), process)
            boss.kill()
            out, err = process.communicate(timeout=200)
        assert process.returncode == 1
        assert out.startswith("0 of 4 jobs done")
        assert f"the Dask scheduler at {address} is gone, with " in err
        assert "Traceback" not in err
    (place / "address.json").unlink()
    with scheduler(place) as (_, address):
        code, out, err = finish(place, "--scheduler", address)
        evaluating = changed(small_sweep(seeds=2, frames=200), evaluating=Evaluating(100, 2))
        runs = run_sweep(evaluating, place / "evaluated", scheduler=address, batch_seeds=1)
    assert (code, out.startswith("4 of 4 jobs done")) == (0, True), err
    same(place, reference)
    assert runs.status == "done"
    here = run_sweep(evaluating, place / "evaluated here", shard=(0, 1), batch_seeds=1)
    assert here.status == "done"
    found, expected = (load_results(place / name).evaluations.to_pylist() for name in ("evaluated", "evaluated here"))
    assert [row["frame"] for row in found] == [100, 200] * 2
    assert found == expected


def test_no_scheduler_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import Client

    made: list[Client] = []
    start = Client.start

    def remembered(client: Client, **options: Any) -> Any:
        made.append(client)
        return start(client, **options)

    monkeypatch.setattr(Client, "start", remembered)
    monkeypatch.setattr("ipe.experiments.cluster._CONNECT_SECONDS", 1.0)
    for address in ("tcp://127.0.0.1:9", "nowhere at all"):
        with pytest.raises(InputError, match=f"there is no Dask scheduler at {address}: "):
            run_sweep(small_sweep(), tmp_path / "out", scheduler=address)
    assert list(tmp_path.iterdir()) == []
    assert [client.status for client in made] == ["closed"] * len(made) != []


def test_workers_that_do_not_see_the_folder_are_refused(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    from ipe.experiments.cluster import check_workers

    here = "127.0.0.1:0"
    with LocalCluster(n_workers=1, processes=False, dashboard_address=here) as cluster, Client(cluster) as client:
        with pytest.raises(InputError, match=r"the worker .* cannot take part: it does not see .*sweep\.json"):
            check_workers(client, tmp_path)
        run_sweep(small_sweep(frames=20), tmp_path, shard=(0, 1))
        check_workers(client, tmp_path)


# ---- arguments

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no workers": ({"workers": 0}, "workers must be 1 or more, found 0"),
    "two engines": ({"workers": 1, "shard": (0, 1)}, "give one of workers, scheduler and shard"),
    "a shard that is none": ({"shard": (2, 2)}, "shard must be i/n with i from 0 to n - 1, found 2/2"),
    "no time": ({"checkpoint_seconds": float("nan")}, "checkpoint_seconds must be 0 or more"),
    "no patience": ({"hang_seconds": 0.0}, "hang_seconds must be above 0"),
    "too many seeds at once": ({"batch_seeds": 99}, "batch_seeds must lie between 1 and 16, found 99"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_writes_nothing(name: str, tmp_path: Path) -> None:
    arguments, sentence = REFUSED[name]
    with pytest.raises(InputError, match=sentence):
        run_sweep(small_sweep(), tmp_path / "out", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_wherever_a_sweep_stops_its_settings_have_equal_numbers_of_runs(tmp_path: Path) -> None:
    grid = {"gamma": [0.5, 0.7, 0.9]}
    whole = small_sweep(seeds=3, grid=grid, frames=60)
    done: list[dict[int, int]] = []

    def count(progress: Any) -> None:
        found = Counter(outcome["seed"] for outcome in load_results(tmp_path / "out").outcomes)
        done.append(dict(found))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ipe.experiments.ledger.TELL_SECONDS", 0.0)
        assert run_sweep(whole, tmp_path / "out", shard=(0, 1), batch_seeds=1, callback=count).status == "done"
    for seeds in done:
        runs = [seeds.get(seed, 0) for seed in range(3)]
        assert runs == sorted(runs, reverse=True), "a seed is begun when those before it are done in every setting"
        assert sum(0 < number < 3 for number in runs) <= 1
    assert done[-1] == {0: 3, 1: 3, 2: 3}
    straight = create_store(tmp_path / "straight", whole, jobs(whole, 1))
    for job in straight.jobs:
        assert run_job(straight.folder, job.id) == "done"
    assert tables(tmp_path / "out") == tables(tmp_path / "straight"), "the order changes no id and no byte"


@pytest.mark.slow
def test_a_callback_that_returns_true_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipe.experiments.jobs.REPORT_SECONDS", 0.0)
    monkeypatch.setattr("ipe.experiments.ledger.TELL_SECONDS", 0.0)
    sweep = small_sweep(grid={"gamma": [0.5, 0.9]})
    stopped = run_sweep(sweep, tmp_path, shard=(0, 1), callback=lambda own: own.frames_done > 4000)
    assert (stopped.status, stopped.done, stopped.jobs, stopped.failed) == ("stopped", 1, 2, {})
    seen: list[Any] = []
    done = run_sweep(sweep, tmp_path, shard=(0, 1), callback=seen.append)
    assert (done.status, done.done, done.seeds) == ("done", 2, {"done": 4, "failed": 0, "diverged": 0})
    assert (seen[0].done, seen[-1].done, seen[-1].frames_done, seen[-1].frames) == (1, 2, 6000, 6000)
    assert seen[0].frames_done > 4000 - 2 * 1500 / 2  # it went on from the checkpoint
    again = run_sweep(sweep, tmp_path)  # there is nothing to do, and no cluster is started for it
    assert again.status == "done"
    more = run_sweep(small_sweep(seeds=3, grid={"gamma": [0.5, 0.9]}), tmp_path, shard=(0, 1))
    assert (more.jobs, more.seeds["done"]) == (4, 6)
    with pytest.raises(InputError, match="was made for another sweep"):
        run_sweep(small_sweep(grid={"gamma": [0.5, 0.8]}), tmp_path, shard=(0, 1))
