"""From Gymnasium's spaces to arrays that a network and a replay can take.

| observation space | observation |
|---|---|
| `Box`, one axis | vector, float32 |
| `Box` of uint8, two or three axes | image, uint8; times 1/255 before the network |
| `Box` of another type, two or three axes | image, float32 |
| `Box` of integers or booleans between 0 and 1, `MultiBinary` | vector or image, uint8, binary |
| `Discrete` | its one-hot vector, uint8, binary |

Images have the axes (height, width, channels); a channel is added to those with two axes, and channels that come first
are moved. A stack of the last k frames, with the axes (k, *frame), becomes one array whose last axis holds the frames
one after the other, the newest last (`ipe.deep.environments.layouts`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.deep.environments.failure import EnvironmentFailure
from ipe.deep.environments.layouts import PLAIN, Layout, read_layout
from ipe.errors import InputError

Encoder = Callable[[Any], NDArray[Any]]
"""From what the environment returns to a fresh array of the spec's shape and type, or an `EnvironmentFailure`."""

_UINT8 = np.dtype(np.uint8)
_FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class EnvironmentSpec:
    """What an environment shows, and how many actions it has."""

    id: str
    """The id of the environment, as in the settings."""
    observation_shape: tuple[int, ...]
    """(n,) for vectors, (height, width, channels) for images."""
    dtype: np.dtype[Any]
    """float32, or uint8 for binary observations and images of bytes."""
    image: bool
    """Whether the observation has three axes."""
    binary: bool
    """Whether every entry is 0 or 1."""
    scale: float
    """The number that a network multiplies observations by: 1/255 for images of bytes, else 1."""
    actions: int
    """The number of actions, which are 0, ..., actions - 1."""
    layout: Layout = PLAIN
    """How the environment's observations lie: in stacks of frames, with their channels first or last."""

    @property
    def stack(self) -> int:
        """The number of frames in an observation."""
        return self.layout.stack


def read_action_space(space: Any, name: str) -> tuple[int, int]:
    """Return the number of actions, and the environment's number for the first; a space that is not `Discrete` is
    refused."""
    from gymnasium.spaces import Box, Discrete

    if not isinstance(space, Discrete):
        kind = ", continuous actions" if isinstance(space, Box) else ""
        raise InputError(f"{name}: expected a Discrete action space, found {_found(space)}{kind}")
    return int(space.n), int(space.start)


def read_observation_space(
    space: Any, name: str, actions: int, stack: int = 1, order: str = "last"
) -> tuple[EnvironmentSpec, Encoder]:
    """Return the spec of an environment with this observation space, and the function that encodes its observations.
    With a stack of more than 1, the first axis are frames. A space that is not in this module's table is refused, and
    so is an image whose channels are not known."""
    from gymnasium.spaces import Box, Discrete, MultiBinary

    if isinstance(space, Discrete):
        n = int(space.n)
        return _spec(name, (n,), actions, _UINT8, PLAIN, binary=True), partial(_one_hot, n, int(space.start))
    if not isinstance(space, Box | MultiBinary):
        raise InputError(f"{name}: expected a Box, MultiBinary or Discrete observation space, found {_found(space)}")
    shape = tuple(int(n) for n in space.shape)
    frame = shape[1:] if stack > 1 else shape
    if not 1 <= len(frame) <= 3 or 0 in shape:
        axes = "1, 2 or 3 axes in each frame" if stack > 1 else "1, 2 or 3 axes"
        raise InputError(f"{name}: expected observations with {axes}, none empty, found {_found(space)}")
    layout = read_layout(frame, stack, order, name)
    dtype = np.dtype(space.dtype)
    whole = dtype.kind in "biu"
    if isinstance(space, MultiBinary) or (whole and bool(np.all(space.low >= 0) and np.all(space.high <= 1))):
        return _spec(name, frame, actions, _UINT8, layout, binary=True), partial(_bytes, shape, 1, layout)
    if dtype == _UINT8 and len(frame) > 1:
        return _spec(name, frame, actions, _UINT8, layout, binary=False), partial(_bytes, shape, 255, layout)
    return _spec(name, frame, actions, _FLOAT32, layout, binary=False), partial(_floats, shape, layout)


def _spec(
    name: str, frame: tuple[int, ...], actions: int, dtype: np.dtype[Any], layout: Layout, *, binary: bool
) -> EnvironmentSpec:
    image = len(frame) > 1
    scale = 1.0 / 255.0 if image and dtype == _UINT8 and not binary else 1.0
    return EnvironmentSpec(name, layout.shape(frame), dtype, image, binary, scale, actions, layout)


def _floats(shape: tuple[int, ...], layout: Layout, observation: Any) -> NDArray[Any]:
    x: NDArray[Any]
    if getattr(observation, "dtype", None) == _FLOAT32:
        x = observation.copy()  # environments may reuse their array
    else:
        with np.errstate(over="ignore"):  # an infinity after the cast is found below
            x = np.array(observation, dtype=_FLOAT32, order="C")
    if x.shape != shape:
        raise _other_shape(shape, x.shape)
    flat = x.ravel()
    # The square of the length is finite if all entries are, unless it overflows; a quarter of isfinite's time.
    if not math.isfinite(flat.dot(flat)) and not np.isfinite(x).all():
        at = _first(~np.isfinite(x))
        found = f"{np.asarray(observation)[at]:g} at {_index(at)}"
        raise EnvironmentFailure(f"the observation is {found}, expected a finite number of single precision")
    return x if layout.plain and len(shape) != 2 else layout.arrange(x)


def _bytes(shape: tuple[int, ...], largest: int, layout: Layout, observation: Any) -> NDArray[Any]:
    x = np.array(observation, order="C")
    if x.shape != shape:
        raise _other_shape(shape, x.shape)
    if x.dtype == np.bool_:
        x = x.view(_UINT8)
    elif x.dtype != _UINT8 or largest < 255:
        wrong = ~((x >= 0) & (x <= largest) & (x == np.round(x)))
        if wrong.any():
            at = _first(wrong)
            raise EnvironmentFailure(
                f"the observation is {x[at]:g} at {_index(at)}, expected a whole number from 0 to {largest}"
            )
        x = x.astype(_UINT8)
    return x if layout.plain and len(shape) != 2 else layout.arrange(x)


def _one_hot(n: int, start: int, observation: Any) -> NDArray[Any]:
    at = operator.index(observation) - start
    if not 0 <= at < n:
        raise EnvironmentFailure(f"the observation is {at + start}, expected one from {start} to {start + n - 1}")
    x = np.zeros(n, dtype=_UINT8)
    x[at] = 1
    return x


def _first(wrong: NDArray[Any]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(wrong)[0])


def _index(at: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, at))}]"


def _other_shape(expected: tuple[int, ...], found: tuple[int, ...]) -> EnvironmentFailure:
    return EnvironmentFailure(f"the observation has the shape {found}, expected {expected}")


def _found(space: Any) -> str:
    text = " ".join(str(space).split())
    return text if len(text) <= 120 else f"{type(space).__name__} ({text[:100]}...)"
