r"""A trained run in its environment again: its networks, and the actions that they choose.

An agent acts greedily, by :math:`\arg\max_a Q(s,a)`, ties broken at random; or by the run's behaviour as it was when
training ended or was stopped, with the epsilon that a schedule has at the seed's last frame; or by another behaviour
that its networks are enough for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ipe.base.words import one_of
from ipe.behaviours import BEHAVIOURS, Behaviour, View, sample_at
from ipe.behaviours.schedules import SCHEDULES
from ipe.deep.environments import Environment, EnvironmentSpec
from ipe.deep.environments.environment import Interface
from ipe.deep.networks import Architecture, features, forward
from ipe.deep.programs import architecture, policy_architecture
from ipe.deep.progress import Outcome
from ipe.deep.setting_groups import EnvironmentSettings
from ipe.deep.settings import TrainingSettings
from ipe.entropy import epsilon_from_logits
from ipe.errors import InputError
from ipe.updates import PolicyUpdate

LONGEST_EPISODE = 100_000
"""Frames after which an episode is given up, if no limit of the environment's comes before."""

_EVALUATION = 2  # after the streams of ipe.deep.randomness


@dataclass(frozen=True)
class Trained:
    """The networks of a trained run, and the environment to use them in."""

    folder: Path
    """The folder of the training run or the sweep."""
    settings: TrainingSettings
    """The settings that were trained."""
    environment: EnvironmentSettings
    """The environment to act in: the run's, perhaps with another limit of frames."""
    spec: EnvironmentSpec
    """The spaces of the environment."""
    interface: Interface
    """How observations of the environment become those of the networks."""
    outcomes: list[Outcome]
    """How far each seed has come."""
    networks: dict[int, dict[str, dict[str, NDArray[np.float32]]]]
    """The networks of each seed whose training has begun: `q`, and `policy` if there is one. Each has two parts,
    `matrix` and `rest`, whose first axis has length one."""
    which: str = "last"
    """Whether the networks are the last ones of each seed, or the best ones: those of its best evaluation."""

    @property
    def seeds(self) -> list[int]:
        """The seeds of the run."""
        return [outcome.seed for outcome in self.outcomes]

    def step(self, seed: int) -> int:
        """How many frames after the warm-up came before a seed's next action."""
        (frame,) = [outcome.frame for outcome in self.outcomes if outcome.seed == seed]
        return max(frame - self.settings.warm_up, 0)

    def epsilon(self, seed: int) -> float:
        """The epsilon that the schedule has for a seed's next action."""
        schedule = self.settings.epsilon
        return float(SCHEDULES[schedule.kind](self.step(seed), schedule.initial, schedule.final, schedule.steps))

    def acting(self, behaviour: bool | str) -> Behaviour:
        """The run's behaviour (True), the greedy one (False), or the one of a name.

        Raises:
            InputError: there is no such behaviour; or it needs a policy network, and the run has none; or it goes by
                what it remembers.
        """
        if isinstance(behaviour, bool):
            return check_forgetful(self.settings.acts) if behaviour else BEHAVIOURS["greedy"]
        acts = BEHAVIOURS[one_of(behaviour, BEHAVIOURS, "behaviour")].with_networks
        if acts.needs_policy and not self.settings.learns_policy:
            trained = f"the run, trained with {self.settings.behaviour}, has none"
            raise InputError(f"the behaviour {behaviour} needs a policy network, and {trained}")
        return check_forgetful(acts)

    def numbers(self, seed: int, behaviour: bool | str = True) -> dict[str, float]:
        """The numbers of a behaviour for a seed's next action: the run's, and the defaults of those that it has not."""
        acts = self.settings.acts if behaviour is True else self.acting(behaviour)
        known: dict[str, Any] = {each.name: each.default for each in acts.hyperparameters}
        known |= {name: getattr(self.settings, name) for name in known if hasattr(self.settings, name)}
        known |= {each.name: self.epsilon(seed) for each in acts.hyperparameters if each.scheduled}
        return {name: float(value) for name, value in known.items()}

    def unusable(self) -> dict[int, str]:
        """Why some seeds have nothing to show: their training failed, diverged, or has not begun."""
        why = {
            outcome.seed: f"{outcome.status} at frame {outcome.frame}: {outcome.reason}"
            for outcome in self.outcomes
            if outcome.lost
        }
        missing = "was not begun when training was stopped" if self.which == "last" else "has no evaluation with a mean"
        why |= {seed: missing for seed in self.seeds if seed not in self.networks}
        for seed, networks in self.networks.items():
            arrays = [array for network in networks.values() for array in network.values()]
            if seed not in why and not all(np.isfinite(array).all() for array in arrays):
                why[seed] = "diverged: its networks hold numbers that are not finite"
        return why


