"""Evaluating and watching trained runs: against an independent network, on damaged files, with every behaviour."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file, save_file

from ipe.behaviours import boltzmann, epsilon_greedy, epsilon_ipe, greedy, ipe
from ipe.deep import evaluate, paper_settings, playing, train, watch
from ipe.deep.environments import episode_seed, make_environment
from ipe.deep.networks import initial_parameters
from ipe.deep.playing import Moment, agent, evaluation_seed
from ipe.deep.programs import architecture
from ipe.deep.tensors import hash_file
from ipe.errors import InputError
from ipe.experiments import watching
from ipe.experiments.trained import read_trained
from tests.environment_helpers import OWN
from tests.old_layout import create_run, read_run, write_run
from tests.tiers import tiered

SMALL: dict[str, Any] = {"width": 8, "batch": 4, "replay": 500}

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A run with the networks that training begins with, made once for each setting: nothing is compiled for it."""
    made: dict[str, Path] = {}

    def made_run(env_id: str, behaviour: Any = "epsilon-ipe", *, seeds: int = 2, **changes: Any) -> Path:
        key = repr((env_id, behaviour, seeds, changes))
        if key not in made:
            made[key] = tmp_path_factory.mktemp("runs") / "run"
            settings = paper_settings(env_id, behaviour, **{"frames": 60, **SMALL, **changes})
            run = create_run(made[key], settings, [list(range(seeds))])
            ends = [own | {"status": "done", "frame": settings.frames} for own in run.content["outcomes"]]
            write_run(made[key], run.content | {"outcomes": ends})
            environment = make_environment(settings.environment, 0)
            environment.close()
            generators = [np.random.default_rng(seed) for seed in range(seeds)]
            networks = {
                f"{name}.{part}": np.asarray(array)
                for name in (("q", "policy") if settings.learns_policy else ("q",))
                for part, array in initial_parameters(architecture(settings, environment.spec), generators).items()
            }
            save_file(networks, made[key] / "networks.safetensors")
        return made[key]

    return made_run


def copied(folder: Path, to: Path) -> Path:
    to.mkdir()
    for name in ("run.json", "networks.safetensors"):
        (to / name).write_bytes((folder / name).read_bytes())
    return to


# An independent network, from the file's own words: matrix is the middle layer, rest the others in a row.


def network(folder: Path, name: str, seed: int, x: NDArray[Any], actions: int) -> NDArray[Any]:
    old = folder / "networks.safetensors"
    if old.exists():
        arrays = load_file(old)
    else:  # of a run that was stopped: in its one checkpoint
        (file,) = folder.glob("work/*/*.safetensors")
        arrays = {name.removeprefix("state."): array for name, array in load_file(file).items()}
    matrix, rest = (arrays[f"{name}.{part}"][seed].astype(np.float64) for part in ("matrix", "rest"))
    width, image = matrix.shape[1], x.ndim == 3
    channels = matrix.shape[0] // ((x.shape[0] - 2) * (x.shape[1] - 2)) if image else width
    inputs = 9 * x.shape[2] if image else x.size
    sizes = [inputs * channels, channels, width, width * actions, actions]
    w0, b0, b1, w2, b2 = np.split(rest, np.cumsum(sizes)[:-1])
    w0 = w0.reshape(inputs, channels)
    if image:
        rows = [x[i : i + 3, j : j + 3].reshape(-1) for i in range(x.shape[0] - 2) for j in range(x.shape[1] - 2)]
        hidden = np.maximum(np.stack(rows) @ w0 + b0, 0.0).reshape(-1)
    else:
        hidden = np.maximum(x @ w0 + b0, 0.0)
    last = np.maximum(hidden @ matrix + b1, 0.0)
    result: NDArray[Any] = last @ w2.reshape(width, actions) + b2
    return result


@pytest.mark.parametrize("env_id", ["CartPole-v1", f"{OWN}Catch-v0", f"{OWN}Corridor-v0"])
def test_greedy_returns_are_those_of_the_network_by_hand(make: Make, env_id: str) -> None:
    check_by_hand(make(env_id))


