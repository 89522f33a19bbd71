r"""The random numbers of a run.

A run has three streams of numbers: for its steps, for its start states, and for behaviours that remember. The n-th
word of a stream, from n = 0 on, is SplitMix64's (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number
Generators*, 2014), a hash of

.. math:: w + n \cdot \texttt{0x9e3779b97f4a7c15} \mod 2^{64}

where w is the 64 bits of a JAX key: for run i, `fold_in(fold_in(key(seed), i), k)` with k = 0 for the steps, 1 for the
starts and 2 for what a behaviour's memory draws. So any word can be computed at any time, and no state is carried.
Folding the key at every step instead would take a fifth of the whole simulation's time.

That streams overlap has a probability of about :math:`\text{runs}^2 \cdot \text{steps} / 2^{62}`: one in five million
for :math:`10^4` runs of :math:`10^4` steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Streams(NamedTuple):
    """The 64 bits that each stream of a run begins with."""

    steps: Any
    """The bits of the stream for steps."""
    starts: Any
    """The bits of the stream for start states."""
    chances: Any
    """The bits of the stream for behaviours that remember."""


def streams(seed: Any, run: Any) -> Streams:
    """The streams of a run; both arguments may be traced."""
    key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), run)

    def bits(stream: int) -> Any:
        high, low = jax.random.key_data(jax.random.fold_in(key, stream)).astype(jnp.uint64)
        return high << np.uint64(32) | low

    return Streams(steps=bits(0), starts=bits(1), chances=bits(2))


def pair(stream: Any, n: Any) -> tuple[Any, Any]:
    """The n-th word of a stream as two uniform numbers in [0, 1), of 32 bits each."""
    z = stream + n.astype(jnp.uint64) * _GAMMA
    z = (z ^ (z >> np.uint64(30))) * _MULTIPLIERS[0]
    z = (z ^ (z >> np.uint64(27))) * _MULTIPLIERS[1]
    z = z ^ (z >> np.uint64(31))
    return _unit(z >> np.uint64(32)), _unit(z)


def _unit(word: Any) -> Any:
    return word.astype(jnp.uint32).astype(jnp.float64) * 2.0**-32
