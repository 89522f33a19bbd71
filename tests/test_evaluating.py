"""Evaluation while training: greedy episodes beside the training, which is the same to the byte with and without."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from ipe.cli import main
from ipe.deep import evaluate, load_agent, resume, train, watch
from ipe.deep.checkpoints import load_checkpoint
from ipe.deep.environments import episode_seed, make_environment
from ipe.deep.evaluating import Evaluating, Kept, read_evaluating
from ipe.deep.greedy import environment_seed
from ipe.deep.loop import Loop
from ipe.deep.playing import Trained
from ipe.deep.tensorboard import TensorBoard
from ipe.errors import InputError
from ipe.experiments.engine import run_sweep
from ipe.experiments.frames import frame
from ipe.experiments.grids import changed, make_sweep
from ipe.experiments.halving import rung_folder
from ipe.experiments.results import load_results
from ipe.experiments.store import create_store, open_store
from ipe.experiments.trained import read_trained
from ipe.experiments.training import open_run
from ipe.studies.learning import halving as driver
from ipe.studies.learning.halving import run_halving
from tests.deep_helpers import DRIFT, advance, result, small
from tests.needs import Run, posix
from tests.sweep_helpers import small_sweep

EVALUATING = Evaluating(every=150, episodes=3)
FRAMES = 600


def evaluated(seeds: list[int], frames: int = FRAMES, evaluating: Evaluating | None = EVALUATING, **more: Any) -> Loop:
    loop = Loop([small(DRIFT, frames=FRAMES, **more)] * len(seeds), seeds, evaluating=evaluating)
    advance(loop, frames)
    return loop


def files(folder: Path, *suffixes: str) -> dict[str, bytes]:
    """The published files of a run with these suffixes, by job and suffix."""
    store = open_store(folder)
    manifests = [store.publication(job) for job in store.jobs]
    return {
        f"{each.job}{suffix}": each.path.with_suffix(suffix).read_bytes()
        for each in manifests
        if each is not None
        for suffix in suffixes
    }


ALL = (".parquet", ".safetensors", ".evaluations", ".best")


# ---- the loop


def test_training_is_the_same_to_the_byte_with_and_without() -> None:
    loop, without = evaluated([0, 1, 2]), evaluated([0, 1, 2], evaluating=None)
    for i in range(3):
        found = {name: value for name, value in result(loop, i).items() if not name.startswith("evaluations")}
        assert found == result(without, i)
    assert without.records.evaluations_table().num_rows == 0


def test_every_seed_has_its_evaluations() -> None:
    rows = evaluated([4, 2]).records.evaluations_table().to_pylist()
    assert [(row["seed"], row["frame"]) for row in rows] == list(itertools.product([2, 4], [150, 300, 450, 600]))
    for row in rows:
        assert len(row["returns"]) == len(row["lengths"]) == 3
        assert row["mean"] == pytest.approx(np.mean(row["returns"]), abs=1e-12)
        assert min(row["lengths"]) >= 1


@pytest.mark.parametrize("episodes", [1, 3])
def test_evaluations_depend_on_the_seed_alone_and_not_on_its_batch(episodes: int) -> None:
    evaluating = Evaluating(150, episodes)
    together, alone = evaluated([0, 1, 2], 300, evaluating), evaluated([1], 300, evaluating)
    assert result(together, 1) == result(alone, 0)


def test_an_evaluation_is_what_playing_greedily_by_hand_comes_to() -> None:
    loop = evaluated([3], 300)
    (row,) = [row for row in loop.records.evaluations_table().to_pylist() if row["frame"] == 300]
    settings = loop.settings[0]
    weights = loop.networks()
    first = settings.width * 3
    for k in range(3):
        environment = make_environment(settings.environment, environment_seed(3, k))
        environment.episode = 0  # the second evaluation plays the second episode
        observation, total, length, over = environment.reset(), 0.0, 0, False
        while not over:
            rest = weights["q.rest"][0].astype(np.float64)
            w = settings.width
            hidden = np.maximum(observation @ rest[:first].reshape(3, w) + rest[first : first + w], 0)
            hidden = np.maximum(hidden @ weights["q.matrix"][0] + rest[first + w : first + 2 * w], 0)
            values = hidden @ rest[first + 2 * w : first + 6 * w].reshape(w, 4) + rest[-4:]
            observation, reward, terminated, truncated = environment.step(int(values.argmax()))
            total, length, over = total + reward, length + 1, terminated or truncated
        assert (row["returns"][k], row["lengths"][k]) == (pytest.approx(total), length)


def test_a_resumed_loop_has_the_same_evaluations_and_best_networks() -> None:
    straight, half = evaluated([0, 1]), evaluated([0, 1], 200)
    resumed = Loop(half.settings, half.seeds, half.checkpoint(), evaluating=EVALUATING)
    advance(resumed, FRAMES)
    for i in range(2):
        assert result(resumed, i) == result(straight, i)
    found, expected = resumed.best.arrays(), straight.best.arrays()
    assert {name: array.tobytes() for name, array in found.items()} == {n: a.tobytes() for n, a in expected.items()}


def test_the_best_networks_are_those_of_the_best_mean() -> None:
    loop = Loop([small(DRIFT, frames=FRAMES)] * 2, [0, 1], evaluating=EVALUATING)
    seen: dict[tuple[int, int], Any] = {}
    while not loop.done:
        loop.advance()
        if EVALUATING.due(loop.frame):
            seen |= {(i, loop.frame): loop.networks()["q.matrix"][i] for i in range(2)}
    for i in range(2):
        means = {row["frame"]: row["mean"] for row in loop.records.evaluations_table().to_pylist() if row["seed"] == i}
        best = max(means, key=lambda at: means[at])
        assert (loop.best.frames[i], loop.best.scores[i]) == (best, means[best])
        assert np.array_equal(loop.best.networks["q.matrix"][i], seen[i, best])


def test_of_equal_scores_the_earlier_is_kept_and_nan_never() -> None:
    kept = Kept(1)
    assert not kept.keep_better(0, {"q": np.ones((1, 2))}, 10, np.nan)
    assert kept.keep_better(0, {"q": np.ones((1, 2))}, 20, -5.0)
    assert not kept.keep_better(0, {"q": np.zeros((1, 2))}, 30, -5.0)
    assert not kept.keep_better(0, {"q": np.zeros((1, 2))}, 40, np.nan)
    assert kept.keep_better(0, {"q": 2 * np.ones((1, 2))}, 50, -4.0)
    assert (kept.frames[0], kept.scores[0], kept.networks["q"].tolist()) == (50, -4.0, [[2.0, 2.0]])


@pytest.mark.slow
def test_an_environment_that_fails_in_an_evaluation_leaves_the_training_alone() -> None:
    options = {"bad": episode_seed(environment_seed(0, 1), 0), "fault": "raise"}
    environment = {"options": options}
    loop, without = (evaluated([0], 400, which, environment=environment) for which in (EVALUATING, None))
    found = {name: value for name, value in result(loop, 0).items() if not name.startswith("evaluations")}
    assert found == result(without, 0)
    first, second = loop.records.evaluations_table().to_pylist()
    assert first["mean"] is None
    assert [value is None for value in first["returns"]] == [False, True, False]
    assert second["mean"] is not None
    assert loop.best.frames[0] == 300
    assert "the wheel came off" in loop.notes[0]


@pytest.mark.slow
def test_a_seed_that_diverges_is_not_evaluated_any_more() -> None:
    loop = evaluated([0], FRAMES, value_step_size=1e30)
    assert loop.outcomes[0].status == "diverged"
    assert all(row["frame"] < loop.outcomes[0].frame for row in loop.records.evaluations_table().to_pylist())
    assert loop.best.frames[0] < loop.outcomes[0].frame


# ---- runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two seeds, evaluated every 400 of 1200 frames."""
    out = tmp_path_factory.mktemp("evaluated") / "run"
    settings = small(DRIFT, frames=1200)
    train(settings, seeds=2, out=out, processes=0, evaluate_every=400, evaluate_episodes=2, progress=False)
    return out


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, not evaluated."""
    out = tmp_path_factory.mktemp("plain") / "run"
    done = train(small(DRIFT, frames=1200), seeds=2, out=out, processes=0, progress=False)
    assert done.evaluations.num_rows == 0
    return out


def test_the_settings_keep_their_key_and_the_other_files_their_bytes(folder: Path, plain: Path) -> None:
    assert files(plain, *ALL[:2]) == files(folder, *ALL[:2])
    assert not list(plain.glob("results/*/*.best"))
    assert "evaluation" not in (plain / "sweep.json").read_text()


def test_a_run_that_was_stopped_between_evaluations_goes_on_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    settings, stops = small(DRIFT, frames=1200), iter([True])
    more: dict[str, Any] = {"seeds": 2, "evaluate_every": 400, "evaluate_episodes": 2, "progress": False}
    out = train(settings, out=tmp_path / "run", processes=0, callback=lambda _: next(stops, False), **more)
    for _ in range(2):
        if out.status == "stopped":
            checkpoint = load_checkpoint(open_run(tmp_path / "run").work_folder(open_run(tmp_path / "run").jobs[0]))
            assert checkpoint is not None
            out = resume(tmp_path / "run", processes=0, progress=False)
    assert files(tmp_path / "run", *ALL) == files(folder, *ALL)


def test_evaluations_are_read_back(folder: Path) -> None:
    results = load_results(folder)
    assert results.evaluations.column_names == ["setting", "seed", "frame", "mean", "returns", "lengths"]
    assert results.evaluations_of(0)["frame"].to_pylist() == [400, 800, 1200] * 2
    table = frame(folder, "evaluations")
    assert list(table["seed"]) == [0, 0, 0, 1, 1, 1]
    assert (table["mean"] - [np.mean(each) for each in table["returns"]]).abs().max() < 1e-12


def test_a_damaged_file_of_evaluations_or_best_networks_is_noticed(folder: Path) -> None:
    for suffix in (".evaluations", ".best"):
        (path,) = folder.glob(f"results/*/*{suffix}")
        content = path.read_bytes()
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        try:
            store = open_store(folder)
            assert store.publication(store.jobs[0]) is None
            if suffix == ".evaluations":
                assert "sha256 is another" in load_results(folder).problems[0]
        finally:
            path.write_bytes(content)
    assert open_store(folder).publication(open_store(folder).jobs[0]) is not None


def networks(trained: Trained, seed: int) -> Any:
    return trained.networks[seed]["q"]["matrix"]


def test_the_best_networks_are_loaded_evaluated_and_watched(folder: Path, tmp_path: Path) -> None:
    rows = load_results(folder).evaluations.to_pylist()
    best, last = read_trained(folder, which="best"), read_trained(folder)
    for seed in (0, 1):
        means = {row["frame"]: row["mean"] for row in rows if row["seed"] == seed}
        at = max(means, key=lambda each: means[each])
        (outcome,) = [outcome for outcome in best.outcomes if outcome.seed == seed]
        assert outcome.frame == at
        assert np.array_equal(networks(best, seed), networks(last, seed)) == (at == 1200)
        assert f"frame {at}" in repr(load_agent(folder, seed, which="best"))
    found = evaluate(folder, which="best", episodes=2)
    assert "the best networks, of frame" in found.policy
    assert len(found.seeds) == 2


def test_a_run_without_evaluations_has_no_best_networks(plain: Path, tmp_path: Path, run: Run) -> None:
    with pytest.raises(InputError, match="was not evaluated while it trained"):
        load_agent(plain, which="best")
    with pytest.raises(InputError, match="which must be one of"):
        watch(plain, tmp_path / "x.gif", which="first")  # type: ignore[arg-type]
    code, _, err = run("evaluate", str(plain), "--best")
    assert code == 2
    assert "--evaluate-every" in err


def test_the_command_line_shows_evaluations(folder: Path, run: Run, tmp_path: Path) -> None:
    words = ["--frames", "300", "--width", "16", "--batch", "8", "--replay", "64", "--processes", "0", "--out", "out"]
    code, out, err = run("train", DRIFT, *words, "--evaluate-every", "100", "--evaluate-episodes", "2")
    assert code == 0, err
    assert "greedy (best)" in out
    assert ", greedy " in err
    assert "ipe evaluate out --best" in out
    code, out, _ = run("evaluate", "out", "--best", "--episodes", "2")
    assert code == 0
    assert "the best networks, of frame" in out


def test_tensorboard_has_the_evaluations(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from tests.test_deep_tensorboard import scalars

    loop = evaluated([5], 300)
    with TensorBoard(tmp_path) as board:
        board.show(loop.records, 300)
    found = scalars(tmp_path / "seed-5")["evaluation/return"]
    means = {row["frame"]: row["mean"] for row in loop.records.evaluations_table().to_pylist()}
    assert found == pytest.approx(means, rel=1e-6)


# ---- sweeps


@pytest.mark.slow
def test_a_sweep_declares_evaluations_in_its_file(tmp_path: Path) -> None:
    sweep = small_sweep(seeds=1, frames=200)
    told = make_sweep({"name": "x", "base": {"environment": DRIFT, "frames": 200}, "evaluation": {"every": 100}})
    assert told.evaluating == Evaluating(100, 10)
    sweep = changed(sweep, evaluating=Evaluating(100, 2))
    assert run_sweep(sweep, tmp_path / "sweep", shard=(0, 1)).status == "done"
    results = load_results(tmp_path / "sweep")
    assert results.sweep.evaluating == Evaluating(100, 2)
    assert results.evaluations["frame"].to_pylist() == [100, 200]
    assert not list((tmp_path / "sweep").glob("results/*/*.best"))  # this sweep keeps no networks
    with pytest.raises(InputError, match="2 episodes every 100 frames there, and none in this sweep"):
        run_sweep(changed(small_sweep(seeds=2, frames=200)), tmp_path / "sweep", shard=(0, 1))


@pytest.mark.slow
def test_a_film_of_the_best_networks(run: Run, tmp_path: Path) -> None:
    settings = small("CartPole-v1", frames=600)
    out = train(settings, out=tmp_path / "run", processes=0, evaluate_every=200, evaluate_episodes=3, progress=False)
    means = dict(zip(out.evaluations["frame"].to_pylist(), out.evaluations["mean"].to_pylist(), strict=True))
    best = max(means, key=lambda frame: means[frame])
    code, printed, err = run("watch", str(tmp_path / "run"), "--best", "--out", str(tmp_path / "film.gif"))
    assert code == 0, err
    assert f"the best networks, of frame {best}" in printed
    assert (tmp_path / "film.gif").read_bytes()[:3] == b"GIF"


@pytest.mark.slow
def test_several_environments_are_evaluated_at_the_same_frames_and_train_on_to_the_same_bytes() -> None:
    loop = evaluated([0, 3], environments=2)
    without = evaluated([0, 3], evaluating=None, environments=2)
    rows = loop.records.evaluations_table().to_pylist()
    assert [(row["seed"], row["frame"]) for row in rows] == list(itertools.product([0, 3], [150, 300, 450, 600]))
    for i in range(2):
        found = {name: value for name, value in result(loop, i).items() if not name.startswith("evaluations")}
        assert found == result(without, i)


@pytest.mark.slow
def test_a_sweep_by_halving_is_evaluated_and_goes_on_from_rung_to_rung(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that two rungs share has the evaluations of a run that was never stopped."""

    def run_here(sweep: Any, folder: Any, **options: Any) -> Any:
        return run_sweep(sweep, folder, shard=(0, 1), **options)

    monkeypatch.setattr(driver, "run_sweep", run_here)
    base = {"environment": DRIFT, "frames": 2000, "width": 8, "batch": 8, "replay": 64}
    grid = {"value_step_size": [1e-4, 1e-3, 1e-2]}
    content = {"name": "halved", "seeds": 2, "base": base, "grid": grid, "evaluation": {"every": 500, "episodes": 2}}
    sweep = replace(make_sweep(content), halving={"frames": [1000, 2000], "runs": [1, 2]})
    assert run_halving(sweep, tmp_path / "out").status == "done"
    first, last = (load_results(rung_folder(tmp_path / "out", rung)) for rung in range(2))
    assert first.evaluations["frame"].to_pylist() == [500, 1000] * 3
    straight = create_store(tmp_path / "straight", last.sweep, open_store(rung_folder(tmp_path / "out", 1)).jobs)
    assert run_sweep(last.sweep, straight.folder, shard=(0, 1)).status == "done"
    assert last.evaluations.equals(load_results(straight.folder).evaluations)


