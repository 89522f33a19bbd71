r"""What a training run is: every choice, checked, frozen, and the paper's by default.

`paper_settings(environment, behaviour)` gives the appendix's bold values; `TrainingSettings` is what the learner
reads. Settings that are numbers (step sizes, periods, schedules) are traced by the compiled program: runs that differ
only in them share it, and may share a batch. Those that change the program's shape or its formulas are listed by
`TrainingSettings.program`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ipe.base.nested import merged
from ipe.base.words import did_you_mean
from ipe.errors import InputError

BehaviourName = Literal["epsilon-ipe", "ipe", "epsilon-greedy", "boltzmann"]
BEHAVIOURS: tuple[BehaviourName, ...] = ("epsilon-ipe", "ipe", "epsilon-greedy", "boltzmann")
_POLICY = ("epsilon-ipe", "ipe")

ONLY_WITH = {
    "epsilon": ("epsilon-greedy",),
    "temperature": ("boltzmann",),
    "policy_step_size": _POLICY,
    "policy_update": _POLICY,
    "entropy_bonus": _POLICY,
    "delta_q": _POLICY,
}
"""The behaviours that a setting has an effect with; the others have one with all."""

_Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
_Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
_Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
_NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class EnvironmentSettings(_Settings):
    """The environment, and how it is made."""

    id: Annotated[str, Field(min_length=1)]
    """A Gymnasium id (`LunarLander-v3`), one with the module that registers it (`package.module:EnvId`), or
    `minatar/Freeway` and its four sisters."""
    frame_limit: _Count | None = None
    """Truncate episodes after this many frames. None: the environment's own limit, if it has one."""
    options: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    """Keyword arguments of the environment (`sticky_action_prob` and so on)."""


class Epsilon(_Settings):
    r"""The schedule of epsilon-greedy behaviour, :math:`\epsilon_t` for the frames t = 0, 1, ..."""

    initial: _Probability = 1.0
    """At frame 0."""
    final: _Probability = 0.01
    """From frame `steps` on."""
    steps: _Count = 25_000
    """Frames from the one to the other."""
    kind: Literal["linear", "exponential"] = "linear"
    """By a constant difference, or by a constant factor, per frame."""

    @model_validator(mode="after")
    def _exponential_is_positive(self) -> Self:
        if self.kind == "exponential" and min(self.initial, self.final) <= 0.0:
            raise ValueError("an exponential schedule needs initial and final above 0")
        return self


class Optimiser(_Settings):
    r"""How gradients become steps. By default RMSprop with PyTorch's defaults, as in the paper."""

    kind: Literal["rmsprop", "adam"] = "rmsprop"
    r"""RMSprop, :math:`\theta \leftarrow \theta - \alpha\, g / (\sqrt{v} + \varepsilon)`, or Adam."""
    decay: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.99
    r"""Of the mean squared gradient v (Adam's :math:`\beta_2`, 0.999 in most libraries)."""
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    r"""Adam's :math:`\beta_1`; RMSprop has none."""
    epsilon: _Positive = 1e-8
    """Added outside the root."""
    clip: _NotNegative = 0.0
    """Scale a gradient down to this norm, over a whole network. 0: never."""


