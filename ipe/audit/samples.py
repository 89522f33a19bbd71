r"""The audit of action values given per transition: vectors and images, where no state is seen twice.

With :math:`q_{sa} = Q(s,a)` and the rows :math:`Q(s', \cdot)`, the TD error of a transition under a policy is
:math:`\delta = r + \gamma v(s') - q_{sa}` with some :math:`v(s')` in :math:`[\min_a Q(s',a), \max_a Q(s',a)]` (0 if
terminated). So :math:`|\delta|` is never less than the distance of :math:`q_{sa}` to the interval
:math:`[r + \gamma \min_a Q(s',a),\; r + \gamma \max_a Q(s',a)]`. The mean square of these distances, the *floor*, is a
lower bound on the mean squared TD error of every policy, whatever the transitions. If transitions are deterministic,
the floor is a lower bound on the squared Bellman residual too, and a distance above 0 proves that Q is the value of no
policy. If they are stochastic, the floor holds noise as well: one unlucky successor contradicts nothing, and only
states that are seen again could tell (`ipe.audit.exact`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.audit.result import Exploration, Parts, PolicySource, SampleAudit, WorstTransition
from ipe.base.arrays import Array, Mask, numeric, refuse_where
from ipe.deep.transitions import Transitions, check_below
from ipe.entropy import entropy, epsilon_from_probabilities
from ipe.errors import InputError
from ipe.planning.operators import average


def check_rows(transitions: Transitions, q: Any, q_next: Any) -> tuple[Array, Array]:
    """Check action values per transition, and return Q(s, a), shape (n,), and the rows Q(s', .), shape (n, A), 0 where
    terminated. The rows of transitions that terminated may hold anything."""
    n = len(transitions)
    here, there = numeric(q, "q"), numeric(q_next, "q_next")
    if here.ndim != 2 or here.shape[0] != n or here.shape[1] == 0:
        raise InputError(f"q must have shape ({n}, actions), a row per transition; found {here.shape}")
    if there.shape != here.shape:
        raise InputError(f"q_next must have the shape of q, {here.shape}; found {there.shape}")
    n_actions = here.shape[1]
    check_below("action", transitions.action, n_actions, f"q has the actions 0 to {n_actions - 1}")
    there = np.where(transitions.terminated[:, None], 0.0, there)
    for name, rows in (("q", here), ("q_next", there)):
        refuse_where(~np.isfinite(rows), rows, name, "not a finite number")
    return here[np.arange(n), transitions.action], there


def check_policy_rows(policy: Any, transitions: Transitions, n_actions: int) -> Array:
    """Check probabilities of the actions at each s', shape (n, A). Rows of terminal s' may hold anything."""
    pi = numeric(policy, "policy_next")
    shape = (len(transitions), n_actions)
    if pi.shape != shape:
        raise InputError(f"policy_next must have shape {shape}, probabilities at each next state; found {pi.shape}")
    pi = np.where(transitions.terminated[:, None], 1.0 / n_actions, pi)
    refuse_where(~(pi >= 0), pi, "policy_next", "not a probability")
    total = pi.sum(axis=1)
    wrong = ~(np.abs(total - 1.0) <= 1e-5)  # networks compute in single precision
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InputError(f"policy_next[{i}] sums to {total[i]:.9g}, not to 1")
    return np.asarray(pi / total[:, None])


def audit_samples(
    transitions: Transitions,
    q_sa: Array,
    q_next: Array,
    gamma: float,
    pi_next: Array,
    source: PolicySource,
    *,
    fitted: Mask | None,
    deterministic: bool | None,
    worst: int,
    tolerance: float,
) -> SampleAudit:
    """Audit per-transition values under an evaluation policy.

    Args:
        transitions: the batch.
        q_sa: Q(s, a) of each transition, from `check_rows`.
        q_next: the rows Q(s', .), from `check_rows`.
        gamma: the discount.
        pi_next: the evaluation policy at each s', shape (n, A).
        source: where the evaluation policy comes from.
        fitted: the transitions that the evaluation policy was fitted to; the others are held out. None: it was not
            fitted to this batch.
        deterministic: whether transitions are known to be deterministic.
        worst: how many of the transitions outside their intervals to list, the furthest first.
        tolerance: the distance to an interval that counts, relative to the largest absolute value (at least 1).
    """
    reward, live = transitions.reward, ~transitions.terminated
    least, most = reward + gamma * q_next.min(axis=1), reward + gamma * q_next.max(axis=1)
    distance = np.clip(q_sa, least, most) - q_sa
    followed = reward + gamma * average(pi_next, q_next)
    held_out = np.ones(len(transitions), dtype=bool) if fitted is None else ~fitted
    allowed = tolerance * max(1.0, float(np.abs(q_sa).max()))
    outside = np.abs(distance) > allowed
    sup = float(np.abs(distance).max())

    def parts(of: Array, which: Mask) -> Parts:
        errors, floor = (of - q_sa)[which], distance[which]
        return Parts(int(which.sum()), float(np.mean(errors**2)), float(np.mean(floor**2)))

    weights = live / max(int(live.sum()), 1)
    return SampleAudit(
        gamma=gamma,
        transitions=len(transitions),
        deterministic=deterministic,
        source=source,
        evaluation=parts(followed, held_out),
        training=None if fitted is None else parts(followed, fitted),
        greedy=parts(most, held_out),
        outside=float(outside.mean()),
        promised_too_much=float((outside & (distance < 0)).mean()),
        sup_residual=sup,
        distance_bound=sup / (1.0 + gamma) if deterministic else None,
        achievable=False if deterministic and outside.any() else None,
        exploration=Exploration(
            np.asarray(entropy(pi_next))[live], np.asarray(epsilon_from_probabilities(pi_next))[live], weights[live]
        ),
        worst=tuple(
            WorstTransition(
                index=int(i),
                action=int(transitions.action[i]),
                reward=float(reward[i]),
                q=float(q_sa[i]),
                least=float(least[i]),
                most=float(most[i]),
                delta=float(distance[i]),
                terminated=bool(transitions.terminated[i]),
            )
            for i in np.argsort(-np.abs(distance), kind="stable")[: min(worst, int(outside.sum()))]
        ),
        promised=q_sa,
        followed=followed,
        greedy_followed=most,
        held_out=held_out,
    )