@pytest.mark.slow
def test_a_run_that_was_stopped(tmp_path: Path) -> None:
    settings = paper_settings("CartPole-v1", frames=10**6, **SMALL)
    result = train(settings, seeds=2, out=tmp_path / "run", processes=0, callback=lambda progress: True)
    assert result.status == "stopped"
    check_by_hand(tmp_path / "run")


def check_by_hand(folder: Path, limit: int = 40) -> None:
    """Play the same episodes with the network above."""
    result = evaluate(folder, episodes=3, frame_limit=limit)
    settings = read_trained(folder).settings.environment
    assert [own.seed for own in result.seeds] == [0, 1]
    for own in result.seeds:
        limited = settings.model_copy(update={"frame_limit": limit})
        environment = make_environment(limited, evaluation_seed(0, own.seed))
        for i in range(3):
            observation, total, frames, over = environment.reset(), 0.0, 0, False
            while not over:
                q = network(folder, "q", own.seed, observation.astype(np.float64), environment.spec.actions)
                observation, reward, terminated, truncated = environment.step(int(np.argmax(q)))
                total, frames, over = total + reward, frames + 1, terminated or truncated
            assert (own.returns[i], own.lengths[i]) == (total, frames)
        environment.close()
    means = [own.returns.mean() for own in result.seeds]
    assert result.mean == np.mean(means)
    assert result.standard_error == pytest.approx(np.std(means, ddof=1) / np.sqrt(2))
    assert result.seeds[0].standard_error == pytest.approx(np.std(result.seeds[0].returns, ddof=1) / np.sqrt(3))
    assert result.policy == "greedy on Q"


BEHAVIOURS: dict[str, tuple[dict[str, Any], Callable[[Any, Any], Any]]] = {
    "epsilon-ipe": ({}, epsilon_ipe),
    "ipe": ({}, lambda q, logits: ipe(logits)),
    "epsilon-greedy": ({"epsilon": {"final": 0.4, "steps": 80}}, lambda q, logits: epsilon_greedy(q, 0.55)),
    "boltzmann": ({"temperature": 0.05}, lambda q, logits: boltzmann(q, 0.05)),
}


@pytest.mark.parametrize("behaviour", tiered(BEHAVIOURS, "epsilon-ipe"))
def test_behaviours_act_with_their_probabilities(make: Make, behaviour: str) -> None:
    changes, probabilities = BEHAVIOURS[behaviour]
    folder = make("CartPole-v1", behaviour, **changes)
    trained = read_trained(folder)
    x = np.array([0.1, -0.2, 0.03, 0.4], np.float32)
    q = network(folder, "q", 1, x, 2)
    logits = network(folder, "policy", 1, x, 2) if trained.settings.learns_policy else None
    n = 4000
    for own, expected in ((True, probabilities(q, logits)), (False, greedy(q))):
        act = agent(trained, 1, 7, own)
        choices = [act(x) for _ in range(n)]
        share = np.bincount([choice.action for choice in choices], minlength=2) / n
        assert np.abs(share - expected).max() <= 4.0 * np.sqrt(expected.max() * (1 - expected.max()) / n)
        if behaviour == "epsilon-ipe":
            assert choices[0].epsilon == pytest.approx(2.0 * probabilities(q, logits).min(), abs=1e-3)
        elif behaviour == "epsilon-greedy" and own:
            assert choices[0].epsilon == pytest.approx(0.55)
        elif not trained.settings.learns_policy:
            assert np.isnan(choices[0].epsilon)


