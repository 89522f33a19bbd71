"""The loop over frames: episodes kept apart, seeds independent of their batch, failures of one seed, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from ipe.deep.checkpoints import load_checkpoint, save_checkpoint
from ipe.deep.environments import episode_seed
from ipe.deep.loop import Loop
from ipe.deep.replay import TERMINATED, TRUNCATED
from ipe.deep.settings import TrainingSettings
from ipe.errors import InputError
from tests.deep_helpers import DRIFT, advance, recorded, result, run, small
from tests.environment_helpers import OWN
from tests.environments import mark
from tests.needs import needs_box2d, needs_minatar
from tests.tiers import tiered

# ---- transitions and episodes


def transitions(loop: Loop, i: int) -> Any:
    """All that the replay of a seed can give: s, (action, reward, end) and s', as the learner finds them."""
    arrays, slots = loop.checkpoint().arrays, loop.slots
    n = min(loop.frame, slots.capacity)
    out = np.zeros((loop.lanes, n), np.int32)
    kept = int(slots.count - slots.oldest[i])
    slots.sample(np.tile((np.arange(n) % kept + 0.5) / kept, (loop.lanes, 1)), out)
    here = out[i, :kept] + i * slots.size
    after = (out[i, :kept] + 1) % slots.size + i * slots.size
    observations, steps = arrays["state.replay.observation"], arrays["state.replay.step"]
    return observations[here], steps[here], observations[after]


ENDS: list[dict[str, Any]] = [
    {"terminate_after": 5}, {"terminate_after": 9, "vary": True}, {"terminate_after": 0, "truncate_after": 4},
    {"terminate_after": 6, "vary": True, "truncate_after": 4}, {"terminate_after": 1}, {"truncate_after": 1},
]  # fmt: skip


@pytest.mark.parametrize("options", tiered(ENDS, ENDS[3]))
def test_no_transition_crosses_an_episode(options: dict[str, Any]) -> None:
    loop = run(small(OWN + "Counting-v0", environment={"options": options}), [0, 5], 300)
    for i, seed in enumerate([0, 5]):
        marks = {mark(seed, episode) for episode in range(302)}
        here, steps, after = transitions(loop, i)
        assert len(here) >= 32
        assert set(here[:, 0]) <= marks
        assert np.array_equal(steps[:, 1], 3 * here[:, 1] + steps[:, 0])  # the reward of step t: 3 t + a
        goes_on = steps[:, 2] != TERMINATED
        assert np.array_equal(after[goes_on], here[goes_on] + [0, 1])
        length = options.get("truncate_after") or np.inf
        assert np.array_equal(steps[:, 2] == TRUNCATED, (here[:, 1] + 1 == length) & goes_on)
        assert (here[:, 1] < min(length, options.get("terminate_after") or np.inf)).all()


def test_episodes_are_recorded_as_they_were() -> None:
    loop = run(small(OWN + "Counting-v0", environment={"options": {"terminate_after": 4}}), [0, 1], 42)
    arrays = loop.records.arrays()
    for seed in (0, 1):
        own = arrays["episodes.seed"] == seed
        assert arrays["episodes.frame"][own].tolist() == list(range(4, 42, 4))
        assert set(arrays["episodes.length"][own]) == {4}
        assert ((arrays["episodes.return"][own] >= 18) & (arrays["episodes.return"][own] <= 26)).all()


# ---- a seed's result is its own


def varied(n: int, behaviour: str, width: int) -> list[TrainingSettings]:
    """Settings of one program that differ in everything that is traced."""
    return [
        small(
            DRIFT, behaviour, width=width, environment={"frame_limit": 20}, value_step_size=1e-3 * (1 + i % 3),
            policy_step_size=1e-3 / (1 + i % 4), target_period=5 + i, gamma=0.9 + 0.01 * (i % 5),
            epsilon={"steps": 20 + 10 * i, "final": 0.01 * (1 + i % 3)},
        )
        for i in range(n)
    ]  # fmt: skip


def test_a_seed_does_not_depend_on_its_batch() -> None:
    settings = varied(3, "epsilon-ipe", 33)
    whole = run(settings, range(3), 60)
    expected = [result(whole, i) for i in range(3)]
    assert len({seed["q.matrix"] for seed in expected}) == 3
    assert result(run([settings[2]], [2], 60), 0) == expected[2]


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", ["epsilon-ipe", "ipe", "epsilon-greedy", "boltzmann"])
@pytest.mark.parametrize("width", [33, 64, 128, 256])
def test_a_seed_does_not_depend_on_its_batch_at_any_width(behaviour: str, width: int) -> None:
    settings = [own.model_copy(update={"batch": 32}) for own in varied(15, behaviour, width)]
    whole = run(settings, range(15), 60)
    for batch in ([14], [14, 0], [7, 8, 9], [1, 2, 3, 4], [3, 1, 4, 12, 5], [9, 2, 6, 5, 3, 4, 8, 7]):
        loop = run([settings[i] for i in batch], batch, 60)
        for place, i in enumerate(batch):
            assert result(loop, place) == result(whole, i), (batch, i)


