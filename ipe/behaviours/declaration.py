r"""What a behaviour is: one declaration that every part of the library reads.

`ipe.tabular`, `ipe.deep` (training, evaluation, watching), the audit, the Stable-Baselines3 class, the command line's
options and the documentation's tables find a behaviour in `BEHAVIOURS`, and nothing about it is written elsewhere. A
new behaviour is one file in `ipe/behaviours/kinds/`, which declares it, and its test; or a call of `declare` in a
program of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from ipe.base.declarations import Table
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.behaviours.policies import epsilon_greedy
from ipe.entropy import softmax
from ipe.entropy.arrays import AnyArray, like, mask, namespace
from ipe.errors import InputError

Numbers: TypeAlias = Mapping[str, Any]
"""The values of hyperparameters by their names; in a compiled program they are traced."""


class View(NamedTuple):
    """What a behaviour may look at: one state, or a batch of states along the axes before the last."""

    q: AnyArray
    """The action values, shape (..., A)."""
    logits: AnyArray | None = None
    """The logits of the evaluation policy, shape (..., A); None if no policy is learned."""
    allowed: AnyArray | None = None
    """Booleans that broadcast to (..., A); None: every action is allowed."""
    step: AnyArray = 0
    """How many steps were taken before this one (in deep training, after the warm-up)."""
    memory: Mapping[str, AnyArray] = {}
    """What the behaviour remembers (`Memory`), shape (...) or (..., A) for each name; one for all states if the memory
    is the agent's."""
    ties: Literal["random", "first"] = "random"
    """Whether the greedy actions share their probability, or the first of them has it all."""
    taken: AnyArray | None = None
    """For what is distilled alone: the actions that were taken, as 0 and 1 over the actions, shape (..., A)."""

    @property
    def preferences(self) -> AnyArray:
        """Numbers that are largest at the greedy actions: q, or 1 at the first greedy action and 0 elsewhere."""
        if self.ties == "random":
            return self.q
        xp = namespace(self.q)
        q = self.q if self.allowed is None else xp.where(mask(self.q, self.allowed), self.q, -xp.inf)
        return like(self.q, xp.arange(q.shape[-1]) == xp.argmax(q, axis=-1)[..., None])


class Acting(NamedTuple):
    """How a behaviour acts in each state of a view."""

    probabilities: AnyArray
    """The probabilities of the actions, shape (..., A)."""
    epsilon: AnyArray | None
    """The probability of acting at random, broadcasts to (...); None if the behaviour has no such number."""


class Experience(NamedTuple):
    """What a step showed a behaviour that remembers."""

    probabilities: AnyArray
    """The probabilities by which the step's action was chosen, shape (..., A)."""
    epsilon: AnyArray | None
    """The epsilon with which the action was chosen; None if the behaviour has none."""
    action: AnyArray
    """The action."""
    reward: AnyArray
    """The reward."""
    discount: AnyArray
    """The discount of the next state's value; 0 where the next state is terminal."""
    following: View
    """The next state, with the Q that the agent had before it learned from the step (the deep agent: with the Q that
    chooses the next action)."""
    ended: AnyArray
    """Whether the episode ended with the step."""
    chance: AnyArray
    """A uniform number in [0, 1) that nothing else depends on."""
    delta: AnyArray | None = None
    """The temporal-difference error of the update of Q(s, a); None in the deep agent, which updates a network."""
    step_size: AnyArray | None = None
    """The step size of the update of Q(s, a); None in the deep agent."""


class Memory(NamedTuple):
    """What a behaviour remembers from step to step: of every state of a finite MDP, or of its own doings."""

    initial: Callable[[View, Numbers], dict[str, AnyArray]]
    """Before the first step: from the view of all states the tables, their first axis the states; or, if the memory is
    the agent's, from the view of the present state the first memory."""
    updated: Callable[[View, Experience, Numbers], dict[str, AnyArray]]
    """From the view of the state just left: that state's new row of every table; or the agent's new memory. A finite
    MDP's view has the updated Q; the deep agent's has the Q by which the action was chosen."""
    scope: Literal["state", "agent"] = "state"
    """Whether there is a row for every state, which a network cannot have, or one memory for the whole agent."""


