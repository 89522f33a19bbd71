r"""What a behaviour is: one declaration that every part of the library reads.

`ipe.tabular`, `ipe.deep` (training, evaluation, watching), the audit, the Stable-Baselines3 class, the command line's
options and the documentation's tables find a behaviour in `BEHAVIOURS`, and nothing about it is written elsewhere. A
new behaviour is one file in `ipe/behaviours/kinds/`, which declares it, and its test; or a call of `declare` in a
program of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ipe.base.declarations import Table
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.behaviours.policies import epsilon_greedy
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
    """What the behaviour remembers (`Memory`), shape (...) or (..., A) for each name."""
    ties: Literal["random", "first"] = "random"
    """Whether the greedy actions share their probability, or the first of them has it all."""

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
    """What a step in a state showed a behaviour that remembers."""

    probabilities: AnyArray
    """The probabilities by which the step's action was chosen, shape (A,)."""
    delta: AnyArray
    """The temporal-difference error of the update of Q(s, a)."""
    step_size: AnyArray
    """The step size of the update of Q(s, a)."""


class Memory(NamedTuple):
    """What a behaviour remembers of every state of a finite MDP, carried from step to step."""

    initial: Callable[[View, Numbers], dict[str, AnyArray]]
    """From the view of all states before the first step: the tables, their first axis the states."""
    updated: Callable[[View, Experience, Numbers], dict[str, AnyArray]]
    """From the view of the state just left, its Q updated: that state's new row of every table."""


@dataclass(frozen=True)
class Behaviour:
    """A way to act on values. Either `epsilon` or `probabilities` is given."""

    name: str
    """The name by which users choose the behaviour."""
    summary: str
    """How the behaviour acts, in words that go on from "The agent acts"."""
    probabilities: Callable[[View, Numbers], AnyArray] | None = None
    """The probabilities of the actions: a pure function of arrays of NumPy, JAX or torch."""
    epsilon: Callable[[View, Numbers], AnyArray] | None = None
    """The epsilon of a behaviour that is epsilon-greedy on Q."""
    hyperparameters: tuple[Hyperparameter, ...] = ()
    """The numbers that the behaviour has."""
    needs_policy: bool = False
    """Whether the behaviour looks at the logits of a learned evaluation policy."""
    memory: Memory | None = None
    """What the behaviour remembers from step to step, if it does."""
    deep: bool = True
    """Whether the deep agent offers the behaviour too. (One with a memory per state it cannot offer.)"""

    def __post_init__(self) -> None:
        if (self.probabilities is None) == (self.epsilon is None):
            raise InputError(f"behaviour {self.name!r}: give either probabilities or epsilon")
        if self.deep and self.memory is not None:
            raise InputError(f"behaviour {self.name!r}: with a memory for every state, deep must be False")

    def act(self, view: View, numbers: Numbers) -> Acting:
        """The probabilities in each state of a view, and epsilon if the behaviour has one.

        Args:
            view: what the behaviour looks at.
            numbers: a value for each hyperparameter; others may be there too.
        """
        if self.epsilon is None:
            assert self.probabilities is not None
            return Acting(self.probabilities(view, numbers), None)
        epsilon = self.epsilon(view, numbers)
        return Acting(epsilon_greedy(view.preferences, epsilon, view.allowed), epsilon)


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
