r"""Networks for a batch of seeds: every parameter has a leading axis, the seed's.

There are two shapes, as in the paper. For vectors: two ReLU layers of the same width. For images: a 3x3 convolution
with stride 1, ReLU, and one ReLU layer. The convolution is a matrix product over patches (im2col), because XLA has no
fast convolution on the CPU whose weights differ from seed to seed. A third shape is for large images: the network of
Mnih et al. (2015), three convolutions with strides (`ipe.deep.convolutions`) and a ReLU layer of 512.

A dueling network (Wang et al., 2016) ends in two streams, the value V(s) and the advantages A(s, a), and

.. math:: Q(s,a) = V(s) + A(s,a) - \frac{1}{|A|} \sum_b A(s,b).

The streams share all layers but the last two. Each has half the units of the last hidden layer, as in the paper's first
experiment, so that dueling hardly changes the number of parameters; after Mnih et al.'s convolutions each has 512, as
in the paper's Atari network. The hidden layers of both streams are one matrix.

The backward pass is written out, because automatic differentiation makes transposed products and copies their results
back, which takes a third of the whole step's time. A test compares it with `jax.grad`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ipe.deep.convolutions import ATARI, Convolution, convolve, input_gradient, weight_gradient

Parameters: TypeAlias = dict[str, Any]
"""Two arrays: `matrix`, the weights of the middle layer, shape (seeds, in, out), which are nearly all parameters; and
`rest`, all other parameters in a row, shape (seeds, n). A compiled program takes two microseconds per array, whatever
the array's size, so that two arrays are better than six."""

Layers: TypeAlias = list[tuple[Any, Any]]
"""Weights (seeds, in, out) and biases (seeds, out) of each layer."""