@pytest.mark.slow
def test_a_clipped_seed_does_not_depend_on_its_batch() -> None:
    """The norm of a gradient is a sum of as many numbers as there are parameters."""
    optimiser = {"kind": "adam", "clip": 0.1}
    settings = small(DRIFT, width=128, batch=32, optimiser=optimiser, huber=1.0)
    expected = run([settings] * 5, range(5), 40)
    for batch in ([0], [4, 0], [3, 1, 2]):
        loop = run([settings] * len(batch), batch, 40)
        for place, i in enumerate(batch):
            assert result(loop, place) == result(expected, i), (batch, i)


@pytest.mark.slow
def test_settings_with_different_warm_ups_share_a_batch() -> None:
    settings = [small(DRIFT, warm_up=30, update_every=2), small(DRIFT, warm_up=7, update_every=3)]
    together = run(settings, [0, 1], 120)
    for i in range(2):
        assert result(run([settings[i]], [i], 120), 0) == result(together, i)


@pytest.mark.parametrize("environment", [pytest.param(OWN + "Catch-v0", marks=pytest.mark.slow), DRIFT])
def test_the_same_seed_gives_the_same_bytes_twice(environment: str) -> None:
    first, second = (run(small(environment), [3], 80) for _ in range(2))
    assert result(first, 0) == result(second, 0)
    assert result(first, 0)["q.matrix"] != result(run(small(environment), [4], 80), 0)["q.matrix"]


def test_images_come_one_at_a_time() -> None:
    with pytest.raises(InputError, match="images are trained one seed at a time, found 2"):
        Loop([small(OWN + "Catch-v0")] * 2, [0, 1])


# ---- what goes wrong stays where it is


@pytest.mark.parametrize("fault", ["nan", "shape", "raise", "reset"])
@pytest.mark.parametrize("culprit", [0, 2])
def test_a_failing_environment_stops_its_seed_alone(fault: str, culprit: int) -> None:
    sound = run(small(DRIFT), [0, 1, 2], 150)
    options = {"bad": episode_seed(culprit, 3), "fault": fault}
    loop = run(small(DRIFT, environment={"options": options}), [0, 1, 2], 150)
    for i in {0, 1, 2} - {culprit}:
        assert result(loop, i) == result(sound, i)
    outcome = loop.outcomes[culprit]
    ends = sound.records.arrays()
    third = int(ends["episodes.frame"][ends["episodes.seed"] == culprit][2])
    assert outcome.status == "failed"
    assert outcome.frame == third + (0 if fault == "reset" else 3)
    words = {"nan": "nan", "shape": "(4,)", "raise": "the wheel came off", "reset": "no more episodes"}
    assert words[fault] in outcome.reason
    assert "episode 3" in outcome.reason
    arrays = loop.records.arrays()
    frames = arrays["episodes.frame"][arrays["episodes.seed"] == culprit].tolist()
    assert frames == ends["episodes.frame"][ends["episodes.seed"] == culprit][: len(frames)].tolist()
    assert len(frames) == (2 if fault == "reset" else 3)


@pytest.mark.parametrize("fault", ["nan", "infinite", "huge", "shape", "raise", "reward_nan", "reward_none", "old_api"])
def test_faults_of_all_kinds_are_recorded_with_their_frame(fault: str) -> None:
    loop = run(small(OWN + "Faulty-v0", environment={"options": {"fault": fault, "at": 25}}), [0, 1], 30)
    assert loop.done
    assert loop.frame == 25
    assert [(outcome.status, outcome.frame) for outcome in loop.outcomes] == [("failed", 25)] * 2


def test_the_last_seed_of_a_padded_batch_may_fail() -> None:
    options = {"bad": episode_seed(0, 2), "fault": "raise"}
    loop = run(small(DRIFT, environment={"options": options}), [0], 150)
    assert loop.done
    assert loop.outcomes[0].status == "failed"


