"""From settings and an environment's spaces to the program that is compiled for them, and the numbers it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ipe.behaviours import Behaviour
from ipe.deep.convolutions import ATARI, smallest_side
from ipe.deep.environments import EnvironmentSpec
from ipe.deep.native import library
from ipe.deep.networks import ATARI_WIDTH, Architecture
from ipe.deep.replay import Format, slots_of
from ipe.deep.settings import TrainingSettings
from ipe.errors import InputError
from ipe.updates import UPDATES, PolicyUpdate

_LARGE = smallest_side(ATARI)


class Program(NamedTuple):
    """What is compiled."""

    architecture: Architecture
    """The shape of the networks."""
    form: Format
    """How observations are stored."""
    slots: int
    """How many slots one seed's replay has for each environment."""
    products: str
    """The matrix products to use: native, or xla."""
    numbers: tuple[str, ...]
    """The names of the numbers that the program is called with, one number for each seed."""
    behaviour: Behaviour
    """How the agent acts."""
    policy_update: PolicyUpdate | None
    """What the policy network descends; None if no evaluation policy is learned."""
    optimiser_kind: str
    """The optimiser: rmsprop, or adam."""
    optimiser_clip: bool
    """Whether gradients are clipped."""
    delta_q: str
    """The network whose Q stands in the policy update's error: target, online, or dqn (online in s, target in s')."""
    entropy_bonus: bool
    """Whether the policy update has an entropy bonus."""
    double_q: bool
    """Whether the Q-network chooses the action that the target network values."""
    huber: bool
    """Whether the value loss is Huber's, and not the squared error."""
    n_step: int
    """The number of rewards before bootstrapping; with mixed returns, the most."""
    environments: int
    """The number of environments that a seed acts in."""
    priority_exponent: bool
    """Whether minibatches are drawn by priorities, and the state keeps the errors of the last one."""
    delta_steps: int = 1
    """The number of rewards before bootstrapping in the policy update's error."""
    delta_correction: str = "none"
    """How a policy update's error of several steps is corrected: none, or tree-backup."""
    conservative_weight: bool = False
    """Whether the value loss has the penalty of conservative Q-learning."""
    traces_kind: str = "none"
    """How returns of several lengths are mixed: watkins, peng, or none."""
    traces_decay_from: Literal["number", "actions", "coin"] = "number"
    """What sets lambda of mixed returns: number, or the policy's entropy, over its actions or as a coin."""
    from_data: bool = False
    """Whether the replay is a data set, which all seeds share."""

    @property
    def learns_policy(self) -> bool:
        """Whether there is a policy network."""
        return self.behaviour.needs_policy

    @property
    def policy_architecture(self) -> Architecture:
        """The shape of the policy network."""
        return policy_architecture(self.architecture, self.policy_update)

    @property
    def remembers(self) -> bool:
        """Whether the behaviour has a memory, which is a part of the state then."""
        return self.behaviour.memory is not None


def check_spec(settings: TrainingSettings, spec: EnvironmentSpec) -> None:
    """Refuse observations for which there is no network, and a behaviour that imitates a data set without one."""
    if settings.acts.imitates and not settings.data:
        raise InputError(f"the behaviour {settings.behaviour} imitates the actions of a data set: give one with --data")
    if spec.image and min(spec.observation_shape[:2]) < 3:
        height, width = spec.observation_shape[:2]
        raise InputError(f"{spec.id}: an image must be at least 3 by 3 for the convolution, found {height} by {width}")
    if spec.image and settings.network == "atari" and not _is_large(spec):
        height, width = spec.observation_shape[:2]
        raise InputError(
            f"{spec.id}: the network atari takes images of {_LARGE} by {_LARGE} pixels or more, "
            f"found {height} by {width}"
        )
    if settings.dueling and settings.width % 2 and network_of(settings, spec) != "atari":
        raise InputError(f"width must be even for dueling, whose streams have half of it each, found {settings.width}")


def architecture(settings: TrainingSettings, spec: EnvironmentSpec) -> Architecture:
    """Return the shape of the networks that a setting trains in an environment."""
    shape, actions = spec.observation_shape, spec.actions
    if network_of(settings, spec) == "atari":
        sizes = (ATARI_WIDTH, settings.channels, actions, settings.precision, "atari")
    else:
        sizes = (settings.width, settings.channels, actions, settings.precision, "minatar")
    return Architecture(shape, *sizes, dueling=settings.dueling)


