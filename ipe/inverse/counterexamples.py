r"""Where the paper's remarks do not hold, and how bad acting on values can get: small MDPs that show it.

`docs/bounds.md` goes through them.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array
from ipe.base.numbers import check_positive, whole_number
from ipe.base.words import one_of
from ipe.checks import check_v
from ipe.errors import InputError
from ipe.inverse.extremes import exact_values, greatest_values
from ipe.inverse.solve import evaluation_policy
from ipe.mdp import FiniteMDP
from ipe.mdp_input import check_gamma
from ipe.planning.operators import optimality_operator
from ipe.planning.policies import greedy_policy

ALLOWED = np.array([[True, True], [True, True], [True, False]])


class Example(NamedTuple):
    """An MDP, state values and a policy that together show something."""

    mdp: FiniteMDP
    """The MDP."""
    v: Array
    """The state values, shape (S,)."""
    policy: Array
    """The policy, shape (S, A)."""


def losses(mdp: FiniteMDP, k: int, *, v: Any, policy: Literal["ipe", "greedy"] = "ipe") -> Array:
    r"""What acting on the iterates of value iteration loses: :math:`\|V^{\pi_i} - V^*\|_\infty`, i = 0, ..., k.

    Args:
        mdp: the MDP.
        k: how many steps of value iteration.
        v: :math:`V_0`, shape (S,).
        policy: "ipe": :math:`\pi_i` is the evaluation policy of :math:`V_i = (T^*)^i V_0`; "greedy": its greedy policy.

    Returns:
        Shape (k + 1,).

    Example:
        Evaluation policies do not improve monotonically, contrary to the paper's remark on Theorem 1:

        >>> from ipe.zoo import switch_stay
        >>> losses(switch_stay(), 5, v=[18.0, -6.0]).round(3)
        array([7.   , 9.248, 7.279, 7.   , 7.   , 2.493])
    """
    k, iterate = whole_number(k, "k", 0), check_v(mdp, v)
    one_of(policy, ("ipe", "greedy"), "policy")
    best = greatest_values(mdp).v
    lost = np.empty(k + 1)
    for i in range(k + 1):
        pi = evaluation_policy(mdp, v=iterate).policy if policy == "ipe" else greedy_policy(mdp, v=iterate)
        lost[i] = np.abs(exact_values(mdp, pi).v - best).max()
        iterate = optimality_operator(mdp, v=iterate)
    return lost


def hub(n: int = 500, gamma: float = 0.5) -> Example:
    r"""Proposition 1 fails in the Euclidean norm, in which Bellman operators do not contract.

    A hub that leads to itself with reward 0, and n states whose two actions both lead to it, with rewards 0 and
    :math:`-\gamma`. `policy` takes the reward 0 and has the value 0; `v` is that, but for the 1 at the hub. The
    evaluation policy of v takes the reward :math:`-\gamma` in all n states, and

    .. math:: \frac{\text{left}}{\text{right}} = \frac{\gamma \sqrt n}{2 / (1-\gamma)}
        = \frac{\gamma (1-\gamma) \sqrt n}{2} .

    Example:
        >>> from ipe.inverse.bounds import proposition_1
        >>> mdp, v, policy = hub()
        >>> round(proposition_1(mdp, policy, v=v, norm="l2").ratio, 3)
        2.795
        >>> round(proposition_1(mdp, policy, v=v).ratio, 3)
        0.125
    """
    n, gamma = whole_number(n, "n", 1), check_gamma(gamma)
    pairs = 2 * (n + 1)
    to_the_hub = np.ones(pairs), np.zeros(pairs, dtype=np.int32), np.arange(pairs + 1)
    transitions = sparse.csr_array(to_the_hub, shape=(pairs, n + 1))
    rewards = np.zeros((n + 1, 2))
    rewards[1:, 1] = -gamma
    v = np.zeros(n + 1)
    v[0] = 1.0
    policy = np.tile([1.0, 0.0], (n + 1, 1))
    return Example(FiniteMDP(transitions, rewards, gamma), v, policy)


def remark(k: int = 0, gamma: float = 0.9, edge: float = 0.01) -> Example:
    r"""Theorem 1 needs the evaluation policy; a policy that fits as well as an optimal one is not enough.

    That is, :math:`\|T^{\pi_k} V_k - V_k\| \le \|T^{\pi^*} V_k - V_k\|` is not.

    Three states. The trap x and the idle state y lead to themselves with reward 0; a second action of x does so with
    reward -2. From s one action leads to x with reward `edge` and is optimal, the other to y with reward 0.
    :math:`V_0 = (1, -1, 1)` in (s, x, y). All along value iteration the action to y looks better, and an optimal policy
    has the Bellman error :math:`(1+\gamma) \gamma^k - \text{edge}`. `policy` spends it on x, with the probability
    :math:`\gamma^k - \text{edge} / 2` of the bad action. It loses :math:`(2 \gamma^k - \text{edge}) / (1-\gamma)`
    there, where Theorem 1 would allow :math:`2 \gamma^k`.

    Args:
        k: the iterate that the policy is for.
        gamma: the discount.
        edge: how much better the optimal action is, at most :math:`2 \gamma^k`.

    Returns:
        The MDP, :math:`V_0` and :math:`\pi_k`.

    Example:
        >>> from ipe.inverse.theorems import theorem_1, theorem_1_remark
        >>> mdp, v, policy = remark(k=3)
        >>> held = theorem_1_remark(mdp, 3, policy, v=v)
        >>> round(held.left, 3), round(theorem_1(mdp, 3, v=v).right, 3), round(held.right, 3)
        (14.48, 1.458, 14.58)
    """
    k, gamma, edge = whole_number(k, "k", 0), check_gamma(gamma), check_positive(edge, "edge")
    if edge > 2 * gamma**k:
        raise InputError(f"edge must be at most 2 gamma^k = {2 * gamma**k:.6g}, found {edge:g}")
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    transitions[1, :, 1] = transitions[2, :, 2] = 1.0
    rewards = [[edge, 0.0], [0.0, -2.0], [0.0, 0.0]]
    bad = gamma**k - edge / 2
    mdp = FiniteMDP(transitions, rewards, gamma, allowed=ALLOWED, state_names=("s", "x", "y"))
    return Example(mdp, np.array([1.0, -1.0, 1.0]), np.array([[1.0, 0.0], [1.0 - bad, bad], [1.0, 0.0]]))


def worst_case(gamma: float = 0.9, edge: float = 1e-6) -> Example:
    r"""Values on which both the evaluation policy and the greedy policy lose as much as they can.

    Every optimal value is 0, and :math:`\|v - V^*\| = 1`. The end x leads to itself, reward 0, v = -1. The lure y stays
    with reward :math:`-2\gamma + \text{edge}` or leads to x with reward 0, v = 1: both policies stay and lose
    :math:`(2\gamma - \text{edge}) / (1-\gamma)`. The start s leads to x with reward 0 or to y with reward
    :math:`-(1+\gamma)`, v = -1: only the evaluation policy goes to y, since that is worth what v promises, and
    loses :math:`(1 + \gamma^2 - \gamma\, \text{edge}) / (1-\gamma)`. With edge -> 0 these are the constants
    of `loss_bound`. `policy` is optimal.

    Example:
        >>> from ipe.inverse.theorems import loss_bound
        >>> mdp, v, _ = worst_case()
        >>> for policy in ("ipe", "greedy"):
        ...     bound = loss_bound(mdp, v=v, policy=policy)
        ...     print(policy, round(bound.left, 3), round(bound.right, 3))
        ipe 18.1 18.1
        greedy 18.0 18.0
    """
    gamma, edge = check_gamma(gamma), check_positive(edge, "edge")
    if edge >= 2 * gamma:
        raise InputError(f"edge must be below 2 gamma = {2 * gamma:.6g}, found {edge:g}")
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 2] = transitions[0, 1, 1] = 1.0
    transitions[1, 0, 2] = transitions[1, 1, 1] = 1.0
    transitions[2, 0, 2] = 1.0
    rewards = [[0.0, -1.0 - gamma], [0.0, -2.0 * gamma + edge], [0.0, 0.0]]
    mdp = FiniteMDP(transitions, rewards, gamma, allowed=ALLOWED, state_names=("s", "y", "x"))
    return Example(mdp, np.array([-1.0, 1.0, -1.0]), np.tile([1.0, 0.0], (3, 1)))
