"""Prioritised replay: the published formulas by hand, the frequencies of draws, both trees' bytes, stops, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("gymnasium")

from ipe.cli.program import main
from ipe.deep import paper_settings
from ipe.deep.checkpoints import load_checkpoint, save_checkpoint
from ipe.deep.frame import Frame
from ipe.deep.loop import Loop
from ipe.deep.priorities import Priorities
from ipe.deep.randomness import FrameDraws
from ipe.deep.replay import Format, Slots
from ipe.deep.sum_tree import SumTrees
from ipe.errors import InputError
from tests.deep_helpers import DRIFT, advance, result, run, small
from tests.environment_helpers import OWN
from tests.needs import needs_minatar

FORM = Format((1,), "float32", False, 1.0)


def made(
    errors: list[float], batch: int, alpha: float = 0.5, seeds: int = 1, **part: Any
) -> tuple[Priorities, Slots, Frame]:
    """The priorities of transitions with these errors, in a replay of just as many."""
    settings = paper_settings(
        "CartPole-v1", batch=batch, replay=len(errors), priority={"exponent": alpha, "epsilon": 0.01, **part}
    )
    slots = Slots(seeds, len(errors))
    priorities = Priorities([settings] * seeds, slots)
    frame = Frame.empty(seeds, FORM, batch, weighted=True)
    for error in errors:
        slots.push(np.zeros(seeds, bool), frame.slots)
        priorities.add()
        priorities._drawn[:] = slots.count - 1
        priorities.learn(np.full((seeds, batch), error, np.float32), np.ones(seeds, bool))
    return priorities, slots, frame


# ---- formulas


def test_probabilities_and_weights_by_hand() -> None:
    # (|delta| + 0.01)^0.5 is 1, 2, 3 and 4: the line [0, 10), of which a quarter each is [0, 2.5), [2.5, 5), ...
    priorities, slots, frame = made([0.99, -3.99, 8.99, -15.99], 4, correction=0.5, steps=100)
    np.testing.assert_allclose(priorities.arrays()["values"], [[[1.0, 2.0, 3.0, 4.0]]], rtol=1e-6)
    priorities.sample(np.array([[0.0, 0.999, 0.5, 0.5]]), 0, frame)  # the points 0, 4.9975, 6.25, 8.75
    assert frame.minibatch.tolist() == [[0, 2, 3, 3]]
    # w = (4 p / 10)^-0.5, divided by the largest, which is that of the first: (1 / p)^0.5
    np.testing.assert_allclose(frame.weights, [[1.0, 3**-0.5, 0.5, 0.5]], rtol=1e-6)
    priorities.sample(np.array([[0.999, 0.5, 0.5, 0.5]]), 50, frame)  # 2.4975, 3.75, ...; beta = 0.75; no p = 1
    np.testing.assert_allclose(frame.weights, [[1.0, (2 / 3) ** 0.75 if frame.minibatch[0, 1] == 2 else 1.0,
                                                0.5**0.75, 0.5**0.75]], rtol=1e-6)  # fmt: skip
    priorities.sample(np.zeros((1, 4)), 10_000, frame)  # beta is 1 from the end of its schedule on
    np.testing.assert_allclose(frame.weights, [[1.0, 0.5, 1 / 3, 0.25]], rtol=1e-6)
    assert frame.minibatch.tolist() == [[0, 1, 2, 3]]  # the points 0, 2.5, 5, 7.5
    assert slots.kept.tolist() == [4]


@pytest.mark.slow
def test_a_new_transition_has_the_largest_priority_so_far() -> None:
    priorities, slots, frame = made([8.99, 0.99], 2)
    slots.push(np.zeros(1, bool), frame.slots)  # in the place of the oldest
    priorities.add()
    np.testing.assert_allclose(priorities.arrays()["values"], [[[3.0, 1.0]]], rtol=1e-6)
    waiting = run(small(DRIFT, priority={"exponent": 0.5}, warm_up=9), [0], 5)  # nothing is learned yet
    assert waiting.checkpoint().arrays["priorities.values"][0].tolist() == [[1.0] * 5]


def test_draws_come_in_proportion_to_the_powers_of_the_priorities() -> None:
    errors = np.random.default_rng(0).normal(size=40).tolist()
    priorities, slots, frame = made(errors, 8, alpha=0.7)
    expected = (np.abs(np.float32(errors).astype(float)) + 0.01) ** 0.7
    expected /= expected.sum()
    draws = FrameDraws([3], 8)
    counts = np.zeros(slots.size)
    for number in range(4000):
        priorities.sample(draws.batch(number), number, frame)
        counts += np.bincount(frame.minibatch[0], minlength=slots.size)
    # Draws from strata vary less than independent ones, so that the statistic is smaller than chi-square's.
    statistic, p = stats.chisquare(counts[:40], 32_000 * expected)
    assert p > 0.01, statistic
    assert statistic > 1.0  # and yet they are draws
    assert counts[40:].sum() == 0


def test_one_transition_of_a_stratum_has_exactly_its_share_of_an_even_grid() -> None:
    priorities, slots, frame = made([0.99, 3.99, 8.99, 15.99], 1)
    counts = np.zeros(slots.size, int)
    for j in range(1000):  # the middles of a thousand equal parts of the line
        priorities.sample(np.array([[(j + 0.5) / 1000]]), 0, frame)
        counts[frame.minibatch[0, 0]] += 1
    assert counts[:4].tolist() == [100, 200, 300, 400]


@pytest.mark.slow
def test_what_lost_its_room_to_truncations_is_not_drawn() -> None:
    settings = small(OWN + "Counting-v0", environment={"options": {"truncate_after": 1}}, priority={"exponent": 0.5})
    loop = run(settings, [0, 1], 300)
    kept = loop.slots.kept
    assert (kept < loop.slots.capacity).all()
    values = loop.checkpoint().arrays["priorities.values"]
    assert (values > 0).sum(axis=(1, 2)).tolist() == kept.tolist()


# ---- trees


@pytest.mark.parametrize("leaves", [1, 2, 5, 64, 100])
def test_both_trees_have_the_same_bytes(leaves: int) -> None:
    draw = np.random.default_rng(leaves)
    try:
        native = SumTrees(3, leaves, native=True)
    except RuntimeError:
        pytest.skip("there is no C library")
    plain = SumTrees(3, leaves, native=False)
    plain._library = None
    for _ in range(30):
        places = draw.integers(0, leaves, (3, 7))
        values = draw.exponential(size=leaves)[places] * (draw.random(leaves) < 0.7)[places]
        for trees in (native, plain):
            trees.set(places, values)
        assert native._nodes.tobytes() == plain._nodes.tobytes()
        if (native.totals > 0).all():
            points = draw.random((3, 50)) * native.totals[:, None]
            points[:, 0] = native.totals  # as rounding may have it
            found = native.find(points)
            assert found.tolist() == plain.find(points).tolist()
            assert (np.take_along_axis(native.values, found, axis=1) > 0).all()
            ends = np.cumsum(native.values, axis=1)
            inside = np.minimum((points[:, :, None] >= ends[:, None, :] * (1 + 1e-12)).sum(axis=2), found)
            assert (np.abs(np.take_along_axis(ends, inside, axis=1) - np.take_along_axis(ends, found, axis=1))
                    <= 1e-9 + np.take_along_axis(native.values, found, axis=1)).all()  # fmt: skip
    again = SumTrees(3, leaves)
    again.restore(native.values.copy())
    assert again._nodes.tobytes() == native._nodes.tobytes()


# ---- training


@pytest.mark.slow
@pytest.mark.parametrize("changes", [
    {"width": 32, "warm_up": 10, "update_every": 2},
    pytest.param({"width": 18, "dueling": True, "n_step": 3}, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_seed_depends_neither_on_its_batch_nor_on_a_stop(changes: dict[str, Any], tmp_path: Path) -> None:
    part = {"exponent": 0.6, "steps": 100}
    settings = small(DRIFT, environment={"frame_limit": 6}, priority=part, **changes)
    other = settings.model_copy(update={"priority": settings.priority.model_copy(update={"exponent": 0.9})})
    together = run([settings, other, settings], [0, 1, 2], 150)
    for i, each in enumerate((settings, other, settings)):
        assert result(run(each, [i], 150), 0) == result(together, i)
    loop = run([settings, other, settings], [0, 1, 2], 40)
    for frames in (1, 30, 79):
        save_checkpoint(tmp_path, loop.checkpoint())
        loop = Loop(loop.settings, loop.seeds, load_checkpoint(tmp_path))
        advance(loop, frames)
    for name, array in together.checkpoint().arrays.items():
        if not name.endswith("frames_per_second"):
            assert loop.checkpoint().arrays[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("environment", [
    pytest.param("minatar/Freeway", marks=needs_minatar), OWN + "Catch-v0",
])  # fmt: skip
@pytest.mark.slow
def test_images_resume_to_the_byte(environment: str, tmp_path: Path) -> None:
    settings = small(environment, priority={"exponent": 0.6})
    straight, loop = run(settings, [0], 90), run(settings, [0], 50)
    save_checkpoint(tmp_path, loop.checkpoint())
    loop = Loop(loop.settings, loop.seeds, load_checkpoint(tmp_path))
    advance(loop, 40)
    assert result(loop, 0) == result(straight, 0)


@pytest.mark.slow
def test_a_longer_run_equals_one_that_was_as_long_from_the_start() -> None:
    part = {"exponent": 0.6, "steps": 50}
    short, long = (small(DRIFT, priority=part, frames=frames) for frames in (60, 100))
    first = run(short, [0], 60)
    loop = Loop([long], [0], first.checkpoint())
    advance(loop, 40)
    straight = run(long, [0], 100)
    assert {name: array.tobytes() for name, array in loop.networks().items()} == {
        name: array.tobytes() for name, array in straight.networks().items()
    }


@pytest.mark.slow
def test_a_diverging_seed_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipe.deep.loop.WINDOW", 20)
    part = {"exponent": 0.6}
    settings = [small(DRIFT, priority=part, value_step_size=size) for size in (1e-3, 1e30)]
    loop = run(settings, [0, 1], 60)
    assert [outcome.status for outcome in loop.outcomes] == ["running", "diverged"]
    assert result(loop, 0) == result(run(settings[:1], [0], 60), 0)
    assert np.isfinite(loop.checkpoint().arrays["priorities.values"]).all()


def test_the_default_has_the_name_that_it_had_before() -> None:
    assert "priority" not in small(DRIFT).model_dump()
    assert not {"dueling", "environments"} & set(small(DRIFT).model_dump())


@pytest.mark.parametrize(("words", "sentence"), [
    (["--priority.correction", "0.5"], "priority: correction has no effect while priority.exponent is 0"),
    (["--priority.exponent", "-1"], "priority.exponent: input should be greater than or equal to 0, found -1"),
    (["--priority.exponent", "0.6", "--priority.correction", "2"], "priority.correction: input should be less than"),
])  # fmt: skip
def test_wrong_uses_are_refused(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "CartPole-v1", *words, "--out", str(tmp_path / "run")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_setting_of_python_is_refused_alike() -> None:
    with pytest.raises(InputError, match="priority: epsilon has no effect"):
        paper_settings("CartPole-v1", priority={"epsilon": 0.5})
