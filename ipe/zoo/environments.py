"""Finite MDPs as Gymnasium environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from ipe.base.numbers import whole_number
from ipe.base.packages import missing_package
from ipe.base.words import one_of
from ipe.checks import check_mdp
from ipe.mdp import FiniteMDP

if TYPE_CHECKING:
    from ipe.zoo.stepping import FiniteEnvironment

Observations = Literal["one-hot", "index"]
NotAllowed = Literal["refuse", "replace"]


def to_gymnasium(
    mdp: FiniteMDP,
    *,
    observations: Observations = "one-hot",
    limit: int | None = None,
    not_allowed: NotAllowed = "refuse",
) -> FiniteEnvironment:
    r"""A finite MDP as a Gymnasium environment, for any agent that takes one.

    An episode starts in a state drawn from `mdp.start` (without a start distribution: from all states that are not
    terminal, uniformly), and is terminated by a transition into a terminal state. All randomness comes from the
    environment's `np_random`: `reset(seed=...)` and the same actions give the same episode. The discount is not part of
    a Gymnasium environment: give the agent `mdp.gamma`.

    `info` holds the state's number as `state`, and which actions are allowed in it as `action_mask` (int8, as
    Gymnasium's Taxi has it, for `action_space.sample(mask)`; in a terminal state all are 0).

    Args:
        mdp: the MDP.
        observations: "one-hot", a float32 vector of 0 with a 1 at the state; or "index", the state's number in a
            `Discrete` space.
        limit: truncate episodes after so many steps. An MDP without terminal states has no end otherwise.
        not_allowed: what an action does that is not allowed in the state. "refuse": `step` raises an `InputError`
            that names both. "replace": the environment takes the allowed action of rank a modulo the number k of
            allowed ones, so that agents that know no masks can act, and optimal values stay what they are.

    Returns:
        The environment, a `gymnasium.Env`.

    Example:
        >>> from ipe.zoo import chain
        >>> env = to_gymnasium(chain(4), observations="index")  # doctest: +SKIP
        >>> env.reset(seed=0)[0], env.step(1)[:4]  # doctest: +SKIP
        (0, (1, 0.0, False, False))
    """
    check_mdp(mdp)
    one_of(observations, get_args(Observations), "observations")
    one_of(not_allowed, get_args(NotAllowed), "not_allowed")
    steps = None if limit is None else whole_number(limit, "limit", 1)
    try:
        from ipe.zoo.stepping import FiniteEnvironment
    except ImportError:
        raise missing_package("to_gymnasium", "Gymnasium", extra="gymnasium") from None
    return FiniteEnvironment(mdp, observations == "one-hot", steps, not_allowed == "replace")


def zoo_environment(name: str, options: dict[str, Any]) -> FiniteEnvironment:
    """The environment of an MDP of the zoo, by its name and the parameters of its constructor."""
    from ipe.zoo.registry import make

    return to_gymnasium(make(name, **options), observations="index")
