r"""An evaluation policy fitted to transitions: a policy network that descends :math:`\delta^2` by the paper's update.

The values stay as they are. The fit minimises the sampled objective. Its minimiser is the evaluation policy if
transitions are deterministic; if they are not, it is biased towards states of little noise (`ipe.inverse.sampled`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array, Mask
from ipe.base.numbers import whole_number
from ipe.deep.networks import Architecture, backward, features, forward, initial_parameters
from ipe.deep.optimisers import initial_moments, step
from ipe.deep.transitions import Transitions
from ipe.entropy import softmax
from ipe.errors import InputError
from ipe.updates import Transition, paper_gradient

BLOCKS = 20
"""The number of contiguous blocks of a batch. A block is held out as a whole, or not at all: transitions that are
neighbours in time are too much alike to be split."""
LARGEST_IMAGE = 24
"""The most pixels to a side of an image; a longer side is averaged over neighbouring pixels."""
_BATCH = 256
_CHUNK = 1024


@dataclass(frozen=True)
class Fit:
    """How the policy network is fitted."""

    updates: int = 2000
    """The number of updates, each by a minibatch of 256 transitions."""
    step_size: float = 1e-3
    """Adam's step size."""
    width: int = 64
    """The width of the hidden layers."""
    held_out: float = 0.3
    """The share of the transitions that the network is not fitted to, and is judged by."""
    seed: int = 0
    """The seed of the initial network, of the minibatches, and of the choice of what is held out."""

    def __post_init__(self) -> None:
        for name, least in (("updates", 1), ("width", 1), ("seed", 0)):
            whole_number(getattr(self, name), name, least)
        if not (isinstance(self.step_size, float) and 0.0 < self.step_size < math.inf):
            raise InputError(f"step_size must be a number > 0, found {self.step_size!r}")
        if not (isinstance(self.held_out, float) and 0.0 < self.held_out < 1.0):
            raise InputError(f"held_out must be a number between 0 and 1, found {self.held_out!r}")