@pytest.mark.parametrize(
    ("frame", "own", "warm_up", "epsilon"),
    [
        (50, {"final": 0.2}, 0, 0.6),
        (500, {"final": 0.2}, 0, 0.2),
        (50, {"final": 0.2}, 60, 1.0),
        (50, {"final": 0.01, "kind": "exponential"}, 0, 0.1),
    ],
)
def test_the_epsilon_is_that_of_the_frame_that_a_seed_has_come_to(
    make: Make, tmp_path: Path, frame: int, own: dict[str, Any], warm_up: int, epsilon: float
) -> None:
    folder = copied(make("CartPole-v1", "epsilon-greedy"), tmp_path / "run")
    run = read_run(folder)
    run["settings"] |= {"frames": 10_000, "warm_up": warm_up}
    run["settings"]["epsilon"] |= {"steps": 100, **own}
    run["outcomes"][0] |= {"status": "running", "frame": frame}
    write_run(folder, run)
    assert read_trained(folder).epsilon(run["seeds"][0]) == pytest.approx(epsilon)


def test_policies_in_words(make: Make) -> None:
    words = {
        "epsilon-ipe": "epsilon-ipe, from the policy network",
        "ipe": "ipe, from the policy network",
        "epsilon-greedy": "epsilon-greedy on Q with epsilon = 0.55",
        "boltzmann": "boltzmann on Q with temperature = 0.05",
    }
    for behaviour, expected in words.items():
        folder = make("CartPole-v1", behaviour, **BEHAVIOURS[behaviour][0])
        result = evaluate(folder, episodes=1, behaviour=True, seeds=[0])
        assert (result.policy, result.behaviour, result.environment) == (expected, behaviour, "CartPole-v1")


def test_the_same_seed_gives_the_same_numbers(make: Make) -> None:
    folder = make("CartPole-v1")
    one = evaluate(folder, episodes=4, behaviour=True, seed=3)
    again = evaluate(folder, episodes=2, behaviour=True, seed=3, seeds=[1])
    other = evaluate(folder, episodes=4, behaviour=True, seed=4)
    assert one.seeds[1].returns[:2].tolist() == again.seeds[0].returns.tolist()
    assert [own.returns.tolist() for own in one.seeds] != [own.returns.tolist() for own in other.seeds]
    assert one.seeds[0].returns.tolist() != one.seeds[1].returns.tolist()
    assert again.left_out == {}
    assert np.isnan(again.standard_error)


def test_episodes_are_not_those_of_training() -> None:
    training = {episode_seed(seed, episode) for seed in range(10) for episode in range(1000)}
    seeds = [evaluation_seed(seed, trained) for seed in range(3) for trained in range(10)]
    assert min(seeds) >= 2**63
    assert len(set(seeds)) == 30
    assert not training & {episode_seed(seed, episode) for seed in seeds for episode in range(100)}


def test_progress_is_told(make: Make) -> None:
    told: list[tuple[int, int]] = []
    evaluate(make("CartPole-v1"), episodes=2, progress=lambda seed, done: told.append((seed, done)))
    assert told == [(0, 1), (0, 2), (1, 1), (1, 2)]


# What goes wrong.


