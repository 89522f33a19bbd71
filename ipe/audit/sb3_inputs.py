"""What a model of Stable-Baselines3 makes of an environment's observations and rewards."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.audit.transitions import Transitions
from ipe.errors import InputError


def normalised(model: Any, batch: Transitions) -> Transitions:
    """Transitions as the model was trained on them: normalised, if it has a `VecNormalize`, whose statistics stay.

    Args:
        model: the DQN.
        batch: as the environment gives it.
    """
    statistics = model.get_vec_normalize_env()
    if statistics is None:
        return batch
    here, there = (seen(model, np.asarray(x)) for x in (batch.observation, batch.next_observation))
    reward = statistics.normalize_reward(batch.reward).astype(np.float64) if statistics.norm_reward else batch.reward
    return dataclasses.replace(batch, observation=here, reward=reward, next_observation=there)


def seen(model: Any, observations: NDArray[Any]) -> NDArray[Any]:
    """A batch of observations as the model's networks take them.

    Args:
        model: the DQN.
        observations: as the environment gives them, shape (n, ...).
    """
    statistics = model.get_vec_normalize_env()
    if statistics is None or not statistics.norm_obs:
        return observations
    shape = statistics.observation_space.shape
    if observations.shape[1:] != shape:  # images, with the channels first there
        observations = np.moveaxis(observations, -1, 1)
    if observations.shape[1:] != shape:
        raise InputError(
            f"observation does not fit the model's VecNormalize, whose observations have the shape {shape}"
        )
    return np.asarray(statistics.normalize_obs(observations))


def channels_last(model: Any, batch: Transitions) -> Transitions:
    """The same transitions, with images as (n, height, width, channels), which a fitted policy takes.

    Args:
        model: the DQN, whose observation space says what is an image.
        batch: with observations of that space, or of the environment's: there the channels may be last already.
    """
    from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first

    here, there, space = np.asarray(batch.observation), np.asarray(batch.next_observation), model.observation_space
    if here.shape[1:] != space.shape or not is_image_space(space) or not is_image_space_channels_first(space):
        return batch
    return dataclasses.replace(batch, observation=np.moveaxis(here, 1, -1), next_observation=np.moveaxis(there, 1, -1))
