"""Large images: how they are read, stacks that share frames in the replay, and checkpoints of what is filled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from ipe.deep.checkpoints import load_checkpoint, save_checkpoint
from ipe.deep.environments import make_environment
from ipe.deep.loop import Loop
from ipe.deep.memory import seed_bytes
from ipe.deep.programs import network_of
from ipe.deep.setting_groups import EnvironmentSettings
from ipe.errors import InputError
from tests.deep_helpers import advance, result, run, small
from tests.environment_helpers import make, refusal
from tests.tiers import tiered

FILM, STACKED, WHOLE = (f"tests.deep_environments:{name}-v0" for name in ("Film", "Stacked", "Whole"))
TINY: dict[str, Any] = {"height": 5, "width": 6}


# ---- channels first, channels last


@pytest.mark.parametrize(
    ("options", "order", "shape"),
    [
        ({"channels": 4, "first": True}, "auto", (36, 40, 4)),
        ({"channels": 4}, "auto", (36, 40, 4)),
        ({"channels": 1, "first": True}, "auto", (36, 40, 1)),
        ({"channels": 3, "first": True}, "last", (3, 36, 40)),
        ({"height": 10, "width": 10, "channels": 10}, "first", (10, 10, 10)),
    ],
)
def test_the_channels_are_the_axis_that_is_shorter_than_both_others(options: Any, order: Any, shape: Any) -> None:
    own = EnvironmentSettings(id=FILM, options=options, channel_order=order)
    environment = make_environment(own, 0)
    observation = environment.reset()
    assert environment.spec.observation_shape == observation.shape == shape
    raw = environment._env.reset(seed=int(np.random.SeedSequence([0, 0]).generate_state(1, np.uint32)[0]) >> 1)[0]
    moved = np.moveaxis(raw, 0, -1) if environment.spec.layout.order == "first" else raw
    assert np.array_equal(observation, moved)


def test_an_image_whose_channels_are_not_plain_is_refused_with_the_setting_that_decides() -> None:
    said = refusal(FILM, height=10, width=10, channels=10)
    assert "(10, 10, 10)" in said
    assert "set environment.channel_order to first or to last" in said


@pytest.mark.slow
def test_bytes_are_stored_as_bytes_and_scaled_in_the_network() -> None:
    loop = run(small(FILM, environment={"options": {"height": 36, "width": 36}}, batch=2, replay=8), [0], 3)
    form = loop.program.form
    assert (form.dtype, form.scale, form.stored) == ("uint8", 1 / 255, ((36 * 36,), "uint8"))
    assert loop.program.architecture.network == "atari"
    assert np.asarray(loop._state["replay"]["observation"]).dtype == np.uint8


# ---- stacks of frames


WAYS: dict[str, dict[str, Any]] = {
    "terminations": {"terminate": 0.2},
    "truncations": {"terminate": 0.05, "truncate": 3},
    "truncations of single steps": {"terminate": 0.0, "truncate": 1},
    "long episodes": {"terminate": 0.02},
    "bits": {"terminate": 0.1, "truncate": 7, "kind": "bits"},
    "numbers": {"terminate": 0.1, "truncate": 7, "kind": "float32", "channels": 2},
    "channels first": {"terminate": 0.1, "channels": 2, "first": True},
}


def slow_but(names: list[str]) -> list[Any]:
    return [way if way in names else pytest.param(way, marks=pytest.mark.slow) for way in WAYS]


@pytest.mark.slow
@pytest.mark.parametrize("way", slow_but(["truncations"]))
@pytest.mark.parametrize("changes", [
    {}, pytest.param({"n_step": 3, "environment": {"frame_limit": 11}}, marks=pytest.mark.slow, id="n steps"),
])  # fmt: skip
def test_shared_frames_train_to_the_same_bytes_as_whole_stacks(way: str, changes: dict[str, Any]) -> None:
    """A replay of 20 transitions, lapped more than seven times: ends of episodes fall on every place of the ring."""
    options, where = TINY | WAYS[way], changes.get("environment", {})
    own = {"batch": 8, "replay": 20} | {key: value for key, value in changes.items() if key != "environment"}
    shared = run(small(FILM, environment={"options": options, "stack": 4, **where}, **own), [3], 150)
    whole = run(small(WHOLE, environment={"options": options, "channel_order": "last", **where}, **own), [3], 150)
    assert (shared.program.form.stack, whole.program.form.stack) == (4, 1)
    assert shared.program.architecture == whole.program.architecture
    assert result(shared, 0) == result(whole, 0)


@pytest.mark.slow
def test_gymnasiums_stacks_are_recognised_and_equal_those_of_the_setting() -> None:
    options = TINY | {"truncate": 6}
    own = small(STACKED, environment={"options": options | {"stack": 3}}, batch=4, replay=10)
    found = run(own, [0], 60)
    assert found.program.form.stack == 3
    set_ = run(small(FILM, environment={"options": options, "stack": 3}, batch=4, replay=10), [0], 60)
    assert result(found, 0) == result(set_, 0)


@pytest.mark.slow
def test_vectors_are_stacked_too() -> None:
    loop = run(small("CartPole-v1", environment={"stack": 3}), [0, 1], 120)
    assert loop.program.architecture.inputs == (12,)
    assert loop.program.form.stored == ((5,), "float32")
    alone = run(small("CartPole-v1", environment={"stack": 3}), [1], 120)
    assert result(alone, 0) == result(loop, 1)


@pytest.mark.slow
def test_an_environment_that_shows_one_array_for_ever_is_stacked_rightly() -> None:
    one, many = (
        run(small(FILM, environment={"options": TINY | {"same": same}, "stack": 4}), [0], 40) for same in (True, False)
    )
    assert result(one, 0) == result(many, 0)


def test_what_only_looks_like_a_stack_is_refused_with_the_setting() -> None:
    said = refusal(STACKED, **TINY, flip=True)
    assert "is not a stack of the last 4 frames" in said
    assert "set environment.stack to 1" in said
    own = EnvironmentSettings(id=STACKED, options=TINY | {"flip": True}, stack=1)
    assert make_environment(own, 0).spec.observation_shape == (5, 6, 4)


def test_stacks_that_begin_with_zeros_are_kept_whole() -> None:
    assert make(STACKED, **TINY, padding="zero").spec.layout == (1, "first")


def test_a_stack_of_stacks_is_refused() -> None:
    own = EnvironmentSettings(id=STACKED, options=TINY, stack=2)
    with pytest.raises(InputError, match=r"environment.stack = 2 would stack observations that are stacks of 4 frames"):
        make_environment(own, 0)


@pytest.mark.slow
def test_a_replay_of_shared_frames_takes_a_quarter_and_the_estimate_knows() -> None:
    sizes = []
    for environment in ({"stack": 4}, {}):
        own = small(
            FILM if environment else WHOLE,
            environment={"options": {"height": 12, "width": 12}, "channel_order": "last", **environment},
            replay=5000,
        )
        loop = Loop([own], [0])
        replay = sum(np.asarray(array).nbytes for array in loop._state["replay"].values())
        estimate = seed_bytes(own, loop.program.architecture, loop.program.form)
        gradient = 4 * sum(i * o + o for i, o in loop.program.architecture.layers)
        assert np.isclose(estimate, loop.memory + loop.slots.places.nbytes + gradient, rtol=0.01)
        sizes.append(replay)
    assert 3.5 < sizes[1] / sizes[0] < 4.0  # action, reward and end are not shared


# ---- checkpoints


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "vectors": ("CartPole-v1", {}),
    "images": (FILM, {"environment": {"options": TINY | {"truncate": 5}}}),
    "stacks": (FILM, {"environment": {"options": TINY | {"truncate": 5}, "stack": 4}}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_checkpoint_holds_what_is_filled_and_is_resumed_to_the_byte(case: str, tmp_path: Path) -> None:
    environment, changes = CASES[case]
    own = small(environment, replay=60, **changes)
    straight = run(own, [2], 200)
    loop = run(own, [2], 20)
    for frames in (10, 100, 70):  # before the ring is full, and around its end
        checkpoint = loop.checkpoint()
        used = min(int(loop.slots.head.max()) + 1, loop.slots.size)
        for name in ("observation", "step"):
            assert len(checkpoint.arrays[f"state.replay.{name}"]) == loop.lanes * used
        save_checkpoint(tmp_path, checkpoint)
        loop = Loop(loop.settings, loop.seeds, load_checkpoint(tmp_path))
        advance(loop, frames)
    assert result(loop, 0) == result(straight, 0)
    for name, array in straight.checkpoint().arrays.items():
        if not name.endswith("frames_per_second"):
            assert loop.checkpoint().arrays[name].tobytes() == array.tobytes(), name


@pytest.mark.slow
def test_checkpoints_do_not_grow_with_an_empty_replay(tmp_path: Path) -> None:
    sizes = []
    for replay in (100, 1_000_000):
        loop = run(small("CartPole-v1", replay=replay), [0], 50)
        written = save_checkpoint(tmp_path / str(replay), loop.checkpoint())
        sizes.append(written.with_suffix(".safetensors").stat().st_size)
    assert sizes[0] == sizes[1] < 100_000


@pytest.mark.parametrize("case", tiered(["vectors", "images"], "vectors"))
def test_old_checkpoints_are_resumed(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the whole replay, all places of the slots, schema 1, and do not say which network it is."""
    environment, changes = CASES[case]
    own = small(environment, replay=60, **changes)
    straight, loop = run(own, [2], 90), run(own, [2], 40)
    checkpoint = loop.checkpoint()
    for name in ("observation", "step"):
        checkpoint.arrays[f"state.replay.{name}"] = np.asarray(loop._state["replay"][name])
    checkpoint.arrays["slots.places"] = loop.slots.places.copy()
    del checkpoint.data["network"]
    monkeypatch.setattr("ipe.deep.checkpoints.SCHEMA", 1)
    save_checkpoint(tmp_path, checkpoint)
    monkeypatch.undo()
    again = Loop([own], [2], load_checkpoint(tmp_path))
    advance(again, 10)
    save_checkpoint(tmp_path, again.checkpoint())  # now of this version, and still read as before
    again = Loop([own], [2], load_checkpoint(tmp_path))
    advance(again, 40)
    assert result(again, 0) == result(straight, 0)


