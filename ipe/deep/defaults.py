r"""Settings that work for an environment: what `ipe train ENV` starts from, beside the paper's.

The paper tuned its settings for LunarLander and Freeway. On Gymnasium's classic control they do not reach what a DQN
can reach there, so CartPole-v1, Acrobot-v1 and MountainCar-v0 have settings of their own, `TUNED`. The guide
`docs/classic-control.md` tells how they were found and what they reach. All behaviours share the settings of an
environment. Two of the settings have an effect with some behaviours only: the step size of the policy network, and the
schedule of epsilon.
"""

from __future__ import annotations

from typing import Any, Literal

from ipe.base.nested import merged
from ipe.deep.settings import TrainingSettings, paper_settings
from ipe.errors import InputError

_CLASSIC_CONTROL = {
    "width": 64,
    "batch": 128,
    "warm_up": 1000,
    "update_every": 8,
    "policy_step_size": 5e-4,
    "optimiser": {"kind": "adam", "decay": 0.999},
    "epsilon": {"final": 0.05, "steps": 30_000},
}
TUNED: dict[str, dict[str, Any]] = {
    "CartPole-v1": {**_CLASSIC_CONTROL, "frames": 200_000, "gamma": 0.98},
    "Acrobot-v1": {**_CLASSIC_CONTROL, "frames": 150_000},
    "MountainCar-v0": {**_CLASSIC_CONTROL, "frames": 200_000},
}
"""What differs from the paper's settings, for every behaviour, by the environment's id."""

Origin = Literal["tuned", "paper"]
"""Where settings come from: `TUNED`, or the paper's appendix."""


def default_settings(
    environment: str, /, behaviour: Any = "epsilon-ipe", *, origin: Origin | None = None, **changes: Any
) -> TrainingSettings:
    """The settings that were tuned for an environment; the paper's (`paper_settings`) where none were.

    Args:
        environment: the environment's id.
        behaviour: as in `paper_settings`.
        origin: "tuned", to be refused where no settings were tuned; "paper", for the paper's settings everywhere.
        changes: other values for some fields of `TrainingSettings`; those of parts as mappings,
            `epsilon={"final": 0.1}`.

    Returns:
        The settings.

    Raises:
        InputError: naming the setting that is wrong, or the environment that has no tuned settings.

    Example:
        >>> default_settings("CartPole-v1").frames, default_settings("CartPole-v1", origin="paper").frames
        (200000, 500000)
        >>> default_settings("LunarLander-v3") == paper_settings("LunarLander-v3")
        True
    """
    if origin_of(environment, origin) == "paper":
        return paper_settings(environment, behaviour, **changes)
    return paper_settings(environment, behaviour, **merged(TUNED[environment], changes))


def origin_of(environment: str, origin: Origin | None = None) -> Origin:
    """Where the settings of an environment come from, if nothing else or this is asked for."""
    if origin == "tuned" and environment not in TUNED:
        raise InputError(f"no settings were tuned for {environment}, only for {', '.join(TUNED)}")
    return origin or ("tuned" if environment in TUNED else "paper")
