r"""What an audit answers. Throughout, :math:`\delta` is what follows less what is promised, :math:`T^\pi Q - Q`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from ipe.audit.decomposition import Decomposition, PairErrors
from ipe.audit.empirical import EmpiricalModel
from ipe.audit.support import Support
from ipe.audit.text import sample_text, table_text
from ipe.base.arrays import Array, Mask
from ipe.inverse import EvaluationPolicy

PolicySource: TypeAlias = Literal["fitted", "network", "given"]


@dataclass(frozen=True, eq=False)
class Exploration:
    """How random the evaluation policy is at the states that transitions lead to and go on from."""

    entropy: Array
    """The entropy of the evaluation policy at each of these states, in nats."""
    epsilon: Array
    """The epsilon at which epsilon-greedy is as random as the evaluation policy, at each of these states."""
    weights: Array
    """How often transitions arrived at each of these states, as shares. All are 0 if every transition terminates."""

    @property
    def mean_entropy(self) -> float:
        """The mean of `entropy` over arrivals."""
        return float(np.sum(self.weights * self.entropy))

    @property
    def mean_epsilon(self) -> float:
        """The mean of `epsilon` over arrivals."""
        return float(np.sum(self.weights * self.epsilon))

    @property
    def empty(self) -> bool:
        """Whether every transition terminates, so that there is no policy to find."""
        return not self.weights.any()


@dataclass(frozen=True)
class WorstState:
    """A state whose action values disagree with what follows them."""

    state: int
    """The number of the state."""
    visits: int
    """How many transitions that count start in the state."""
    residual: float
    r"""The root mean square of :math:`\bar\delta` over the state's pairs, weighted by visits, under the evaluation
    policy."""
    greedy_residual: float
    """The same root mean square under the greedy policy."""
    action: int
    r"""The action with the largest :math:`|\bar\delta|` in the state."""
    delta: float
    r"""The :math:`\bar\delta` of that action. Negative: Q promises more than follows."""
    standard_error: float
    """The standard error of `delta`."""
    entropy: float
    """The entropy of the evaluation policy in the state, in nats."""
    epsilon: float
    """The epsilon at which epsilon-greedy is as random as the evaluation policy in the state."""


@dataclass(frozen=True, eq=False)
class TableAudit:
    """The audit of a table of action values on the empirical model of its transitions. Print it for a table."""

    gamma: float
    """The discount."""
    transitions: int
    """The number of transitions in the batch."""
    model: EmpiricalModel = field(repr=False)
    """The empirical model of the batch."""
    solution: EvaluationPolicy = field(repr=False)
    """The exact evaluation policy on the empirical model, with its certificate."""
    policy: Array = field(repr=False)
    """The probabilities of the evaluation policy, shape (S, A)."""
    evaluation: Decomposition
    """The squared TD error under the evaluation policy, in parts. `evaluation.residual` estimates what no policy can
    remove."""
    greedy: Decomposition
    """The squared TD error under the greedy policy, in parts."""
    given: Decomposition | None
    """The squared TD error under the policy that was given beside the values, in parts; None without such a policy."""
    crossed: float
    """The squared residual of a policy fitted to one half of the transitions, judged by the other. In expectation it is
    at least what no policy can remove; the difference is what fitting a policy to half of this batch costs."""
    evaluation_errors: PairErrors = field(repr=False)
    """The TD errors of each pair under the evaluation policy."""
    greedy_errors: PairErrors = field(repr=False)
    """The TD errors of each pair under the greedy policy."""
    sup_residual: tuple[float, float]
    r"""Bounds on :math:`\rho`, the least that the largest residual of a policy can be on the empirical model."""
    distance_bounds: tuple[float, float]
    r"""Bounds on the sup-norm distance from Q to the nearest Q that is the value of a policy, on the empirical model:
    :math:`\rho/(1+\gamma)` and :math:`\rho/(1-\gamma)`."""
    achievable: bool | None
    """Whether Q is the value of some policy, as far as this batch can say; None: it cannot."""
    exploration: Exploration
    """How random the evaluation policy is where transitions lead."""
    worst: tuple[WorstState, ...]
    """The states with the largest residuals, the largest first."""
    support: Support | None = None
    """How much of Q is beyond the support of the batch; None unless a run is audited on the data set that it learned
    from."""

    @property
    def unachievable(self) -> float:
        r"""An estimate of what no policy can remove, :math:`\min_\pi \|Q - T^\pi Q\|^2` with this batch's weights."""
        return self.evaluation.residual

    def __str__(self) -> str:
        return table_text(audit_contents(self), self.exploration.empty)


@dataclass(frozen=True)
class WorstTransition:
    """A transition whose Q(s, a) no policy can explain."""

    index: int
    """The transition's place in the batch, from 0 on."""
    action: int
    """The action a."""
    reward: float
    """The reward r."""
    q: float
    """The value Q(s, a)."""
    least: float
    r""":math:`r + \gamma \min_a Q(s',a)`; r if terminated."""
    most: float
    r""":math:`r + \gamma \max_a Q(s',a)`; r if terminated."""
    delta: float
    """The nearest number between `least` and `most`, less Q(s, a). Negative: Q promises more than any action gives."""
    terminated: bool
    """Whether s' is terminal."""


