r"""What a training run is: every choice, checked, frozen, and the paper's by default.

`paper_settings(environment, behaviour)` gives the appendix's bold values; `TrainingSettings` is what the learner
reads. Settings that are numbers (step sizes, periods, schedules) are traced by the compiled program: runs that differ
only in them share it, and may share a batch. Each setting is declared once, here, with its `Role`; the numbers of a
behaviour are declared with the behaviour (`ipe.behaviours`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from ipe.base.nested import merged
from ipe.base.words import did_you_mean, listed
from ipe.behaviours import BEHAVIOURS, Behaviour, Hyperparameter
from ipe.behaviours.functions import find_behaviour, name_of_behaviour
from ipe.behaviours.kinds.boltzmann import TEMPERATURE
from ipe.deep.roles import COMPILED, LATE, SWITCH, TRACED, Leaf, Role, leaves, role_of
from ipe.deep.setting_groups import (
    Count,
    Decay,
    EnvironmentSettings,
    Epsilon,
    NotNegative,
    Optimiser,
    Priority,
    Settings,
    Traces,
)
from ipe.errors import InputError
from ipe.updates import UPDATES, PolicyUpdate
from ipe.updates.functions import find_update, name_of_update


def deep_behaviours() -> tuple[str, ...]:
    """The names of the behaviours that the deep agent offers."""
    return tuple(name for name, behaviour in BEHAVIOURS.items() if behaviour.deep)


def deep_updates() -> tuple[str, ...]:
    """The names of the policy updates that the deep agent offers: those that have a gradient."""
    return tuple(name for name, update in UPDATES.items() if update.gradient is not None)


def _field(hyperparameter: Hyperparameter) -> Any:
    """The field of a behaviour's number."""
    low: dict[str, Any] = {"gt" if hyperparameter.above else "ge": hyperparameter.low}
    return Field(hyperparameter.default, le=hyperparameter.high, description=hyperparameter.sentence, **low)


