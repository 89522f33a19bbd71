"""Training over processes: stopped, killed, resumed, extended, refused; the same bytes whatever happened on the way."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("gymnasium")


from ipe.base.sealed import open_sealed, sealed_bytes
from ipe.deep import TrainingResult, TrainingSettings, evaluate, resume, train
from ipe.deep.batches import most_seeds, split_seeds
from ipe.deep.checkpoints import load_checkpoint
from ipe.deep.environments import episode_seed
from ipe.errors import InputError
from ipe.experiments.engine import run_sweep
from ipe.experiments.grids import make_sweep
from ipe.experiments.results import load_results, read_runs
from ipe.experiments.status import sweep_status
from ipe.experiments.training import open_run
from tests.deep_helpers import DRIFT, small
from tests.environment_helpers import OWN
from tests.needs import ROOT, needs_box2d, needs_minatar, posix
from tests.old_layout import create_run, write_run


@pytest.fixture(autouse=True)
def no_child_survives() -> Iterator[None]:
    """Whatever a test leaves running when it fails ends with it."""
    yield
    while Child.living:
        Child.living.pop().kill_all()


def outcome_of(folder: Path) -> dict[str, Any]:
    """All that a run leaves, but for how fast and how long: the bytes of its results, by job."""
    store = open_run(folder)
    manifests = [store.publication(job) for job in store.jobs]
    found = {manifest.job: manifest for manifest in manifests if manifest is not None}
    return {
        "records": {job: manifest.file.read_bytes() for job, manifest in found.items()},
        "networks": {job: manifest.path.with_suffix(".safetensors").read_bytes() for job, manifest in found.items()},
        "episodes": load_results(folder, unfinished=True).episodes.to_pydict(),
        "outcomes": read_runs(folder)[0].outcomes,
        "done": [manifest is not None for manifest in manifests],
    }


def networks_of(folder: Path) -> dict[str, Any]:
    """The networks of all seeds of a finished run, in the order of its jobs."""
    store = open_run(folder)
    manifests = [store.publication(job) for job in store.jobs]
    every = [manifest.read_networks() for manifest in manifests if manifest is not None]
    return {name: np.concatenate([networks[name] for networks in every]) for name in every[0]}


def same_bytes(a: Path, b: Path) -> None:
    found, expected = outcome_of(a), outcome_of(b)
    assert found == expected
    assert all(found["done"])


# ---- in this process


def here(folder: Path, settings: TrainingSettings, **others: Any) -> TrainingResult:
    return train(settings, out=folder, processes=0, **({"seeds": 2} | others))


def test_a_run_leaves_its_records_and_networks(tmp_path: Path) -> None:
    settings = small(DRIFT, frames=2300)
    seen = []
    out = here(tmp_path / "run", settings, seeds=[3, 1], callback=lambda progress: seen.append(progress))
    assert out.status == "done"
    assert [(own.seed, own.status, own.frame) for own in out.outcomes] == [(3, "done", 2300), (1, "done", 2300)]
    results = load_results(tmp_path / "run")
    assert out.episodes.to_pydict() == results.episodes.drop_columns(["setting"]).to_pydict()
    found = out.progress.drop_columns(["frames_per_second"]).to_pydict()
    assert found == results.progress.drop_columns(["setting"]).to_pydict()
    assert all(speed > 0 for speed in out.progress["frames_per_second"].to_pylist())
    assert out.progress["frame"].to_pylist() == [1000, 2000, 2300] * 2
    assert out.progress["seed"].to_pylist() == [1] * 3 + [3] * 3
    store = open_run(tmp_path / "run")
    assert store.sweep.settings[0].settings == settings
    (manifest,) = [store.publication(job) for job in store.jobs]
    assert manifest is not None
    assert {"jax", "numpy", "ipe", "products"} <= set(manifest.content["versions"])
    assert manifest.content["machine"]
    assert manifest.seconds > 0
    last = seen[-1]
    assert (last.frame, last.frames, [own.status for own in last.seeds]) == (2300, 2300, ["done", "done"])
    for own in last.seeds:
        returns = pa.compute.filter(out.episodes["return"], pa.compute.equal(out.episodes["seed"], own.seed))
        assert own.episodes == len(returns)
        assert own.mean_return == pytest.approx(pa.compute.mean(returns[-20:]).as_py())
        assert own.epsilon is not None
        assert 0 < own.epsilon <= 1


def test_a_failed_seed_is_told_and_the_others_are_done(tmp_path: Path) -> None:
    options = {"bad": episode_seed(1, 2), "fault": "raise"}
    out = here(tmp_path / "run", small(DRIFT, frames=300, environment={"options": options}))
    assert out.status == "done"
    assert [own.status for own in out.outcomes] == ["done", "failed"]
    assert "the wheel came off" in out.outcomes[1].reason
    for array in networks_of(tmp_path / "run").values():  # what else a lane has done is chance
        assert np.isfinite(array[0]).all()
        assert np.isnan(array[1]).all()


@pytest.mark.slow
def test_seeds_that_have_begun_can_be_used_when_others_have_not(tmp_path: Path) -> None:
    settings = small(DRIFT, frames=1200)
    out = train(settings, seeds=6, batch_seeds=2, processes=0, out=tmp_path / "run", callback=lambda own: own.frame > 0)
    assert out.status == "stopped"
    assert [own.frame > 0 for own in out.outcomes] == [True, True, False, False, False, False]
    found = evaluate(tmp_path / "run", episodes=2)
    assert [own.seed for own in found.seeds] == [0, 1]
    assert found.left_out[5] == "was not begun when training was stopped"
    resume(tmp_path / "run", processes=0)
    train(settings, seeds=6, batch_seeds=2, processes=0, out=tmp_path / "straight")
    same_bytes(tmp_path / "run", tmp_path / "straight")
    assert sweep_status(tmp_path / "run").total.done == 6


@pytest.mark.slow
def test_a_callback_that_returns_true_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = small(DRIFT, frames=2000)
    straight = here(tmp_path / "straight", settings)
    assert straight.status == "done"
    monkeypatch.setattr("ipe.experiments.jobs.REPORT_SECONDS", 0.0)
    stopped = here(tmp_path / "run", settings, callback=lambda progress: progress.frame >= 700)
    assert stopped.status == "stopped"
    assert [own.status for own in stopped.outcomes] == ["running", "running"]
    checkpoint = load_checkpoint(work(tmp_path / "run"))
    assert checkpoint is not None
    assert checkpoint.frame == 700
    assert [own.frame for own in stopped.outcomes] == [700, 700]
    assert stopped.episodes["frame"].to_pylist() == [
        frame for frame in straight.episodes["frame"].to_pylist() if frame <= 700
    ]
    assert resume(tmp_path / "run", processes=0).status == "done"
    same_bytes(tmp_path / "run", tmp_path / "straight")


def test_a_large_checkpoint_is_announced_when_a_training_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipe.experiments.jobs.REPORT_SECONDS", 0.0)
    said: list[str] = []

    def stopped(name: str) -> None:
        result = here(
            tmp_path / name, small(DRIFT, frames=200), callback=lambda progress: progress.frame >= 20, say=said.append
        )
        assert result.status == "stopped"

    stopped("small")
    assert said == []
    monkeypatch.setattr("ipe.experiments.training._LARGE", 1)
    stopped("large")
    assert len(said) == 1
    assert said[0].startswith("stopping: each process writes a checkpoint of up to ")


def work(folder: Path) -> Path:
    """Where the only job of a run has its checkpoints."""
    (found,) = (folder / "work").iterdir()
    return found


def stop_at(folder: Path, settings: TrainingSettings, *frames: int) -> None:
    """A run that was stopped at some frames, one after the other, with a checkpoint at each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ipe.experiments.jobs.REPORT_SECONDS", 0.0)
        for i, frame in enumerate(frames):

            def callback(progress: Any, frame: int = frame) -> bool:
                return bool(progress.frame >= frame)

            if i == 0:
                here(folder, settings, callback=callback)
            else:
                resume(folder, processes=0, callback=callback)


