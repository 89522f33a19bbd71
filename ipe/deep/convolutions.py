r"""Convolutions with strides, for networks of several convolutions, and their two gradients.

:math:`y_{p} = \sum_{i,j,c} x_{s p + (i,j),\, c}\, w_{(i,j,c),\,\cdot}` for the positions p at which the kernel fits, s
the stride. The products are XLA's own convolutions, one for each seed: measured with one seed, they take .6 to .8 times
as long as patches and a matrix product (`docs/benchmarks.md`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

_AXES = ("NHWC", "HWIO", "NHWC")


class Convolution(NamedTuple):
    """The shape of a convolution without padding."""

    size: int
    """The pixels to a side of the kernel."""
    stride: int
    """The pixels between two positions of the kernel."""
    channels: int
    """The channels of the result."""

    def sides(self, height: int, width: int) -> tuple[int, int]:
        """The height and the width of the result, from those of the image."""
        return (height - self.size) // self.stride + 1, (width - self.size) // self.stride + 1


ATARI = (Convolution(8, 4, 32), Convolution(4, 2, 64), Convolution(3, 1, 64))
"""The convolutions of Mnih et al. (2015)."""


def smallest_side(convolutions: tuple[Convolution, ...]) -> int:
    """The least pixels to a side of an image for which every convolution has a position.

    Example:
        >>> smallest_side(ATARI)
        36
    """
    side = 1
    for convolution in reversed(convolutions):
        side = (side - 1) * convolution.stride + convolution.size
    return side


def convolve(shape: Convolution, x: Any, weights: Any) -> Any:
    """The convolution of images (seeds, batch, height, width, channels) with weights (seeds, size * size * channels,
    channels of the result), whose rows are in the order row, column, channel: (seeds, batch, positions down, positions
    across, channels of the result)."""
    return jnp.stack([_one(shape, x[s], weights[s]) for s in range(x.shape[0])])


def weight_gradient(shape: Convolution, x: Any, error: Any) -> Any:
    """The gradient in the weights, summed over the batch, from the gradient in the result."""
    size = shape.size * shape.size * x.shape[-1]
    empty = jnp.zeros((size, shape.channels), jnp.float32)
    return jnp.stack([_pulled(partial(_one, shape, x[s]), empty, error[s]) for s in range(x.shape[0])])


def input_gradient(shape: Convolution, x: Any, weights: Any, error: Any) -> Any:
    """The gradient in the images x, from the gradient in the result."""
    every = range(x.shape[0])
    return jnp.stack([_pulled(partial(_one, shape, weights=weights[s]), x[s], error[s]) for s in every])


def _one(shape: Convolution, x: Any, weights: Any) -> Any:
    """The convolution of one seed's images."""
    kernel = weights.reshape(shape.size, shape.size, x.shape[-1], shape.channels)
    strides = (shape.stride, shape.stride)
    return jax.lax.conv_general_dilated(x, kernel, strides, "VALID", dimension_numbers=_AXES)


def _pulled(linear: Callable[[Any], Any], at: Any, error: Any) -> Any:
    """The transpose of a linear function, applied to an error; the function itself is not computed."""
    (gradient,) = jax.linear_transpose(linear, at)(error)
    return gradient