@pytest.mark.parametrize("behaviour", ["epsilon-ipe", "epsilon-greedy"])
def test_a_diverging_setting_stops_its_seed_alone(behaviour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipe.deep.loop.WINDOW", 50)
    sound = [small(DRIFT, behaviour, value_step_size=1e-3 * (1 + i)) for i in range(3)]
    wild = [sound[0], small(DRIFT, behaviour, value_step_size=1e30), sound[2]]
    expected, loop = run(sound, [0, 1, 2], 150), run(wild, [0, 1, 2], 150)
    for i in (0, 2):
        assert result(loop, i) == result(expected, i)
    outcome = loop.outcomes[1]
    assert outcome.status == "diverged"
    assert 1 < outcome.frame <= 4  # the first step is of finite errors, and of a size that overflows the next
    assert "not finite" in outcome.reason
    arrays = loop.records.arrays()
    assert not (arrays["progress.seed"] == 1).any()
    assert (arrays["episodes.frame"][arrays["episodes.seed"] == 1] < outcome.frame).all()


@pytest.mark.slow
def test_a_diverged_seed_is_recorded_with_its_own_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it is noticed: the update of frame 17 is its first; nothing can be done with what it leaves."""
    frames = []
    for window in (1, 40, 1000):
        monkeypatch.setattr("ipe.deep.loop.WINDOW", window)
        wild = small(DRIFT, value_step_size=1e30, warm_up=13, update_every=4, frames=120)
        loop = run([wild, small(DRIFT, frames=120)], [0, 1], 120)
        assert [outcome.status for outcome in loop.outcomes] == ["diverged", "done"]
        frames.append(loop.outcomes[0].frame)
    assert frames == [18, 18, 18]


# ---- checkpoints


def resumed(loop: Loop, folder: Path) -> Loop:
    """The loop that goes on from what this one leaves on disk."""
    save_checkpoint(folder, loop.checkpoint())
    return Loop(loop.settings, loop.seeds, load_checkpoint(folder))


CHECKPOINTED = [
    pytest.param("CartPole-v1", [0, 1, 2], {}, id="CartPole"),
    pytest.param("LunarLander-v3", [0, 1], {"width": 64}, id="LunarLander", marks=[needs_box2d, pytest.mark.slow]),
    pytest.param("minatar/Freeway", [0], {}, id="Freeway", marks=[needs_minatar, pytest.mark.slow]),
    pytest.param(
        DRIFT,
        [4],
        {"optimiser": {"kind": "adam"}, "n_step": 3, "warm_up": 50, "update_every": 3},
        id="Drift",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("environment", "seeds", "changes"), CHECKPOINTED)
def test_resumed_equals_uninterrupted(environment: str, seeds: list[int], changes: Any, tmp_path: Path) -> None:
    own = small(environment, **changes)
    straight = run(own, seeds, 300)
    loop = run(own, seeds, 97)
    lengths = []
    for frames in (1, 60, 142):
        loop = resumed(loop, tmp_path)
        lengths.append(loop.checkpoint().arrays["lengths"].tolist())
        advance(loop, frames)
    assert loop.frame == straight.frame == 300
    assert any(length > 0 for length in lengths[0])  # in the middle of an episode
    for i in range(len(seeds)):
        assert result(loop, i) == result(straight, i)
    for name, array in straight.checkpoint().arrays.items():
        if not name.endswith("frames_per_second"):
            assert loop.checkpoint().arrays[name].tobytes() == array.tobytes(), name


def test_a_checkpoint_stays_as_it_was_while_the_loop_goes_on() -> None:
    loop = run(small(DRIFT), [0, 1], 60)
    checkpoint = loop.checkpoint()
    before = {name: array.tobytes() for name, array in checkpoint.arrays.items()}
    advance(loop, 60)
    assert {name: array.tobytes() for name, array in checkpoint.arrays.items()} == before
    again = Loop(loop.settings, loop.seeds, checkpoint)
    advance(again, 60)
    assert result(again, 0) == result(loop, 0)


def test_failed_and_diverged_seeds_stay_so_after_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipe.deep.loop.WINDOW", 20)
    options = {"bad": episode_seed(5, 1), "fault": "raise"}
    settings = [small(DRIFT, environment={"options": options}, value_step_size=size) for size in (1e-3, 1e30, 1e-3)]
    straight, loop = run(settings, [5, 1, 2], 120), run(settings, [5, 1, 2], 80)
    assert [outcome.status for outcome in loop.outcomes] == ["failed", "diverged", "running"]
    loop = resumed(loop, tmp_path)
    advance(loop, 40)
    assert loop.outcomes == straight.outcomes
    assert result(loop, 2) == result(straight, 2)
    assert recorded(loop, 0) == recorded(straight, 0)


@pytest.mark.slow
def test_an_environment_that_does_not_repeat_itself_is_not_resumed(tmp_path: Path) -> None:
    own = small(OWN + "Unseeded-v0")
    with pytest.warns(UserWarning, match="seed"):
        loop = run(own, [0], 30)
    with pytest.warns(UserWarning, match="seed"), pytest.raises(InputError, match=r"^seed 0: .*does not"):
        resumed(loop, tmp_path)


def test_a_checkpoint_of_other_seeds_is_refused(tmp_path: Path) -> None:
    loop = run(small(DRIFT), [0, 1], 3)
    save_checkpoint(tmp_path, loop.checkpoint())
    with pytest.raises(InputError, match=r"the checkpoint is of seeds \[0, 1\], not of \[1, 0\]"):
        Loop(loop.settings, [1, 0], load_checkpoint(tmp_path))
