"""Groups of settings in `TrainingSettings`: environment, schedule of epsilon, optimiser, priorities, traces."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from ipe.deep.roles import COMPILED, LATE, SWITCH, TRACED, Role, role_of

Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Decay = Annotated[float, Field(ge=0.0, lt=1.0)]

WHOLE = {"whole": True}
"""The context for `model_dump` in which every setting appears, whatever its value."""


class Settings(BaseModel):
    """Settings that are checked when they are made, and never changed."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )

    @model_serializer(mode="wrap")
    def _without_late_defaults(self, plain: SerializerFunctionWrapHandler, about: SerializationInfo) -> dict[str, Any]:
        """Leave out what earlier versions did not know, while it does nothing, so that a run keeps its key."""
        values: dict[str, Any] = plain(self)
        if about.context == WHOLE:
            return values
        fields = type(self).model_fields
        late = [name for name, field in fields.items() if role_of(field).late and getattr(self, name) == field.default]
        return {name: value for name, value in values.items() if name not in late}


class EnvironmentSettings(Settings):
    """The environment, and how it is made."""

    id: Annotated[str, Field(min_length=1), COMPILED]
    """A Gymnasium id (`LunarLander-v3`), one with the module that registers it (`package.module:EnvId`), or
    `minatar/Freeway` and its four sisters."""
    frame_limit: Annotated[Count | None, COMPILED] = None
    """Truncate episodes after this many frames. None: the environment's limit, if it has one."""
    options: Annotated[dict[str, str | int | float | bool | None], COMPILED] = Field(default_factory=dict)
    """Keyword arguments of the environment (`sticky_action_prob` and so on)."""
    stack: Annotated[Annotated[int, Field(ge=1, le=64)] | None, LATE] = None
    """Show the last this many frames at once; the replay keeps each frame once. 1: as the environment shows them. None:
    4 for `ALE/...`, for others as many as Gymnasium's FrameStackObservation stacks, if the environment has it."""
    channel_order: Annotated[Literal["auto", "first", "last"], LATE] = "auto"
    """Whether an image's channels are its first axis or its last. auto: the one that is shorter than both others."""
    preprocessing: Annotated[Literal["auto", "none", "atari"], LATE] = "auto"
    """atari: Gymnasium's AtariPreprocessing, 84 x 84 pixels in gray, every fourth frame. auto: for `ALE/...` alone."""


class Epsilon(Settings):
    r"""The schedule of epsilon-greedy behaviour, :math:`\epsilon_t` for the frames t = 0, 1, ... after the warm-up."""

    initial: Probability = 1.0
    """The epsilon of frame 0."""
    final: Probability = 0.01
    """The epsilon from the end of the schedule on."""
    steps: Count = 25_000
    """How many frames epsilon takes from its initial to its final value."""
    kind: Annotated[Literal["linear", "exponential"], COMPILED] = "linear"
    """Whether epsilon changes by a constant difference (linear) or by a constant factor (exponential) per frame."""

    @model_validator(mode="after")
    def _exponential_is_positive(self) -> Self:
        if self.kind == "exponential" and min(self.initial, self.final) <= 0.0:
            raise ValueError("an exponential schedule needs initial and final above 0")
        return self


class Optimiser(Settings):
    r"""How gradients become steps, in both networks. By default RMSprop with PyTorch's defaults, as in the paper."""

    kind: Annotated[Literal["rmsprop", "adam"], COMPILED] = "rmsprop"
    r"""RMSprop, :math:`\theta \leftarrow \theta - \alpha\, g / (\sqrt{v} + \varepsilon)`, or Adam."""
    decay: Annotated[Decay, TRACED] = 0.99
    r"""The decay of the mean squared gradient v (Adam's :math:`\beta_2`, 0.999 in most libraries)."""
    momentum: Annotated[Decay, Role(traced=True, only_with="adam")] = 0.9
    r"""Adam's :math:`\beta_1`, the decay of its mean gradient; RMSprop has none."""
    epsilon: Annotated[Positive, TRACED] = 1e-8
    r"""The number :math:`\varepsilon` that is added outside the root."""
    clip: Annotated[NotNegative, SWITCH] = 0.0
    """Scale a gradient down to this norm, over a whole network. 0: never."""


class Priority(Settings):
    r"""Prioritised replay (Schaul et al., 2016, proportional): the priority of a transition is
    :math:`p = |\delta| + \varepsilon`, with :math:`\delta` the error of its last value update."""

    exponent: Annotated[NotNegative, Role(switch=True)] = 0.0
    r"""The exponent :math:`\alpha`: a transition is drawn in proportion to :math:`p^\alpha` (0.6 in the paper). 0: all
    are drawn alike."""
    correction: Annotated[Probability, Role(only_with="priority")] = 0.4
    r"""The exponent :math:`\beta` of the importance weights, with which both networks are updated, at frame 0; it grows
    linearly to 1."""
    steps: Annotated[Count, Role(only_with="priority")] = 500_000
    r"""How many frames :math:`\beta` takes to 1."""
    epsilon: Annotated[Positive, Role(only_with="priority")] = 1e-6
    r"""The number :math:`\varepsilon` that is added to the size of the error."""

    @model_validator(mode="after")
    def _nothing_without_an_exponent(self) -> Self:
        for name, field in type(self).model_fields.items():
            if self.exponent == 0.0 and getattr(self, name) != field.default:
                raise ValueError(f"{name} has no effect while priority.exponent is 0: all transitions are drawn alike")
        return self


class Traces(Settings):
    r"""Returns of the value update that mix 1 to `n_step` steps, weighed by :math:`\lambda`: the forward view of
    Q(lambda), for the steps that lie in the replay. V(s) is the largest value of the target network in s (with
    `double_q` its value of the Q-network's action), 0 where the episode has terminated; n is the number of steps that
    are there. The target of :math:`Q(s_0, a_0)` is :math:`r_0 + \gamma U_1`, with
    :math:`U_k = (1 - \lambda(s_k)) V(s_k) + \lambda(s_k) (r_k + \gamma U_{k+1})` and :math:`U_n = V(s_n)`."""

    kind: Annotated[Literal["none", "watkins", "peng"], COMPILED] = "none"
    """How steps are treated whose action is not greedy: the return ends before them (watkins), or goes on with them
    (peng). none: the return of `n_step` steps, unmixed."""
    decay_from: Annotated[Literal["number", "actions", "coin"], Role(compiled=True, only_with="traces")] = "number"
    r"""What sets :math:`\lambda(s)`: the number `traces.decay`, or the entropy of the evaluation policy in s, matched
    over its actions (actions: lambda is epsilon-IPE's epsilon) or as a coin's (coin). So a return goes on where the
    values cannot be trusted."""
    decay: Annotated[Probability, Role(traced=True, only_with="traces")] = 0.9
    r"""The number :math:`\lambda`. 0: returns of one step; 1 with peng: of `n_step` steps."""

    @model_validator(mode="after")
    def _nothing_without_effect(self) -> Self:
        for name in ("decay", "decay_from"):
            if self.kind == "none" and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} has no effect while traces.kind is none: returns are not mixed")
        if self.decay_from != "number" and self.decay != type(self).model_fields["decay"].default:
            raise ValueError(f"decay has no effect with traces.decay_from {self.decay_from}, which sets lambda")
        return self
