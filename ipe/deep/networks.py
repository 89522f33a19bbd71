r"""Networks for a batch of seeds: every parameter has a leading axis, the seed's.

There are two shapes, as in the paper. For vectors: two ReLU layers of the same width. For images: a 3x3 convolution
with stride 1, ReLU, and one ReLU layer. The convolution is a matrix product over patches (im2col), because XLA has no
fast convolution on the CPU whose weights differ from seed to seed.

The backward pass is written out, because automatic differentiation makes transposed products and copies their results
back, which takes a third of the whole step's time. A test compares it with `jax.grad`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np

Parameters: TypeAlias = dict[str, Any]
"""Two arrays: `matrix`, the weights of the middle layer, shape (seeds, in, out), which are nearly all parameters; and
`rest`, all other parameters in a row, shape (seeds, n). A compiled program takes two microseconds per array, whatever
the array's size, so that two arrays are better than six."""

Layers: TypeAlias = list[tuple[Any, Any]]
"""Weights (seeds, in, out) and biases (seeds, out) of the three layers."""


class Architecture(NamedTuple):
    """The shape of a network."""

    inputs: tuple[int, ...]
    """The shape of one observation: (n,) or (height, width, channels)."""
    width: int
    """The width of the hidden layers."""
    channels: int
    """The channels of the convolution, for images."""
    actions: int
    """The number of outputs."""
    precision: str = "float32"
    """The precision of the factors of matrix products: float32 or bfloat16."""

    @property
    def image(self) -> bool:
        """Whether the first layer is a convolution."""
        return len(self.inputs) == 3

    @property
    def positions(self) -> int:
        """How often the first matrix is applied: wherever a 3x3 patch fits into the image."""
        return 1 if not self.image else (self.inputs[0] - 2) * (self.inputs[1] - 2)

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer's matrix."""
        if self.image:
            flat = self.positions * self.channels
            return [(9 * self.inputs[2], self.channels), (flat, self.width), (self.width, self.actions)]
        return [(self.inputs[0], self.width), (self.width, self.width), (self.width, self.actions)]

    @property
    def multiplications(self) -> int:
        """The number of multiplications in a forward pass of one observation."""
        first, *others = [inputs * outputs for inputs, outputs in self.layers]
        return first * self.positions + sum(others)


def initial_parameters(architecture: Architecture, generators: Sequence[np.random.Generator]) -> Parameters:
    r"""Parameters uniform on :math:`\pm 1/\sqrt{\text{fan-in}}`, biases too (PyTorch's default).

    Args:
        architecture: the network's shape.
        generators: a generator for each seed.
    """
    layers: Layers = []
    for inputs, outputs in architecture.layers:
        bound = 1.0 / math.sqrt(inputs)
        draws = [generator.uniform(-bound, bound, (inputs + 1, outputs)).astype(np.float32) for generator in generators]
        both = jnp.asarray(np.stack(draws))
        layers.append((both[:, :-1], both[:, -1]))
    return joined(layers)


def joined(layers: Layers) -> Parameters:
    """The parameters of a network from the weights and biases of its layers."""
    (w0, b0), (w1, b1), (w2, b2) = layers
    seeds = len(w1)
    return {"matrix": w1, "rest": jnp.concatenate([a.reshape(seeds, -1) for a in (w0, b0, b1, w2, b2)], axis=1)}


def split(architecture: Architecture, parameters: Parameters) -> Layers:
    """Take the weights and biases of each layer out of the two arrays of `Parameters`."""
    (i0, o0), (_, o1), (i2, o2) = architecture.layers
    rest = parameters["rest"]
    ends = np.cumsum([i0 * o0, o0, o1, i2 * o2, o2]).tolist()
    w0, b0, b1, w2, b2 = (rest[:, a:b] for a, b in zip([0, *ends], ends, strict=False))
    return [(w0.reshape(-1, i0, o0), b0), (parameters["matrix"], b1), (w2.reshape(-1, i2, o2), b2)]


def features(architecture: Architecture, observations: Any) -> Any:
    """What the first matrix multiplies: the observations themselves, or the patches of images.

    Args:
        architecture: the network's shape.
        observations: (seeds, batch, *inputs), float32.

    Returns:
        (seeds, batch, n), or (seeds, batch, positions, 9 * channels).
    """
    if not architecture.image:
        return observations
    height, width, _ = architecture.inputs
    patches = [observations[:, :, i : i + height - 2, j : j + width - 2] for i in range(3) for j in range(3)]
    stacked = jnp.concatenate(patches, axis=-1)
    return stacked.reshape(*observations.shape[:2], architecture.positions, -1)


def forward(architecture: Architecture, parameters: Parameters, inputs: Any) -> tuple[Any, list[Any]]:
    """The outputs of a network, and the inputs of each of its layers.

    Args:
        architecture: the network's shape.
        parameters: the parameters of all seeds.
        inputs: the result of `features`.

    Returns:
        (seeds, batch, actions), and the inputs of the three layers, which `backward` needs.
    """
    layers = split(architecture, parameters)
    seeds, batch = inputs.shape[:2]
    first = inputs.reshape(seeds, -1, inputs.shape[-1])
    hidden = _relu(_layer(architecture, layers[0], first)).reshape(seeds, batch, -1)
    last = _relu(_layer(architecture, layers[1], hidden))
    return _layer(architecture, layers[2], last), [first, hidden, last]


def act(architecture: Architecture, parameters: Parameters, inputs: Any) -> Any:
    """The outputs of a network, without the inputs of its layers."""
    return forward(architecture, parameters, inputs)[0]


def backward(architecture: Architecture, parameters: Parameters, seen: list[Any], error: Any) -> Parameters:
    """The gradient of a loss in the parameters, from its gradient in the outputs.

    Args:
        architecture: the network's shape.
        parameters: the parameters of the forward pass.
        seen: the inputs of each layer in the forward pass.
        error: the gradient in the outputs, (seeds, batch, actions).

    Returns:
        Gradients, summed over the batch, in the shape of the parameters.
    """
    layers = split(architecture, parameters)
    gradient: Layers = []
    for i in (2, 1, 0):
        inputs = seen[i]
        error = error.reshape(*inputs.shape[:2], -1)
        gradient.append((_product(architecture, "sbi,sbo->sio", inputs, error), sum_by_halves(error)))
        if i:
            # A ReLU's output is positive exactly where it lets the gradient through.
            error = jnp.where(inputs > 0, _product(architecture, "sbo,sio->sbi", error, layers[i][0]), 0.0)
    return joined(gradient[::-1])


def _layer(architecture: Architecture, layer: tuple[Any, Any], inputs: Any) -> Any:
    weights, bias = layer
    return _product(architecture, "sbi,sio->sbo", inputs, weights) + bias[:, None]


def _product(architecture: Architecture, subscripts: str, left: Any, right: Any) -> Any:
    if architecture.precision == "bfloat16":
        left, right = left.astype(jnp.bfloat16), right.astype(jnp.bfloat16)
    return jnp.einsum(subscripts, left, right, preferred_element_type=jnp.float32)


def sum_by_halves(array: Any) -> Any:
    """The sum over axis 1, by halves. (The order in which XLA adds up depends on the number of seeds.)"""
    while (n := array.shape[1]) > 1:
        half = n // 2
        array = jnp.concatenate([array[:, :half] + array[:, half : 2 * half], array[:, 2 * half :]], axis=1)
    return array[:, 0]


def _relu(x: Any) -> Any:
    return jnp.maximum(x, 0.0)