def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path: Path) -> None:
    settings = small(DRIFT, frames=1500)
    here(tmp_path / "straight", settings)
    stop_at(tmp_path / "run", settings, 400, 800)
    newest = sorted(work(tmp_path / "run").glob("*.safetensors"))[-1]
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    out = resume(tmp_path / "run", processes=0)
    assert any("damaged" in note for note in out.notes)
    same_bytes(tmp_path / "run", tmp_path / "straight")


@pytest.mark.slow
@pytest.mark.parametrize("first", [1000, 1300])
def test_a_run_with_more_frames_is_a_longer_run(tmp_path: Path, first: int) -> None:
    here(tmp_path / "run", small(DRIFT, frames=first))
    resume(tmp_path / "run", processes=0, frames=2500)
    here(tmp_path / "straight", small(DRIFT, frames=2500))
    if first % 1000 == 0:
        same_bytes(tmp_path / "run", tmp_path / "straight")
    found, expected = outcome_of(tmp_path / "run"), outcome_of(tmp_path / "straight")
    assert found["episodes"] == expected["episodes"]
    assert found["networks"] == expected["networks"]
    with pytest.raises(InputError, match="frames: the run has 2500, and can be given more, not fewer"):
        resume(tmp_path / "run", processes=0, frames=2000)
    with pytest.raises(InputError, match=r"^frames: .* found 10000000000"):
        resume(tmp_path / "run", processes=0, frames=10**10)
    assert open_run(tmp_path / "run").sweep.settings[0].settings.frames == 2500
    assert sweep_status(tmp_path / "run").problems == []
    assert load_results(tmp_path / "run").problems == []


