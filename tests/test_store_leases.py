"""Leases: of many that try, one has the job; who lost it knows; heartbeats decide, not clocks."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ipe.base.atomic import age, create_exclusive
from ipe.base.sealed import sealed_bytes
from ipe.errors import InputError
from ipe.experiments import leases
from ipe.experiments.leases import Lease, is_gone, newest_leases, read_lease, take_lease, this_process
from tests.tiers import tiered

QUICK: dict[str, float] = {"beat_seconds": 0.1, "stale_seconds": 0.6}


def take(folder: Path, name: str = "job") -> Lease:
    lease = take_lease(folder, name, **QUICK)
    assert lease is not None
    return lease


def content(lease: Lease) -> dict[str, Any]:
    found = read_lease(lease.path)
    assert found is not None
    return found


def disown(path: Path, **other: Any) -> None:
    """Make a lease's owner one of another host, of which nothing is known but the heartbeat."""
    found = read_lease(path)
    assert found is not None
    found["owner"] |= {"host": "elsewhere"} | other
    path.write_bytes(sealed_bytes(found, "claim", 2048))


def wait_until(condition: Any, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_one_at_a_time(tmp_path: Path) -> None:
    with take(tmp_path) as lease:
        assert take_lease(tmp_path, "job", **QUICK) is None
        assert content(lease)["owner"]["pid"] == os.getpid()
        with take(tmp_path, "other job"):
            assert set(newest_leases(tmp_path)) == {"job", "other job"}
    again = take(tmp_path)
    assert (again.generation, again.attempt) == (1, 2)
    again.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["other job.0.json"]


def test_names_that_begin_alike_are_different_jobs(tmp_path: Path) -> None:
    with take(tmp_path, "key-0-1-2"), take(tmp_path, "key-0-1-2.5"), take(tmp_path, "key-0-1-20"):
        assert set(newest_leases(tmp_path)) == {"key-0-1-2", "key-0-1-2.5", "key-0-1-20"}


def test_the_heartbeat_carries_the_note(tmp_path: Path) -> None:
    with take(tmp_path) as lease:
        lease.note(frame=7, frames=10, frames_per_second=2.5)
        wait_until(lambda: content(lease)["note"] == {"frame": 7, "frames": 10, "frames_per_second": 2.5})
        before = content(lease)["beat"]
        wait_until(lambda: content(lease)["beat"] > before + 2)
        with pytest.raises(InputError, match=r"note\.frame is a set"):
            lease.note(frame={1})
    assert content(lease)["state"] == "released"
    last = lease.path.read_bytes()
    time.sleep(0.4)
    assert lease.path.read_bytes() == last


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (RuntimeError("no more\nroom"), "failed", "RuntimeError: no more room"),
        (InputError("cannot write x: no room"), "failed", "cannot write x: no room"),
        (KeyboardInterrupt(), "released", ""),
        (leases.LeaseLostError("lost"), "released", ""),
    ],
)
def test_how_an_attempt_ended_is_kept(tmp_path: Path, error: BaseException, state: str, reason: str) -> None:
    lease = take(tmp_path)
    with pytest.raises(type(error)), lease:
        raise error
    found = content(lease)
    assert (found["state"], found["reason"]) == (state, reason)
    with take(tmp_path) as lease:  # and another may try at once
        assert lease.attempt == 2


def hold(folder: str, name: str) -> str:
    """A program that claims a job and then waits."""
    return f"""
import sys, time
from pathlib import Path
from ipe.experiments.leases import take_lease
lease = take_lease(Path({folder!r}), {name!r}, beat_seconds=0.1, stale_seconds=0.6)
print("held" if lease else "refused", flush=True)
for line in sys.stdin:
    print("lost" if lease.lost else "kept", lease.confirm(), flush=True)
"""


def started(folder: Path) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", hold(str(folder), "job")], **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_a_killed_process_has_its_lease_taken_over_at_once(tmp_path: Path) -> None:
    process = started(tmp_path)
    try:
        assert take_lease(tmp_path, "job") is None
        process.kill()  # and nobody has asked after it yet: it is a zombie
        wait_until(lambda: is_gone((read_lease(tmp_path / "job.0.json") or {})["owner"]))
        begin = time.monotonic()
        lease = take_lease(tmp_path, "job", beat_seconds=60.0, stale_seconds=3600.0)
        assert lease is not None
        assert time.monotonic() - begin < 5.0
        lease.release()
    finally:
        ended(process)


def test_a_stopped_process_loses_its_lease_and_notices_when_it_wakes_up(tmp_path: Path) -> None:
    process = started(tmp_path)
    try:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: age(tmp_path / "job.0.json") > 1.0)
        with take(tmp_path) as lease:
            process.send_signal(signal.SIGCONT)
            time.sleep(0.5)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("and now?\n")
            process.stdin.flush()
            assert process.stdout.readline() == "lost False\n"
            assert lease.confirm()
            assert not lease.lost
    finally:
        ended(process)


def test_who_wakes_up_while_watched_keeps_its_lease(tmp_path: Path) -> None:
    """The machine was suspended: the lease is old by any clock, but its owner is there again."""
    with take(tmp_path) as lease:
        lease._lock.acquire()  # the thread cannot beat
        time.sleep(0.8)
        os.utime(lease.path, (1.0, 1.0))
        assert age(lease.path) > 1000.0
        lease._lock.release()
        assert take_lease(tmp_path, "job", **QUICK) is None
        assert lease.confirm()


