r"""How an environment's observations lie, and how they become what a network sees.

A network sees vectors (n,) and images (height, width, channels). An environment may show an image's channels first, and
it may show its last k frames at once, as Gymnasium's `FrameStackObservation` does: (k, *frame), the oldest first. Then
the last axis of what the network sees has k times as many entries, those of the newest frame at its end.

In a stack each observation repeats all frames but the newest of the observation before it, and the first observation of
an episode is its first frame k times. So a replay needs the newest frames alone. That the observations do so is
checked at every step (`Layout.follows`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ipe.errors import InputError


class Layout(NamedTuple):
    """How the observations of an environment lie."""

    stack: int = 1
    """The number of frames in an observation."""
    order: str = "last"
    """Where the channels of an image with three axes are: first or last."""

    @property
    def plain(self) -> bool:
        """Whether observations with one or three axes are what a network sees."""
        return self.stack == 1 and self.order == "last"

    def shape(self, frame: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what the network sees, from the shape of a frame of the environment."""
        if len(frame) == 1:
            return (self.stack * frame[0],)
        height, width, channels = _sides(frame, self.order)
        return height, width, self.stack * channels

    def arrange(self, x: NDArray[Any]) -> NDArray[Any]:
        """What the network sees, from an observation of the environment."""
        frames = x if self.stack > 1 else x[None]
        if frames.ndim == 2:
            return frames.reshape(-1)
        if frames.ndim == 3:
            frames = frames[..., None]
        elif self.order == "first":
            frames = frames.transpose(0, 2, 3, 1)
        k, height, width, channels = frames.shape
        return np.ascontiguousarray(frames.transpose(1, 2, 0, 3)).reshape(height, width, k * channels)

    def follows(self, before: NDArray[Any] | None, seen: NDArray[Any]) -> bool:
        """Whether all frames but the newest are those of the observation before; of the first, the newest again."""
        size = seen.shape[-1] // self.stack
        if before is None:
            return all(
                np.array_equal(seen[..., i : i + size], seen[..., -size:]) for i in range(0, seen.shape[-1], size)
            )
        return np.array_equal(seen[..., :-size], before[..., size:])


PLAIN = Layout()
"""Observations of single frames, with their channels last."""


def read_layout(frame: tuple[int, ...], stack: int, order: str, name: str) -> Layout:
    """Return the layout of observations of so many frames of a shape. The channels of an image are first or last; or
    auto, on the axis that is shorter than both others, and it is refused if that is neither the first nor the last.

    Example:
        >>> read_layout((4, 84, 84), 1, "auto", "Own-v0").order, read_layout((10, 10, 7), 1, "auto", "Own-v0").order
        ('first', 'last')
        >>> read_layout((10, 10, 10), 1, "auto", "Own-v0")
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: Own-v0: which axis of an image of shape (10, 10, 10) are the channels? ...
    """
    if len(frame) != 3:
        return Layout(stack)
    first, middle, last = frame
    if order == "auto":
        if last < min(first, middle):
            order = "last"
        elif first < min(middle, last):
            order = "first"
        else:
            raise InputError(
                f"{name}: which axis of an image of shape {frame} are the channels? Neither the first axis nor "
                "the last is shorter than both others; set environment.channel_order to first or to last"
            )
    return Layout(stack, order)


def _sides(frame: tuple[int, ...], order: str) -> tuple[int, int, int]:
    """Height, width and channels of an image."""
    if len(frame) == 2:
        return frame[0], frame[1], 1
    return (frame[1], frame[2], frame[0]) if order == "first" else (frame[0], frame[1], frame[2])
