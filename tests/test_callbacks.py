"""Callbacks: what they hear, that they stop a seed at the same frame wherever it trains, and two trackers."""

from __future__ import annotations

import json
import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from ipe.deep import Callback, Ended, Evaluated, Started, Window, resume, train
from ipe.deep.callbacks import event_from, plain_event, plain_start
from ipe.errors import InputError
from ipe.experiments.reading import read_snapshot
from ipe.experiments.results import read_runs
from ipe.experiments.training import open_run
from tests.deep_helpers import DRIFT, small
from tests.test_evaluating import ALL, files

SETTINGS = small(DRIFT, frames=2300)
EVALUATED: dict[str, Any] = {"evaluate_every": 400, "evaluate_episodes": 2, "progress": False}


class Notebook(Callback):
    """Writes everything down, and stops a seed at the first evaluation or window at a frame."""

    def __init__(self, **stops: int) -> None:
        self.heard: list[Any] = []
        self.stops = {int(name.removeprefix("seed_")): frame for name, frame in stops.items()}

    def on_start(self, event: Started) -> None:
        self.heard.append(event)

    def on_window(self, event: Window) -> str | None:
        self.heard.append(event)
        return None

    def on_evaluation(self, event: Evaluated) -> str | None:
        self.heard.append(event)
        return "enough of it" if event.frame >= self.stops.get(event.seed, 10**9) else None

    def on_checkpoint(self, event: Any) -> None:
        self.heard.append(event)

    def on_end(self, event: Ended) -> None:
        self.heard.append(event)

    def of(self, seed: int, kind: type) -> list[Any]:
        return [event for event in self.heard if event.seed == seed and type(event) is kind]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Notebook]:
    """A run in this process whose seed 1 is stopped at the evaluation after frame 1200."""
    out, notebook = tmp_path_factory.mktemp("callbacks") / "run", Notebook(seed_1=1200)
    train(SETTINGS, seeds=2, out=out, processes=0, callbacks=[notebook], **EVALUATED)
    return out, notebook


def test_the_events_of_a_seed_in_their_order(straight: tuple[Path, Notebook]) -> None:
    folder, notebook = straight
    names = [(type(event).__name__, event.frame) for event in notebook.heard if event.seed == 0]
    assert names == [
        ("Started", 0),
        ("Evaluated", 400),
        ("Evaluated", 800),
        ("Window", 1000),
        ("Evaluated", 1200),
        ("Evaluated", 1600),
        ("Window", 2000),
        ("Evaluated", 2000),
        ("Window", 2300),
        ("Ended", 2300),
    ]
    (start,) = notebook.of(0, Started)
    assert (start.run, start.settings, start.past) == (folder, SETTINGS, ())
    runs = read_runs(folder)[0]
    rows = {row["frame"]: row for row in runs.progress.to_pylist() if row["seed"] == 0}
    for event in notebook.of(0, Window):
        assert {name: getattr(event, name) for name in ("epsilon", "td_error", "q_mean")} == {
            name: rows[event.frame][name] for name in ("epsilon", "td_error", "q_mean")
        }
        ended = [
            row["return"]
            for row in runs.episodes.to_pylist()
            if (row["seed"], row["frame"] <= event.frame) == (0, True)
        ]
        assert (event.episodes, event.mean_return) == (len(ended), pytest.approx(np.mean(ended[-20:])))
    means = [event.mean for event in notebook.of(0, Evaluated)]
    assert [event.best for event in notebook.of(0, Evaluated)] == [
        mean > max(means[:i], default=-np.inf) for i, mean in enumerate(means)
    ]


def test_a_seed_is_stopped_where_the_callback_says_and_the_others_go_on(straight: tuple[Path, Notebook]) -> None:
    folder, notebook = straight
    kept, stopped = read_runs(folder)[0].outcomes
    assert (kept.status, kept.frame, kept.reason) == ("done", 2300, "")
    assert (stopped.status, stopped.frame, stopped.reason) == ("done", 1200, "enough of it")
    assert notebook.of(1, Ended) == [Ended(1, 1200, "done", "enough of it")]
    assert max(event.frame for event in notebook.heard if event.seed == 1) == 1200


