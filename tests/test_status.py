"""`ipe status` and what it shows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ipe.base.sealed import sealed_bytes
from ipe.cli import main
from ipe.cli.status import MOST_ROWS
from ipe.deep.settings import paper_settings
from ipe.experiments.declared import Setting, Sweep
from ipe.experiments.leases import newest_leases, read_lease
from ipe.experiments.status import sweep_status
from ipe.experiments.store import Store
from tests.store_helpers import files, make_setting, make_store, make_sweep, publish, publish_all


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Cases a and b, four seeds each, two a job, of 1000 frames: one job published, with a seed that failed."""
    sweep = Sweep("two", [0, 1, 2, 3], [make_setting("a", width=16), make_setting("b", width=32)], False)
    store = make_store(tmp_path / "sweep", sweep)
    publish(store, store.jobs[0], seed_1={"status": "failed", "frame": 300, "reason": "the environment raised"})
    return store


def test_runs_are_counted_by_what_they_are_at(store: Store) -> None:
    lease = store.lease(store.jobs[1], beat_seconds=0.1)
    assert lease is not None
    with lease:
        lease.note(frame=250, frames=1000, frames_per_second=100.0)
        lease.beat()
        status = sweep_status(store.folder)
        total = status.total
        assert (total.settings, total.runs, total.done, total.failed, total.diverged) == (2, 8, 1, 1, 0)
        assert (total.running, total.waiting) == (2, 4)
        assert (total.frames, total.frames_done) == (8000, 2500)
        assert status.frames_per_second == 200.0
        assert status.seconds_left == 5500 / 200
        assert [(own.name, own.runs, own.running) for own in status.cases] == [("a", 4, 2), ("b", 4, 0)]
        assert [own.state for own in status.jobs] == ["done", "running", "waiting", "waiting"]
        assert status.jobs[1].attempts == 1
        assert status.problems == []
        assert not status.finished
    status = sweep_status(store.folder)  # let go of: what it has is in its checkpoint
    assert (status.total.running, status.total.waiting, status.total.frames_done) == (0, 6, 2500)
    assert status.seconds_left is None