def damage(folder: Path, how: str) -> None:
    path = folder / "networks.safetensors"
    content, arrays = path.read_bytes(), load_file(path)
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[:-7])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_text("not a network")
    elif how == "shape":
        save_file({**arrays, "q.matrix": arrays["q.matrix"][:, :, :-1].copy()}, path)
    elif how == "type":
        save_file({**arrays, "q.rest": arrays["q.rest"].astype(np.float64)}, path)
    elif how == "policy":
        save_file({name: array for name, array in arrays.items() if name != "policy.rest"}, path)
    elif how == "flipped":
        described = read_run(folder)
        write_run(folder, described | {"networks_sha256": hash_file(path)})
        assert evaluate(folder, episodes=1).episodes == 1
        path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("missing", "it is written when training ends or is stopped"),
        ("cut", "cannot be read"),
        ("empty", "cannot be read"),
        ("text", "cannot be read"),
        ("shape", "q.matrix is float32 of shape (2, 8, 7), expected float32 of shape (2, 8, 8)"),
        ("type", "q.rest is float64 of shape"),
        ("policy", "policy.rest is missing, expected float32 of shape (2, 66)"),
        ("flipped", "is not what run.json describes: it is damaged, or"),
    ],
)
def test_damaged_networks_are_refused(make: Make, tmp_path: Path, how: str, sentence: str) -> None:
    folder = copied(make("CartPole-v1"), tmp_path / "run")
    damage(folder, how)
    with pytest.raises(InputError) as caught:
        evaluate(folder)
    assert str(folder / "networks.safetensors") in str(caught.value)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_seeds_that_failed_or_diverged_are_left_out(make: Make, tmp_path: Path) -> None:
    folder = copied(make("CartPole-v1", seeds=4), tmp_path / "run")
    arrays = load_file(folder / "networks.safetensors")
    arrays["q.rest"][3, 5] = np.nan
    save_file(arrays, folder / "networks.safetensors")
    described = read_run(folder)
    described["outcomes"][1] |= {"status": "diverged", "frame": 17, "reason": "the errors are not finite"}
    write_run(folder, described)
    result = evaluate(folder, episodes=1)
    assert [own.seed for own in result.seeds] == [0, 2]
    assert result.left_out == {
        1: "diverged at frame 17: the errors are not finite",
        3: "diverged: its networks hold numbers that are not finite",
    }
    with pytest.raises(InputError, match="seed 1 cannot be evaluated: it diverged at frame 17: the errors"):
        evaluate(folder, seeds=[0, 1])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"episodes": 0}, "episodes must be a whole number >= 1, found 0"),
        ({"episodes": True}, "episodes must be a whole number"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
        ({"seeds": [0, 5]}, "the run has no seed 5; it has 0, 1"),
        ({"seeds": [0, 0]}, "seed 0 is there twice"),
        ({"seeds": []}, "there is no seed to evaluate"),
        ({"frame_limit": 0}, "frame_limit must be 1 or more, found 0"),
    ],
)
def test_wrong_arguments(make: Make, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluate(make("CartPole-v1"), **arguments)
    assert sentence in str(caught.value)


@pytest.mark.slow
def test_an_endless_episode_is_given_up(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "LONGEST_EPISODE", 50)
    folder = copied(make(f"{OWN}Counting-v0"), tmp_path / "run")
    assert evaluate(folder, episodes=2).seeds[0].lengths.tolist() == [5, 5]
    described = read_run(folder)
    described["settings"]["environment"]["options"] = {"terminate_after": 0}
    write_run(folder, described)
    with pytest.raises(InputError, match="episode 0 has not ended after 50 frames; give a frame limit"):
        evaluate(folder, episodes=2)
    assert evaluate(folder, episodes=2, frame_limit=9).seeds[0].lengths.tolist() == [9, 9]


def test_an_environment_that_fails_is_a_sentence(make: Make, tmp_path: Path) -> None:
    folder = copied(make(f"{OWN}Counting-v0"), tmp_path / "run")
    described = read_run(folder)
    described["settings"]["environment"] |= {"id": f"{OWN}Faulty-v0", "options": {"fault": "nan", "at": 90}}
    write_run(folder, described)
    with pytest.raises(InputError, match=r"q.rest is float32 of shape \(2, 59\), expected float32 of shape \(2, 50\)"):
        evaluate(folder)
    damaged = load_file(folder / "networks.safetensors")
    rest = {name: array[:, :50].copy() for name, array in damaged.items() if name.endswith(".rest")}
    save_file({**damaged, **rest}, folder / "networks.safetensors")
    with pytest.raises(InputError, match="seed 0: the environment failed at step 89 of episode 0: the observation is"):
        evaluate(folder)


# Watching.


def frames_of(path: Path) -> list[tuple[Any, int]]:
    image = Image.open(path)
    out = []
    for i in range(image.n_frames):  # type: ignore[attr-defined]
        image.seek(i)
        out.append((np.asarray(image.convert("RGB")), int(image.info["duration"])))
    image.close()
    return out


def test_a_gif_of_an_episode(make: Make, tmp_path: Path) -> None:
    folder = make(f"{OWN}Catch-v0", seeds=1)
    recording = watch(folder, tmp_path / "catch.gif", fps=20, episodes=2)
    result = evaluate(folder, episodes=2)
    assert recording.returns == result.seeds[0].returns.tolist()
    assert recording.lengths == result.seeds[0].lengths.tolist() == [12, 12]
    assert (recording.pictures, recording.every, recording.seed) == (26, 1, 0)
    pictures = frames_of(tmp_path / "catch.gif")
    assert len(pictures) == 26
    assert [duration for _, duration in pictures] == ([50] * 12 + [1000]) * 2
    environment = make_environment(read_trained(folder).environment, evaluation_seed(0, 0), "rgb_array")
    environment.reset()
    first = np.kron(environment.render(), np.ones((48, 48, 1)))
    environment.close()
    assert pictures[0][0].shape == (240 + 20, 240, 3)
    assert (pictures[0][0][:240] == first).all()
    assert (pictures[0][0][240:] < 100).any()  # the caption
    assert sorted(path.name for path in tmp_path.iterdir()) == ["catch.gif"]


def test_the_episodes_of_a_film_are_those_of_an_evaluation(make: Make, tmp_path: Path) -> None:
    folder = make("CartPole-v1", "epsilon-greedy", seeds=1, epsilon={"final": 0.5, "steps": 1})
    recording = watch(folder, tmp_path / "cart.gif", episodes=4, behaviour=True)
    assert recording.returns == evaluate(folder, episodes=4, behaviour=True).seeds[0].returns.tolist()


def test_long_episodes_are_thinned_out(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MOST_PICTURES", 5)
    recording = watch(make(f"{OWN}Catch-v0", seeds=1), tmp_path / "catch.gif")
    # Of the frames 0, ..., 12: every fourth, 0, 4, 8, and the last, where the episode is over.
    assert (recording.every, recording.pictures) == (4, 4)
    assert len(frames_of(tmp_path / "catch.gif")) == 4


def test_large_pictures_are_reduced() -> None:
    image = watching.picture(np.zeros((400, 600, 3), np.uint8), "x")
    assert image.size == (480, 320 + 20)


def test_captions() -> None:
    assert watching.caption(Moment(3, 1.0, float("nan"), False)) == "frame 3  return 1.0"


@pytest.mark.slow
def test_minatar_is_drawn(make: Make, tmp_path: Path) -> None:
    pytest.importorskip("minatar")
    folder = make("minatar/Breakout", seeds=1)
    recording = watch(folder, tmp_path / "breakout.gif", behaviour=True)
    assert frames_of(tmp_path / "breakout.gif")[0][0].shape == (400 + 20, 400, 3)
    assert recording.policy == "epsilon-ipe, from the policy network"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"out": "a.png"}, "a.png: the suffix must be .gif; found .png"),
        ({"fps": float("nan")}, "fps must lie between 1 and 50, found nan"),
        ({"episodes": 0}, "episodes must be a whole number >= 1, found 0"),
        ({"trained_seed": 9}, "the run has no seed 9; it has 0, 1"),
        ({"seed": -1}, "seed must be a whole number"),
        ({}, f"{OWN}Corridor-v0 cannot be drawn: it has no render mode rgb_array"),
    ],
)
def test_what_cannot_be_drawn(make: Make, tmp_path: Path, arguments: dict[str, Any], sentence: str) -> None:
    out = tmp_path / arguments.pop("out", "a.gif")
    with pytest.raises(InputError) as caught:
        watch(make(f"{OWN}Corridor-v0"), out, **arguments)
    assert sentence in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_run_json_is_needed(make: Make, tmp_path: Path) -> None:
    folder = copied(make("CartPole-v1"), tmp_path / "run")
    write_run(folder, read_run(folder) | {"outcomes": [{"seed": 0}, 5]})
    with pytest.raises(InputError, match=r"run.json: .* is missing or wrong"):
        evaluate(folder)
    with pytest.raises(InputError, match="there is no run"):
        evaluate(tmp_path / "no")
    (tmp_path / "run.json").write_text(json.dumps({"format": "something else"}))
    with pytest.raises(InputError, match="not a run of ipe"):
        evaluate(tmp_path)
