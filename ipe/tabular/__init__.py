r"""Algorithm 1 of the paper on finite MDPs: Q-learning, and a policy that follows its values.

At every step the agent acts, Q-learning moves :math:`Q(s,a)` towards
:math:`r + \gamma \max_b Q(s',b)`, and a policy update (`ipe.updates`) moves the logits
:math:`\theta(s',\cdot)` so that the policy explains the values. How the agent acts is its behaviour
(`ipe.behaviours`): with the policy itself (IPE), with an epsilon as random as the policy
(epsilon-IPE), or with one of the usual schedules. `simulate` runs all of it, every run and every
setting of a sweep in one compiled program.
"""

from ipe import behaviours as _behaviours
from ipe.tabular import parameters as _parameters
from ipe.tabular.results import TabularRuns
from ipe.tabular.simulation import simulate

__all__ = ["BEHAVIOURS", "PARAMETERS", "UPDATES", "TabularRuns", "simulate"]

BEHAVIOURS: dict[str, tuple[str, ...]]
UPDATES: dict[str, tuple[str, ...]]
PARAMETERS: dict[str, _behaviours.Hyperparameter]


def __getattr__(name: str) -> object:
    """The names of parameters by behaviour and by update, and all parameters, as they are declared at the moment."""
    match name:
        case "BEHAVIOURS":
            return _parameters.names_by_behaviour()
        case "UPDATES":
            return _parameters.names_by_update()
        case "PARAMETERS":
            return _parameters.parameters()
    raise AttributeError(f"module 'ipe.tabular' has no attribute {name!r}")
