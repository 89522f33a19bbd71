"""DQN whose exploration is epsilon-IPE."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.utils import FloatSchedule, update_learning_rate
from stable_baselines3.dqn import DQN

from ipe.base.numbers import finite_number
from ipe.base.words import one_of
from ipe.errors import InputError
from ipe.integrations.stable_baselines3.acting import Exploring, behaviour_on_policy
from ipe.integrations.stable_baselines3.policies import (
    EpsilonIPECnnPolicy,
    EpsilonIPEMultiInputPolicy,
    EpsilonIPEPolicy,
    with_policy_network,
)
from ipe.integrations.stable_baselines3.stepping import GRADIENTS, fuse
from ipe.integrations.stable_baselines3.takeover import environment_for, plain_dqn, take_over
from ipe.integrations.stable_baselines3.updating import update_in_turn, update_together

_DELTA_Q = ("target", "online", "dqn")
_SCHEDULE = ("exploration_fraction", "exploration_initial_eps", "exploration_final_eps")


class EpsilonIPEDQN(DQN):  # type: ignore[misc]
    r"""Deep Q-Network with epsilon-IPE exploration (Chan, De Asis and Sutton, 2020).

    After each update of the Q-network, the policy network :math:`\pi` descends, on the same minibatch,

    .. math:: \delta^2 - \tau H(\pi(\cdot|s')), \qquad
              \delta = r + \gamma (1 - \text{terminal}) \sum_b \pi(b|s')\, Q(s', b) - Q(s, a) ,

    with no gradient through Q. In state s it acts epsilon-greedily on Q, with the :math:`\epsilon` at which
    epsilon-greedy has the entropy of :math:`\pi(\cdot|s)`. Until `learning_starts` it acts at random, as every
    off-policy algorithm of Stable-Baselines3.

    Args:
        policy: MlpPolicy, CnnPolicy, MultiInputPolicy, or a class derived from `EpsilonIPEPolicy`. The policy network
            has the Q-network's shape and optimiser (`policy_kwargs`).
        env: the environment, one or vectorised, or its id.
        learning_rate: the learning rate of the Q-network; a number, or a function of the remaining progress (1 to 0).
        policy_learning_rate: the learning rate of the policy network; the same.
        behaviour: how to act on both networks, a name of `ipe.behaviours.BEHAVIOURS`: epsilon-ipe; tau-ipe, Boltzmann
            on Q at the temperature of the same entropy; ipe, the evaluation policy itself; or `package.module:name`,
            one of your own that looks at an evaluation policy.
        policy_update: what the policy network descends: :math:`\delta^2` (paper), :math:`|\delta|` (absolute), or what
            natural, kl-proximal (with its default `kl_step`) and cross-entropy have in `ipe.updates`.
        entropy_bonus: the weight :math:`\tau` of the entropy.
        delta_q: whose Q stands in :math:`\delta`: the target network's; the online network's, updated; or, for
            `dqn`, the online network's in s, before its update and with its dropout and batch statistics, and the
            target network's in s', as in DQN's own error. That takes one forward pass less.
        dqn: every other argument of `stable_baselines3.DQN`, but those of the schedule (`exploration_fraction`,
            `exploration_initial_eps`, `exploration_final_eps`), which are refused. `max_grad_norm` holds for each
            network by itself. With `n_steps` above 1 the policy's :math:`\delta` is that of n steps, uncorrected.

    The logger gets `rollout/epsilon` and `rollout/entropy`, means over environments and over the frames since it last
    wrote; `rollout/exploration_rate` (and the attribute `exploration_rate`), epsilon in the last frame; and
    `train/ipe_error`, the mean of :math:`|\delta|`.

    Example:
        >>> model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", policy_learning_rate=1e-3, seed=0).learn(200)
        >>> model.behaviour(model.get_env().reset()).pi.shape
        (1, 2)
    """

    policy_aliases: ClassVar[dict[str, type[EpsilonIPEPolicy]]] = {
        "MlpPolicy": EpsilonIPEPolicy,
        "CnnPolicy": EpsilonIPECnnPolicy,
        "MultiInputPolicy": EpsilonIPEMultiInputPolicy,
    }

    def __init__(
        self,
        policy: str | type[Any],
        env: Any,
        learning_rate: float | Callable[[float], float] = 1e-4,
        *,
        policy_learning_rate: float | Callable[[float], float] = 1e-3,
        behaviour: str = "epsilon-ipe",
        policy_update: str = "paper",
        entropy_bonus: float = 0.0,
        delta_q: Literal["target", "online", "dqn"] = "target",
        _init_setup_model: bool = True,
        **dqn: Any,
    ) -> None:
        _refuse_schedule(dqn)
        super().__init__(policy, env, learning_rate, _init_setup_model=False, **dqn)
        self.policy_learning_rate = policy_learning_rate
        self.behaviour_name = behaviour
        self.policy_update = policy_update
        self.entropy_bonus = entropy_bonus
        self.delta_q = delta_q
        self.generator: np.random.Generator | None = None
        self._generator_seed: int | None = None
        if _init_setup_model:
            self._setup_model()

    @classmethod
    def load(cls, path: Any, env: Any = None, *args: Any, **changes: Any) -> Self:
        """A model from a file; arguments as for `stable_baselines3.DQN.load`."""
        _refuse_schedule(changes)
        if "behaviour" in changes:  # Stable-Baselines3 sets attributes, and `behaviour` is a method
            changes["behaviour_name"] = changes.pop("behaviour")
        return super().load(path, env, *args, **changes)  # type: ignore[no-any-return]

    @classmethod
    def from_dqn(
        cls,
        model: Any,
        env: Any = None,
        *,
        device: Any = "auto",
        policy_learning_rate: float | Callable[[float], float] = 1e-3,
        behaviour: str = "epsilon-ipe",
        policy_update: str = "paper",
        entropy_bonus: float = 0.0,
        delta_q: Literal["target", "online", "dqn"] = "target",
    ) -> Self:
        """A model that goes on where a plain DQN stopped, without its schedule of epsilon.

        It has the DQN's settings, both of its Q-networks, its optimiser's state, its counters, its environment with the
        last observation, and its replay. The policy network starts anew. Networks and optimiser are copied; the
        replay and the environment are the DQN's own, so that one of the two models should learn from then on. After a
        file: its replay is a file apart, which `load_replay_buffer` reads. `learn(..., reset_num_timesteps=False)` goes
        on without another warm-up.

        Args:
            model: a `stable_baselines3.DQN`, or the path of a saved one. (It is unpickled: trust it.)
            env: another environment to go on in, or its id. It has the same spaces, and learning begins with a reset.
            device: for a path, the device of the networks.
            policy_learning_rate: as for the class, and so are the others.
            behaviour: how to act.
            policy_update: what the policy network descends.
            entropy_bonus: the weight of the entropy.
            delta_q: whose Q stands in delta.

        Raises:
            InputError: the model is no plain DQN, its policy class has no policy network, or `env` does not fit it.

        Example:
            >>> from stable_baselines3 import DQN
            >>> plain = DQN("MlpPolicy", "CartPole-v1", learning_starts=50, seed=0).learn(100)
            >>> model = EpsilonIPEDQN.from_dqn(plain).learn(100, reset_num_timesteps=False)
            >>> model.num_timesteps, model.replay_buffer.size()
            (200, 200)
        """
        plain = plain_dqn(model, env, device)
        env = plain.get_env() if plain is not model else environment_for(plain, env)
        new = cls(
            plain.policy_class, env, device=plain.device, _init_setup_model=False, behaviour=behaviour, delta_q=delta_q,
            policy_learning_rate=policy_learning_rate, policy_update=policy_update, entropy_bonus=entropy_bonus,
        )  # fmt: skip
        take_over(new, plain, env)
        return new

    def _setup_model(self) -> None:
        self._check_settings()
        self.policy_class: type[Any] = with_policy_network(self.policy_class)
        # When a model is loaded, its generator is here already and goes on, unless another seed was asked for.
        resumed = self.generator if self._generator_seed == self.seed else None
        self.generator = np.random.default_rng(self.seed)
        super()._setup_model()
        if resumed is not None:
            self.generator = resumed
        self._generator_seed = self.seed
        self.policy.generator, self.policy.acts = self.generator, self.behaviour_name
        update_learning_rate(self.policy.policy_optimizer, self.policy_lr_schedule(1))

    def _setup_lr_schedule(self) -> None:
        super()._setup_lr_schedule()
        self.policy_lr_schedule = FloatSchedule(self.policy_learning_rate)

    def _check_settings(self) -> None:
        behaviour_on_policy(self.behaviour_name)
        one_of(self.policy_update, GRADIENTS, "policy_update")
        one_of(self.delta_q, _DELTA_Q, "delta_q")
        _check_number("entropy_bonus", self.entropy_bonus)
        if not callable(self.policy_learning_rate):
            _check_number("policy_learning_rate", self.policy_learning_rate)
        if (start := int(self.action_space.start)) != 0:
            raise InputError(f"env: its actions are numbered from {start}; DQN needs them numbered from 0")

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed Python's, NumPy's, torch's and the environment's generators as DQN does, and that of exploration."""
        super().set_random_seed(seed)
        if seed is not None and self.generator is not None:
            # In place: the policy holds it too.
            self.generator.bit_generator.state = np.random.default_rng(seed).bit_generator.state

    def behaviour(self, observation: Any) -> Exploring:
        """How the model explores in the given states: probabilities of the actions, epsilon and entropy.

        Args:
            observation: one observation, or a batch of them (as a vectorised environment returns).

        Returns:
            Arrays with one row per observation; one observation is a batch of one.
        """
        self.policy.set_training_mode(False)
        return self.policy.behaviour(self.policy.obs_to_tensor(observation)[0])  # type: ignore[no-any-return]

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """The action in each state: greedy on Q if `deterministic`, else drawn as the model explores.

        Args:
            observation: one observation or a batch of them.
            state: the state of a recurrent policy; it is returned as it is.
            episode_start: the first steps of a recurrent policy's episodes; not used.
            deterministic: whether to be greedy.

        Returns:
            The actions, and `state`.
        """
        return self.policy.predict(observation, state, episode_start, deterministic)  # type: ignore[no-any-return]

    def _sample_action(self, learning_starts: int, action_noise: Any = None, n_envs: int = 1) -> tuple[Any, Any]:
        if self.num_timesteps < learning_starts:
            self._record_behaviour(1.0, math.log(self.action_space.n))
            return super()._sample_action(learning_starts, action_noise, n_envs)  # type: ignore[no-any-return]
        seen, actions = self.policy.explore(self.policy.obs_to_tensor(self._last_obs)[0])  # in evaluation mode already
        self._record_behaviour(*(sum(column.tolist()) / len(column) for column in (seen.epsilon, seen.entropy)))
        return actions, actions

    def _record_behaviour(self, epsilon: float, entropy: float) -> None:
        self.exploration_rate = epsilon
        self.logger.record_mean("rollout/epsilon", epsilon)
        self.logger.record_mean("rollout/entropy", entropy)

    def _on_step(self) -> None:
        epsilon = self.exploration_rate
        super()._on_step()  # for the target network; the epsilon that it sets is a schedule's
        self.exploration_rate = epsilon
        self.logger.record("rollout/exploration_rate", epsilon)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Update the Q-network and then the policy network, on each of so many minibatches."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        rate = self.policy_lr_schedule(self._current_progress_remaining)
        update_learning_rate(self.policy.policy_optimizer, rate)
        update = update_in_turn if self.delta_q == "online" else update_together
        draw = partial(self.replay_buffer.sample, batch_size, env=self._vec_normalize_env)
        steps = [update(self, draw()) for _ in range(gradient_steps)]
        losses, errors = zip(*steps, strict=True)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))
        self.logger.record("train/ipe_error", np.mean(errors))
        self.logger.record("train/policy_learning_rate", rate)

    def learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int = 4,
        tb_log_name: str = "EpsilonIPEDQN",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Train for so many steps, and return the model; arguments as for `stable_baselines3.DQN.learn`."""
        return super().learn(  # type: ignore[no-any-return]
            total_timesteps, callback, log_interval, tb_log_name, reset_num_timesteps, progress_bar
        )

    def set_parameters(self, load_path_or_dict: Any, exact_match: bool = True, device: Any = "auto") -> None:
        """Load parameters, as `stable_baselines3.DQN.set_parameters`.

        With `exact_match=False` the parameters of a plain DQN are taken too: they replace the Q-networks, and the
        policy network stays as it is.
        """
        if not isinstance(load_path_or_dict, dict):
            _, load_path_or_dict, _ = load_from_zip_file(load_path_or_dict, device=device, load_data=False)
        if exact_match and "policy.policy_optimizer" not in load_path_or_dict:
            raise InputError(
                "these are the parameters of a DQN without a policy network; to go on from it, use "
                "EpsilonIPEDQN.from_dqn; to take its values only, set_parameters(..., exact_match=False)"
            )
        super().set_parameters(load_path_or_dict, exact_match, device)
        for optimizer in (self.policy.optimizer, self.policy.policy_optimizer):
            fuse(optimizer)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        state_dicts, variables = super()._get_torch_save_params()
        return [*state_dicts, "policy.policy_optimizer"], variables


def _refuse_schedule(settings: dict[str, Any]) -> None:
    for name in _SCHEDULE:
        if name in settings:
            raise InputError(f"{name}: epsilon-IPE has no schedule of epsilon; leave it out")


def _check_number(name: str, value: Any) -> None:
    finite_number(value, name, 0.0)