def policy_architecture(net: Architecture, update: PolicyUpdate | None) -> Architecture:
    """Return the shape of the policy network beside a Q-network: the Q-network's, but never dueling, and with the
    outputs that the policy update asks for, if there is one."""
    net = net.of("policy")
    return net if update is None else net._replace(actions=update.outputs(net.actions))


def as_before(settings: TrainingSettings) -> TrainingSettings:
    """Return settings that read images as earlier versions did, with which a run was begun, where they leave it open.

    Those versions had one network for images, took the last axis for the channels, and kept stacks of frames whole.
    """
    where, network = settings.environment, settings.network
    order = "last" if where.channel_order == "auto" else where.channel_order
    mode = "none" if where.preprocessing == "auto" else where.preprocessing
    environment = where.model_copy(
        update={"channel_order": order, "preprocessing": mode, "stack": 1 if where.stack is None else where.stack}
    )
    network = "minatar" if network == "auto" else network
    return settings.model_copy(update={"environment": environment, "network": network})


def network_of(settings: TrainingSettings, spec: EnvironmentSpec) -> str:
    """Return which network a setting trains: vector, minatar or atari."""
    if not spec.image:
        return "vector"
    if settings.network != "auto":
        return settings.network
    return "atari" if _is_large(spec) else "minatar"


def unused_sizes(settings: TrainingSettings, spec: EnvironmentSpec) -> dict[str, str]:
    """Return which settings of the network's size change nothing, and why, as the end of a sentence."""
    if not spec.image:
        return dict.fromkeys(("channels", "network"), "which shows vectors; it is for images")
    if network_of(settings, spec) == "atari":
        why = "whose images go through the network atari, which has its own sizes; it is for the network minatar"
        return dict.fromkeys(("channels", "width"), why)
    return {}


def _is_large(spec: EnvironmentSpec) -> bool:
    return min(spec.observation_shape[:2]) >= _LARGE


def form_of(spec: EnvironmentSpec) -> Format:
    """Return how the observations of an environment are stored."""
    return Format(spec.observation_shape, np.dtype(spec.dtype).name, spec.binary, spec.scale, spec.stack)


def program_of(
    settings: TrainingSettings, spec: EnvironmentSpec, begun_with: str | None, places: int | None = None
) -> Program:
    """Return the program that trains a setting, which names the fields of `Program` that are choices. A run that was
    begun with native or xla's matrix products goes on with them, to the byte; a new run (None) takes the best that this
    machine has. One that learns from a data set has so many places for observations, which hold stacks of frames
    whole."""
    check_spec(settings, spec)
    net = architecture(settings, spec)
    choices = {name: value for name, value in settings.program.items() if name in Program._fields}
    update = settings.updates_policy
    choices |= {"behaviour": settings.acts, "policy_update": None if update is None else UPDATES[update.name]}
    slots, products = slots_of(settings.replay // settings.environments, spec.stack), _products(net, begun_with)
    form = form_of(spec)
    if places is not None:
        form, slots, choices["from_data"] = form._replace(stack=1), places, True
    return Program(net, form, slots, products, tuple(settings.numbers), **choices)


def lanes_of(program: Program, seeds: int) -> int:
    """Return how many lanes a batch of seeds takes.

    XLA rounds a batch of one differently from larger ones, among which it makes no difference: one seed is padded.
    """
    if program.architecture.image and seeds > 1:
        raise InputError(f"images are trained one seed at a time, found {seeds}")
    alone = program.architecture.image or program.products == "native"
    return seeds if alone else max(2, seeds)


def hyperparameters(settings: Sequence[TrainingSettings]) -> NDArray[np.float32]:
    """Return the numbers that the program reads: first axis `Program.numbers`, second axis the seeds."""
    return np.array([list(setting.numbers.values()) for setting in settings], np.float32).T


def _products(net: Architecture, begun_with: str | None) -> str:
    if begun_with is None:
        return library.choose(net)
    if begun_with == "native" and (why := library.reason(net)):
        raise InputError(f"the run was begun with native products, which cannot be used here: {why}")
    return begun_with