def test_the_networks_of_a_stopped_seed_are_those_of_its_last_frame(
    straight: tuple[Path, Notebook], tmp_path: Path
) -> None:
    train(small(DRIFT, frames=1200), seeds=2, out=tmp_path / "short", processes=0, progress=False)
    found, expected = (open_run(each).publication(open_run(each).jobs[0]) for each in (straight[0], tmp_path / "short"))
    assert found is not None
    assert expected is not None
    for name, array in expected.read_networks().items():
        assert array[1].tobytes() == found.read_networks()[name][1].tobytes()
        assert array[0].tobytes() != found.read_networks()[name][0].tobytes()


def test_a_callback_that_only_listens_changes_no_byte(tmp_path: Path) -> None:
    settings = small(DRIFT, frames=1100)
    for name, callbacks in (("with", [Notebook()]), ("without", [])):
        train(settings, seeds=2, out=tmp_path / name, processes=0, callbacks=callbacks, **EVALUATED)
    assert files(tmp_path / "with", *ALL) == files(tmp_path / "without", *ALL)


@pytest.mark.slow
def test_worker_processes_tell_the_same_events_and_stop_at_the_same_frame(
    straight: tuple[Path, Notebook], tmp_path: Path
) -> None:
    notebook = Notebook(seed_1=1200)
    train(SETTINGS, seeds=2, out=tmp_path / "run", processes=1, callbacks=[notebook], **EVALUATED)
    for seed in (0, 1):
        assert notebook.of(seed, Evaluated) == straight[1].of(seed, Evaluated)
        assert notebook.of(seed, Ended) == straight[1].of(seed, Ended)
    assert read_runs(tmp_path / "run")[0].outcomes == read_runs(straight[0])[0].outcomes
    assert files(tmp_path / "run", *ALL) == files(straight[0], *ALL)


class Interrupt(Notebook):
    """Stops the whole training by an exception at a frame."""

    def __init__(self, frame: int, **stops: int) -> None:
        super().__init__(**stops)
        self.frame = frame

    def on_evaluation(self, event: Evaluated) -> str | None:
        if event.frame == self.frame:
            raise RuntimeError("the tracker is gone")
        return super().on_evaluation(event)


@pytest.mark.slow
@pytest.mark.parametrize("frame", [800, 1600])
def test_an_exception_stops_with_a_checkpoint_is_raised_and_the_run_goes_on_to_the_same_bytes(
    straight: tuple[Path, Notebook], tmp_path: Path, frame: int
) -> None:
    first = Interrupt(frame, seed_1=1200)
    with pytest.raises(RuntimeError, match="the tracker is gone"):
        train(SETTINGS, seeds=2, out=tmp_path / "run", processes=0, callbacks=[first], **EVALUATED)
    assert {(event.seed, event.status) for event in first.heard if isinstance(event, Ended)} == {
        (seed, "interrupted") for seed in (0, 1)
    }
    store = open_run(tmp_path / "run")
    snapshot = read_snapshot(store, store.jobs[0])
    assert snapshot is not None
    second = Notebook(seed_1=1200)
    resume(tmp_path / "run", processes=0, callbacks=[second], progress=False)
    assert files(tmp_path / "run", *ALL) == files(straight[0], *ALL)
    (start,) = second.of(0, Started)
    assert start.frame == frame
    heard = [event for event in straight[1].heard if event.seed == 0 and isinstance(event, Window | Evaluated)]
    past = [event for event in heard if event.frame <= frame]
    assert [type(event) for event in start.past] == [type(event) for event in past]
    assert [event for event in start.past if isinstance(event, Evaluated)] == [
        event for event in past if isinstance(event, Evaluated)
    ]
    assert bool(second.of(1, Started)) == (frame < 1200)


