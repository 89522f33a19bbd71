r"""Entropy, softmax and entropy matching, one implementation for NumPy, JAX and torch.

Every function works over the last axis (the actions) and is batched over the others; takes arrays of
any of the three libraries, in float32 or float64, and answers in kind; and holds no branch on a value,
so that it runs under `jax.jit`, `jax.vmap` and `jax.grad`. `allowed` masks actions: what stands at an
action that is not allowed is not looked at, and its probability is exactly 0. A row without allowed
actions (a terminal state) has no policy: probabilities 0, entropy 0, epsilon 0.

Shapes are always checked. Values are checked, by an `InputError` that names the index, where they are
NumPy's or Python's, since those are never traced; a NaN in a JAX or torch array comes out as a NaN.
"""

from ipe.entropy.boltzmann_matching import (
    boltzmann_from_logits,
    boltzmann_from_probabilities,
    inverse_temperature_from_logits,
)
from ipe.entropy.distrust import distrust
from ipe.entropy.lifting import logits_from_mean
from ipe.entropy.matching import (
    epsilon_from_entropy,
    epsilon_from_logits,
    epsilon_from_probabilities,
    epsilon_table,
)
from ipe.entropy.measures import (
    entropy,
    entropy_deficit,
    entropy_deficit_from_logits,
    entropy_from_logits,
    epsilon_greedy_entropy,
)
from ipe.entropy.softmax import log_softmax, softmax, uniform

__all__ = [
    "boltzmann_from_logits",
    "boltzmann_from_probabilities",
    "distrust",
    "entropy",
    "entropy_deficit",
    "entropy_deficit_from_logits",
    "entropy_from_logits",
    "epsilon_from_entropy",
    "epsilon_from_logits",
    "epsilon_from_probabilities",
    "epsilon_greedy_entropy",
    "epsilon_table",
    "inverse_temperature_from_logits",
    "log_softmax",
    "logits_from_mean",
    "softmax",
    "uniform",
]
