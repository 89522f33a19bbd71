"""Making environments in tests, playing them, and comparing what they showed to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ipe.deep.environments import Environment, make_environment
from ipe.deep.setting_groups import EnvironmentSettings
from ipe.errors import InputError

OWN = "tests.environments:"


def make(
    env_id: str, seed: int = 0, frame_limit: int | None = None, render_mode: str | None = None, **options: Any
) -> Environment:
    settings = EnvironmentSettings(id=env_id, frame_limit=frame_limit, options=options)
    return make_environment(settings, seed, render_mode)


def refusal(env_id: str, **arguments: Any) -> str:
    """The one sentence that this environment is refused with."""
    with pytest.raises(InputError) as caught:
        make(env_id, **arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def trace(environment: Environment, actions: list[int]) -> list[Any]:
    """All that these actions lead to, to the bit, over the ends of episodes."""
    seen: list[Any] = []
    for action in actions:
        step = environment.step(action)
        seen.append((step.observation.tobytes(), step.reward, step.terminated, step.truncated))
        if step.terminated or step.truncated:
            seen.append((environment.episode, environment.reset().tobytes()))
    return seen


def random_actions(environment: Environment, n: int, seed: int) -> list[int]:
    return [int(a) for a in np.random.default_rng(seed).integers(environment.spec.actions, size=n)]