def test_a_run_that_is_done_stays_so(tmp_path: Path) -> None:
    here(tmp_path / "run", small(DRIFT, frames=500))
    before = outcome_of(tmp_path / "run")
    assert resume(tmp_path / "run", processes=0).status == "done"
    assert outcome_of(tmp_path / "run") == before


# ---- earlier versions, and sweeps


def test_a_run_of_an_earlier_version_is_read_and_resumed(tmp_path: Path) -> None:
    """The same checkpoints, under the names of that layout: a stopped run, which goes on as if nothing had happened."""
    settings = small(DRIFT, frames=1500)
    here(tmp_path / "straight", settings)
    stop_at(tmp_path / "new", settings, 700)
    run = create_run(tmp_path / "run", settings, [[0, 1]])
    shutil.copytree(work(tmp_path / "new"), tmp_path / "run" / "batches" / "0")
    for path in (tmp_path / "run" / "batches" / "0").glob("checkpoint-*.json"):
        path.write_bytes(path.read_bytes().replace(b'",\n"content"', b'", "content"'))
    outcomes = [{"seed": seed, "status": "running", "frame": 700, "reason": ""} for seed in (0, 1)]
    write_run(tmp_path / "run", run.content | {"status": "stopped", "outcomes": outcomes})
    status = sweep_status(tmp_path / "run")
    assert (status.total.waiting, status.total.frames_done) == (2, 1400)
    assert resume(tmp_path / "run", processes=0).status == "done"
    same_bytes(tmp_path / "run", tmp_path / "straight")


@pytest.mark.slow
def test_a_sweep_that_keeps_networks_is_evaluated_setting_by_setting(tmp_path: Path) -> None:
    base = {"environment": DRIFT, "width": 16, "batch": 8, "replay": 64, "frames": 200}
    sweep = make_sweep({"name": "two", "seeds": 2, "base": base, "grid": {"gamma": [0.5, 0.9]}})
    for keep in (True, False):
        folder = tmp_path / str(keep)
        assert run_sweep(sweep, folder, shard=(0, 1), keep_networks=keep).status == "done"
        assert list((folder / "work").glob("*")) == []
        with pytest.raises(InputError, match="is a sweep of 2 settings; say which one is meant by its name, for inst"):
            evaluate(folder, episodes=1)
        with pytest.raises(InputError, match=r"has no setting 'gamma=0.8' \(did you mean gamma=0"):
            evaluate(folder, episodes=1, setting="gamma=0.8")
        with pytest.raises(InputError, match=r"holds a sweep of 2 settings; go on with: ipe sweep --resume"):
            resume(folder)
    found = evaluate(tmp_path / "True", episodes=2, setting="gamma=0.9")
    assert [own.seed for own in found.seeds] == [0, 1]
    with pytest.raises(InputError, match="has not kept its networks, which this needs"):
        evaluate(tmp_path / "False", episodes=1, setting="gamma=0.9")
    trained = here(tmp_path / "run", sweep.settings[1].settings)
    assert trained.episodes.num_rows == len(load_results(tmp_path / "True").episodes_of(1))
    (one,) = (tmp_path / "run").glob("results/*/*.safetensors")
    (other,) = (tmp_path / "True" / "results" / sweep.settings[1].key).glob("*.safetensors")
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("how", ["flipped", "missing"])
def test_a_result_whose_networks_are_damaged_is_made_again(tmp_path: Path, how: str) -> None:
    here(tmp_path / "run", small(DRIFT, frames=300))
    before = outcome_of(tmp_path / "run")
    (path,) = (tmp_path / "run").glob("results/*/*.safetensors")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content) if how == "flipped" else path.unlink()
    with pytest.raises(InputError, match=r"safetensors: it is (damaged|missing)"):
        evaluate(tmp_path / "run", episodes=1)
    assert resume(tmp_path / "run", processes=0).status == "done"
    assert outcome_of(tmp_path / "run") == before