@dataclass(frozen=True)
class Parts:
    """The mean squared TD error of some transitions under a policy."""

    transitions: int
    """The number of these transitions."""
    mean_squared_td_error: float
    """The mean of their squared TD errors."""
    floor: float
    """The part that no policy removes from any single transition: the mean squared distance to its interval."""

    @property
    def excess(self) -> float:
        """What is left without the floor. It comes from transitions that ask different things of one state, from noise,
        and from a policy that is not the best."""
        return self.mean_squared_td_error - self.floor


@dataclass(frozen=True, eq=False)
class SampleAudit:
    """The audit of action values given per transition, without a model. Print it for a table."""

    gamma: float
    """The discount."""
    transitions: int
    """The number of transitions in the batch."""
    deterministic: bool | None
    """Whether transitions are known to be deterministic; None: not known."""
    source: PolicySource
    """Where the evaluation policy comes from."""
    evaluation: Parts
    """The squared TD error under the evaluation policy, on the transitions that it was not fitted to."""
    training: Parts | None
    """The squared TD error under the evaluation policy, on the transitions that it was fitted to; None if it was not
    fitted here."""
    greedy: Parts
    """The squared TD error under the greedy policy, on the transitions of `evaluation`."""
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
    """False if Q is certainly the value of no policy, else None. Never True: other transitions may contradict it."""
    exploration: Exploration
    """How random the evaluation policy is where transitions lead."""
    worst: tuple[WorstTransition, ...]
    """The transitions furthest from their intervals, the furthest first; only those outside their intervals."""
    promised: Array = field(repr=False)
    """The value Q(s, a) of each transition, shape (n,)."""
    followed: Array = field(repr=False)
    r""":math:`r + \gamma v(s')` of each transition under the evaluation policy, shape (n,)."""
    greedy_followed: Array = field(repr=False)
    r""":math:`r + \gamma v(s')` of each transition under the greedy policy, shape (n,)."""
    held_out: Mask = field(repr=False)
    """Which transitions `evaluation` is about, shape (n,)."""
    support: Support | None = None
    """How much of Q is beyond the support of the batch; None unless a run is audited on the data set that it learned
    from."""

    @property
    def estimation(self) -> float | None:
        """What fitting the policy to part of the batch costs on the rest: the excess of `evaluation` less the excess
        of `training`."""
        return None if self.training is None else self.evaluation.excess - self.training.excess

    def __str__(self) -> str:
        return sample_text(audit_contents(self), self.exploration.empty)


Audit: TypeAlias = TableAudit | SampleAudit
"""What `audit` returns: a `TableAudit` for a table, a `SampleAudit` for values per transition."""


def audit_contents(audit: Audit) -> dict[str, Any]:
    """An audit as plain numbers, lists and strings: what `ipe audit --json` prints.

    Args:
        audit: what `ipe.audit.audit` returned.

    Returns:
        Keys in the order of the printed table. Squared errors are means over the transitions that count.
    """
    exploration = {"mean_entropy": audit.exploration.mean_entropy, "mean_epsilon": audit.exploration.mean_epsilon}
    support = {} if audit.support is None else {"support": dataclasses.asdict(audit.support)}
    shown = {"exploration": exploration, **support, "worst": [dataclasses.asdict(row) for row in audit.worst]}
    if isinstance(audit, TableAudit):
        return {"kind": "table", **_table_contents(audit), **shown, "policy": audit.policy.tolist()}
    return {"kind": "samples", **_sample_contents(audit), **shown}


def _table_contents(audit: TableAudit) -> dict[str, Any]:
    solution = ("residual", "residual_lower_bound", "gap", "converged", "method")
    return {
        "gamma": audit.gamma,
        "transitions": audit.transitions,
        "left_out": audit.model.left_out,
        "pairs": len(audit.model.count),
        "deterministic": audit.model.deterministic,
        "achievable": audit.achievable,
        "distance_bounds": list(audit.distance_bounds),
        "sup_residual": list(audit.sup_residual),
        "unachievable": audit.unachievable,
        "crossed": audit.crossed,
        "evaluation": dataclasses.asdict(audit.evaluation),
        "greedy": dataclasses.asdict(audit.greedy),
        "given": None if audit.given is None else dataclasses.asdict(audit.given),
        "solution": {name: getattr(audit.solution, name) for name in solution},
    }


def _sample_contents(audit: SampleAudit) -> dict[str, Any]:
    def parts(found: Parts) -> dict[str, Any]:
        return {**dataclasses.asdict(found), "excess": found.excess}

    return {
        "gamma": audit.gamma,
        "transitions": audit.transitions,
        "deterministic": audit.deterministic,
        "achievable": audit.achievable,
        "distance_lower_bound": audit.distance_bound,
        "outside": audit.outside,
        "promised_too_much": audit.promised_too_much,
        "sup_residual": audit.sup_residual,
        "policy_source": audit.source,
        "evaluation": parts(audit.evaluation),
        "training": None if audit.training is None else parts(audit.training),
        "estimation": audit.estimation,
        "greedy": parts(audit.greedy),
    }
