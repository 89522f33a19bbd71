"""The C library's functions in JAX programs; they mean what those of `ipe.deep.networks` and `optimisers` mean.

Every sum over a layer's inputs or over the minibatch is added up in the order of its terms, with fused multiplications
and additions: neither the number of seeds nor the size of a minibatch changes what comes out for one of them. With
precision bfloat16 the factors of the middle layer's products over a minibatch, nearly all of the work, are rounded so.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipe.deep.native.library import LANES
from ipe.deep.networks import Architecture, Parameters, dueling_errors, dueling_values

_GROUP = 2 * LANES


def features(architecture: Architecture, observations: Any) -> Any:
    """Return the observations, flat: (seeds, batch, n). Images of zeros and ones may have eight in a byte instead."""
    return observations.reshape(*observations.shape[:2], -1)


def forward(architecture: Architecture, parameters: Parameters, inputs: Any) -> tuple[Any, list[Any]]:
    """Return the outputs, (seeds, batch, actions), and what `backward` and `rmsprop` need."""
    seeds, batch = inputs.shape[:2]
    padded = -(-batch // _GROUP) * _GROUP
    _, first, middle = parameters["matrix"].shape
    sizes = ((batch, _outputs(architecture)), (first, padded), (middle, padded))
    shapes = [_shape(seeds, *size) for size in sizes]
    output, hidden, last = _call("ipe_forward", shapes, architecture)(*_arrays(parameters), inputs)
    return _values(architecture, output), [inputs, hidden, last]


def act(architecture: Architecture, parameters: Parameters, inputs: Any) -> Any:
    """Return the outputs alone, for a few observations: (seeds, n, actions)."""
    shape = _shape(*inputs.shape[:2], _outputs(architecture))
    return _values(architecture, _call("ipe_act", shape, architecture)(*_arrays(parameters), inputs))


def backward(architecture: Architecture, parameters: Parameters, seen: list[Any], error: Any) -> Parameters:
    """Return the gradient of a loss in the parameters, from its gradient in the outputs."""
    arrays = _arrays(parameters)
    matrix, rest = _call("ipe_backward", _shapes(arrays), architecture)(*arrays, *seen, _errors(architecture, error))
    return {"matrix": matrix, "rest": rest}


def rmsprop(
    architecture: Architecture,
    parameters: Parameters,
    seen: list[Any],
    error: Any,
    moments: dict[str, Parameters],
    step_size: Any,
    hyper: dict[str, Any],
) -> tuple[Parameters, dict[str, Parameters]]:
    """Do `backward` and a step of RMSprop in one: the new parameters and moments lie where the old ones were."""
    arrays, squares = _arrays(parameters), _arrays(moments["square"])
    numbers = jnp.stack([step_size, hyper["optimiser_decay"], hyper["optimiser_epsilon"]], axis=-1)
    shapes, places = _shapes([*arrays, *squares]), {0: 0, 1: 1, 6: 2, 7: 3}
    call = _call("ipe_rmsprop", shapes, architecture, input_output_aliases=places)
    error = _errors(architecture, error)
    matrix, rest, matrix_square, rest_square = call(*arrays, *seen, error, *squares, numbers)
    return {"matrix": matrix, "rest": rest}, {"square": {"matrix": matrix_square, "rest": rest_square}}


def _outputs(architecture: Architecture) -> int:
    """Return how many outputs the library's network has; a dueling one's are V and A."""
    return sum(outputs for _, outputs in architecture.heads)


def _values(architecture: Architecture, outputs: Any) -> Any:
    return dueling_values(outputs[..., :1], outputs[..., 1:]) if architecture.dueling else outputs


def _errors(architecture: Architecture, error: Any) -> Any:
    """Return the gradient in the outputs of the library's network, from the gradient in the action values."""
    return jnp.concatenate(dueling_errors(error), axis=-1) if architecture.dueling else error


def _call(name: str, shapes: Any, architecture: Architecture, **options: Any) -> Any:
    """Return a function of arrays; it tells the library the sizes of an image, and whether to round to bfloat16."""
    call: Any = jax.ffi.ffi_call(name, shapes, **options)
    sizes = architecture.inputs if architecture.image else (0, 0, 0)
    height, width, channels = (np.int64(size) for size in sizes)
    rounded, dueling = np.int64(architecture.precision == "bfloat16"), np.int64(architecture.dueling)
    return partial(call, bfloat16=rounded, dueling=dueling, height=height, width=width, channels=channels)


def _arrays(parameters: Parameters) -> list[Any]:
    return [parameters["matrix"], parameters["rest"]]


def _shapes(arrays: list[Any]) -> list[Any]:
    return [_shape(*array.shape) for array in arrays]


def _shape(*sizes: int) -> Any:
    return jax.ShapeDtypeStruct(sizes, jnp.float32)  # type: ignore[no-untyped-call]