@pytest.mark.slow
def test_a_large_image_of_an_earlier_version_keeps_its_network(tmp_path: Path) -> None:
    where = {"options": {"height": 36, "width": 36, "channels": 37}}  # once read as 36 rows of 37 channels
    before = small(FILM, environment={**where, "channel_order": "last", "stack": 1}, network="minatar", replay=20)
    straight, loop = run(before, [0], 20), run(before, [0], 10)
    checkpoint = loop.checkpoint()
    del checkpoint.data["network"]
    again = Loop([small(FILM, environment=where, replay=20)], [0], checkpoint)
    assert again.program.architecture.network == "minatar"
    advance(again, 10)
    assert result(again, 0) == result(straight, 0)


# ---- which network


@pytest.mark.parametrize(("side", "network"), [(35, "minatar"), (36, "atari"), (84, "atari")])
def test_images_of_36_pixels_get_the_network_of_mnih_et_al(side: int, network: str) -> None:
    own = small(FILM, environment={"options": {"height": side, "width": 90}})
    spec = make_environment(own.environment, 0).spec
    assert network_of(own, spec) == network
    assert network_of(own.model_copy(update={"network": "minatar"}), spec) == "minatar"


def test_the_network_atari_refuses_small_images() -> None:
    with pytest.raises(InputError, match=r"the network atari takes images of 36 by 36 pixels or more, found 5 by 6"):
        Loop([small(FILM, environment={"options": TINY}, network="atari")], [0])