ATARI_WIDTH = 512
"""The width of the ReLU layer after the convolutions of the network atari."""


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
    network: str = "minatar"
    """The network for images: minatar or atari."""
    dueling: bool = False
    """Whether the outputs are the sum of a value and of advantages, from two streams."""

    def of(self, name: str) -> Architecture:
        """The shape of one of an agent's networks, q, target or policy: that of a policy is never dueling."""
        return self._replace(dueling=False) if name == "policy" else self

    @property
    def image(self) -> bool:
        """Whether the first layer is a convolution."""
        return len(self.inputs) == 3

    @property
    def atari(self) -> bool:
        """Whether there are the three convolutions with strides."""
        return self.image and self.network == "atari"

    @property
    def convolutions(self) -> tuple[Convolution, ...]:
        """The convolutions, one after the other; none for vectors."""
        return ATARI if self.atari else (Convolution(3, 1, self.channels),) if self.image else ()

    @property
    def applied(self) -> list[int]:
        """How often each layer's matrix is applied: a convolution's wherever its kernel fits, the others' once."""
        sides, counts = self.inputs[:2], []
        for convolution in self.convolutions:
            sides = convolution.sides(*sides)
            counts.append(math.prod(sides))
        return [*counts, *[1] * (len(self.layers) - len(counts))]

    @property
    def middle(self) -> int:
        """The units of the last hidden layer, those of both streams together."""
        return 2 * self.width if self.dueling and self.atari else self.width

    @property
    def heads(self) -> list[tuple[int, int]]:
        """Inputs and outputs of the layers after the last hidden one: of one layer, or of the value's and the
        advantages', which read the first and the second half of the units."""
        if not self.dueling:
            return [(self.middle, self.actions)]
        return [(self.middle // 2, 1), (self.middle // 2, self.actions)]

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer's matrix."""
        if not self.image:
            return [(self.inputs[0], self.width), (self.width, self.middle), *self.heads]
        sides, channels, sizes = self.inputs[:2], self.inputs[2], []
        for convolution in self.convolutions:
            sizes.append((convolution.size**2 * channels, convolution.channels))
            sides, channels = convolution.sides(*sides), convolution.channels
        return [*sizes, (math.prod(sides) * channels, self.middle), *self.heads]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the layers, in the order in which an observation goes through them."""
        heads = ("last.value", "last.advantage") if self.dueling else ("last",)
        return (*("first", "second", "third")[: len(self.layers) - 1 - len(heads)], "middle", *heads)

    @property
    def multiplications(self) -> int:
        """The number of multiplications in a forward pass of one observation."""
        return sum(n * inputs * outputs for n, (inputs, outputs) in zip(self.applied, self.layers, strict=True))


def initial_parameters(architecture: Architecture, generators: Sequence[np.random.Generator]) -> Parameters:
    r"""Parameters uniform on :math:`\pm 1/\sqrt{\text{fan-in}}`, biases too (PyTorch's default), with a generator for
    each seed."""
    layers: Layers = []
    for inputs, outputs in architecture.layers:
        bound = 1.0 / math.sqrt(inputs)
        draws = [generator.uniform(-bound, bound, (inputs + 1, outputs)).astype(np.float32) for generator in generators]
        both = jnp.asarray(np.stack(draws))
        layers.append((both[:, :-1], both[:, -1]))
    return joined(layers, len(architecture.heads))


def joined(layers: Layers, heads: int = 1) -> Parameters:
    """The parameters of a network from the weights and biases of its layers, of which the last are `heads`."""
    before, (matrix, bias), last = layers[: -heads - 1], layers[-heads - 1], layers[-heads:]
    rest = [*(array for layer in before for array in layer), bias, *(array for layer in last for array in layer)]
    return {"matrix": matrix, "rest": jnp.concatenate([a.reshape(len(matrix), -1) for a in rest], axis=1)}


def split(architecture: Architecture, parameters: Parameters) -> Layers:
    """Take the weights and biases of each layer out of the two arrays of `Parameters`."""
    rest, place = parameters["rest"], 0
    layers: Layers = []
    for i, (inputs, outputs) in enumerate(architecture.layers):
        weights = parameters["matrix"]
        if i != len(architecture.layers) - 1 - len(architecture.heads):
            weights = rest[:, place : place + inputs * outputs].reshape(-1, inputs, outputs)
            place += inputs * outputs
        layers.append((weights, rest[:, place : place + outputs]))
        place += outputs
    return layers


def features(architecture: Architecture, observations: Any) -> Any:
    """What the first layer multiplies: the observations themselves, (seeds, batch, *inputs), float32; or the patches of
    images for a single convolution, (seeds, batch, positions, 9 * channels)."""
    if not architecture.image or architecture.atari:
        return observations
    height, width, _ = architecture.inputs
    patches = [observations[:, :, i : i + height - 2, j : j + width - 2] for i in range(3) for j in range(3)]
    stacked = jnp.concatenate(patches, axis=-1)
    return stacked.reshape(*observations.shape[:2], architecture.applied[0], -1)


def forward(architecture: Architecture, parameters: Parameters, inputs: Any) -> tuple[Any, list[Any]]:
    """The outputs of a network, (seeds, batch, actions), from the result of `features`, and the inputs of each of its
    layers, which `backward` needs."""
    layers, last_ones = split(architecture, parameters), len(architecture.heads)
    before, middle, heads = layers[: -last_ones - 1], layers[-last_ones - 1], layers[-last_ones:]
    seeds, batch = inputs.shape[:2]
    seen: list[Any] = []
    if architecture.atari:
        hidden = inputs
        for shape, (weights, bias) in zip(ATARI, before, strict=True):
            seen.append(hidden)
            found = convolve(shape, _rounded(architecture, hidden), _rounded(architecture, weights))
            hidden = _relu(found + bias[:, None, None, None])
    else:
        seen.append(inputs.reshape(seeds, -1, inputs.shape[-1]))
        hidden = _relu(_layer(architecture, before[0], seen[0]))
    hidden = hidden.reshape(seeds, batch, -1)
    last = _relu(_layer(architecture, middle, hidden))
    if architecture.dueling:
        streams = jnp.split(last, 2, axis=-1)
        outputs = [_layer(architecture, head, stream) for head, stream in zip(heads, streams, strict=True)]
        return dueling_values(*outputs), [*seen, hidden, last]
    return _layer(architecture, heads[0], last), [*seen, hidden, last]


def dueling_values(value: Any, advantage: Any) -> Any:
    r""":math:`Q(s,a) = V(s) + A(s,a) - \frac{1}{|A|} \sum_b A(s,b)` (Wang et al., 2016, equation 9).

    Args:
        value: V(s), (seeds, batch, 1).
        advantage: A(s, .), (seeds, batch, actions).
    """
    return value + advantage - _total(advantage) / advantage.shape[-1]


def dueling_errors(error: Any) -> tuple[Any, Any]:
    r"""The gradients of a loss in V and in A, from its gradient g in Q: :math:`\sum_a g_a`, and
    :math:`g_a - \frac{1}{|A|} \sum_b g_b`."""
    total = _total(error)
    return total, error - total / error.shape[-1]


def _total(array: Any) -> Any:
    """The sum over the last axis, which stays; added up by halves."""
    return sum_by_halves(jnp.moveaxis(array, -1, 1))[..., None]


def act(architecture: Architecture, parameters: Parameters, inputs: Any) -> Any:
    """The outputs of a network, without the inputs of its layers."""
    return forward(architecture, parameters, inputs)[0]


def backward(architecture: Architecture, parameters: Parameters, seen: list[Any], error: Any) -> Parameters:
    """The gradient of a loss in the parameters, summed over the batch, from its gradient in the outputs, (seeds, batch,
    actions), and the inputs of each layer in the forward pass."""
    layers = split(architecture, parameters)
    convolutions = ATARI if architecture.atari else ()
    gradient: Layers = []
    if architecture.dueling:
        last = seen[-1]
        streams, errors, befores = jnp.split(last, 2, axis=-1), dueling_errors(error), []
        for stream, slope, (weights, _) in zip(streams, errors, layers[-2:], strict=True):
            gradient.insert(0, (_product(architecture, "sbi,sbo->sio", stream, slope), sum_by_halves(slope)))
            befores.append(_product(architecture, "sbo,sio->sbi", slope, weights))
        error = jnp.where(last > 0, jnp.concatenate(befores, axis=-1), 0.0)
    for i in reversed(range(len(convolutions), len(layers) - len(gradient))):
        inputs = seen[i]
        error = error.reshape(*inputs.shape[:2], -1)
        gradient.append((_product(architecture, "sbi,sbo->sio", inputs, error), sum_by_halves(error)))
        if i:
            # A ReLU's output is positive exactly where it lets the gradient through.
            error = jnp.where(inputs > 0, _product(architecture, "sbo,sio->sbi", error, layers[i][0]), 0.0)
    for i in reversed(range(len(convolutions))):
        shape, inputs = convolutions[i], seen[i]
        error = error.reshape(*inputs.shape[:2], *shape.sides(*inputs.shape[2:4]), shape.channels)
        bias, error = error.sum(axis=(1, 2, 3)), _rounded(architecture, error)
        gradient.append((weight_gradient(shape, _rounded(architecture, inputs), error), bias))
        if i:
            before = input_gradient(shape, inputs, _rounded(architecture, layers[i][0]), error)
            error = jnp.where(inputs > 0, before, 0.0)
    return joined(gradient[::-1], len(architecture.heads))


def _layer(architecture: Architecture, layer: tuple[Any, Any], inputs: Any) -> Any:
    weights, bias = layer
    return _product(architecture, "sbi,sio->sbo", inputs, weights) + bias[:, None]


def _product(architecture: Architecture, subscripts: str, left: Any, right: Any) -> Any:
    if architecture.precision == "bfloat16":
        left, right = left.astype(jnp.bfloat16), right.astype(jnp.bfloat16)
    return jnp.einsum(subscripts, left, right, preferred_element_type=jnp.float32)


def _rounded(architecture: Architecture, factor: Any) -> Any:
    """A factor of a convolution, which XLA multiplies in float32, as bfloat16 has it if that is the precision."""
    return jax.lax.reduce_precision(factor, 8, 7) if architecture.precision == "bfloat16" else factor


def sum_by_halves(array: Any) -> Any:
    """The sum over axis 1, by halves. (The order in which XLA adds up depends on the number of seeds.)"""
    while (n := array.shape[1]) > 1:
        half = n // 2
        array = jnp.concatenate([array[:, :half] + array[:, half : 2 * half], array[:, 2 * half :]], axis=1)
    return array[:, 0]


def _relu(x: Any) -> Any:
    return jnp.maximum(x, 0.0)
