r"""A trained seed as an object to use in one's own program: it acts, and tells its values and its policy.

`load_agent` reads the networks of a training run or a sweep. An agent takes the environment's own observations, one or
a batch, and returns the environment's own actions. `to_torch` and `to_onnx` give the same networks to other programs.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ipe.base.numbers import seed_number
from ipe.base.packages import missing_package
from ipe.behaviours import BEHAVIOURS, Behaviour, View, sample_at
from ipe.deep.environments import EnvironmentFailure
from ipe.deep.networks import Architecture, split
from ipe.deep.playing import Trained, check_forgetful, outputs
from ipe.deep.programs import architecture, policy_architecture
from ipe.entropy import softmax
from ipe.errors import InputError
from ipe.experiments.evaluation import choose_seeds
from ipe.experiments.trained import read_trained
from ipe.updates import PolicyUpdate

if TYPE_CHECKING:
    import torch


def load_agent(
    run: str | os.PathLike[str],
    seed: int | None = None,
    *,
    setting: str | None = None,
    which: Literal["last", "best"] = "last",
    draws: int = 0,
) -> TrainedAgent:
    """Load a trained seed, as it was when its training last ended or was stopped.

    Args:
        run: the folder of a training run, or of a sweep that keeps networks.
        seed: which of the run's seeds. Default: the first whose training neither failed nor diverged.
        setting: the name of a setting, for a sweep of several.
        which: the seed's last networks, or its best: those of its best greedy evaluation while it trained
            (`evaluate_every`); of two equally good ones the earlier.
        draws: the seed of the agent's random actions.

    Returns:
        The agent.

    Raises:
        InputError: naming the argument, or the file of the run that is missing, damaged or does not fit.
    """
    wanted = None if seed is None else [seed_number(seed, "seed")]
    seed_number(draws, "draws")
    trained = read_trained(run, setting=setting, which=which)
    chosen = choose_seeds(trained, trained.unusable(), wanted)[0]
    return TrainedAgent(trained, chosen, draws)


class _Reading(NamedTuple):
    values: NDArray[np.float32]
    policy: NDArray[np.float32]
    """The policy's probabilities; NaN if no policy was learned."""
    probabilities: NDArray[np.float32]
    """The probabilities of the behaviour that was asked about."""


