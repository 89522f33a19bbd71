"""Replay: the books of the slots against a list of transitions, and observations packed into bits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ipe.deep.randomness import BLOCK, FrameDraws, network_generator
from ipe.deep.replay import CONTINUES, TERMINATED, TRUNCATED, Format, Slots, empty
from tests.tiers import examples

ENDS = st.sampled_from([CONTINUES] * 4 + [TERMINATED, TRUNCATED])


@dataclass
class Seed:
    """A seed's experience as a list; observations are numbers that never repeat."""

    name: int
    current: int
    history: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Where the step started, its number, how it ended, where it led."""

    def step(self, end: int) -> tuple[int, int]:
        """Take a step; returns where it led, and the observation to act on next."""
        arrived = self.current + 1
        self.history.append((self.current, len(self.history), end, arrived))
        self.current = arrived + 1 if end != CONTINUES else arrived
        return arrived, self.current

    def kept(self, capacity: int, size: int) -> list[tuple[int, int, int, int]]:
        """The most of the last transitions that fit, one place each, one more if truncated, one for the current."""
        kept: list[tuple[int, int, int, int]] = []
        places = 1
        for transition in reversed(self.history):
            places += 1 + (transition[2] == TRUNCATED)
            if len(kept) == capacity or places > size:
                break
            kept.append(transition)
        return kept[::-1]


class Replay:
    """`Slots` and the arrays that they speak of, filled as the compiled program does."""

    def __init__(self, seeds: int, capacity: int) -> None:
        self.slots = Slots(seeds, capacity)
        self.arrays = empty(seeds, self.slots.size, Format((1,), "float32", False, 1.0))
        self.seeds = [Seed(i, 10_000 * (i + 1)) for i in range(seeds)]
        for seed in self.seeds:
            self.arrays["observation"][seed.name * self.slots.size] = seed.current

    def push(self, ends: list[int]) -> None:
        out = np.zeros((len(ends), 3), np.int32)
        self.slots.push(np.array(ends) == TRUNCATED, out)
        for seed, end, (start, arrival, current) in zip(self.seeds, ends, out.tolist(), strict=True):
            base = seed.name * self.slots.size
            number = len(seed.history)
            arrived, acted_on = seed.step(end)
            self.arrays["step"][base + start] = (0.0, number, end)
            self.arrays["observation"][base + arrival] = arrived
            self.arrays["observation"][base + current] = acted_on

    def drawn(self, draws: Any) -> list[list[tuple[int, int, int, int]]]:
        """The transitions that some uniform numbers stand for, (seeds, n), as a learner reads them."""
        out = np.zeros(draws.shape, np.int32)
        self.slots.sample(draws, out)
        assert ((out >= 0) & (out < self.slots.size)).all()
        return [
            [self._read(seed.name, slot) for slot in row] for seed, row in zip(self.seeds, out.tolist(), strict=True)
        ]

    def _read(self, seed: int, slot: int) -> tuple[int, int, int, int]:
        base, after = seed * self.slots.size, (slot + 1) % self.slots.size
        _, number, end = self.arrays["step"][base + slot]
        observation = self.arrays["observation"][:, 0]
        return int(observation[base + slot]), int(number), int(end), int(observation[base + after])


def without_terminal(transition: tuple[int, int, int, int]) -> tuple[int, ...]:
    """Nobody asks for the state after a termination."""
    return transition[:3] if transition[2] == TERMINATED else transition


def check(replay: Replay) -> None:
    """Every kept transition is drawn equally often, as it was, and no other."""
    slots = replay.slots
    kept = [seed.kept(slots.capacity, slots.size) for seed in replay.seeds]
    for seed, own in enumerate(kept):
        n = len(own)
        # Three numbers in each of the n parts of [0, 1): its ends, and its middle.
        draws = np.concatenate([np.arange(n) / n + 1e-9, (np.arange(n) + 0.5) / n, (np.arange(n) + 1) / n - 1e-9])
        found = Counter(map(without_terminal, replay.drawn(np.tile(draws, (len(kept), 1)))[seed]))
        assert found == Counter({without_terminal(transition): 3 for transition in own})


@given(
    st.integers(1, 40),
    st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(ENDS, min_size=n, max_size=n), min_size=1, max_size=130)),
)
def test_the_slots_keep_the_last_transitions(capacity: int, steps: list[list[int]]) -> None:
    replay = Replay(len(steps[0]), capacity)
    for ends in steps:
        replay.push(ends)
        check(replay)


@pytest.mark.parametrize("every", [1, 2, 3, 5, 16, 17])
@pytest.mark.parametrize("capacity", [1, 2, 15, 16, 48, 100])
def test_truncations_take_the_room_of_at_most_a_half(capacity: int, every: int) -> None:
    """One truncation in 16 steps fits beside all `capacity` transitions; more, and fewer are kept."""
    replay = Replay(1, capacity)
    for t in range(4 * capacity + 20):
        replay.push([TRUNCATED if t % every == every - 1 else CONTINUES])
        check(replay)
    kept = len(replay.seeds[0].kept(capacity, replay.slots.size))
    assert kept >= capacity / 2
    if every >= 16:
        assert kept >= capacity - 1
    if every == 1 and capacity > 4:
        assert kept < capacity


@given(st.lists(ENDS, min_size=1, max_size=60), st.lists(ENDS, min_size=1, max_size=60))
def test_the_books_of_a_checkpoint_go_on_as_those_that_it_was_made_of(first: list[int], second: list[int]) -> None:
    replay = Replay(1, 20)
    for end in first:
        replay.push([end])
    arrays = {name: array.copy() for name, array in replay.slots.arrays().items()}
    replay.slots = Slots(1, 20)
    replay.slots.restore(arrays)
    check(replay)
    for end in second:
        replay.push([end])
    check(replay)


def test_the_largest_number_below_one_draws_the_newest_transition() -> None:
    replay = Replay(1, 1000)
    for t in range(3000):
        replay.push([CONTINUES])
        if t % 37 == 0:
            (row,) = replay.drawn(np.array([[0.0, np.nextafter(1.0, 0.0)]]))
            assert [transition[1] for transition in row] == [max(0, t - 999), t]


# ---- how observations are stored


@examples(25)  # a new shape is a new program
@given(
    hnp.arrays(
        np.uint8,
        st.tuples(st.integers(1, 4)).flatmap(
            lambda n: st.one_of(
                st.tuples(st.just(n[0]), st.integers(1, 20)),
                st.tuples(st.just(n[0]), st.integers(1, 6), st.integers(1, 6), st.integers(1, 5)),
            )
        ),
        elements=st.integers(0, 1),
    )
)
def test_bits_are_packed_eight_to_a_byte_and_found_again(observations: Any) -> None:
    shape = observations.shape[1:]
    form = Format(shape, "uint8", True, 1.0)
    packed = np.stack([form.pack(each) for each in observations])
    assert packed.dtype == np.uint8
    assert packed.shape[1:] == form.stored[0] == (-(-int(np.prod(shape)) // 8),)
    found = form.unpack(jax.numpy.asarray(packed))
    assert found.dtype == np.float32
    assert np.array_equal(found, observations.astype(np.float32))


def test_bytes_are_scaled_and_floats_are_left_alone() -> None:
    generator = np.random.default_rng(0)
    bytes_ = generator.integers(0, 256, (2, 3, 4, 2), dtype=np.uint8)
    form = Format((3, 4, 2), "uint8", False, 1 / 255)
    packed = np.stack([form.pack(each) for each in bytes_])
    assert packed.dtype == np.uint8
    np.testing.assert_allclose(form.unpack(jax.numpy.asarray(packed)), bytes_ / 255.0, rtol=1e-6)
    floats = generator.normal(size=(2, 5)).astype(np.float32)
    form = Format((5,), "float32", False, 1.0)
    assert np.array_equal(form.unpack(jax.numpy.asarray(np.stack([form.pack(each) for each in floats]))), floats)


def test_thirty_seeds_of_freeway_fit_in_a_gibibyte() -> None:
    form = Format((10, 10, 7), "uint8", True, 1.0)
    slots = Slots(1, 100_000)
    books = sum(array.nbytes for array in slots.arrays().values())
    arrays = sum(array.nbytes for array in empty(1, slots.size, form).values())
    assert 30 * (books + arrays) < 2**30


# ---- the random numbers


def test_draws_depend_on_seed_and_frame_alone() -> None:
    together, alone = FrameDraws([4, 7, 2**40], 5), FrameDraws([7], 5)
    late = FrameDraws([7], 5)
    for frame in [*range(3), BLOCK - 1, BLOCK, 3 * BLOCK + 5, 1]:
        assert together.action(frame)[1] == alone.action(frame)[0]
        assert np.array_equal(together.batch(frame)[1], alone.batch(frame)[0])
    assert late.action(3 * BLOCK + 5) == alone.action(3 * BLOCK + 5)
    numbers = np.array([together.action(frame) for frame in range(2 * BLOCK)])
    assert len(np.unique(numbers)) == numbers.size
    assert ((numbers >= 0) & (numbers < 1)).all()


def test_draws_are_uniform_and_of_different_seeds_unlike() -> None:
    draws = FrameDraws(range(20), 32)
    numbers = np.stack([draws.batch(frame) for frame in range(BLOCK)])
    counts, _ = np.histogram(numbers, bins=50, range=(0, 1))
    expected = numbers.size / 50
    assert ((counts - expected) ** 2 / expected).sum() < 100  # chi-squared with 49 degrees of freedom: p about 2e-5
    correlations = np.corrcoef(numbers[:, :, 0].T) - np.eye(20)
    assert abs(correlations).max() < 0.3


def test_an_actions_number_is_below_one_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 1 - 2^-25 a double rounds to 1, which is no action's: once in thirty million frames."""

    class Ones:
        def __init__(self, *_: Any) -> None: ...

        def random(self, shape: Any) -> Any:
            return np.full(shape, np.nextafter(1.0, 0.0))

    monkeypatch.setattr("numpy.random.Generator", Ones)
    assert np.float32(FrameDraws([0], 1).action(0)[0]) < 1


def test_the_networks_generator_is_the_seeds_own() -> None:
    assert network_generator(3).random() == network_generator(3).random()
    assert network_generator(3).random() != network_generator(4).random()