class Killer(Notebook):
    """Kills the worker processes at an evaluation, once, and waits until they are gone."""

    def on_evaluation(self, event: Evaluated) -> str | None:
        from tests.sweep_helpers import alive, pool_workers, wait_for

        if event.frame == 1600 and not getattr(self, "killed", False):
            self.killed = pool_workers(os.getpid())
            for pid in self.killed:
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not any(map(alive, self.killed)))
        return super().on_evaluation(event)


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_the_seeds_come_to_the_same_bytes(
    straight: tuple[Path, Notebook], tmp_path: Path
) -> None:
    killer = Killer(seed_1=1200)
    more = EVALUATED | {"checkpoint_seconds": 0.0}
    train(SETTINGS, seeds=2, out=tmp_path / "run", processes=1, callbacks=[killer], **more)
    assert killer.killed
    assert len(killer.of(0, Started)) == 2
    assert files(tmp_path / "run", *ALL) == files(straight[0], *ALL)


def test_a_stopped_seed_stays_stopped_when_the_run_is_made_longer(tmp_path: Path) -> None:
    short = small(DRIFT, frames=400)
    more: dict[str, Any] = EVALUATED | {"evaluate_every": 200}
    train(short, seeds=2, out=tmp_path / "run", processes=0, callbacks=[Notebook(seed_1=200)], **more)
    resume(tmp_path / "run", frames=600, processes=0, progress=False)
    kept, stopped = read_runs(tmp_path / "run")[0].outcomes
    assert (kept.frame, stopped.frame, stopped.reason) == (600, 200, "enough of it")
    train(
        small(DRIFT, frames=600), seeds=2, out=tmp_path / "one", processes=0, callbacks=[Notebook(seed_1=200)], **more
    )
    assert files(tmp_path / "run", ".safetensors", ".best") == files(tmp_path / "one", ".safetensors", ".best")


def test_events_cross_between_processes_unchanged() -> None:
    window = Window(3, 1000, 7, None, 0.5, None, 1e-9, None, float("inf"), 12.5)
    evaluation = Evaluated(3, 1000, None, (1.0, None), (4, 5), False)
    for event in (window, evaluation, Ended(3, 7, "failed", "why")):
        assert event_from(json.loads(json.dumps(plain_event(event))))[1] == event
    content = json.loads(json.dumps(plain_start(3, 1000, [window, evaluation])))
    kind, start = event_from(content, run=Path("x"), settings=SETTINGS, evaluating=None)
    assert (kind, start) == ("start", Started(3, 1000, (window, evaluation), Path("x"), SETTINGS, None))


class Wrong(Callback):
    def on_window(self, event: Window) -> Any:
        return True


def test_wrong_callbacks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"callbacks\[0\] must be an ipe.deep.Callback, .*given as callback="):
        train(SETTINGS, out=tmp_path / "run", callbacks=[lambda progress: None])  # type: ignore[list-item]
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="on_window of Wrong must return None, or a text"):
        train(small(DRIFT, frames=50), out=tmp_path / "run", processes=0, callbacks=[Wrong()], progress=False)


# ---- trackers