# ---- refusals


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown environment": ({"settings": small("NoSuch-v0")}, "NoSuch-v0"),
    "continuous actions": (
        {"settings": small(OWN + "Spaces-v0", environment={"options": {"action": "box"}})}, "Discrete"),
    "an environment that fails at once": ({"settings": small(OWN + "Faulty-v0")}, "nan"),
    "an image too small for the convolution": (
        {"settings": small(
            "tests.deep_environments:Pixels-v0", environment={"options": {"height": 2}, "channel_order": "last"})},
        "3 by 3"),
    "no seeds": ({"seeds": 0}, "seeds must be from 1 to a million, found 0"),
    "a seed twice": ({"seeds": [1, 2, 1]}, r"seeds\[2\] = 1 is there twice"),
    "a negative seed": ({"seeds": [0, -1]}, r"seeds\[1\] must be a whole number from 0 to 2\^63 - 1, found -1"),
    "a seed too large": ({"seeds": [2**63]}, r"seeds\[0\]"),
    "seeds in a text": ({"seeds": "12"}, "seeds must be how many, or a list of which, found '12'"),
    "half a seed": ({"seeds": [1.5]}, r"seeds\[0\] must be a whole number"),
    "no seeds per batch": ({"batch_seeds": 0}, "batch_seeds must lie between 1 and"),
    "several images per batch": (
        {"settings": small(OWN + "Catch-v0"), "batch_seeds": 2}, "batch_seeds must lie between 1 and 1, found 2"),
    "less than no processes": ({"processes": -1}, "processes must be 0 or more"),
    "no time": ({"checkpoint_seconds": float("nan")}, "checkpoint_seconds"),
    "less than no time": ({"checkpoint_seconds": -1.0}, "checkpoint_seconds"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("processes", [0, 2])
def test_a_refusal_writes_nothing(name: str, processes: int, tmp_path: Path) -> None:
    arguments, sentence = REFUSED[name]
    settings = arguments.get("settings", small(DRIFT))
    others = {"processes": processes} | {key: value for key, value in arguments.items() if key != "settings"}
    with pytest.raises(InputError, match=sentence):
        train(settings, out=tmp_path / "run", **others)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("processes", [0, 2])
def test_what_this_machine_does_not_have_is_refused_before_anything_is_written(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("IPE_PRODUCTS", "foo")
        with pytest.raises(InputError, match="IPE_PRODUCTS: must be native or xla, found 'foo'"):
            train(small(DRIFT), out=tmp_path / "run", processes=processes)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "tensorboardX.record_writer", None)
        with pytest.raises(InputError, match="a TensorBoard file needs tensorboardX"):
            train(small(DRIFT), out=tmp_path / "run", processes=processes, tensorboard=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_and_a_folder_that_is_no_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder"):
        here(tmp_path / "full", small(DRIFT))
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]
    with pytest.raises(InputError, match="there is no run"):
        resume(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"holds no sweep and no training run: there is no sweep\.json"):
        resume(tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]


def test_a_run_of_wrong_settings_is_refused_with_the_field(tmp_path: Path) -> None:
    here(tmp_path / "run", small(DRIFT, frames=5))
    path = tmp_path / "run" / "sweep.json"
    content = open_sealed(path.read_bytes())
    content["sweep"]["settings"][0]["settings"]["gamma"] = 2.0
    path.write_bytes(sealed_bytes(content, "sweep"))
    with pytest.raises(InputError, match=r"sweep\.json: settings\[0\]\.settings: gamma: "):
        resume(tmp_path / "run")


def test_seeds_are_split_over_processes() -> None:
    assert split_seeds(range(30), 8, 2) == [list(range(i, i + n)) for i, n in ((0, 8), (8, 8), (16, 7), (23, 7))]
    assert split_seeds([5], 8, 2) == [[5]]
    assert split_seeds(range(3), 1, 2) == [[0], [1], [2]]
    assert split_seeds(range(4), 8, 2) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("batch", "actions", "seeds"), [(32, 4, 16), (128, 4, 7), (256, 3, 5), (512, 4, 1), (1024, 3, 1)]
)
def test_as_many_seeds_at_once_as_give_the_same_bytes(batch: int, actions: int, seeds: int) -> None:
    assert most_seeds(small(DRIFT, batch=batch), False, actions) == seeds


