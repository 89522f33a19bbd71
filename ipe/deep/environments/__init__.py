"""Where the agent acts: Gymnasium's environments and MinAtar's games, checked, seeded per episode and restorable."""

from ipe.deep.environments.environment import Environment, Step, episode_seed
from ipe.deep.environments.failure import EnvironmentFailure
from ipe.deep.environments.making import make_environment, spec_of
from ipe.deep.environments.observations import EnvironmentSpec

__all__ = [
    "Environment",
    "EnvironmentFailure",
    "EnvironmentSpec",
    "Step",
    "episode_seed",
    "make_environment",
    "spec_of",
]
