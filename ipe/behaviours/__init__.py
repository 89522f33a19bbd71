r"""How to act: probabilities over the actions, from values, a policy and the step.

Pure functions over the last axis (the actions), batched over the others, for NumPy, JAX and torch alike
(see `ipe.entropy` for arrays, masks and checks). A behaviour is an array of probabilities, which a test
can look at; `sample` draws from it, with an explicit key or generator.

Ties are broken at random: the arg max actions share the greedy probability equally.
"""

from ipe.behaviours.policies import boltzmann, epsilon_greedy, epsilon_ipe, greedy, ipe
from ipe.behaviours.sampling import sample, sample_at
from ipe.behaviours.schedules import conservative_update, exponential_schedule, linear_schedule, vdbe_update

__all__ = [
    "boltzmann",
    "conservative_update",
    "epsilon_greedy",
    "epsilon_ipe",
    "exponential_schedule",
    "greedy",
    "ipe",
    "linear_schedule",
    "sample",
    "sample_at",
    "vdbe_update",
]
