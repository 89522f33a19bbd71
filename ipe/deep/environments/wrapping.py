"""Gymnasium's wrappers around an environment: Atari's preprocessing, and stacks of frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.base.packages import missing_package
from ipe.deep.environments.failure import one_line
from ipe.deep.setting_groups import EnvironmentSettings
from ipe.errors import InputError

ATARI_STACK = 4
"""The frames in an observation of an Atari game, unless another number is set (Mnih et al., 2015)."""


def is_atari(settings: EnvironmentSettings) -> bool:
    """Whether an environment is preprocessed as Atari's games are."""
    if settings.preprocessing != "auto":
        return settings.preprocessing == "atari"
    return settings.id.rpartition(":")[2].startswith("ALE/")


def atari_options(settings: EnvironmentSettings) -> dict[str, Any]:
    """The options that an Atari game is made with: without its own frame skip, which the preprocessing does."""
    if "frameskip" in settings.options:
        raise InputError(
            f"{settings.id}: frameskip cannot be an option, because the preprocessing skips frames; "
            "set environment.preprocessing to none"
        )
    return {**settings.options, "frameskip": 1}


def preprocessed(env: Any, settings: EnvironmentSettings) -> Any:
    """An Atari game of 84 x 84 pixels in gray, of which every fourth frame is shown, and counted."""
    from gymnasium.error import DependencyNotInstalled
    from gymnasium.wrappers import AtariPreprocessing, TimeLimit

    try:
        env = AtariPreprocessing(env)
        return env if settings.frame_limit is None else TimeLimit(env, settings.frame_limit)
    except DependencyNotInstalled:
        raise missing_package(f"{settings.id} with its preprocessing", "opencv-python-headless") from None
    except Exception as error:  # what the wrapper says of an environment that is no Atari game
        raise InputError(
            f"{settings.id} cannot be preprocessed as an Atari game: {one_line(error)}; set environment.preprocessing "
            "to none"
        ) from error


def stacked(env: Any, settings: EnvironmentSettings) -> tuple[Any, int]:
    """An environment that shows as many frames at once as are set, and how many these are. A stack for an environment
    that shows stacks already is refused."""
    from gymnasium.spaces import Box, MultiBinary
    from gymnasium.wrappers import FrameStackObservation, TransformObservation

    there, wanted = _stack_of(env), settings.stack
    if wanted is None:
        wanted = ATARI_STACK if there == 1 and is_atari(settings) else None
    if wanted is None:
        return env, there
    if wanted == 1:
        return env, 1
    if there > 1:
        raise InputError(
            f"{settings.id}: environment.stack = {wanted} would stack observations that are stacks of {there} frames"
        )
    space = env.observation_space
    if not isinstance(space, Box | MultiBinary) or not 1 <= len(space.shape) <= 3:
        raise InputError(f"{settings.id}: environment.stack = {wanted} needs vectors or images, found {space}")
    # A copy of each frame: environments may show the same array again, changed.
    return FrameStackObservation(TransformObservation(env, np.array, space), wanted), wanted


def _stack_of(env: Any) -> int:
    """How many frames Gymnasium's wrapper stacks in an environment; 1 if no such wrapper makes the observations."""
    from gymnasium import ObservationWrapper, Wrapper
    from gymnasium.wrappers import FrameStackObservation

    while isinstance(env, Wrapper) and not isinstance(env, ObservationWrapper):
        if isinstance(env, FrameStackObservation):
            # Stacks that begin with zeros have more in them than frames that were shown: they are kept whole.
            return int(env.stack_size) if env.padding_type == "reset" else 1
        env = env.env
    return 1