class TrainingSettings(_Settings):
    """One setting of deep epsilon-IPE or DQN. A run is a setting and a seed."""

    environment: EnvironmentSettings
    """Where it acts."""
    behaviour: BehaviourName = "epsilon-ipe"
    """How it acts: epsilon-ipe, ipe, epsilon-greedy or boltzmann."""
    frames: _Count = 500_000
    """Steps in the environment."""
    gamma: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.99
    """The discount rate."""
    width: Annotated[int, Field(ge=1, le=4096)] = 128
    """Of the hidden layers: two for vectors, one after the convolution for images."""
    channels: Annotated[int, Field(ge=1, le=512)] = 16
    """Of the 3x3 convolution, for images."""
    value_step_size: _NotNegative = 1e-3
    """Of the Q-network's optimiser."""
    policy_step_size: _NotNegative = 1e-3
    """Of the policy network's optimiser (epsilon-ipe and ipe)."""
    target_period: _Count = 500
    """Frames between copies of the Q-network to the target network. 1: no target network."""
    batch: Annotated[int, Field(ge=1, le=4096)] = 32
    """Transitions in a minibatch."""
    replay: Annotated[int, Field(ge=1, le=10**8)] = 100_000
    """Transitions kept."""
    warm_up: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Frames of uniformly random behaviour before the first update; the schedule starts after them."""
    update_every: _Count = 1
    """Frames per update."""
    epsilon: Epsilon = Epsilon()
    """The schedule (epsilon-greedy)."""
    temperature: _Positive = 1.0
    """Of Boltzmann behaviour."""
    optimiser: Optimiser = Optimiser()
    """Of both networks."""
    policy_update: Literal["paper", "absolute"] = "paper"
    r"""What the policy network descends: :math:`\delta^2`, or :math:`|\delta|`."""
    entropy_bonus: _NotNegative = 0.0
    r""":math:`\tau`: subtract :math:`\tau H(\pi(\cdot|s'))` from that."""
    delta_q: Literal["target", "online"] = "target"
    r"""Whose Q stands in the policy update's :math:`\delta`: the target network's, or the updated Q-network's."""
    double_q: bool = False
    """Bootstrap from the target network's value of the Q-network's action (van Hasselt et al., 2016)."""
    huber: _NotNegative = 0.0
    """Beyond an error of this size the value loss grows linearly (1: the usual Huber loss). 0: squared error."""
    n_step: Annotated[int, Field(ge=1, le=100)] = 1
    """Rewards before bootstrapping, in the value update."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the factors of matrix products (with native products, of the middle layer's); everything else is float32."""

    @property
    def learns_policy(self) -> bool:
        """Whether there is a policy network."""
        return self.behaviour in ("epsilon-ipe", "ipe")

    @property
    def program(self) -> dict[str, Any]:
        """What the compiled program is made for; two settings that agree in it can share a batch."""
        names = ["environment", "behaviour", "frames", "width", "channels", "batch", "replay", "policy_update"]
        names += ["delta_q", "double_q", "n_step", "precision"]
        shape = {name: getattr(self, name) for name in names}
        shape["environment"] = self.environment.model_dump()
        return {
            **shape,
            "schedule": self.epsilon.kind,
            "optimiser": self.optimiser.kind,
            "clips": self.optimiser.clip > 0.0,
            "huber": self.huber > 0.0,
            "entropy_bonus": self.entropy_bonus > 0.0,
        }


_LUNAR_LANDER = {"frames": 500_000, "target_period": 500, "value_step_size": 1e-3, "policy_step_size": 1e-3}
_MINATAR = {"frames": 2_000_000, "target_period": 100, "value_step_size": 1e-5, "policy_step_size": 1e-3, "width": 128}


def paper_settings(environment: str, /, behaviour: BehaviourName = "epsilon-ipe", **changes: Any) -> TrainingSettings:
    """The appendix's bold values for LunarLander and Freeway; LunarLander's for other environments.

    MinAtar's other games get Freeway's. The paper's frame limit of 5000 is LunarLander's alone.

    Args:
        environment: its id.
        behaviour: the name of a behaviour.
        changes: other values for some fields of `TrainingSettings`; those of parts as mappings,
            `epsilon={"final": 0.1}`.

    Returns:
        The settings.

    Example:
        >>> settings = paper_settings("LunarLander-v3", "epsilon-greedy", epsilon={"final": 0.1})
        >>> settings.width, settings.environment.frame_limit, settings.epsilon.final, settings.epsilon.steps
        (256, 5000, 0.1, 25000)
    """
    values: dict[str, Any] = {"environment": {"id": environment}, "behaviour": behaviour}
    if environment.startswith("minatar/"):
        values |= _MINATAR | {"epsilon": {"final": 0.01, "steps": 100_000}}
    else:
        values |= _LUNAR_LANDER | {"width": 128 if behaviour in ("epsilon-ipe", "ipe") else 256}
        values["epsilon"] = {"final": 0.01, "steps": 25_000}
    if environment.partition(":")[2].startswith("LunarLander") or environment.startswith("LunarLander"):
        values["environment"]["frame_limit"] = 5000
    return read_settings(merged(values, changes))


def read_settings(values: dict[str, Any]) -> TrainingSettings:
    """Settings from plain data, as from a JSON or TOML file.

    Raises:
        InputError: one sentence, with the path of the first wrong field.
    """
    try:
        return TrainingSettings.model_validate(values)
    except ValidationError as error:
        raise InputError(_sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    """The first complaint, with its field's path and the value found."""
    first = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in first["loc"]) or "settings"
    if first["type"] == "extra_forbidden":
        return f"there is no setting {path}{_nearest(first['loc'])}"
    if first["type"] == "missing":
        return f"the setting {path} is missing"
    said = first["msg"].removeprefix("Value error, ")
    found = "" if first["type"] == "value_error" else f", found {first['input']!r}"
    return f"{path}: {said[:1].lower()}{said[1:]}{found}"


def _nearest(loc: tuple[int | str, ...]) -> str:
    model: Any = TrainingSettings
    for part in loc[:-1]:
        model = model.model_fields[str(part)].annotation
    return did_you_mean(str(loc[-1]), model.model_fields, prefix="".join(f"{part}." for part in loc[:-1]))