def evaluation_seed(seed: int, trained: int) -> int:
    """The environment's seed for evaluating a trained seed: 2^63 or more, where those of training are less.

    Every trained seed gets other episodes, and the same ones however it acts.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(_EVALUATION, trained))
    return 2**63 | int(sequence.generate_state(1, np.uint64)[0])


class Choice(NamedTuple):
    """What an agent does in a state."""

    action: int
    """The index of the action."""
    epsilon: float
    """The epsilon that it acts with, or else the one that its policy network asks for; NaN if there is neither."""


Agent = Callable[[NDArray[Any]], Choice]
"""A function of an observation that chooses an action."""


def agent(trained: Trained, seed: int, evaluation: int, behaviour: bool | str) -> Agent:
    """A trained seed as a function, which acts by a behaviour (`Trained.acting`). `evaluation` is the seed of its
    draws.

    Raises:
        InputError: the behaviour cannot be acted by.
    """
    settings = trained.settings
    acts = trained.acting(behaviour)
    net = architecture(settings, trained.spec)
    numbers = tuple(trained.numbers(seed, behaviour).items())
    choose = _chooser(net, acts, settings.updates_policy, trained.spec.scale, trained.step(seed), numbers)
    parameters = jax.tree.map(jnp.asarray, trained.networks[seed])
    sequence = np.random.SeedSequence(evaluation, spawn_key=(_EVALUATION, seed, 1))
    generator = np.random.Generator(np.random.Philox(sequence))

    def act(observation: NDArray[Any]) -> Choice:
        action, epsilon = choose(parameters, observation, generator.random(dtype=np.float32))
        return Choice(int(action), float(epsilon))

    return act


def policy_of(trained: Trained, seed: int, behaviour: bool | str, observations: NDArray[Any]) -> NDArray[np.float64]:
    """The probabilities with which a trained seed acts by a behaviour (`Trained.acting`) in encoded observations, whose
    first axis are the states; shape (n, A).

    Raises:
        InputError: the behaviour cannot be acted by.
    """
    settings, acts = trained.settings, trained.acting(behaviour)
    net, numbers = architecture(settings, trained.spec), trained.numbers(seed, behaviour)
    parameters = jax.tree.map(jnp.asarray, trained.networks[seed])
    q, logits = outputs(net, parameters, jnp.asarray(observations), trained.spec.scale, settings.updates_policy)
    view = View(q, logits, step=trained.step(seed))
    pi = acts.act(view, {name: jnp.float32(value) for name, value in numbers.items()}).probabilities
    found: NDArray[np.float64] = np.asarray(pi, np.float64)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def check_forgetful(behaviour: Behaviour) -> Behaviour:
    """The behaviour, if it can go on without what it has learned to remember, which is not kept with the networks; else
    it is refused."""
    if behaviour.memory is not None:
        raise InputError(
            f"the behaviour {behaviour.name} goes by what it remembers of its training, which is not kept with the "
            "networks: act greedily"
        )
    return behaviour


def outputs(
    net: Architecture, parameters: dict[str, Any], observations: Any, scale: float, update: PolicyUpdate | None
) -> tuple[Any, Any]:
    """The action values of encoded observations times `scale`, and the logits of their policies, which a policy update
    has learned; None if no policy was learned. The parameters are the networks of one seed, as `Trained.networks` has
    them."""
    inputs = features(net, (observations.astype(jnp.float32) * jnp.float32(scale))[None])
    q = forward(net, parameters["q"], inputs)[0][0]
    if "policy" not in parameters:
        return q, None
    learned = forward(policy_architecture(net, update), parameters["policy"], inputs)[0][0]
    return q, learned if update is None else update.policy(learned, q)


@lru_cache(maxsize=32)
def _chooser(
    net: Architecture,
    behaviour: Behaviour,
    update: PolicyUpdate | None,
    scale: float,
    step: int,
    numbers: tuple[tuple[str, float], ...],
) -> Any:
    """The compiled function (parameters, observation, draw) -> (action, epsilon)."""

    def choose(parameters: dict[str, Any], observation: Any, draw: Any) -> tuple[Any, Any]:
        values, preferences = outputs(net, parameters, observation[None], scale, update)
        q, logits = values[0], None if preferences is None else preferences[0]
        acting = behaviour.act(View(q, logits, step=step), {name: jnp.float32(value) for name, value in numbers})
        asked = jnp.float32(jnp.nan) if logits is None else epsilon_from_logits(logits)
        return sample_at(acting.probabilities, draw), asked if acting.epsilon is None else acting.epsilon

    return jax.jit(choose)


class Moment(NamedTuple):
    """A state of an episode."""

    frame: int
    """How many steps the episode has taken so far."""
    total: float
    """The sum of the rewards so far."""
    epsilon: float
    """The epsilon of the state, as in `Choice`; at the end, that of the last state."""
    over: bool
    """Whether the episode has ended here."""


def play(environment: Environment, act: Agent) -> Iterator[Moment]:
    """The next episode, state by state; the environment stands at the one that is yielded. An `EnvironmentFailure` says
    that it went wrong, an `InputError` that the episode does not end."""
    observation, total = environment.reset(), 0.0
    for frame in range(LONGEST_EPISODE):
        action, epsilon = act(observation)
        yield Moment(frame, total, epsilon, False)
        observation, reward, terminated, truncated = environment.step(action)
        total += reward
        if terminated or truncated:
            yield Moment(frame + 1, total, epsilon, True)
            return
    raise InputError(
        f"{environment.spec.id}: episode {environment.episode} has not ended after {LONGEST_EPISODE} frames; "
        "give a frame limit"
    )