class TrainingSettings(Settings):
    """One setting of deep epsilon-IPE or DQN. A run is a setting and a seed.

    A behaviour's numbers are settings too, by their names; those of behaviours that are not chosen are left out.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float] = Field(init=False)

    environment: EnvironmentSettings
    """The environment to act in."""
    environments: Annotated[int, Field(ge=1, le=256), LATE] = 1
    """How many copies of the environment an agent acts in: a frame in each of them by the same networks, then as many
    updates. `frames` and `replay` are those of all copies together."""
    behaviour: Annotated[str, Role(compiled=True, names=deep_behaviours)] = "epsilon-ipe"
    """How the agent acts."""
    frames: Annotated[Count, COMPILED] = 500_000
    """How many steps a run takes in its environment."""
    gamma: Annotated[Decay, TRACED] = 0.99
    """The discount rate."""
    width: Annotated[int, Field(ge=1, le=4096), COMPILED] = 128
    """The width of the hidden layers: two for vectors, one after the convolution for images."""
    channels: Annotated[int, Field(ge=1, le=512), COMPILED] = 16
    """The channels of the 3x3 convolution, for images."""
    network: Annotated[Literal["auto", "minatar", "atari"], LATE] = "auto"
    """The network for images: minatar (a 3x3 convolution and a layer of `width`), or atari (three convolutions and a
    layer of 512; Mnih et al., 2015). auto: atari for images of 36 x 36 pixels or more."""
    dueling: Annotated[bool, LATE] = False
    """Whether the Q-network ends in two streams, V(s) and A(s, a), and Q(s, a) = V(s) + A(s, a) - mean_b A(s, b) (Wang
    et al., 2016). Each stream has half the units of the last hidden layer, 512 in the network atari."""
    value_step_size: Annotated[NotNegative, TRACED] = 1e-3
    """The step size of the Q-network's optimiser."""
    policy_step_size: Annotated[NotNegative, Role(traced=True, only_with="network")] = 1e-3
    """The step size of the policy network's optimiser."""
    target_period: Count = 500
    """Frames between copies of the Q-network to the target network. 1: no target network."""
    batch: Annotated[int, Field(ge=1, le=4096), COMPILED] = 32
    """Transitions in a minibatch."""
    replay: Annotated[int, Field(ge=1, le=10**8), COMPILED] = 100_000
    """Transitions that the replay keeps."""
    priority: Annotated[Priority, Role(late=True)] = Priority()
    """Prioritised replay."""
    warm_up: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Frames of uniformly random behaviour before the first update; the schedule starts after them."""
    update_every: Count = 1
    """Frames per update."""
    epsilon: Annotated[Epsilon, Role(only_with="schedule")] = Epsilon()
    """The schedule of epsilon."""
    temperature: float = _field(TEMPERATURE)
    optimiser: Optimiser = Optimiser()
    """How gradients become steps."""
    policy_update: Annotated[str, Role(compiled=True, only_with="policy", names=deep_updates)] = "paper"
    r"""What the policy network descends: :math:`\delta^2` (paper), :math:`|\delta|` (absolute), or another of the
    policy updates."""
    entropy_bonus: Annotated[NotNegative, Role(traced=True, switch=True, only_with="policy")] = 0.0
    r"""The weight :math:`\tau` of the entropy: the policy network also descends :math:`-\tau H(\pi(\cdot|s'))`."""
    delta_q: Annotated[Literal["target", "online", "dqn"], Role(compiled=True, only_with="policy")] = "target"
    r"""The network whose Q stands in the policy update's :math:`\delta`: the target network; the updated Q-network
    (online); or as in DQN's own error (dqn) the Q-network before its update in s and the target network in the states
    after s."""
    delta_steps: Annotated[Annotated[int, Field(ge=1, le=100)], Role(compiled=True, only_with="policy", late=True)] = 1
    r"""Rewards before bootstrapping in the policy update's :math:`\delta`; the value update's are `n_step`."""
    delta_correction: Annotated[Literal["none", "tree-backup"], Role(compiled=True, only_with="policy", late=True)] = (
        "none"
    )
    r"""How a :math:`\delta` of several steps accounts for actions that the policy would not have taken: not at all
    (none; the policy after the last step is updated), or by the tree backup (tree-backup; the policy after the first
    step is updated)."""
    double_q: Annotated[bool, COMPILED] = False
    """Bootstrap from the target network's value of the Q-network's action (van Hasselt et al., 2016)."""
    huber: Annotated[NotNegative, SWITCH] = 0.0
    """Beyond an error of this size the value loss grows linearly (1: the usual Huber loss). 0: squared error."""
    n_step: Annotated[int, Field(ge=1, le=100), COMPILED] = 1
    """Rewards before bootstrapping, in the value update."""
    traces: Annotated[Traces, Role(late=True)] = Traces()
    """Returns that mix 1 to `n_step` steps."""
    precision: Annotated[Literal["float32", "bfloat16"], COMPILED] = "float32"
    """The precision of the factors of matrix products (with native products, of the middle layer's); everything else
    is float32."""
    conservative_weight: Annotated[NotNegative, Role(traced=True, switch=True, late=True)] = 0.0
    r"""The weight :math:`\alpha` of the penalty of conservative Q-learning (Kumar et al., 2020): the Q-network also
    descends :math:`\alpha (\ln \sum_b e^{Q(s,b)} - Q(s,a))`, which keeps the values of actions that were not taken
    down. 0: no penalty."""
    data: Annotated[str, Field(pattern="^([0-9a-f]{64})?$"), LATE] = ""
    """The checksum of the data set that is learned from; empty if the agent learns from its own actions."""

    @field_validator("behaviour", "policy_update")
    @classmethod
    def _is_in_its_table(cls, name: str, about: ValidationInfo) -> str:
        known = role_of(cls.model_fields[str(about.field_name)]).names
        assert known is not None
        if name not in known():
            sort = " of an update with a gradient" if about.field_name == "policy_update" else ""
            raise ValueError(f"must be one of {', '.join(known())}, or package.module:name{sort}; found {name!r}")
        return name

    @model_validator(mode="before")
    @classmethod
    def _numbers_of_the_behaviour(cls, values: Any) -> Any:
        """Give the behaviour's numbers their defaults; refuse names that no setting has."""
        if not isinstance(values, dict):
            return values
        values = {**values, **_names_of_functions(values)}
        chosen, update = (values.get(name, cls.model_fields[name].default) for name in ("behaviour", "policy_update"))
        more = extra_numbers(chosen, update)
        for name in values:
            if name in cls.model_fields or name in more:
                continue
            if why := _others_number(name, chosen, update):
                raise ValueError(f"{name} has no effect {why}")
            raise ValueError(f"there is no setting {name}{did_you_mean(str(name), [*cls.model_fields, *more])}")
        return {name: each.default for name, each in more.items()} | values

    @model_validator(mode="after")
    def _numbers_are_in_range(self) -> Self:
        for name, hyperparameter in extra_numbers(self.behaviour, self.policy_update).items():
            hyperparameter.check(getattr(self, name))
        if self.updates_policy is not None:
            self._check_update(self.updates_policy)
        if self.double_q and self.acts.target is not None:
            raise ValueError(
                f"double_q has no effect with the behaviour {self.behaviour}, which bootstraps from no action"
            )
        if self.traces.kind != "none":
            self._check_traces()
        return self

    def _check_traces(self) -> None:
        """Refuse what mixed returns cannot do."""
        kind, source = self.traces.kind, self.traces.decay_from
        if self.n_step == 1:
            raise ValueError(f"traces.kind {kind} has no effect with n_step 1: there are no longer returns to mix")
        if self.acts.target is not None:
            raise ValueError(
                f"traces.kind {kind}: the behaviour {self.behaviour} has a value target of its own, for which mixed "
                "returns are not defined"
            )
        if source != "number" and self.updates_policy is None:
            raise ValueError(
                f"traces.decay_from {source} needs an evaluation policy, and the behaviour {self.behaviour} learns none"
            )

    def _check_update(self, update: PolicyUpdate) -> None:
        """Refuse what a policy update cannot do."""
        if self.delta_correction != "none" and self.delta_steps == 1:
            raise ValueError("delta_correction has no effect with delta_steps 1: there are no steps to correct")
        if self.delta_correction != "none" and update.logits is not None:
            raise ValueError(
                f"delta_correction has no effect with the policy update {update.name}, which learns what is asked of "
                "the next state and does not look at the actions there"
            )
        if self.entropy_bonus and not update.has_bonus:
            raise ValueError(
                f"entropy_bonus has no effect with the policy update {update.name}, whose policy has the most entropy "
                "already"
            )

    @model_validator(mode="after")
    def _data_set_takes_the_place_of_acting(self) -> Self:
        if self.data and self.environments > 1:
            found = f"environments = {self.environments}"
            raise ValueError(f"{found}, but learning from a data set acts in none; leave it out")
        if self.data and self.priority.exponent > 0.0:
            raise ValueError("priority.exponent must be 0 to learn from a data set, which is drawn from uniformly")
        return self

    @model_validator(mode="after")
    def _environments_share_frames_and_replay(self) -> Self:
        for name in ("frames", "replay"):
            if (number := getattr(self, name)) % self.environments:
                raise ValueError(f"{name} = {number} must be a multiple of environments = {self.environments}")
        return self

    @property
    def acts(self) -> Behaviour:
        """The declaration of the behaviour, as the deep agent has it."""
        return BEHAVIOURS[self.behaviour].with_networks

    @property
    def updates_policy(self) -> PolicyUpdate | None:
        """The declaration of the policy update; None if no evaluation policy is learned."""
        return UPDATES[self.policy_update] if self.learns_policy and self.acts.distils is None else None

    @property
    def learns_policy(self) -> bool:
        """Whether there is a policy network."""
        return self.acts.needs_policy

    @property
    def program(self) -> dict[str, Any]:
        """What the compiled program is made for; two settings that agree in it can share a batch."""
        shape = {leaf.name: leaf.value(self) for leaf in LEAVES if leaf.role.compiled}
        return shape | {leaf.name: leaf.value(self) > 0.0 for leaf in LEAVES if leaf.role.switch}

    @property
    def numbers(self) -> dict[str, float]:
        """What the compiled program is called with: the traced settings, and the numbers of the behaviour."""
        traced = {leaf.name: leaf.value(self) for leaf in LEAVES if leaf.role.traced}
        constant = [each.name for each in self.acts.hyperparameters if not each.scheduled]
        constant += [] if self.updates_policy is None else [each.name for each in self.updates_policy.network_numbers]
        return traced | {name: getattr(self, name) for name in constant}


LEAVES: tuple[Leaf, ...] = tuple(leaves(TrainingSettings))
"""Every setting that is no part, with its role."""


def _names_of_functions(values: dict[str, Any]) -> dict[str, Any]:
    """The names of a behaviour and an update that are given as such; what is named with its module is imported."""
    names = {}
    for field, name_of, find in (
        ("behaviour", name_of_behaviour, find_behaviour),
        ("policy_update", name_of_update, find_update),
    ):
        if field in values:
            names[field] = name_of(values[field])
            if isinstance(names[field], str) and ":" in names[field]:
                _check_numbers(find(names[field]))
    return names


def _check_numbers(declared: Any) -> None:
    for each in (*declared.hyperparameters, *getattr(declared, "network_numbers", ())):
        if each.name in TrainingSettings.model_fields and not each.scheduled and each is not TEMPERATURE:
            raise InputError(f"the number {each.name} of {declared.name} has the name of a setting; choose another")


def extra_numbers(behaviour: Any, update: Any = None) -> dict[str, Hyperparameter]:
    """The numbers of a behaviour, and of the policy update that it has, that are no fields of every `TrainingSettings`,
    by name."""
    declared = BEHAVIOURS.get(behaviour) if isinstance(behaviour, str) else None
    every = () if declared is None else declared.hyperparameters
    more = {each.name: each for each in every if not each.scheduled and each.name not in TrainingSettings.model_fields}
    return more | (update_numbers(update) if declared is not None and declared.needs_policy else {})


def update_numbers(update: Any) -> dict[str, Hyperparameter]:
    """The numbers of a policy update in the deep agent, by name."""
    declared = UPDATES.get(update) if isinstance(update, str) else None
    return {} if declared is None else {each.name: each for each in declared.network_numbers}


def _others_number(name: str, behaviour: Any, update: Any) -> str:
    """Why a number of another behaviour or policy update has no effect, as the end of a sentence; else empty."""
    if others := [other for other in deep_behaviours() if name in extra_numbers(other)]:
        return "" if behaviour in others else f"with the behaviour {behaviour}; it is for {listed(others)}"
    if not (others := [other for other in deep_updates() if name in update_numbers(other)]):
        return ""
    if behaviour in BEHAVIOURS and not BEHAVIOURS[behaviour].needs_policy:
        return f"with the behaviour {behaviour}, which has no policy update"
    return "" if update in others else f"with the policy update {update}; it is for {listed(others)}"


def extra_fields() -> dict[str, FieldInfo]:
    """The numbers of all behaviours and policy updates that are no fields of every `TrainingSettings`, as fields."""
    every = [each for name in deep_behaviours() for each in extra_numbers(name).values()]
    every += [each for name in deep_updates() for each in update_numbers(name).values()]
    return {each.name: FieldInfo.from_annotated_attribute(float, _field(each)) for each in every}


def behaviours_with(path: str) -> tuple[str, ...]:
    """The behaviours of the deep agent that a setting has an effect with, by the setting's path."""
    numbers = {
        name: {"epsilon" if each.scheduled else each.name for each in BEHAVIOURS[name].hyperparameters}
        for name in deep_behaviours()
    }
    part = path.partition(".")[0]
    if named := tuple(name for name in numbers if part in numbers[name]):
        return named
    roles = {leaf.role.only_with for leaf in LEAVES if leaf.path == path}
    if "network" in roles:
        return tuple(name for name in numbers if BEHAVIOURS[name].with_networks.needs_policy)
    return tuple(name for name in numbers if BEHAVIOURS[name].needs_policy or "policy" not in roles)


def no_effect(path: str, behaviour: str, optimiser: str, update: str = "paper") -> str:
    """Why a setting, given by its path, would change nothing, as the end of a sentence "... has no effect"; empty if it
    has an effect."""
    if why := _others_number(path, behaviour, update):
        return why
    if behaviour not in (others := behaviours_with(path)):
        return f"with the behaviour {behaviour}; it is for {listed(others)}"
    if optimiser != "adam" and any(leaf.role.only_with == "adam" for leaf in LEAVES if leaf.path == path):
        return f"with {optimiser}; it is for optimiser.kind adam"
    return ""


_LUNAR_LANDER = {"frames": 500_000, "target_period": 500, "value_step_size": 1e-3, "policy_step_size": 1e-3}
_MINATAR = {"frames": 2_000_000, "target_period": 100, "value_step_size": 1e-5, "policy_step_size": 1e-3, "width": 128}


def paper_settings(environment: str, /, behaviour: Any = "epsilon-ipe", **changes: Any) -> TrainingSettings:
    """The appendix's bold values for LunarLander and Freeway; LunarLander's for other environments.

    MinAtar's other games get Freeway's. The paper's frame limit of 5000 is LunarLander's alone.

    Args:
        environment: the environment's id.
        behaviour: the name of a behaviour (of one in a module of your own: `package.module:name`), a `Behaviour`, or a
            function that can be one (`ipe.behaviours.find_behaviour`).
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
    values |= _names_of_functions(values)
    if environment.startswith("minatar/"):
        values |= _MINATAR | {"epsilon": {"final": 0.01, "steps": 100_000}}
    else:
        behaviour = values["behaviour"]
        declared = BEHAVIOURS.get(behaviour) if isinstance(behaviour, str) else None
        narrow = declared is not None and declared.needs_policy
        values |= _LUNAR_LANDER | {"width": 128 if narrow else 256}
        values["epsilon"] = {"final": 0.01, "steps": 25_000}
    if environment.partition(":")[2].startswith("LunarLander") or environment.startswith("LunarLander"):
        values["environment"]["frame_limit"] = 5000
    return read_settings(merged(values, changes))


def read_settings(values: dict[str, Any]) -> TrainingSettings:
    """Settings from plain data, as from a JSON or TOML file; an error names the path of the first wrong field."""
    try:
        return TrainingSettings.model_validate(values)
    except ValidationError as error:
        raise InputError(_sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    """The first complaint, with its field's path and the value found."""
    first = error.errors(include_url=False)[0]
    said = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return said
    path = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"there is no setting {path}{_nearest(first['loc'])}"
    if first["type"] == "missing":
        return f"the setting {path} is missing"
    found = "" if first["type"] == "value_error" else f", found {first['input']!r}"
    return f"{path}: {said[:1].lower()}{said[1:]}{found}"


def _nearest(loc: tuple[int | str, ...]) -> str:
    model: Any = TrainingSettings
    for part in loc[:-1]:
        model = model.model_fields[str(part)].annotation
    return did_you_mean(str(loc[-1]), model.model_fields, prefix="".join(f"{part}." for part in loc[:-1]))