def test_a_missing_tracker_is_a_sentence_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from ipe.integrations import MlflowCallback, WandbCallback

    for name in ("wandb", "mlflow", "mlflow.tracking", "mlflow.entities"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(InputError, match=r'WandbCallback needs wandb, .*pip install "ipe-rl\[wandb\]"'):
        WandbCallback()
    with pytest.raises(InputError, match=r'MlflowCallback needs MLflow, .*pip install "ipe-rl\[mlflow\]"'):
        MlflowCallback()


@pytest.fixture
def without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any connection to another machine is an error."""
    import socket

    def refuse(self: Any, address: Any) -> Any:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a connection to {address}")
        return connect(self, address)

    connect = socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.slow
@pytest.mark.usefixtures("without_a_network")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
def test_weights_and_biases_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed: pip install wandb")
    from ipe.integrations import WandbCallback

    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    notebook = Notebook(seed_1=400)
    tracker = WandbCallback("tests", mode="offline", dir=str(tmp_path))
    settings = small(DRIFT, frames=1200)
    train(settings, seeds=2, out=tmp_path / "run", processes=0, callbacks=[notebook, tracker], **EVALUATED)
    written = [read_wandb(path) for path in tmp_path.glob("wandb/offline-run-*/*.wandb")]
    by_seed = {run["config"]["seed"]: run for run in written}
    assert set(by_seed) == {0, 1}
    for seed, run in by_seed.items():
        assert run["config"]["width"] == 16
        assert (run["project"], run["group"]) == ("tests", "run")
        found = {row["_step"]: row for row in run["history"]}
        for event in [*notebook.of(seed, Window), *notebook.of(seed, Evaluated)]:
            for name, value in event.metrics().items():
                assert found[event.frame][name] == pytest.approx(value)
    assert set(by_seed[1]["config"]) >= {"environment.id", "evaluation.every"}
    assert [row["_step"] for row in by_seed[1]["history"]] == [400]


def wandb_records(content: bytes) -> Iterator[bytes]:
    """The records of a file of Weights & Biases: LevelDB's log format, blocks of 32 KiB, after a header of 7 bytes."""
    assert content[:4] == b":W&B"
    at, record = 7, b""
    while at + 7 <= len(content):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        length, kind = struct.unpack("<HB", content[at + 4 : at + 7])
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield record
            record = b""


def read_wandb(path: Path) -> dict[str, Any]:
    """What the file of an offline run of Weights & Biases holds."""
    from wandb.proto.wandb_internal_pb2 import Record

    out: dict[str, Any] = {"config": {}, "history": []}
    for data in wandb_records(path.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        kind = record.WhichOneof("record_type")
        if kind == "run":
            out |= {"project": record.run.project, "group": record.run.run_group}
            items = record.run.config.update
            out["config"] |= {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}
        elif kind == "history":
            row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            out["history"].append(row | {"_step": record.history.step.num})
    return out


@pytest.mark.slow
@pytest.mark.usefixtures("without_a_network")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
def test_mlflow_in_a_database_interrupted_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed: pip install mlflow-skinny sqlalchemy alembic")
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed, which MLflow's sqlite store needs")
    from mlflow.tracking import MlflowClient

    from ipe.integrations import MlflowCallback

    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path / 'runs.db'}"
    settings, first, second = small(DRIFT, frames=2300), Interrupt(1600), Notebook()
    with pytest.raises(RuntimeError, match="the tracker is gone"):
        train(settings, seeds=2, out="run", processes=0, callbacks=[MlflowCallback("tests", uri), first], **EVALUATED)
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("tests")
    assert {run.info.status for run in client.search_runs([experiment.experiment_id])} == {"KILLED"}
    resume("run", processes=0, callbacks=[MlflowCallback("tests", uri), second], progress=False)
    runs = {run.data.tags["ipe.seed"]: run for run in client.search_runs([experiment.experiment_id])}
    assert set(runs) == {"0", "1"}
    table = read_runs("run")[0].evaluations.to_pylist()
    for seed, run in runs.items():
        assert (run.info.status, run.data.params["width"], run.data.tags["ipe.status"]) == ("FINISHED", "16", "done")
        history = client.get_metric_history(run.info.run_id, "evaluation/return")
        assert [(each.step, each.value) for each in history] == [
            (row["frame"], row["mean"]) for row in table if str(row["seed"]) == seed
        ]
        windows = client.get_metric_history(run.info.run_id, "training/return")
        assert [each.step for each in windows] == [1000, 2000, 2300]
