"""DQN's policies with one more network, the policy network, which decides how much they explore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.dqn.policies import CnnPolicy, DQNPolicy, MultiInputPolicy

from ipe.behaviours import View, sample
from ipe.behaviours.kinds.epsilon_ipe import EPSILON_IPE
from ipe.entropy import entropy_from_logits
from ipe.errors import InputError


class Exploring(NamedTuple):
    """How a model explores in each of n states."""

    pi: NDArray[np.float32]
    """The probabilities of the actions, shape (n, A)."""
    epsilon: NDArray[np.float32]
    """The epsilon that is matched to the entropy, shape (n,)."""
    entropy: NDArray[np.float32]
    """The entropy of the evaluation policy in nats, shape (n,)."""


@jax.jit
def _exploring(outputs: Any) -> Exploring:
    """How the networks' outputs explore. Compiled: the matching of epsilon alone is hundreds of small calls."""
    q, logits = outputs
    pi, epsilon = EPSILON_IPE.act(View(q, logits), {})
    assert epsilon is not None
    return Exploring(pi, epsilon, entropy_from_logits(logits))


class EpsilonIPEPolicy(DQNPolicy):  # type: ignore[misc]
    """DQN's policy with a policy network: the Q-network's shape (`net_arch`, features extractor), other parameters.

    Arguments are DQNPolicy's; `optimizer_class` and `optimizer_kwargs` are those of both networks. `predict` is greedy
    if `deterministic`, else epsilon-IPE, with draws from `generator`.
    """

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)  # first: with the same seed, the Q-network is the one that DQN would start from
        self.policy_net = self.make_q_net()
        self.policy_optimizer = self.optimizer_class(
            self.policy_net.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )
        self.generator = np.random.default_rng()

    def behaviour(self, obs: Any) -> Exploring:
        """Epsilon-greedy on Q, as random in each state as the evaluation policy is there.

        Args:
            obs: a batch of observations as tensors (`obs_to_tensor`).

        Raises:
            InputError: if a network's output is not finite.
        """
        with th.no_grad():
            outputs = th.stack((self.q_net(obs), self.policy_net(obs)))
        q, logits = both = outputs.float().cpu().numpy()
        if not np.isfinite(both).all():
            _check_finite(q, "Q-network", "learning_rate")
            _check_finite(logits, "policy network", "policy_learning_rate")
        n = len(q)
        if more := (1 << (n - 1).bit_length()) - n:  # a program per power of two, not per n
            both = np.concatenate((both, np.zeros_like(both[:, :more])), axis=1)
        return Exploring(*(np.array(rows)[:n] for rows in _exploring(both)))

    def _predict(self, obs: Any, deterministic: bool = True) -> Any:
        if deterministic:
            return super()._predict(obs, deterministic=True)
        return th.as_tensor(sample(self.generator, self.behaviour(obs).pi))

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


def _check_finite(rows: NDArray[np.float32], network: str, rate: str) -> None:
    wrong = ~np.isfinite(rows).all(axis=-1)
    if wrong.any():
        raise InputError(
            f"the {network}'s output for observation {int(np.argmax(wrong))} is not finite: either the observation is "
            f"not, or training diverged, where a smaller {rate} helps"
        )