def split(n: int, fit: Fit) -> Mask:
    """Which of n transitions the policy is fitted to: whole blocks of them, drawn at random.

    Example:
        >>> int(split(1000, Fit(held_out=0.3)).sum())
        700
    """
    blocks = min(BLOCKS, n)
    if blocks < 2:
        raise InputError("there must be at least 2 transitions: one to fit the policy to, one to judge it by")
    held = min(max(round(fit.held_out * blocks), 1), blocks - 1)
    chosen = np.random.default_rng([fit.seed, 0]).permutation(blocks)[:held]
    mask: Mask = ~np.isin(np.arange(n) * blocks // n, chosen)
    return mask


def fit_policy(
    transitions: Transitions, q_sa: Array, q_next: Array, gamma: float, fitted: Mask, fit: Fit
) -> NDArray[np.float32]:
    """Fit a policy network, and return its probabilities at every s', shape (n, A).

    Args:
        transitions: the batch; the network sees `next_observation`. Images are (n, height, width, channels) or
            (n, height, width); or (n, channels, height, width), if there are fewer channels than rows and columns.
        q_sa: Q(s, a), shape (n,).
        q_next: Q(s', .), shape (n, A).
        gamma: the discount.
        fitted: which transitions the policy is fitted to, shape (n,).
        fit: the settings of the fit.
    """
    if transitions.next_observation is None:
        raise InputError("next_observation is missing: the evaluation policy is fitted to it (or give policy_next)")
    usable = fitted & ~transitions.terminated
    if not usable.any():
        raise InputError("all transitions to fit the policy to are terminated: nothing follows them")
    observations = _network_inputs(transitions.next_observation, usable)
    net = Architecture(observations.shape[1:], fit.width, 16, q_next.shape[1])
    rng = np.random.default_rng([fit.seed, 1])
    parameters = initial_parameters(net, [rng])
    rows = rng.choice(np.flatnonzero(usable), (fit.updates, min(_BATCH, int(usable.sum()))))
    data = [np.asarray(a, dtype=np.float32) for a in (observations, q_next, q_sa, transitions.reward)]
    parameters = _descend(net, parameters, [jnp.asarray(a) for a in data], rows, gamma, fit.step_size)
    return np.asarray(softmax(logits(net, parameters, observations)))


def logits(net: Architecture, parameters: Any, observations: NDArray[Any], scale: float = 1.0) -> NDArray[np.float32]:
    """The outputs of one network at observations times `scale`, shape (n, A), a thousand at a time. The parameters have
    a leading axis of length one."""
    run = jax.jit(lambda parameters, x: forward(net, parameters, features(net, x[None]))[0][0])
    found, size = [], min(_CHUNK, len(observations))
    for i in range(0, len(observations), size):
        part = observations[i : i + size].astype(np.float32) * np.float32(scale)
        # All parts have one size, because another size would be compiled again.
        padded = np.concatenate([part, np.zeros((size - len(part), *part.shape[1:]), np.float32)])
        found.append(np.asarray(run(parameters, jnp.asarray(padded)))[: len(part)])
    return np.concatenate(found)


def _descend(net: Architecture, parameters: Any, data: list[Any], rows: Any, gamma: float, step_size: float) -> Any:
    """The parameters after one update of Adam per row of `rows`, which holds the transitions of its minibatch."""
    one = jnp.ones(1, jnp.float32)
    hyper = {"optimiser_decay": 0.999 * one, "optimiser_momentum": 0.9 * one, "optimiser_epsilon": 1e-8 * one}

    def update(carry: Any, chosen: Any) -> tuple[Any, None]:
        policy, moments, done = carry
        observation, q_next, q_sa, reward = (array[chosen] for array in data)
        theta, seen = forward(net, policy, features(net, observation[None]))
        error, _ = paper_gradient(theta, Transition(q_sa[None], reward[None], gamma, False, q_next[None]))
        gradient = backward(net, policy, seen, error / chosen.shape[0])
        policy, moments = step("adam", policy, gradient, moments, step_size * one, hyper, done * one)
        return (policy, moments, done + 1.0), None

    start = (parameters, initial_moments("adam", parameters), jnp.float32(0.0))
    (fitted, _, _), _ = jax.jit(lambda state, chosen: jax.lax.scan(update, state, chosen))(start, jnp.asarray(rows))
    return fitted


def _network_inputs(observation: NDArray[Any], fitted: Mask) -> NDArray[np.float32]:
    """Observations with mean 0 and variance 1: per entry of a vector, over all pixels of an image, which is shrunk too.

    An image with a side below 3 pixels is too small for the network's convolution, and is taken as a vector.
    """
    x = observation.astype(np.float32)
    if x.ndim == 3:
        x = x[..., None]
    if x.ndim == 4 and x.shape[1] < min(x.shape[2:]):
        x = np.moveaxis(x, 1, -1)
    if x.ndim == 4 and min(x.shape[1:3]) >= 3:
        x = _shrunk(x)
        mean, spread = x[fitted].mean(), x[fitted].std()
    else:
        x = x.reshape(len(x), -1)
        mean, spread = x[fitted].mean(axis=0), x[fitted].std(axis=0)
    return np.asarray((x - mean) / np.where(spread > 1e-6, spread, 1.0), dtype=np.float32)


def _shrunk(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Images (n, height, width, channels) with at most `LARGEST_IMAGE` pixels to a side, each side by itself."""
    n, height, width, channels = images.shape
    tall, wide = (-(-side // LARGEST_IMAGE) for side in (height, width))
    rows, columns = height // tall, width // wide
    whole = images[:, : rows * tall, : columns * wide]
    return np.asarray(whole.reshape(n, rows, tall, columns, wide, channels).mean(axis=(2, 4)))