@posix
@pytest.mark.slow
def test_an_environment_that_hangs_in_an_evaluation_costs_its_seed_and_no_other(tmp_path: Path) -> None:
    options = {"bad": episode_seed(environment_seed(0, 0), 0), "fault": "hang"}
    sweep = changed(small_sweep(seeds=2, frames=300, options=options), evaluating=Evaluating(100, 1))
    assert run_sweep(sweep, tmp_path / "sweep", workers=1, hang_seconds=2.0).status == "done"
    results = load_results(tmp_path / "sweep")
    hung, done = results.outcomes
    assert (hung["status"], hung["frame"]) == ("failed", 100)
    assert "did not return within 2 seconds" in hung["reason"]
    assert done["status"] == "done"
    assert results.evaluations["seed"].to_pylist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"episodes": 3}, "evaluation.every is missing"),
        ({"every": 0}, "evaluation.every"),
        ({"every": 10, "episodes": 0}, "evaluation.episodes"),
        ({"every": 10, "episode": 2}, "there is no key evaluation.episode"),
        (7, "evaluation must be a table"),
        ({"every": 1.5}, "evaluation.every"),
    ],
)
def test_wrong_tables_are_refused(content: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_evaluating(content)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--evaluate-every", "0"], "--evaluate-every must be at least 1"),
        (["--evaluate-episodes", "3"], "evaluate_episodes has no effect without evaluate_every"),
        (["--evaluate-every", "1000", "--frames", "500"], "would never take place"),
        (["--evaluate-every", "10", "--evaluate-episodes", "0"], "--evaluate-episodes must be at least 1"),
    ],
)
def test_wrong_uses_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["train", DRIFT, "--out", str(tmp_path / "run"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_evaluations_cannot_be_given_to_a_run_that_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--resume", str(folder), "--evaluate-every", "100"]) == 2
    assert "--evaluate-every has no effect with --resume" in capsys.readouterr().err
