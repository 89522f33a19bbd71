r"""RMSprop and Adam as PyTorch computes them, over the parameters of a batch of seeds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ipe.deep.networks import Parameters, sum_by_halves


def initial_moments(kind: str, parameters: Parameters) -> dict[str, Parameters]:
    """The moments before the first step, all 0: the mean squared gradient, and for Adam the mean gradient too."""
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    if kind == "rmsprop":
        return {"square": zeros}
    return {"square": zeros, "mean": jax.tree.map(jnp.zeros_like, parameters)}


def step(
    kind: str,
    parameters: Parameters,
    gradient: Parameters,
    moments: dict[str, Parameters],
    step_size: Any,
    hyper: dict[str, Any],
    updates: Any,
) -> tuple[Parameters, dict[str, Parameters]]:
    r"""One step down the gradient g. Hyperparameters are arrays of one number per seed.

    RMSprop, with :math:`\varepsilon` outside the root:

    .. math:: v \leftarrow \rho v + (1-\rho) g^2, \qquad \theta \leftarrow \theta - \alpha\, g / (\sqrt v + \varepsilon)

    Adam, in its t-th step, t = 1, 2, ...:

    .. math:: m \leftarrow \beta m + (1-\beta) g, \quad v \leftarrow \rho v + (1-\rho) g^2, \quad
              \theta \leftarrow \theta - \frac{\alpha}{1-\beta^t} \frac{m}{\sqrt{v / (1-\rho^t)} + \varepsilon}

    Args:
        kind: rmsprop or adam.
        parameters: :math:`\theta`.
        gradient: g.
        moments: v as `square`, m as `mean`.
        step_size: :math:`\alpha`.
        hyper: `optimiser_decay` (:math:`\rho`), `optimiser_momentum` (:math:`\beta`) and `optimiser_epsilon`
            (:math:`\varepsilon`).
        updates: t - 1.

    Returns:
        The new parameters and moments.
    """
    decay, epsilon = hyper["optimiser_decay"], hyper["optimiser_epsilon"]
    square = _each(lambda v, g, rho: rho * v + (1.0 - rho) * (g * g), moments["square"], gradient, decay)
    if kind == "rmsprop":
        new = {
            name: parameters[name] - _along(step_size, g) * g / (jnp.sqrt(square[name]) + _along(epsilon, g))
            for name, g in gradient.items()
        }
        return new, {"square": square}
    beta, t = hyper["optimiser_momentum"], updates + 1.0
    mean = _each(lambda m, g, b: b * m + (1.0 - b) * g, moments["mean"], gradient, beta)
    size, scale = step_size / (1.0 - beta**t), jnp.sqrt(1.0 - decay**t)
    new = {
        name: parameters[name] - _along(size, m) * m / (jnp.sqrt(square[name]) / _along(scale, m) + _along(epsilon, m))
        for name, m in mean.items()
    }
    return new, {"square": square, "mean": mean}


def clipped(gradient: Parameters, norm: Any) -> Parameters:
    r"""The gradient of one network, scaled to :math:`\min(1, c / (\lVert g \rVert + 10^{-6}))` as PyTorch does, seed by
    seed; a `norm` c of 0 leaves that seed's gradient as it is."""
    square: Any = 0.0
    for g in gradient.values():
        squares = g * g
        while squares.ndim > 1:
            squares = sum_by_halves(squares)
        square = square + squares
    factor = jnp.minimum(1.0, norm / (jnp.sqrt(square) + 1e-6))
    factor = jnp.where(norm > 0.0, factor, 1.0)
    return {name: g * _along(factor, g) for name, g in gradient.items()}


def _each(function: Any, left: Parameters, right: Parameters, number: Any) -> Parameters:
    return {name: function(left[name], right[name], _along(number, right[name])) for name in right}


def _along(number: Any, like: Any) -> Any:
    """One number per seed, as an array that broadcasts to a parameter's shape."""
    return number.reshape(-1, *(1,) * (like.ndim - 1))
