r"""Behaviours whose epsilon follows the changes of the values: VDBE and VDBE-softmax.

Both keep an epsilon for every state. Tokic's papers define that for finite MDPs alone, and the deep agent does not
offer them: a network has no states to keep a number for.
"""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, Experience, Memory, Numbers, View, declare
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.behaviours.policies import greedy
from ipe.entropy import softmax
from ipe.entropy.arrays import AnyArray, actions, check_range, mask, namespace, per_row


def vdbe_update(
    epsilon: AnyArray, delta: AnyArray, alpha: AnyArray, sigma: AnyArray, n: AnyArray, rate: AnyArray | None = None
) -> AnyArray:
    r"""Epsilon from value differences (VDBE; Tokic, 2010), the known adaptive epsilon-greedy.

    For the state whose action was just updated by :math:`\alpha \delta`,

    .. math::
        \epsilon(s) \leftarrow c \, \frac{1 - e^{-|\alpha\delta|/\sigma}}{1 + e^{-|\alpha\delta|/\sigma}}
        + (1 - c) \, \epsilon(s).

    Args:
        epsilon: :math:`\epsilon(s)`; Tokic starts it at 1.
        delta: the temporal-difference error of the action-value update.
        alpha: the step size of that update.
        sigma: the inverse sensitivity, > 0.
        n: the number of actions allowed in s.
        rate: c in [0, 1]. Default: 1/n.

    Returns:
        The new :math:`\epsilon(s)`.

    Example:
        >>> round(float(vdbe_update(1.0, delta=0.0, alpha=0.5, sigma=1.0, n=2)), 6)
        0.5
    """
    check_range(epsilon, "epsilon", 0.0, 1.0)
    check_range(sigma, "sigma", 0.0, strict=True)
    check_range(n, "n", 1.0)
    check_range(0.0 if rate is None else rate, "rate", 0.0, 1.0)
    xp = namespace(epsilon, delta, alpha, sigma, n, rate)
    rate = 1.0 / n if rate is None else rate
    # (1 - e^-x) / (1 + e^-x) = tanh(x / 2)
    return rate * xp.tanh(xp.abs(xp.asarray(alpha * delta)) / (2.0 * sigma)) + (1.0 - rate) * epsilon


def vdbe_softmax(q: AnyArray, epsilon: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""Greedy with probability :math:`1 - \epsilon`, else by a softmax of the values, scaled to [-1, 1].

    .. math:: b = (1 - \epsilon)\,\mathrm{greedy}(Q) + \epsilon\,\mathrm{softmax}(\tilde Q / \tau),\quad
        \tilde Q(a) = 2\,\frac{Q(a) - \min Q}{\max Q - \min Q} - 1,\quad \tau = 1.

    VDBE-softmax (Tokic and Palm, *Value-difference based exploration: adaptive control between epsilon-greedy and
    softmax*, 2011), with the epsilon of `vdbe_update`. So the worst action is :math:`e^2` times less likely to be
    explored than the best one, whatever the rewards. Where all values are equal, which the paper leaves open, the
    softmax is uniform.

    Args:
        q: action values, shape (..., A).
        epsilon: in [0, 1], broadcasts to (...).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Probabilities, shape (..., A).

    Example:
        >>> import numpy as np
        >>> np.round(vdbe_softmax(np.array([0.0, 5.0, 10.0]), 1.0), 4)   # 1 : e : e^2
        array([0.09  , 0.2447, 0.6652])
    """
    q = actions(q, "q")
    check_range(epsilon, "epsilon", 0.0, 1.0)
    epsilon = per_row(q, epsilon, "epsilon")[..., None]
    xp = namespace(q)
    permitted = mask(q, allowed)
    most = xp.amax(xp.where(permitted, q, -xp.inf), axis=-1)[..., None]
    least = xp.amin(xp.where(permitted, q, xp.inf), axis=-1)[..., None]
    spread = xp.where(most > least, most - least, 1.0)
    scaled = xp.where(permitted & (most > least), 2.0 * (q - least) / spread - 1.0, 0.0)
    return (1.0 - epsilon) * greedy(q, allowed) + epsilon * softmax(scaled, allowed)


def _initial(view: View, numbers: Numbers) -> dict[str, AnyArray]:
    return {"epsilon": namespace(view.q).full(view.q.shape[0], numbers["initial_epsilon"])}


def _updated(view: View, experience: Experience, numbers: Numbers) -> dict[str, AnyArray]:
    n = view.q.shape[-1] if view.allowed is None else view.allowed.sum()
    rule = (experience.delta, experience.step_size, numbers["sigma"], n, numbers.get("rate"))
    return {"epsilon": vdbe_update(view.memory["epsilon"], *rule)}


def _epsilon(view: View, numbers: Numbers) -> AnyArray:
    return view.memory["epsilon"]


def _softmax(view: View, numbers: Numbers) -> AnyArray:
    exploring = vdbe_softmax(view.q, 1.0, view.allowed)
    epsilon = view.memory["epsilon"][..., None]
    return (1.0 - epsilon) * greedy(view.preferences, view.allowed) + epsilon * exploring


_NUMBERS = (
    Hyperparameter("sigma", "The inverse sensitivity of epsilon to changes of Q.", 1.0, above=True),
    Hyperparameter("initial_epsilon", "The epsilon of every state at step 0.", 1.0, high=1.0),
    Hyperparameter("rate", "The step size of epsilon; by default one over the number of actions.", None, high=1.0),
)

declare(
    Behaviour(
        "vdbe",
        "epsilon-greedily, with an epsilon of each state that follows the changes of Q there",
        epsilon=_epsilon,
        hyperparameters=_NUMBERS,
        memory=Memory(_initial, _updated),
        deep=False,
    )
)

declare(
    Behaviour(
        "vdbe-softmax",
        "greedily or by a softmax of Q scaled to [-1, 1], with VDBE's epsilon",
        probabilities=_softmax,
        epsilon=_epsilon,
        hyperparameters=_NUMBERS,
        memory=Memory(_initial, _updated),
        deep=False,
    )
)
