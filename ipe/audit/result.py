r"""What an audit answers. Throughout, :math:`\delta` is what follows less what is promised, :math:`T^\pi Q - Q`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from ipe.audit.decomposition import Decomposition, PairErrors
from ipe.audit.empirical import EmpiricalModel
from ipe.base.arrays import Array, Mask
from ipe.inverse import EvaluationPolicy

PolicySource: TypeAlias = Literal["fitted", "network", "given"]


@dataclass(frozen=True, eq=False)
class Exploration:
    """How random the evaluation policy is at the states that transitions lead to and go on from."""

    entropy: Array
    """In nats."""
    epsilon: Array
    """At which epsilon-greedy is as random."""
    weights: Array
    """How often each state was arrived at; they sum to one (all 0 if every transition terminates)."""

    @property
    def mean_entropy(self) -> float:
        """Over arrivals."""
        return float(np.sum(self.weights * self.entropy))

    @property
    def mean_epsilon(self) -> float:
        """Over arrivals."""
        return float(np.sum(self.weights * self.epsilon))


@dataclass(frozen=True)
class WorstState:
    """A state whose action values disagree with what follows them."""

    state: int
    visits: int
    """Transitions from it that count."""
    residual: float
    r"""Root mean square of :math:`\bar\delta` over its pairs, weighted by visits, under the evaluation policy."""
    greedy_residual: float
    """The same under the greedy policy."""
    action: int
    r"""The action with the largest :math:`|\bar\delta|`."""
    delta: float
    r"""That :math:`\bar\delta`. Negative: Q promises more than follows."""
    standard_error: float
    """Of it."""
    entropy: float
    """Of the evaluation policy in this state."""
    epsilon: float


@dataclass(frozen=True, eq=False)
class TableAudit:
    """The audit of a table of action values on the empirical model of its transitions. Print it for a table."""

    gamma: float
    transitions: int
    """All that were given."""
    model: EmpiricalModel = field(repr=False)
    solution: EvaluationPolicy = field(repr=False)
    """The evaluation policy on the empirical model, exactly, with its certificate."""
    policy: Array = field(repr=False)
    """The evaluation policy, shape (S, A)."""
    evaluation: Decomposition
    """Of its squared TD error. `evaluation.residual` estimates what no policy can remove."""
    greedy: Decomposition
    given: Decomposition | None
    """Of the policy that was given beside the values, if one was."""
    crossed: float
    """The squared residual of a policy fitted to one half of the transitions, judged by the other. In expectation it is
    at least what no policy can remove; the difference is what fitting a policy to half of this batch costs."""
    evaluation_errors: PairErrors = field(repr=False)
    greedy_errors: PairErrors = field(repr=False)
    sup_residual: tuple[float, float]
    r""":math:`\rho`, the least that the largest residual of a policy can be on the empirical model: bounds."""
    distance_bounds: tuple[float, float]
    r"""Of the sup-norm distance from Q to the nearest Q that is the value of a policy, on the empirical model:
    :math:`\rho/(1+\gamma)` and :math:`\rho/(1-\gamma)`."""
    achievable: bool | None
    """Whether Q is the value of some policy, as far as this batch can say; None: it cannot."""
    exploration: Exploration
    worst: tuple[WorstState, ...]
    """The states with the largest residuals, the largest first."""

    @property
    def unachievable(self) -> float:
        r"""What no policy can remove, :math:`\min_\pi \|Q - T^\pi Q\|^2` with this batch's weights: an estimate."""
        return self.evaluation.residual

    def __str__(self) -> str:
        from ipe.audit.text import table_text

        return table_text(self)


@dataclass(frozen=True)
class WorstTransition:
    """A transition whose Q(s, a) no policy can explain."""

    index: int
    """In the batch."""
    action: int
    reward: float
    q: float
    """Q(s, a)."""
    least: float
    r""":math:`r + \gamma \min_a Q(s',a)`; r if terminated."""
    most: float
    r""":math:`r + \gamma \max_a Q(s',a)`; r if terminated."""
    delta: float
    """From Q(s, a) to the nearest number between the two. Negative: Q promises more than any action gives."""
    terminated: bool


@dataclass(frozen=True)
class Parts:
    """The mean squared TD error of some transitions under a policy."""

    transitions: int
    mean_squared_td_error: float
    floor: float
    """The part that no policy removes from any single transition: the mean squared distance to its interval."""

    @property
    def excess(self) -> float:
        """The rest: transitions that ask different things of one state, noise, and a policy that is not the best."""
        return self.mean_squared_td_error - self.floor


@dataclass(frozen=True, eq=False)
class SampleAudit:
    """The audit of action values given per transition, without a model. Print it for a table."""

    gamma: float
    transitions: int
    deterministic: bool | None
    """Whether transitions are known to be deterministic; None: not known."""
    source: PolicySource
    """Where the evaluation policy comes from."""
    evaluation: Parts
    """Under the evaluation policy, on the transitions that it was not fitted to."""
    training: Parts | None
    """Under the evaluation policy, on those that it was fitted to; None if it was not fitted here."""
    greedy: Parts
    """Under the greedy policy, on the transitions of `evaluation`."""
    outside: float
    """The share of all transitions whose Q(s, a) no policy can explain."""
    promised_too_much: float
    """The share of all transitions where Q(s, a) is above its interval."""
    sup_residual: float
    """The largest distance to an interval over all transitions."""
    distance_bound: float | None
    r"""If transitions are deterministic, no values of a policy are nearer to Q than this in the sup norm:
    `sup_residual` over :math:`1 + \gamma`."""
    achievable: bool | None
    """False if Q is the value of no policy for certain; never True: other transitions may tell."""
    exploration: Exploration
    worst: tuple[WorstTransition, ...]
    """The transitions furthest from their intervals, the furthest first; none that is not beyond its own."""
    promised: Array = field(repr=False)
    """Q(s, a) of each transition."""
    followed: Array = field(repr=False)
    r""":math:`r + \gamma v(s')` under the evaluation policy, shape (n,)."""
    greedy_followed: Array = field(repr=False)
    held_out: Mask = field(repr=False)
    """The transitions of `evaluation`."""

    @property
    def estimation(self) -> float | None:
        """What fitting the policy to part of the batch costs elsewhere: the excess there less the excess here."""
        return None if self.training is None else self.evaluation.excess - self.training.excess

    def __str__(self) -> str:
        from ipe.audit.text import sample_text

        return sample_text(self)


Audit: TypeAlias = TableAudit | SampleAudit
"""What `audit` returns: by exact solution for tables, by samples for the rest."""
