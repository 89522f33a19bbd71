"""The doubt that a policy's entropy expresses, as a probability."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ipe.base.words import one_of
from ipe.entropy.arrays import AnyArray, actions, count, mask, namespace
from ipe.entropy.matching import epsilon_from_entropy, epsilon_from_logits
from ipe.entropy.measures import entropy_deficit_from_logits, entropy_from_logits


def distrust(logits: AnyArray, allowed: AnyArray | None = None, over: Literal["actions", "coin"] = "actions") -> Any:
    r"""How undecided a policy is, as a probability :math:`u \in [0, 1]`: 0 if deterministic, 1 if uniform.

    Over actions, u is the epsilon of epsilon-IPE: :math:`H(u\text{-greedy with n actions}) = H(\pi)`. So the returns go
    on as often as epsilon-IPE explores. Over a coin, u is the same for two outcomes, *trust* and *do not*, after the
    entropy is taken as a share of the largest one:

    .. math:: H\big(u\text{-greedy with 2 actions}\big) = \ln 2 \cdot H(\pi) / \ln n.

    The coin does not depend on how many actions share the doubt: a policy that is undecided between two of a hundred
    actions has :math:`u = 0.043` as a coin and 0.088 over actions. With two actions both are the same. With one allowed
    action u is 0.

    Args:
        logits: of the policy, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.
        over: "actions" or "coin".

    Example:
        >>> import numpy as np
        >>> float(np.round(distrust(np.log(np.array([0.9, 0.1]))), 12))
        0.2
        >>> logits = np.log(np.array([0.5, 0.25, 0.25]))
        >>> [round(float(distrust(logits, over=over)), 3) for over in ("actions", "coin")]
        [0.75, 0.729]

    Raises:
        InputError: `over` is another word, or an array has a wrong shape.
    """
    if one_of(over, ("actions", "coin"), "over") == "actions":
        return epsilon_from_logits(logits, allowed)
    logits = actions(logits, "logits")
    permitted = mask(logits, allowed)
    n = count(permitted, logits)
    xp = namespace(logits)
    share = np.log(2.0) / xp.log(xp.clip(n, 2.0, None))
    entropy = share * entropy_from_logits(logits, allowed)
    deficit = share * entropy_deficit_from_logits(logits, allowed)
    return xp.where(n < 2.0, 0.0, epsilon_from_entropy(entropy, 2, deficit))
