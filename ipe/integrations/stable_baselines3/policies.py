"""DQN's policies with one more network, the policy network, which decides how much they explore."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.dqn.policies import CnnPolicy, DQNPolicy, MultiInputPolicy

from ipe.base.words import one_of
from ipe.behaviours import BEHAVIOURS, Behaviour, View, find_behaviour, sample_at
from ipe.entropy import entropy_from_logits, epsilon_from_logits
from ipe.errors import InputError
from ipe.integrations.stable_baselines3.stepping import compiled, fuse


class Exploring(NamedTuple):
    """How a model explores in each of n states."""

    pi: NDArray[np.float32]
    """The probabilities of the actions, shape (n, A)."""
    epsilon: NDArray[np.float32]
    """The epsilon at which epsilon-greedy has that entropy, shape (n,); the behaviour's own if it has one."""
    entropy: NDArray[np.float32]
    """The entropy of the evaluation policy in nats, shape (n,)."""


@cache
def _exploring(name: str) -> Callable[[Any], Exploring]:
    """How a behaviour explores on the networks' outputs. Compiled: matching epsilon is hundreds of small calls."""
    behaviour = behaviour_on_policy(name)
    numbers = {each.name: each.default for each in behaviour.hyperparameters}

    def program(outputs: Any) -> Exploring:
        q, logits = outputs
        pi, epsilon = behaviour.act(View(q, logits), numbers)
        matched = epsilon_from_logits(logits) if epsilon is None else epsilon
        return Exploring(pi, matched, entropy_from_logits(logits))

    return compiled(program)


def behaviour_on_policy(name: str) -> Behaviour:
    """The behaviour of a name, or of `package.module:name`, if it acts on a learned evaluation policy.

    Raises:
        InputError: there is no such behaviour, or it is another one.
    """
    if isinstance(name, str) and ":" in name:
        found = find_behaviour(name)
        if not (found.deep and found.needs_policy):
            raise InputError(f"behaviour: {name} does not look at an evaluation policy (logits or policy)")
        if found.memory is not None:
            raise InputError(
                f"behaviour: {name} remembers from step to step, which only the library's own training does"
            )
        return found
    offered = (each for each in BEHAVIOURS.values() if each.deep and each.needs_policy and each.memory is None)
    return BEHAVIOURS[one_of(name, (each.name for each in offered), "behaviour")]


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
        with th.no_grad():
            outputs = th.stack((self.q_net(obs), self.policy_net(obs)))
        q, logits = both = outputs.float().cpu().numpy()
        if not np.isfinite(both).all():
            _check_finite(q, "Q-network", "learning_rate")
            _check_finite(logits, "policy network", "policy_learning_rate")
        n = len(q)
        if more := (1 << (n - 1).bit_length()) - n:  # a program per power of two, not per n
            both = np.concatenate((both, np.zeros_like(both[:, :more])), axis=1)
        return Exploring(*(np.array(rows)[:n] for rows in _exploring(self.acts)(both)))

    def _predict(self, obs: Any, deterministic: bool = True) -> Any:
        if deterministic:
            return super()._predict(obs, deterministic=True)
        return th.as_tensor(self.drawn(self.behaviour(obs)))

    def drawn(self, exploring: Exploring) -> NDArray[np.int64]:
        """An action for each state, drawn from `generator`; `ipe.behaviours.sample` without its checks."""
        return sample_at(exploring.pi.astype(np.float64), self.generator.random(len(exploring.pi)))  # type: ignore[no-any-return]

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
