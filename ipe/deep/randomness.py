r"""The random numbers of a seed are a function of the seed and the frame, so that there is no state to keep.

Philox, a counter-based generator (Salmon et al., 2011), with a key from the seed and the frame's block as the counter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BLOCK = 256
"""The number of frames whose numbers are drawn at once."""

_NETWORKS, _FRAMES = 0, 1
MEMORY = 3
"""The stream of numbers for behaviours that remember. (The stream 2 is that of evaluation.)"""
WHILE_TRAINING = 8
"""The stream of numbers for evaluation while training."""
_ENVIRONMENTS = 4


def network_generator(seed: int) -> np.random.Generator:
    """Return the generator of a seed's initial parameters."""
    return np.random.Generator(np.random.Philox(_sequence(seed, _NETWORKS)))


def environment_seed(seed: int, environment: int) -> int:
    """Return the seed of one of the environments that a seed acts in; that of the first is the seed itself."""
    if environment == 0:
        return seed
    sequence = np.random.SeedSequence(seed, spawn_key=(_ENVIRONMENTS, environment))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))  # those of evaluation are 2^63 or more


class FrameDraws:
    """Uniform numbers in [0, 1) for every frame of every seed, one for the action and one per sampled transition, from
    one of the seed's streams."""

    def __init__(self, seeds: Sequence[int], batch: int, stream: int = _FRAMES) -> None:
        self._keys = [_sequence(seed, stream).generate_state(2, np.uint64) for seed in seeds]
        self._batch = batch
        self._blocks: dict[int, NDArray[np.float64]] = {}

    def action(self, frame: int) -> NDArray[np.float64]:
        """Return the numbers that the actions of a frame are drawn with, (seeds,)."""
        block, row = divmod(frame, BLOCK)
        return self._block(block)[row, :, 0]

    def batch(self, frame: int) -> NDArray[np.float64]:
        """Return the numbers that the minibatches of a frame are drawn with, (seeds, batch)."""
        block, row = divmod(frame, BLOCK)
        return self._block(block)[row, :, 1:]

    def _block(self, block: int) -> NDArray[np.float64]:
        if block not in self._blocks:
            numbers = np.empty((BLOCK, len(self._keys), self._batch + 1))
            for i, key in enumerate(self._keys):
                # The last word of the counter: a block has 2^192 numbers before it runs into the next one's.
                bits = np.random.Philox(key=key, counter=np.array([0, 0, 0, block], np.uint64))
                numbers[:, i] = np.random.Generator(bits).random((BLOCK, self._batch + 1))
            # In single precision, which the program reads the actions' in, a number next to 1 would be 1.
            numbers[:, :, 0] = np.floor(numbers[:, :, 0] * 2.0**24) / 2.0**24
            # The block before may still be needed.
            self._blocks = {kept: self._blocks[kept] for kept in self._blocks if kept == block - 1} | {block: numbers}
        return self._blocks[block]


def _sequence(seed: int, stream: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(stream,))