class TrainedAgent:
    """The networks of one trained seed. Made by `load_agent`.

    Every method takes one observation of the environment, or a batch of observations along the first axis.
    """

    seed: int
    """The trained seed."""
    actions: int
    """The number of actions."""

    def __init__(self, trained: Trained, seed: int, draws: int) -> None:
        self.seed, self.actions = seed, trained.spec.actions
        self._trained = trained
        self._net = architecture(trained.settings, trained.spec)
        self._parameters = jax.tree.map(np.asarray, trained.networks[seed])
        self._generator = np.random.Generator(np.random.Philox(draws))

    def act(self, observation: Any, greedy: bool = True) -> Any:
        r"""The action to take: a whole number for one observation, an array of them for a batch.

        Args:
            observation: what the environment shows.
            greedy: :math:`\arg\max_a Q(s,a)`, ties broken at random. False: the behaviour that the agent was trained
                with, as it was at the seed's last frame.
        """
        probabilities = self.probabilities(observation, greedy)
        draws = self._generator.random(probabilities.shape[:-1])
        chosen = sample_at(probabilities.astype(np.float64), draws) + self._trained.interface.first_action
        return int(chosen) if chosen.ndim == 0 else chosen

    def values(self, observation: Any) -> NDArray[np.float32]:
        """The action values Q(s, .), shape (A,), or (batch, A)."""
        return self._read(observation, BEHAVIOURS["greedy"]).values

    def policy(self, observation: Any) -> NDArray[np.float32]:
        """The probabilities of the learned evaluation policy, shape (A,), or (batch, A).

        Raises:
            InputError: the behaviour that the agent was trained with learns no policy.
        """
        self._check_policy()
        return self._read(observation, BEHAVIOURS["greedy"]).policy

    def probabilities(self, observation: Any, greedy: bool = True) -> NDArray[np.float32]:
        """The probabilities by which `act` chooses, shape (A,), or (batch, A)."""
        behaviour = BEHAVIOURS["greedy"] if greedy else check_forgetful(self._trained.settings.acts)
        return self._read(observation, behaviour).probabilities

    def encode(self, observation: Any) -> NDArray[Any]:
        """The array that the networks see, which `to_torch` and `to_onnx` take: always a batch, if only of one.

        Raises:
            InputError: the observation is not one of the environment's.
        """
        found, axes = np.ndim(observation), self._trained.interface.axes
        if found not in (axes, axes + 1):
            raise InputError(f"an observation has {axes} axes and a batch of them {axes + 1}; found {found}")
        batch = [observation] if found == axes else list(observation)
        try:
            return np.stack([self._trained.interface.encode(each) for each in batch])
        except (EnvironmentFailure, TypeError, ValueError) as error:
            raise InputError(f"the observation does not fit {self._trained.spec.id}: {error}") from None

    @property
    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """The parameters by name: `q.first.weight`, `q.first.bias`, and so on for `middle` and `last`, and `policy`.
        A dueling Q-network has `last.value` and `last.advantage`, which read the first and the second half of
        the units of `middle`.

        The weights of `middle` and `last` have the shape (outputs, inputs); so has `first` for vectors. For images
        `first` is a convolution, of the shape (channels, channels of the image, 3, 3), and `middle` reads its outputs
        in the order row, column, channel. The network atari has the convolutions `first`, `second` and `third`, of
        8 x 8, 4 x 4 and 3 x 3 pixels.
        """
        named = {}
        for network, parameters in self._parameters.items():
            update = self._trained.settings.updates_policy
            net = self._net if network == "q" else policy_architecture(self._net, update)
            for i, (name, (weight, bias)) in enumerate(zip(net.names, split(net, parameters), strict=True)):
                named[f"{network}.{name}.weight"] = _weight(net, i, weight[0])
                named[f"{network}.{name}.bias"] = np.array(bias[0])
        return named

    def to_torch(self) -> torch.nn.Module:
        """The networks as a module of torch, in float32.

        Called with encoded observations (`encode`) the module returns the action values; its part `policy`, if a
        policy was learned, returns the policy's probabilities. The names in its `state_dict` are those of `tensors`.
        The policy of the update lift is solved for and is no network: such a module has no part `policy`.

        Raises:
            InputError: torch is not installed.
        """
        try:
            from ipe.experiments.torch_networks import torch_networks
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise missing_package("to_torch", "torch") from None

        return torch_networks(self._net, self._exported(), self._trained.spec.scale)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the networks as an ONNX file, in float32.

        Its input `observation` is a batch of encoded observations (`encode`); its outputs are `values` and, if a
        policy was learned by another update than lift, `policy`.

        Raises:
            InputError: the package onnx is not installed, or the file cannot be written.
        """
        from ipe.experiments.onnx_networks import write_onnx

        write_onnx(path, self._net, self._exported(), self._trained.spec)

    def _exported(self) -> dict[str, NDArray[np.float32]]:
        """The tensors of the networks from observations to values and to logits: without the outputs for estimates, and
        without a policy network whose policy is solved for."""
        update = self._trained.settings.updates_policy
        if update is None or not (update.logits or update.network_estimates):
            return self.tensors
        left = {name: tensor for name, tensor in self.tensors.items() if not (update.logits and name[:6] == "policy")}
        return {name: tensor[: self.actions] if "policy.last" in name else tensor for name, tensor in left.items()}

    def _read(self, observation: Any, behaviour: Behaviour) -> _Reading:
        encoded = self.encode(observation)
        trained = self._trained
        numbers = tuple(trained.numbers(self.seed).items())
        update = trained.settings.updates_policy
        read = _reader(self._net, behaviour, update, trained.spec.scale, trained.step(self.seed), numbers)
        found = jax.device_get(read(self._parameters, encoded))
        single = np.ndim(observation) == trained.interface.axes
        return _Reading(*(array[0] if single else array for array in found))

    def _check_policy(self) -> None:
        settings = self._trained.settings
        if not settings.learns_policy:
            raise InputError(f"the agent was trained with {settings.behaviour}, which learns no policy")

    def __repr__(self) -> str:
        settings, (outcome,) = self._trained.settings, [x for x in self._trained.outcomes if x.seed == self.seed]
        return f"TrainedAgent({settings.environment.id}, {settings.behaviour}, seed {self.seed}, frame {outcome.frame})"


def _weight(net: Architecture, layer: int, weight: Any) -> NDArray[np.float32]:
    """A layer's weights in torch's order of axes, from the shape (inputs, outputs)."""
    if layer < len(net.convolutions):
        size, _, channels = net.convolutions[layer]
        weight = np.reshape(weight, (size, size, -1, channels)).transpose(3, 2, 0, 1)
    else:
        weight = np.transpose(weight)
    return np.ascontiguousarray(weight)


@lru_cache(maxsize=32)
def _reader(
    net: Architecture,
    behaviour: Behaviour,
    update: PolicyUpdate | None,
    scale: float,
    step: int,
    numbers: tuple[tuple[str, float], ...],
) -> Any:
    """The compiled function (parameters, observations) -> `_Reading`."""

    def read(parameters: dict[str, Any], observations: Any) -> _Reading:
        q, logits = outputs(net, parameters, observations, scale, update)
        acting = behaviour.act(View(q, logits, step=step), {name: np.float32(value) for name, value in numbers})
        policy: Any = jnp.full_like(q, jnp.nan) if logits is None else softmax(logits)
        return _Reading(q, policy, acting.probabilities)

    return jax.jit(read)
