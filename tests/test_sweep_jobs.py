"""A job of a sweep: done, left, resumed, damaged, lost, hung; what is published is the same whatever happened."""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium")

from ipe.deep import train
from ipe.deep.environments import episode_seed
from ipe.deep.stopping import Stop
from ipe.errors import InputError
from ipe.experiments.jobs import attempt, run_job
from ipe.experiments.ledger import Ledger, SweepProgress
from ipe.experiments.store import Store
from ipe.experiments.watchdog import Hang, Watchdog, read_hangs
from tests.needs import ROOT, posix
from tests.sweep_helpers import nothing_is_left_over, small_sweep, stored, tables
from tests.tiers import tiered


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the small sweep comes to if nothing happens."""
    folder = tmp_path_factory.mktemp("straight") / "store"
    for job in stored(folder, small_sweep()).jobs:
        assert run_job(folder, job.id) == "done"
    nothing_is_left_over(folder)
    return tables(folder)


def only(store: Store) -> str:
    (job,) = store.jobs
    return job.id


def run_until(folder: Path, job: str, frame: int, **options: Any) -> str:
    """Run a job that is told to stop at a frame."""
    seen = [0]

    def report(progress: Any) -> None:
        seen[0] = progress.frame

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ipe.experiments.jobs.REPORT_SECONDS", 0.0)
        return run_job(folder, job, report=report, stopped=lambda: seen[0] >= frame, **options)


def test_a_job_publishes_what_training_gives(tmp_path: Path, straight: dict[str, Any]) -> None:
    sweep = small_sweep()
    out = train(sweep.settings[0].settings, seeds=2, out=tmp_path / "run", processes=0)
    ((_, outcomes),) = straight.values()
    assert outcomes == [vars(own) for own in out.outcomes]
    store = stored(tmp_path / "store", sweep)
    reports: list[Any] = []
    assert run_job(store.folder, only(store), report=reports.append) == "done"
    assert tables(store.folder) == straight
    assert reports[-1].frame == 1500
    manifest = store.publication(store.jobs[0])
    assert manifest is not None
    assert manifest.rows == {"episodes": len(out.episodes), "progress": len(out.progress)}
    assert manifest.seconds > 0


def test_a_job_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    store = stored(tmp_path / "store", small_sweep(frames=50))
    assert run_job(store.folder, only(store)) == "done"
    before = {path: path.stat().st_mtime_ns for path in store.folder.rglob("*")}
    assert run_job(store.folder, only(store), stopped=lambda: pytest.fail("it trains again")) == "done"
    assert {path: path.stat().st_mtime_ns for path in store.folder.rglob("*")} == before


def test_a_job_that_was_left_goes_on(tmp_path: Path, straight: dict[str, Any]) -> None:
    store = stored(tmp_path / "store", small_sweep())
    for frame in (1, 400, 1100):
        assert run_until(store.folder, only(store), frame) == "stopped"
        assert not store.published(store.jobs[0])
    work = store.work_folder(store.jobs[0])
    frames = sorted(int(path.name.split("-")[1]) for path in work.glob("checkpoint-*.json"))
    assert frames == [400, 1100]
    assert run_job(store.folder, only(store)) == "done"
    assert tables(store.folder) == straight
    nothing_is_left_over(store.folder)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damaged", tiered([1, 2], 1))
def test_damaged_checkpoints_are_not_used(tmp_path: Path, straight: dict[str, Any], damaged: int) -> None:
    store = stored(tmp_path / "store", small_sweep())
    for frame in (300, 600):
        run_until(store.folder, only(store), frame)
    checkpoints = sorted(store.work_folder(store.jobs[0]).glob("*.safetensors"))
    assert len(checkpoints) == 2
    flip(checkpoints[-1])
    if damaged == 2:
        os.truncate(checkpoints[0], 1000)
    said: list[str] = []
    frames: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ipe.experiments.jobs.REPORT_SECONDS", 0.0)
        options: dict[str, Any] = {"say": said.append, "report": lambda own: frames.append(own.frame)}
        assert run_job(store.folder, only(store), **options) == "done"
    assert len(said) == damaged
    assert "damaged" in said[0]
    assert frames[0] == (301 if damaged == 1 else 1)
    assert tables(store.folder) == straight


@pytest.mark.slow
def test_a_damaged_result_is_done_again(tmp_path: Path, straight: dict[str, Any]) -> None:
    store = stored(tmp_path / "store", small_sweep())
    run_job(store.folder, only(store))
    (file,) = store.folder.rglob("*.parquet")
    flip(file)
    assert run_job(store.folder, only(store)) == "done"
    assert tables(store.folder) == straight


def test_a_job_of_another_process_is_left_alone(tmp_path: Path, straight: dict[str, Any]) -> None:
    store = stored(tmp_path / "store", small_sweep())
    lease = store.lease(store.jobs[0])
    assert lease is not None
    assert run_job(store.folder, only(store)) == "claimed"
    lease.release()
    assert run_job(store.folder, only(store)) == "done"
    assert tables(store.folder) == straight


def test_what_another_process_has_done_is_counted_when_progress_is_told(tmp_path: Path) -> None:
    """Two processes on one store: each knows of the other's jobs as soon as they are published."""
    store = stored(tmp_path / "store", small_sweep(grid={"gamma": [0.5, 0.9]}))
    told: list[SweepProgress] = []
    ledger = Ledger(store, store.jobs, Stop(), told.append)
    theirs = ledger.next_job()
    assert theirs is not None
    ledger.end(theirs, "claimed", "")
    ledger.tell(at_once=True)
    assert run_job(store.folder, theirs.id) == "done"  # by the other process; ours has a job to begin yet
    ledger.tell(at_once=True)
    assert [(one.done, one.elsewhere, one.frames_done) for one in told] == [(0, 1, 0), (1, 0, told[0].frames // 2)]
    assert ledger.next_job() == store.jobs[1]
    assert ledger.next_job() is None


def test_who_has_lost_the_job_publishes_nothing(tmp_path: Path, straight: dict[str, Any]) -> None:
    store = stored(tmp_path / "store", small_sweep())
    other: list[Any] = []

    def report(progress: Any) -> None:
        if progress.frame == 500:  # as if its lease had become stale, and another had taken over
            for path in store.leases_folder.glob("*"):
                path.unlink()
            other.append(store.lease(store.jobs[0]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ipe.experiments.jobs.REPORT_SECONDS", 0.0)
        assert run_job(store.folder, only(store), report=report, checkpoint_seconds=0.05) == "claimed"
    assert not store.published(store.jobs[0])
    other[0].release()
    assert run_job(store.folder, only(store)) == "done"
    assert tables(store.folder) == straight


@posix
@pytest.mark.parametrize("at", ["a checkpoint", "the result"])
def test_a_disk_that_is_full(tmp_path: Path, straight: dict[str, Any], at: str) -> None:
    store = stored(tmp_path / "store", small_sweep())
    run_until(store.folder, only(store), 500)
    before = {path.name for path in store.work_folder(store.jobs[0]).glob("checkpoint-*")}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, hard))
    try:
        seconds = 0.0 if at == "a checkpoint" else 1e6
        state, reason = attempt(store.folder, only(store), checkpoint_seconds=seconds)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert state == "refused"
    assert reason.startswith("cannot ")
    assert "File too large" in reason
    assert {path.name for path in store.work_folder(store.jobs[0]).glob("checkpoint-*")} == before
    assert list(store.folder.rglob("*.parquet")) == []
    assert list(store.folder.rglob("*.part")) == []
    assert run_job(store.folder, only(store)) == "done"
    assert tables(store.folder) == straight


BAD = {"bad": episode_seed(1, 4), "at": 3}


@pytest.mark.parametrize("fault", ["raise", "nan", "reset"])
def test_an_environment_that_fails_stops_its_seed_alone(tmp_path: Path, fault: str) -> None:
    sweep = small_sweep(frames=400, options=BAD | {"fault": fault})
    store = stored(tmp_path / "store", sweep)
    assert run_until(store.folder, only(store), 30) == "stopped"
    assert run_job(store.folder, only(store)) == "done"
    ((_, outcomes),) = tables(store.folder).values()
    assert [(own["seed"], own["status"]) for own in outcomes] == [(0, "done"), (1, "failed")]
    assert "episode 4" in outcomes[1]["reason"]


def test_a_setting_that_diverges_is_published_as_such(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"value_step_size": 1e30, "behaviour": "epsilon-greedy", "frames": 600}
    store = stored(tmp_path / "store", small_sweep(**settings))
    assert run_job(store.folder, only(store)) == "done"
    ((_, outcomes),) = tables(store.folder).values()
    assert {own["status"] for own in outcomes} == {"diverged"}


def test_an_environment_that_raises_system_exit_fails_the_job_with_its_traceback(tmp_path: Path) -> None:
    store = stored(tmp_path / "store", small_sweep(frames=400, options=BAD | {"fault": "quit"}))
    state, reason = attempt(store.folder, only(store))
    assert (state, reason.partition(" (see ")[0]) == ("failed", "SystemExit: 3")
    assert "in _faulty" in (store.work_folder(store.jobs[0]) / "traceback.txt").read_text()


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        run_job(tmp_path / "nothing", "a")
    store = stored(tmp_path / "store", small_sweep())
    with pytest.raises(InputError, match="the sweep has no job a"):
        run_job(store.folder, "a")
    assert attempt(tmp_path / "nothing", "a") == ("refused", f"there is no folder {tmp_path / 'nothing'}")


# ---- environments that hang

RUN = """
import sys
from ipe.experiments.jobs import run_job
print(run_job(*sys.argv[1:3], hang_seconds=float(sys.argv[3])))
"""


def child(script: str, *words: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


@posix
@pytest.mark.slow
@pytest.mark.parametrize(("fault", "deaths"), [("hang", 1), ("hold", 2)])
def test_a_seed_that_hangs_is_given_up_and_the_others_go_on(tmp_path: Path, fault: str, deaths: int) -> None:
    options = BAD | {"fault": fault}
    store = stored(tmp_path / "store", small_sweep(seeds=3, frames=300, options=options))
    for _ in range(deaths):
        out = child(RUN, store.folder, only(store), 2.0)
        assert (out.returncode, out.stdout) == (1, "")
        if fault == "hang":
            assert "seed 1, frame " in out.stderr
            assert "the environment did not return within 2 seconds" in out.stderr
    out = child(RUN, store.folder, only(store), 2.0)
    assert (out.returncode, out.stdout) == (0, "done\n"), out.stderr
    ((_, outcomes),) = tables(store.folder).values()
    assert [own["status"] for own in outcomes] == ["done", "failed", "done"]
    assert outcomes[1]["reason"] == "the environment did not return within 2 seconds"
    nothing_is_left_over(store.folder)
    # The others are what they are where that environment raises instead, and the seed failed at the same frame.
    raising = stored(tmp_path / "raising", small_sweep(seeds=3, frames=300, options=BAD | {"fault": "raise"}))
    out = child(RUN, raising.folder, only(raising), 100)
    ((_, others),) = tables(raising.folder).values()
    assert [own["frame"] for own in others] == [own["frame"] for own in outcomes]
    from ipe.experiments.results import load_results

    assert load_results(store.folder).episodes.equals(load_results(raising.folder).episodes)


WATCH = """
import sys, time
from pathlib import Path
from ipe.experiments.watchdog import Watchdog
with Watchdog(Path(sys.argv[1]), [4, 7], 0.5) as dog:
    dog.pulse[1], dog.pulse[0] = int(sys.argv[3]), int(sys.argv[2])
    time.sleep(float(sys.argv[4]))
"""


@pytest.mark.slow
@posix
def test_the_watchdog_waits_for_environments_only(tmp_path: Path) -> None:
    assert child(WATCH, tmp_path, -1, 9, 1.5).returncode == 0, "compiling, or writing a checkpoint"
    assert read_hangs(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    out = child(WATCH, tmp_path, 1, 12, 60)
    assert out.returncode == 1
    assert out.stderr.startswith("ipe: seed 7, frame 12: the environment did not return within 0.5 seconds; ")
    assert read_hangs(tmp_path) == [Hang(7, 12, 0.5, True)]
    with Watchdog(tmp_path, [4, 7]) as dog:
        assert {seed: (own.status, own.frame) for seed, own in dog.give_up.items()} == {7: ("failed", 12)}
    assert child(WATCH, tmp_path, 0, 3, 60).returncode == 1
    assert {(own.seed, own.frame) for own in read_hangs(tmp_path)} == {(7, 12), (4, 3)}


@posix
def test_an_environment_that_hangs_as_it_is_made_fails_the_job(tmp_path: Path) -> None:
    assert child(WATCH, tmp_path, 0, -1, 60).returncode == 1
    with (
        Watchdog(tmp_path, [4, 7]) as dog,
        pytest.raises(InputError, match=r"within 0\.5 seconds when it was made"),
    ):
        _ = dog.give_up


@posix
@pytest.mark.slow
def test_a_process_that_was_suspended_has_not_hung(tmp_path: Path) -> None:
    script = WATCH.replace("0.5)", "2.0)")
    words = shlex.join([sys.executable, "-c", script, str(tmp_path), "1", "5", "1.0"])
    command = f"exec {words} & pid=$!; sleep 1.0; kill -STOP $pid; sleep 3; "
    out = subprocess.run(["sh", "-c", f"{command} kill -CONT $pid; wait $pid"], cwd=ROOT, check=False, timeout=120)
    assert out.returncode == 0
    assert read_hangs(tmp_path) == []


def test_a_damaged_record_of_hangs_is_none(tmp_path: Path) -> None:
    (tmp_path / "hang.json").write_text(json.dumps({"hangs": [{"seed": 3}]}))
    assert read_hangs(tmp_path) == []
