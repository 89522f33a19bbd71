r"""Epsilon-greedy behaviour whose epsilon follows the changes of the values (VDBE)."""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, Experience, Memory, Numbers, View, declare
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.entropy.arrays import AnyArray, check_range, namespace


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


def _initial(view: View, numbers: Numbers) -> dict[str, AnyArray]:
    return {"epsilon": namespace(view.q).full(view.q.shape[0], numbers["initial_epsilon"])}


def _updated(view: View, experience: Experience, numbers: Numbers) -> dict[str, AnyArray]:
    n = view.q.shape[-1] if view.allowed is None else view.allowed.sum()
    rule = (experience.delta, experience.step_size, numbers["sigma"], n, numbers.get("rate"))
    return {"epsilon": vdbe_update(view.memory["epsilon"], *rule)}


declare(
    Behaviour(
        "vdbe",
        "epsilon-greedily, with an epsilon of each state that follows the changes of Q there",
        epsilon=lambda view, numbers: view.memory["epsilon"],
        hyperparameters=(
            Hyperparameter("sigma", "The inverse sensitivity of epsilon to changes of Q.", 1.0, above=True),
            Hyperparameter("initial_epsilon", "The epsilon of every state at step 0.", 1.0, high=1.0),
            Hyperparameter(
                "rate", "The step size of epsilon; by default one over the number of actions.", None, high=1.0
            ),
        ),
        memory=Memory(_initial, _updated),
        deep=False,
    )
)
