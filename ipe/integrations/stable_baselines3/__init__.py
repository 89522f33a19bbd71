r"""A Stable-Baselines3 DQN whose exploration is epsilon-IPE.

>>> from ipe.integrations.stable_baselines3 import EpsilonIPEDQN
>>> model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", policy_learning_rate=1e-3, seed=0).learn(200)
>>> model.predict(model.get_env().reset(), deterministic=True)[0].shape
(1,)

`EpsilonIPEDQN` is used as `stable_baselines3.DQN` is, with policies, callbacks, loggers, vectorised environments,
`evaluate_policy`, `save` and `load`. One thing is different: there is no schedule of epsilon. A policy network beside
the Q-network learns the evaluation policy of the values, and the entropy of that policy sets epsilon, in every state
and for every environment.
"""

try:
    import stable_baselines3 as _needed  # noqa: F401
except ModuleNotFoundError as error:
    from ipe.base.packages import missing_package

    _sentence = missing_package(__name__, str(error.name), extra="stable-baselines3", first="torch")
    raise ModuleNotFoundError(str(_sentence), name=error.name) from None

from ipe.integrations.stable_baselines3.acting import Exploring
from ipe.integrations.stable_baselines3.dqn import EpsilonIPEDQN
from ipe.integrations.stable_baselines3.policies import (
    EpsilonIPECnnPolicy,
    EpsilonIPEMultiInputPolicy,
    EpsilonIPEPolicy,
)

__all__ = ["EpsilonIPECnnPolicy", "EpsilonIPEDQN", "EpsilonIPEMultiInputPolicy", "EpsilonIPEPolicy", "Exploring"]
