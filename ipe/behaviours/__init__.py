r"""How to act: probabilities over the actions, from values, a policy and the step.

Pure functions over the last axis (the actions), batched over the others, for NumPy, JAX and torch alike
(see `ipe.entropy` for arrays, masks and checks). A behaviour gives an array of probabilities, which a test
can look at; `sample` draws from it, with an explicit key or generator.

Ties are broken at random: the arg max actions share the greedy probability equally.

`BEHAVIOURS` is the table of behaviours by name, which the tabular and the deep agent read; `declare` adds a `Behaviour`
of your own to it. A behaviour in a module of your own, a `Behaviour` or a plain function, is named
`package.module:name`; `find_behaviour` says what a function may ask for.
"""

from ipe.behaviours.declaration import (
    BEHAVIOURS,
    Acting,
    Behaviour,
    Experience,
    Memory,
    Outcome,
    Target,
    View,
    declare,
)
from ipe.behaviours.functions import find_behaviour
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.behaviours.kinds.bmc import Beliefs, bmc_update
from ipe.behaviours.kinds.boltzmann import boltzmann
from ipe.behaviours.kinds.conservative import conservative_update
from ipe.behaviours.kinds.ebe import ebe_epsilon
from ipe.behaviours.kinds.epsilon_ipe import epsilon_ipe
from ipe.behaviours.kinds.ez_greedy import zeta_duration
from ipe.behaviours.kinds.ipe import ipe
from ipe.behaviours.kinds.munchausen import munchausen_target
from ipe.behaviours.kinds.tau_ipe import tau_ipe
from ipe.behaviours.kinds.vdbe import vdbe_softmax, vdbe_update
from ipe.behaviours.policies import epsilon_greedy, greedy
from ipe.behaviours.sampling import sample, sample_at
from ipe.behaviours.schedules import exponential_schedule, linear_schedule

__all__ = [
    "BEHAVIOURS",
    "Acting",
    "Behaviour",
    "Beliefs",
    "Experience",
    "Hyperparameter",
    "Memory",
    "Outcome",
    "Target",
    "View",
    "bmc_update",
    "boltzmann",
    "conservative_update",
    "declare",
    "ebe_epsilon",
    "epsilon_greedy",
    "epsilon_ipe",
    "exponential_schedule",
    "find_behaviour",
    "greedy",
    "ipe",
    "linear_schedule",
    "munchausen_target",
    "sample",
    "sample_at",
    "tau_ipe",
    "vdbe_softmax",
    "vdbe_update",
    "zeta_duration",
]
