"""Drawing actions from probabilities, with an explicit key or generator."""

from __future__ import annotations

import sys

import numpy as np

from ipe.entropy.arrays import AnyArray, actions, check_distribution, namespace
from ipe.errors import InputError


def sample(key: AnyArray, probabilities: AnyArray) -> AnyArray:
    r"""Draw an action from each row of probabilities.

    The first action at which the cumulated probability exceeds a uniform number. An action of
    probability 0 is never drawn. A row of zeros, a terminal state's, gives -1. JAX draws its numbers
    in the dtype of the probabilities: in float32 they are met to within 1.2e-7.

    Args:
        key: a `numpy.random.Generator`, for arrays of NumPy (and torch's, on the CPU); or a JAX key, for
            those of JAX. One key serves all rows: to draw the same whatever the batch, `jax.vmap` over keys.
        probabilities: shape (..., A); rows sum to one.

    Returns:
        Indices of actions, shape (...).

    Example:
        >>> import numpy as np
        >>> sample(np.random.default_rng(0), np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]))
        array([1, 0, 0])
    """
    if isinstance(key, np.random.Generator):
        pi = actions(np.asarray(probabilities), "probabilities")
        check_distribution(pi, np.broadcast_to((pi != 0).any(-1, keepdims=True), pi.shape), "probabilities")
        return sample_at(pi.astype(np.float64), key.random(pi.shape[:-1]))
    pi = actions(probabilities, "probabilities")
    jax = sys.modules.get("jax")  # whoever has a key has imported it
    if jax is None or not isinstance(key, jax.Array):
        raise InputError(f"key must be a numpy.random.Generator or a JAX key, found {type(key).__name__}")
    pi = jax.numpy.asarray(pi)
    return sample_at(pi, jax.random.uniform(key, pi.shape[:-1], pi.dtype))


def sample_at(probabilities: AnyArray, draws: AnyArray) -> AnyArray:
    r"""The action of each row that a uniform number stands for: the inverse of the distribution function.

    Args:
        probabilities: shape (..., A).
        draws: uniform numbers in [0, 1), shape (...).

    Returns:
        The first action at which the cumulated probability exceeds the number, shape (...); -1 for a row of zeros.

    Example:
        >>> import numpy as np
        >>> sample_at(np.array([0.25, 0.0, 0.75]), np.array(0.25))
        array(2)
    """
    xp = namespace(probabilities)
    cumulated = xp.cumsum(probabilities, axis=-1)
    reach = xp.amax(xp.where(probabilities > 0, cumulated, 0.0), axis=-1)
    # Rounding may leave the sum short of one, and make it rise at an action of probability 0.
    found = (probabilities > 0) & (cumulated > (draws * reach)[..., None])
    return xp.where(xp.any(found, axis=-1), xp.argmax(found, axis=-1), -1)