def test_one_setting_and_one_run_are_told_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_store(tmp_path, make_sweep((16,), (0,)))
    assert main(["status", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("small: 1 setting, 1 run\n")


def test_the_slowest_job_bounds_the_time_left(store: Store) -> None:
    for job in store.jobs[2:]:
        publish(store, job)
    lease = store.lease(store.jobs[1])
    assert lease is not None
    with lease:
        lease.note(frame=900, frames=1000, frames_per_second=0.5)
        lease.beat()
        assert sweep_status(store.folder).seconds_left == 200.0
        publish_now = sweep_status(store.folder).total
        assert publish_now.waiting == 0
    publish(store, store.jobs[1])
    status = sweep_status(store.folder)
    assert status.finished
    assert status.seconds_left == 0.0
    assert status.total.share == 1.0


def test_failed_attempts_and_dead_processes(store: Store) -> None:
    lease = store.lease(store.jobs[1])
    assert lease is not None
    with pytest.raises(RuntimeError), lease:
        raise RuntimeError("out of memory")
    status = sweep_status(store.folder)
    assert status.jobs[1].reason == "RuntimeError: out of memory"
    assert status.problems == ["setting 'a width=16', seeds 2-3: attempt 1 failed: RuntimeError: out of memory"]
    lease = store.lease(store.jobs[2], beat_seconds=1000.0)
    assert lease is not None
    path = newest_leases(store.leases_folder)[store.jobs[2].id]
    content = read_lease(path)
    assert content is not None
    content["owner"]["started"] = 1  # a process that is gone
    path.write_bytes(sealed_bytes(content, "claim"))
    assert sweep_status(store.folder).jobs[2].state == "waiting"
    content["owner"]["host"] = "elsewhere"
    path.write_bytes(sealed_bytes(content, "claim"))
    assert sweep_status(store.folder).jobs[2].state == "running"
    os.utime(path, (time.time() - 1000.0,) * 2)
    status = sweep_status(store.folder)
    assert status.jobs[2].state == "waiting"
    assert "no heartbeat from elsewhere for 1000 seconds" in status.problems[-1]
    path.write_bytes(b"damaged")
    assert "the lease is damaged" in sweep_status(store.folder).problems[-1]


def test_damage_is_seen(store: Store) -> None:
    publish_all_but_first(store)
    manifests = [store.publication(job) for job in store.jobs]
    assert all(manifests)
    first, second, third, _ = [manifest for manifest in manifests if manifest is not None]
    first.file.unlink()
    second.file.write_bytes(b"short")
    third.path.write_bytes(third.path.read_bytes()[:-1])
    status = sweep_status(store.folder)
    assert [own.state for own in status.jobs] == ["waiting"] * 3 + ["done"]
    said = ["it is missing", "it is damaged: 5 bytes instead of", "it is damaged: it is not what was written"]
    for words, problem in zip(said, status.problems, strict=True):
        assert words in problem


def publish_all_but_first(store: Store) -> None:
    for job in store.jobs[1:]:
        publish(store, job)


def test_the_table(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    lease = store.lease(store.jobs[1])
    assert lease is not None
    with lease:
        lease.note(frame=250, frames=1000, frames_per_second=10_000.0)
        lease.beat()
        before = files(store.folder / "results")
        assert main(["status", str(store.folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "two: 2 settings, 8 runs"
    assert lines[1] == "  runs    done 1, failed 1, diverged 0, running 2, waiting 4"
    assert lines[2] == "  frames  2.5k of 8k (31.2%); 20k per second now, about 1 s left"
    assert lines[4].split() == ["runs", "done", "failed", "diverged", "running", "waiting", "frames"]
    assert lines[5].split() == ["a", "width=16", "4", "1", "1", "0", "2", "0", "62.5%"]
    assert lines[6].split() == ["b", "width=32", "4", "0", "0", "0", "0", "4", "0.0%"]
    assert files(store.folder / "results") == before


def many(tmp_path: Path, cases: int) -> Path:
    settings = []
    for i in range(60):
        own = paper_settings("CartPole-v1", "epsilon-ipe", frames=1000, width=i + 1)
        case = f"case {i % cases}" if cases else ""
        settings.append(Setting(f"{case} width={i + 1}".strip(), case, {"width": i + 1}, own))
    store = make_store(tmp_path / f"many-{cases}", Sweep("many", [0], settings, False))
    publish(store, store.jobs[0])
    publish(store, store.jobs[-1], seed_0={"status": "diverged", "frame": 7, "reason": "inf"})
    for job in store.jobs[1:20]:
        lease = store.lease(job)
        assert lease is not None
        lease.release("no \x1b[2Jroom")
    return store.folder


def test_many_settings_are_shown_by_case_or_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(many(tmp_path, cases=3))]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in said[5:8]] == [["case", str(i), "20"] for i in range(3)]
    folder = many(tmp_path, cases=0)
    assert main(["status", str(folder)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("width=") for line in said) == MOST_ROWS
    assert any(line.startswith("width=60 ") for line in said)  # it diverged
    assert not any(line.startswith("width=1 ") for line in said)  # it is done
    assert "... and 30 settings more (--all)" in said
    assert "  ... and 9 more (--all)" in said
    assert main(["status", str(folder), "--all"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("width=") for line in said) == 60
    assert sum("failed: no ?[2Jroom" in line for line in said) == 19


def test_json(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(store.folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["total"]["failed"] == 1
    assert found["finished"] is False
    assert found["seconds_left"] is None
    assert [job["state"] for job in found["jobs"]] == ["done", "waiting", "waiting", "waiting"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "there is no folder nowhere"),
        (["."], "holds no sweep"),
        ([], "DIR is missing"),
        ([".", "--watch", "soon"], "--watch takes seconds from 0.1 to 86400, or nothing; found 'soon'"),
        ([".", "--watch", "0"], "--watch takes seconds"),
        ([".", "--wach"], "did you mean --watch"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["status", *words]) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.startswith("ipe status: ")
    assert said in out.err
    assert out.err.count("\n") == 1


def test_watching_ends_when_all_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = make_store(tmp_path, make_sweep((16,), range(2)))
    publish_all(store)
    assert main(["status", str(tmp_path), "--watch"]) == 0
    assert "nothing left to do" in capsys.readouterr().out


def test_watching_shows_what_changes_until_ctrl_c(store: Store) -> None:
    command = [sys.executable, "-m", "ipe", "status", str(store.folder), "--watch", "0.2", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["total"]["done"] == 1
    publish(store, store.jobs[1])
    while json.loads(process.stdout.readline())["total"]["done"] != 3:
        pass
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert err == ""


def test_in_a_terminal_the_table_is_drawn_in_place(store: Store) -> None:
    pty = pytest.importorskip("pty")
    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "ipe", "status", str(store.folder), "--watch", "0.2"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"}
    ) as own:
        os.close(theirs)
        seen = b""
        while seen.count(b"\x1b[J") < 3:
            seen += os.read(mine, 4096)
        own.send_signal(signal.SIGINT)
        assert own.wait(20) == 0
    os.close(mine)
    first, second = seen.split(b"\x1b[J")[1:3]
    assert first.count(b"\n") == 7
    assert b"two: 2 settings, 8 runs" in first
    assert second.rstrip().endswith(b"\x1b[7F")
