"""DQN's policies with one more network, the policy network, which decides how much they explore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.dqn.policies import CnnPolicy, DQNPolicy, MultiInputPolicy

from ipe.errors import InputError
from ipe.integrations.stable_baselines3.acting import Exploring, explored
from ipe.integrations.stable_baselines3.networks import output, prepared
from ipe.integrations.stable_baselines3.stepping import fuse


class EpsilonIPEPolicy(DQNPolicy):  # type: ignore[misc]
    """DQN's policy with a policy network: the Q-network's shape (`net_arch`, features extractor), other parameters.

    Arguments are DQNPolicy's; `optimizer_class` and `optimizer_kwargs` are those of both networks. `behaviour` names
    how it acts (`EpsilonIPEDQN`). `predict` is greedy if `deterministic`, else it draws from `generator`.
    """

    def __init__(self, *arguments: Any, behaviour: str = "epsilon-ipe", **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.acts = behaviour

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "behaviour": self.acts}

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)  # first: with the same seed, the Q-network is the one that DQN would start from
        self.policy_net = self.make_q_net()
        self.policy_optimizer = self.optimizer_class(
            self.policy_net.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )
        self.generator = np.random.default_rng()
        for optimizer in (self.optimizer, self.policy_optimizer):
            fuse(optimizer)

    def behaviour(self, obs: Any) -> Exploring:
        """Probabilities of the actions by the policy's behaviour, as random as the evaluation policy is in each state.

        Args:
            obs: a batch of observations as tensors (`obs_to_tensor`).

        Raises:
            InputError: if a network's output is not finite.
        """
        outputs = self._outputs(obs)
        return explored(self.acts, outputs, np.zeros(outputs.shape[1], np.float32))[0]

    def explore(self, obs: Any) -> tuple[Exploring, NDArray[np.int64]]:
        """What `behaviour` returns, and an action for each state, drawn with `generator`.

        An action is the first at which the cumulated probability exceeds a uniform number (`ipe.behaviours.sample`), in
        float32: probabilities are met to within 1.2e-7.
        """
        outputs = self._outputs(obs)
        return explored(self.acts, outputs, self.generator.random((outputs.shape[1],), np.float32))

    def _outputs(self, obs: Any) -> NDArray[np.float32]:
        with th.no_grad():
            networks = (self.q_net, self.policy_net)
            given = prepared(networks, obs)
            outputs = th.stack([output(network, given) for network in networks])
        return outputs.float().cpu().numpy()  # type: ignore[no-any-return]

    def _predict(self, obs: Any, deterministic: bool = True) -> Any:
        if deterministic:
            return super()._predict(obs, deterministic=True)
        return th.as_tensor(self.explore(obs)[1])

    def set_training_mode(self, mode: bool) -> None:
        """Put the networks in training or evaluation mode (batch normalisation, dropout)."""
        super().set_training_mode(mode)
        self.policy_net.set_training_mode(mode)


class EpsilonIPECnnPolicy(EpsilonIPEPolicy, CnnPolicy):  # type: ignore[misc]
    """`EpsilonIPEPolicy` for images, with Nature's convolutional network."""


class EpsilonIPEMultiInputPolicy(EpsilonIPEPolicy, MultiInputPolicy):  # type: ignore[misc]
    """`EpsilonIPEPolicy` for dictionaries of observations."""


def with_policy_network(policy_class: type[Any]) -> type[EpsilonIPEPolicy]:
    """The class itself if it has a policy network; for a class of DQN's, the one here that has such a network."""
    if issubclass(policy_class, EpsilonIPEPolicy):
        return policy_class
    known = {
        DQNPolicy: EpsilonIPEPolicy,
        CnnPolicy: EpsilonIPECnnPolicy,
        MultiInputPolicy: EpsilonIPEMultiInputPolicy,
    }
    if policy_class not in known:
        raise InputError(
            f"policy: {policy_class.__name__} has no policy network; derive it from EpsilonIPEPolicy, or give "
            "MlpPolicy, CnnPolicy or MultiInputPolicy"
        )
    return known[policy_class]
