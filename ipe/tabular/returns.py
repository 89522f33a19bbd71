r"""How far the returns of Q-learning reach: eligibility traces, and a discount that depends on the state.

The paper ends with the remark that the entropy of the evaluation policy can set other hyperparameters that are
probabilities: :math:`\lambda` of the returns, and the discount. Both ask how far the values of a state can be trusted.
`ipe.entropy.distrust` turns the policy's entropy into a number :math:`u(s) \in [0, 1]`, 0 where the policy is decided,
1 where it is uniform. A long return does without the values that it passes, so :math:`\lambda(s) = u(s)`; a short
horizon gives them less weight, so :math:`\gamma(s) = \gamma_0 + (\gamma - \gamma_0)(1 - u(s))`.

The discount of the *learning* target is what changes. The policy update, and what the values are compared with, keep
the discount of the MDP. The operator :math:`(TQ)(s,a) = r(s,a) + \sum_{s'} P(s'|s,a)\,\gamma(s') \max_b Q(s',b)` is a
contraction in the sup norm with the modulus :math:`\max_s \gamma(s)`.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax.numpy as jnp

from ipe.base.words import one_of
from ipe.behaviours import Behaviour, Hyperparameter
from ipe.entropy import distrust
from ipe.errors import InputError
from ipe.updates import PolicyUpdate

Traces = Literal["none", "watkins", "peng"]
Source = Literal["number", "actions", "coin"]

TRACE_DECAY = Hyperparameter(
    "trace_decay", "Lambda: how much of a trace is left after a step, beside the discount.", 0.9, high=1.0
)
LEARNING_GAMMA = Hyperparameter(
    "learning_gamma", "The discount of Q-learning's target alone; by default gamma.", None, high=1.0
)
LEAST_GAMMA = Hyperparameter(
    "least_gamma", "The discount of Q-learning's target where the policy is uniform.", 0.0, high=1.0
)
NUMBERS = (TRACE_DECAY, LEARNING_GAMMA, LEAST_GAMMA)
"""The numbers that returns may have."""


class Returns(NamedTuple):
    """Which returns Q-learning moves its values to."""

    traces: Traces = "none"
    """The kind of eligibility traces: those of Watkins, of Peng, or none."""
    trace_decay_from: Source = "number"
    """What sets lambda: the number `trace_decay`, or the policy's entropy over its actions or as a coin's."""
    discount_from: Source = "number"
    """What sets the discount of the target: the number `learning_gamma`, or the policy's entropy in these two ways."""

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """The numbers that these returns have."""
        decays = (TRACE_DECAY,) if self.traces != "none" and self.trace_decay_from == "number" else ()
        return (*decays, LEARNING_GAMMA if self.discount_from == "number" else LEAST_GAMMA)


def check_returns(returns: Returns, behaviour: Behaviour, update: PolicyUpdate | None) -> Returns:
    """Check the choice of returns, beside the behaviour and the policy update of the same agent.

    Raises:
        InputError: a word is none of those that there are, a choice has no effect, the policy whose entropy is asked
            for is not learned, or the behaviour has a target of its own.
    """
    one_of(returns.traces, ("none", "watkins", "peng"), "traces")
    for field in ("trace_decay_from", "discount_from"):
        source = one_of(getattr(returns, field), ("number", "actions", "coin"), field)
        if source != "number" and update is None:
            raise InputError(f"{field} = {source!r} needs a policy, and with update 'none' there is none to learn")
    if returns.traces == "none" and returns.trace_decay_from != "number":
        raise InputError(f"trace_decay_from = {returns.trace_decay_from!r} has no effect with traces = 'none'")
    if returns.traces != "none" and behaviour.target is not None:
        raise InputError(
            f"traces = {returns.traces!r}: the behaviour {behaviour.name!r} has a value target of its own, for which "
            "traces are not defined"
        )
    return returns


def decay(returns: Returns, numbers: dict[str, Any], logits: Any, allowed: Any) -> Any:
    """Lambda of a state."""
    if returns.trace_decay_from == "number":
        return numbers["trace_decay"]
    return distrust(logits, allowed, returns.trace_decay_from)


def discount(returns: Returns, numbers: dict[str, Any], logits: Any, allowed: Any) -> Any:
    """The discount of the value of a state in Q-learning's target."""
    if returns.discount_from == "number":
        return numbers.get("learning_gamma", numbers["gamma"])
    least = numbers["least_gamma"]
    return least + (numbers["gamma"] - least) * (1.0 - distrust(logits, allowed, returns.discount_from))


def traced(returns: Returns, step_size: Any, q: Any, traces: Any, pair: Any, kept: Any, td: Any) -> tuple[Any, Any]:
    r"""Action values and traces after a step with traces: replacing ones (Singh and Sutton 1996).

    Watkins's :math:`Q(\lambda)` (Watkins 1989) moves all pairs by the error of the pair that was left, and forgets all
    traces when an action is not greedy:

    .. math:: e \leftarrow \gamma(s) \lambda(s) [a \text{ greedy}]\, e, \quad e(s,a) \leftarrow 1, \quad
        Q \leftarrow Q + \alpha e \big(r + \gamma(s') V(s') - Q(s,a)\big), \quad V = \max_b Q(\cdot, b).

    Peng's (Peng and Williams 1996) goes on after actions that are not greedy. The pairs that were left before learn
    from what the *state* turned out to be worth:

    .. math:: e \leftarrow \gamma(s) \lambda(s)\, e, \quad e(s,a) \leftarrow 0, \quad
        Q \leftarrow Q + \alpha e \big(r + \gamma(s') V(s') - V(s)\big), \quad
        Q(s,a) \leftarrow Q(s,a) + \alpha \big(r + \gamma(s') V(s') - Q(s,a)\big), \quad e(s,a) \leftarrow 1.

    Both papers have accumulating traces; at the step size of .5 that the study has they diverge where an agent stays in
    a state. With :math:`\lambda = 0` both are Q-learning, to rounding.

    Args:
        returns: whose traces.
        step_size: :math:`\alpha`.
        q: shape (S, A).
        traces: e, shape (S, A).
        pair: s and a.
        kept: :math:`\gamma(s) \lambda(s)`.
        td: the target :math:`r + \gamma(s') V(s')`, and the value :math:`V(s)`.
    """
    s, a = pair
    target, value = td
    if returns.traces == "watkins":
        traces = jnp.where(q[s, a] >= value, kept, 0.0) * traces
        traces = traces.at[s, a].set(1.0)
        return q + step_size * (target - q[s, a]) * traces, traces
    traces = (kept * traces).at[s, a].set(0.0)
    moved = q + step_size * (target - value) * traces
    return moved.at[s, a].add(step_size * (target - q[s, a])), traces.at[s, a].set(1.0)