class Outcome(NamedTuple):
    """A transition as a value target sees it; the first axes of all arrays are alike."""

    here: View
    """The state that was left."""
    action: AnyArray
    """The action, as booleans over the actions, shape (..., A)."""
    following: View
    """The next state."""


class Target(NamedTuple):
    """What takes the place of the reward and of max Q(s', .) in the target of Q-learning."""

    bonus: AnyArray
    """What is added to the reward."""
    value: AnyArray
    """The value of the next state."""


@dataclass(frozen=True)
class Behaviour:
    """A way to act on values. `epsilon` is given, or `probabilities`; or both, and the probabilities are acted on."""

    name: str
    """The name by which users choose the behaviour."""
    summary: str
    """How the behaviour acts, in words that go on from "The agent acts"."""
    probabilities: Callable[[View, Numbers], AnyArray] | None = None
    """The probabilities of the actions: a pure function of arrays of NumPy, JAX or torch."""
    epsilon: Callable[[View, Numbers], AnyArray] | None = None
    """The epsilon of a behaviour that is epsilon-greedy on Q; with `probabilities`, the number to record."""
    hyperparameters: tuple[Hyperparameter, ...] = ()
    """The numbers that the behaviour has."""
    needs_policy: bool = False
    """Whether the behaviour looks at the logits of a learned evaluation policy."""
    memory: Memory | None = None
    """What the behaviour remembers from step to step, if it does."""
    target: Callable[[Outcome, Numbers], Target] | None = None
    """What Q-learning learns in place of the largest value of the next state; None: that value."""
    deep: bool = True
    """Whether the deep agent offers the behaviour too. (One with a memory per state it offers only with `distils`.)"""
    distils: Callable[[View, Numbers], AnyArray] | None = None
    """For the deep agent, the probabilities that its policy network imitates in place of an evaluation policy. They are
    a function of a view whose Q is the target network's, and whose logits are those of the policy network when it was
    last copied, with the target network. The deep agent then acts by the policy network; `probabilities` and `memory`
    are for finite MDPs alone."""
    imitates: bool = False
    """Whether the behaviour imitates the actions of a data set: it is offered where there is one, and nowhere else."""

    def __post_init__(self) -> None:
        if self.probabilities is None and self.epsilon is None:
            raise InputError(f"behaviour {self.name!r}: give either probabilities or epsilon")
        if self.deep and self.memory is not None and self.memory.scope == "state" and self.distils is None:
            raise InputError(f"behaviour {self.name!r}: with a memory for every state, deep must be False")

    @property
    def with_networks(self) -> Behaviour:
        """The behaviour as the deep agent has it: what it distils into a network it acts by."""
        if self.distils is None:
            return self
        return replace(self, probabilities=_as_the_network, epsilon=None, memory=None, needs_policy=True)

    def act(self, view: View, numbers: Numbers) -> Acting:
        """The probabilities in each state of a view, and epsilon if the behaviour has one.

        Args:
            view: what the behaviour looks at.
            numbers: a value for each hyperparameter; others may be there too.
        """
        epsilon = None if self.epsilon is None else self.epsilon(view, numbers)
        if self.probabilities is not None:
            return Acting(self.probabilities(view, numbers), epsilon)
        return Acting(epsilon_greedy(view.preferences, epsilon, view.allowed), epsilon)


def _as_the_network(view: View, numbers: Numbers) -> AnyArray:
    return softmax(view.logits, view.allowed)


BEHAVIOURS: Table[Behaviour] = Table("behaviour")
"""Every behaviour, by its name."""


def declare(behaviour: Behaviour) -> Behaviour:
    """Make a behaviour known to the whole library, by its name.

    A training in several processes knows the behaviours that those processes declare too, because they import the same
    modules; with `processes=0` it runs in the present process.

    Raises:
        InputError: there is another behaviour of that name.
    """
    return BEHAVIOURS.declare(behaviour)