def test_the_heartbeat_of_another_host_is_what_counts(tmp_path: Path) -> None:
    with take(tmp_path) as lease:
        lease._content["owner"] |= {"host": "elsewhere", "pid": 2**30}
        lease.beat()
        time.sleep(1.0)  # several times as long as a silent one is waited for
        assert take_lease(tmp_path, "job", **QUICK) is None
        lease._over.set()  # its machine is switched off
        assert take_lease(tmp_path, "job", **QUICK) is None
        wait_until(lambda: age(lease.path) > 0.7)
        with take(tmp_path) as successor:
            assert successor.generation == 1


@pytest.mark.parametrize("hours", tiered([-5.0, 5.0], 5.0))
def test_a_host_whose_clock_is_wrong_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() + 3600.0 * hours)
    lease = take(tmp_path)
    disown(lease.path)
    monkeypatch.setattr(time, "time", true)
    lease._over.set()
    assert take_lease(tmp_path, "job", **QUICK) is None
    wait_until(lambda: age(lease.path) > 0.7)
    take(tmp_path).release()


def test_a_lease_is_not_confirmed_once_it_is_taken_over_or_removed(tmp_path: Path) -> None:
    lease = take(tmp_path)
    assert lease.confirm()
    assert lease.generation == 1
    disown(tmp_path / "job.1.json", pid=1)
    (tmp_path / "job.2.json").write_bytes(b"of another")
    assert not lease.confirm()
    assert lease.lost
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    lease.release()  # writes into nobody's file
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    other = take(tmp_path, "other")
    other.path.unlink()
    assert not other.confirm()
    assert other.lost


def test_the_thread_notices_a_successor(tmp_path: Path) -> None:
    with take(tmp_path) as lease:
        (tmp_path / "job.1.json").write_bytes(b"of another")
        wait_until(lambda: lease.lost)


@pytest.mark.parametrize("damage", tiered([b"", b"{", b'{"sha256": "no"}', bytes(3000)], b"{"))
def test_a_damaged_lease_is_waited_for_and_then_replaced(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "job.4.json").write_bytes(damage)
    assert read_lease(tmp_path / "job.4.json") is None
    assert take_lease(tmp_path, "job", **QUICK) is None
    wait_until(lambda: age(tmp_path / "job.4.json") > 0.7)
    with take(tmp_path) as lease:
        assert lease.generation == 5


def test_a_folder_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with take(tmp_path) as lease:
        assert take_lease(tmp_path, "job", **QUICK) is None
        assert lease.confirm()
        assert take_lease(tmp_path, "job", **QUICK) is None
    with take(tmp_path) as lease:
        assert lease.generation == 2
    assert not create_exclusive(lease.path, b"second")


def test_a_lost_answer_to_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network folder made the link, the answer got lost, and the second request finds the name taken."""
    real = os.link

    def twice(source: Any, target: Any) -> None:
        real(source, target)
        real(source, target)

    monkeypatch.setattr(os, "link", twice)
    assert create_exclusive(tmp_path / "a", b"mine")
    assert not create_exclusive(tmp_path / "a", b"another's")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"mine"}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match=r"cannot take the lease on job in .*file"):
        take_lease(tmp_path / "file", "job")


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_heartbeats_must_have_a_length(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(InputError, match="beat_seconds"):
        take_lease(tmp_path, "job", beat_seconds=seconds)


def test_a_number_that_was_given_again_is_another_process(tmp_path: Path) -> None:
    me = this_process()
    assert not is_gone(me)
    if not me["space"]:
        pytest.skip("this system does not say when a process started")
    assert is_gone(me | {"started": me["started"] - 1})
    assert is_gone(me | {"pid": 2**22 + 1})
    assert not is_gone(me | {"pid": 2**22 + 1, "space": "another boot"})
    assert not is_gone({})


def test_a_system_that_says_less_about_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_PROC", tmp_path / "nothing")
    leases._space.cache_clear()
    try:
        me = this_process()
        assert (me["space"], me["started"]) == ("", None)
        assert not is_gone(me)
        process = subprocess.Popen([sys.executable, "-c", ""])
        process.wait()
        assert is_gone(me | {"pid": process.pid})
    finally:
        leases._space.cache_clear()


ROUNDS, RACERS = 60, 4


def race(folder: str, me: int, barrier: Any, out: Any) -> None:
    """Rounds of claims on the same job: fresh ones, and ones whose owner is gone."""
    won = []
    for number in range(ROUNDS):
        barrier.wait()
        lease = take_lease(Path(folder), f"job-{number}", beat_seconds=5.0, stale_seconds=60.0)
        barrier.wait()
        won.append(lease is not None)
        if lease is not None:
            lease._over.set()
        if me == 0:  # make whatever is there a dead process's
            path = newest_leases(Path(folder))[f"job-{number}"]
            found = read_lease(path)
            assert found is not None
            found["owner"] |= {"started": 1}
            path.write_bytes(sealed_bytes(found, "claim", 2048))
        barrier.wait()
        lease = take_lease(Path(folder), f"job-{number}", beat_seconds=5.0, stale_seconds=60.0)
        won.append(lease is not None)
        barrier.wait()
    out.put((me, won))


@pytest.mark.slow
def test_many_rounds_of_a_race_have_one_winner_each(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, out = context.Barrier(RACERS), context.Queue()
    processes = [context.Process(target=race, args=(str(tmp_path), i, barrier, out)) for i in range(RACERS)]
    for process in processes:
        process.start()
    won = dict(out.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(60)
    winners = [sum(won[i][number] for i in range(RACERS)) for number in range(2 * ROUNDS)]
    assert winners == [1] * (2 * ROUNDS)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


def test_the_file_is_json(tmp_path: Path) -> None:
    with take(tmp_path) as lease:
        assert json.loads(lease.path.read_bytes())["content"]["job"] == "job"