# ---- processes, and their ends

CHILD = """
import json, pathlib, sys
from ipe.deep import resume, train
from ipe.deep.settings import read_settings

def begun(progress):
    pathlib.Path(folder).with_suffix(".begun").touch()

folder, content, arguments = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
if content is None:
    print(resume(folder, callback=begun, **arguments).status)
else:
    print(train(read_settings(content), out=folder, callback=begun, **arguments).status)
"""

COMMON: dict[str, Any] = {"processes": 2, "checkpoint_seconds": 0.2}


def _words(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Child:
    """A process that trains or resumes, in a session of its own."""

    living: ClassVar[list[Child]] = []

    def __init__(self, folder: Path, settings: TrainingSettings | None, **arguments: Any) -> None:
        content = "null" if settings is None else settings.model_dump_json()
        words = [sys.executable, "-c", CHILD, str(folder), content, json.dumps(COMMON | arguments)]
        self.folder = folder
        self.process = subprocess.Popen(
            words, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.living.append(self)

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = [int(word) for word in children.read_text().split()] if children.exists() else []
        return [pid for pid in found if b"ipe.experiments.worker" in _words(pid)]

    def wait_for(self, condition: Callable[[], bool], seconds: float = 60.0) -> bool:
        """Until it holds; False if the process ended before."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < deadline, "waited too long"
            time.sleep(0.02)
        return True

    def works(self) -> bool:
        return self.workers() != []

    def reports(self) -> bool:
        return self.folder.with_suffix(".begun").exists()

    def progresses(self) -> Callable[[], bool]:
        """Whether there is a newer checkpoint than now."""
        before = self.frames()
        return lambda: self.frames() > before

    def frames(self) -> int:
        """Of the newest checkpoints of all batches, added up."""
        total = 0
        for folder in self.folder.glob("work/*"):
            names = sorted(path.name for path in folder.glob("checkpoint-*.json"))
            total += int(names[-1].split("-")[1]) if names else 0
        return total

    def kill_all(self) -> None:
        """With -9: the process, its group, and the workers, which have groups of their own."""
        for pid in self.workers():
            _kill(pid)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def end(self) -> tuple[int, str, str]:
        out, errors = self.process.communicate(timeout=120)
        return self.process.returncode, out.strip(), errors


def kill_at_random(folder: Path, settings: TrainingSettings, arguments: dict[str, Any], kills: int, rng: Any) -> int:
    """Train, and kill everything, or a worker, again and again; returns how often something was killed."""
    done = 0
    child = Child(folder, settings, **arguments)
    arguments = {name: value for name, value in arguments.items() if name not in ("seeds", "batch_seeds")}
    for i in range(kills):
        # The first time while it compiles, before any checkpoint; later after some progress.
        alive = child.wait_for(child.works if i == 0 else child.progresses())
        time.sleep(rng.uniform(0.0, 0.6))
        workers = child.workers() if alive else []
        done += bool(workers)
        if i % 2 == 1 and workers:
            _kill(rng.choice(workers))  # it is replaced, and its job goes on
        else:
            child.kill_all()
            child = Child(folder, None, **arguments)
    code, status, errors = child.end()
    assert (code, status, errors) == (0, "done", "")
    return done


KILLED = [
    pytest.param(DRIFT, {"seeds": 2}, {"frames": 8_000}, 2, id="Drift", marks=pytest.mark.slow),
    pytest.param(
        "LunarLander-v3", {"seeds": 3, "batch_seeds": 2}, {"frames": 12_000, "width": 64, "replay": 5000}, 5,
        id="LunarLander", marks=[needs_box2d, pytest.mark.slow]),
    pytest.param(
        "minatar/Freeway", {"seeds": 1}, {"frames": 6_000, "width": 64, "replay": 5000}, 5,
        id="Freeway", marks=[needs_minatar, pytest.mark.slow]),
]  # fmt: skip


@posix
@pytest.mark.parametrize(("environment", "arguments", "changes", "kills"), KILLED)
def test_killed_and_resumed_equals_undisturbed(
    environment: str, arguments: dict[str, Any], changes: dict[str, Any], kills: int, tmp_path: Path
) -> None:
    settings = small(environment, **changes)
    straight = train(settings, out=tmp_path / "straight", **(COMMON | arguments))
    assert straight.status == "done"
    assert kill_at_random(tmp_path / "run", settings, arguments, kills, random.Random(0)) >= min(kills, 3)
    same_bytes(tmp_path / "run", tmp_path / "straight")


@posix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "to"),
    [(signal.SIGTERM, "one"), (signal.SIGINT, "group")],
)
def test_a_signal_stops_with_a_checkpoint(number: int, to: str, tmp_path: Path) -> None:
    child = Child(tmp_path / "run", small("CartPole-v1", frames=10**6), seeds=4, checkpoint_seconds=1000.0)
    assert child.wait_for(child.reports)
    (os.kill if to == "one" else os.killpg)(child.process.pid, number)
    code, _, errors = child.end()
    assert code == -signal.SIGINT or "KeyboardInterrupt" in errors
    status = sweep_status(tmp_path / "run")
    assert (status.total.running, status.total.waiting) == (0, 4)
    folders = list((tmp_path / "run" / "work").iterdir())
    assert len(folders) == 2
    assert all(load_checkpoint(folder) is not None for folder in folders)
    assert child.frames() > 0


@posix
@pytest.mark.slow
def test_workers_whose_parent_is_gone_write_a_checkpoint_and_end(tmp_path: Path) -> None:
    settings = small("CartPole-v1", frames=20_000)
    arguments = {"seeds": 4, "checkpoint_seconds": 1000.0}
    train(settings, out=tmp_path / "straight", **(COMMON | arguments))
    child = Child(tmp_path / "run", settings, **arguments)
    assert child.wait_for(child.reports)
    workers = child.workers()
    child.process.kill()
    child.process.wait()
    # Nobody waits for the old workers: those of the new run do, until the last checkpoint is written.
    assert resume(tmp_path / "run", **COMMON).status == "done"
    child.process.communicate()
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    same_bytes(tmp_path / "run", tmp_path / "straight")


@posix
@pytest.mark.slow
def test_only_one_training_of_a_run(tmp_path: Path) -> None:
    child = Child(tmp_path / "run", small("CartPole-v1", frames=10**6), seeds=2, checkpoint_seconds=1000.0)
    try:
        assert child.wait_for(child.works)
        before = (tmp_path / "run" / "sweep.json").read_bytes()
        for frames in (None, 2 * 10**6):
            with pytest.raises(InputError, match="another process is training"):
                resume(tmp_path / "run", frames=frames)
        assert (tmp_path / "run" / "sweep.json").read_bytes() == before
    finally:
        child.kill_all()


def test_what_a_worker_refuses_is_told_here(tmp_path: Path) -> None:
    """A checkpoint that all is wrong with: the sentence comes from the worker, and no traceback."""
    settings = small(DRIFT, frames=400)
    stop_at(tmp_path / "run", settings, 200)
    for path in work(tmp_path / "run").glob("*.safetensors"):
        path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="none of the 1 checkpoints is valid"):
        resume(tmp_path / "run", processes=1)
