"""The audit of a DQN of Stable-Baselines3: of a plain one, or of `EpsilonIPEDQN` with its policy network."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.audit.auditing import Networks, audit_networks, refuse_refit
from ipe.audit.fitting import Fit
from ipe.audit.result import Audit
from ipe.base.packages import missing_package
from ipe.behaviours import epsilon_greedy, sample
from ipe.deep.collecting import FRAMES, check_collection
from ipe.deep.environments.failure import EnvironmentFailure, one_line
from ipe.deep.transitions import Transitions, check_below, stack_transitions
from ipe.entropy import softmax
from ipe.errors import InputError

_CHUNK = 1024


def audit_sb3(
    model: Any,
    *,
    env: Any = None,
    transitions: Transitions | None = None,
    frames: int = FRAMES,
    draws: int = 0,
    fit: Fit | None = None,
    refit: bool = False,
    deterministic: bool | None = None,
    worst: int = 10,
    tolerance: float | None = None,
) -> Audit:
    """Audit the Q-network of a Stable-Baselines3 DQN.

    The evaluation policy is the policy network of an `EpsilonIPEDQN`; for a plain DQN a policy is fitted. Where the
    observation space is `Discrete`, the Q-network is a table and is audited as one.

    If the model has a `VecNormalize`, observations and rewards are normalised as in training, by its statistics, which
    stay as they are; Q is in units of normalised rewards. A saved model does not hold the statistics, even if it was
    trained under `VecNormalize`: load them too, and pass the model
    (`DQN.load(path, env=VecNormalize.load(statistics, venv))`).

    Args:
        model: a DQN, or the path of a saved one. Stable-Baselines3 unpickles what it loads: load only what you trust.
        env: the environment in which transitions are collected: an id or a Gymnasium environment, wrapped as in
            training, but not by the vectorised wrappers of Stable-Baselines3.
        transitions: the batch, in place of `env`. It holds what the environment gives, not normalised.
        frames: how many transitions to collect, by the exploration that the model was saved with.
        draws: the seed of the episodes and of exploration.
        fit: how a policy is fitted.
        refit: fit a policy even if the model has a policy network; refused for a table.
        deterministic, worst, tolerance: as for `ipe.audit.audit`.

    Raises:
        InputError: naming the argument or the file.
    """
    check_collection(frames, draws)
    if (env is None) == (transitions is None):
        raise InputError("give either env, to collect transitions in, or transitions")
    dqn = load_dqn(model) if isinstance(model, (str, os.PathLike)) else _checked(model)
    every_state = np.arange(int(dqn.observation_space.n)) if _has_states(dqn) else None
    if every_state is not None:
        refuse_refit(refit)
    raw = collect_sb3(dqn, env, frames, draws) if transitions is None else _checked_batch(dqn, transitions)
    batch = _normalised(dqn, raw)
    return audit_networks(
        _networks(dqn),
        batch,
        every_state=every_state,
        for_fit=_channels_last(dqn, batch),
        fit=fit,
        refit=refit,
        deterministic=deterministic,
        worst=worst,
        tolerance=tolerance,
    )


def load_dqn(path: str | os.PathLike[str]) -> Any:
    """Load a saved DQN, as an object of the class that it was saved from.

    Raises:
        InputError: a package is missing, or the file does not hold a DQN that Stable-Baselines3 saved.
    """
    _needs_sb3()
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        with zipfile.ZipFile(file) as archive:
            names, data = archive.namelist(), json.loads(archive.read("data"))
    except (zipfile.BadZipFile, KeyError, ValueError, OSError):
        raise InputError(f"{path}: it is no model that Stable-Baselines3 saved, or a damaged one") from None
    if "target_update_interval" not in data or "exploration_rate" not in data:
        raise InputError(f"{path}: it is a saved model, but not of a DQN: there is no Q-network to audit")
    from stable_baselines3 import DQN

    from ipe.integrations.stable_baselines3 import EpsilonIPEDQN

    kind = EpsilonIPEDQN if "policy.policy_optimizer.pth" in names else DQN
    try:
        return _checked(kind.load(file, device="cpu", buffer_size=1))  # loading makes a replay, which is not needed
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:  # torch, pickle and Stable-Baselines3 raise a dozen kinds
        said = " ".join(str(error).split())
        raise InputError(f"{path}: it cannot be loaded as a DQN ({type(error).__name__}: {said})") from None


def collect_sb3(model: Any, env: Any, frames: int = FRAMES, draws: int = 0) -> Transitions:
    """Collect transitions by the exploration of a DQN in an environment, given by its id or open already. They are what
    the environment gave: not normalised, even if the model has a `VecNormalize`.

    Raises:
        InputError: env is not an environment, does not fit the model, or failed.
    """
    check_collection(frames, draws)
    made = _make(env)
    start = int(getattr(model.observation_space, "start", 0))
    try:
        _check_spaces(model, made)
        generator = np.random.default_rng(draws)
        rows: list[tuple[Any, int, float, Any, bool]] = []
        with _failures(made, 0):
            observation = _observed(made, made.reset(seed=draws)[0])
        while len(rows) < frames:
            action = int(sample(generator, _behaviour(model, observation))[0])
            with _failures(made, len(rows)):
                given, reward, terminated, truncated, _ = made.step(action)
                following, reward = _observed(made, given), float(reward)
                if not math.isfinite(reward):
                    raise EnvironmentFailure(f"the reward is {reward:g}, expected a finite number")
                rows.append((observation, action, reward, following, bool(terminated)))
                observation = _observed(made, made.reset()[0]) if terminated or truncated else following
    finally:
        if isinstance(env, str):
            made.close()
    batch = stack_transitions(rows)
    if not batch.discrete:
        return batch
    here, there = (np.asarray(x, dtype=np.intp) - start for x in (batch.observation, batch.next_observation))
    return dataclasses.replace(batch, observation=here, next_observation=there)


@contextmanager
def _failures(env: Any, frame: int) -> Iterator[None]:
    """Turn whatever an environment raises into an error that names the environment and the frame."""
    try:
        yield
    except Exception as error:
        inner = env.unwrapped
        name = type(inner).__name__ if inner.spec is None else inner.spec.id
        raise InputError(f"env: {name} failed at frame {frame}: {one_line(error)}") from None


def _observed(env: Any, observation: Any) -> NDArray[Any]:
    """A checked copy of an observation: an environment may write the next observation into the same array."""
    array = np.array(observation)
    if array.shape != env.observation_space.shape:
        raise EnvironmentFailure(f"the observation has the shape {array.shape}, expected {env.observation_space.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise EnvironmentFailure("the observation is not finite")
    return array


def _behaviour(model: Any, observation: NDArray[Any]) -> NDArray[Any]:
    """The probabilities of the actions, shape (1, A). `predict` would draw from global generators."""
    here = _normalised_observations(model, observation[None])
    if hasattr(model, "behaviour"):
        return np.asarray(model.behaviour(here).pi)
    return np.asarray(epsilon_greedy(_outputs(model, model.q_net, here), model.exploration_rate))


def _networks(model: Any) -> Networks:
    """The model's networks. States are counted from 0 here, and from the space's first number in the model."""
    start = int(getattr(model.observation_space, "start", 0))

    def q(observations: NDArray[Any]) -> NDArray[np.float64]:
        return _outputs(model, model.q_net, observations + start if observations.ndim == 1 else observations)

    def pi(observations: NDArray[Any]) -> NDArray[np.float64]:
        shifted = observations + start if observations.ndim == 1 else observations
        return np.asarray(softmax(_outputs(model, model.policy.policy_net, shifted)))

    return Networks(q, pi if hasattr(model.policy, "policy_net") else None, float(model.gamma))


def _outputs(model: Any, network: Any, observations: NDArray[Any]) -> NDArray[np.float64]:
    """The outputs of one of the model's networks at observations, shape (n, A)."""
    import torch

    model.policy.set_training_mode(False)
    found = []
    with torch.no_grad():
        for i in range(0, len(observations), _CHUNK):
            tensor, _ = model.policy.obs_to_tensor(observations[i : i + _CHUNK])
            found.append(network(tensor).double().cpu().numpy())
    rows: NDArray[np.float64] = np.concatenate(found)
    if not np.isfinite(rows).all():
        i = int(np.argmax(~np.isfinite(rows).all(axis=1)))
        raise InputError(f"a network's output for observation {i} is not finite: its training diverged")
    return rows


def _normalised(model: Any, batch: Transitions) -> Transitions:
    """Transitions as the model was trained on them: normalised by its `VecNormalize`, if it has one."""
    statistics = model.get_vec_normalize_env()
    if statistics is None:
        return batch
    here, there = (_normalised_observations(model, np.asarray(x)) for x in (batch.observation, batch.next_observation))
    reward = statistics.normalize_reward(batch.reward).astype(np.float64) if statistics.norm_reward else batch.reward
    return dataclasses.replace(batch, observation=here, reward=reward, next_observation=there)


def _normalised_observations(model: Any, observations: NDArray[Any]) -> NDArray[Any]:
    """Observations of the environment, shape (n, ...), as the model's networks take them."""
    statistics = model.get_vec_normalize_env()
    if statistics is None or not statistics.norm_obs:
        return observations
    shape = statistics.observation_space.shape
    if observations.shape[1:] != shape:  # images, which the statistics hold with their channels first
        observations = np.moveaxis(observations, -1, 1)
    if observations.shape[1:] != shape:
        raise InputError(
            f"observation does not fit the model's VecNormalize, whose observations have the shape {shape}"
        )
    return np.asarray(statistics.normalize_obs(observations))


def _channels_last(model: Any, batch: Transitions) -> Transitions:
    """The same transitions with images as (n, height, width, channels), the form that a policy is fitted to."""
    from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first

    here, there, space = np.asarray(batch.observation), np.asarray(batch.next_observation), model.observation_space
    if here.shape[1:] != space.shape or not is_image_space(space) or not is_image_space_channels_first(space):
        return batch
    return dataclasses.replace(batch, observation=np.moveaxis(here, 1, -1), next_observation=np.moveaxis(there, 1, -1))


def _has_states(model: Any) -> bool:
    """Whether the model's observations are numbered states."""
    return hasattr(model.observation_space, "n") and not model.observation_space.shape


def _checked(model: Any) -> Any:
    if not hasattr(model, "q_net") or not hasattr(model, "observation_space"):
        raise InputError(f"model must be a DQN of Stable-Baselines3, or the path of one; found {type(model).__name__}")
    if getattr(model.observation_space, "shape", None) is None:
        raise InputError(
            f"the model's observations are {type(model.observation_space).__name__}: only arrays are audited"
        )
    return model


def _check_spaces(model: Any, env: Any) -> None:
    for name in ("observation_space", "action_space"):
        expected, found = getattr(model, name), getattr(env, name)
        same_size = getattr(expected, "n", None) == getattr(found, "n", None)
        if not same_size or sorted(expected.shape) != sorted(found.shape or ()):
            raise InputError(f"env: its {name.replace('_', ' ')} is {found}, the model's is {expected}")


def _checked_batch(model: Any, batch: Transitions) -> Transitions:
    if batch.observation is None or batch.next_observation is None:
        raise InputError("observation is missing: the Q-network needs it")
    space = model.observation_space
    if batch.discrete != _has_states(model):
        raise InputError(f"the transitions' observations do not fit the model's space, {space}")
    if batch.discrete:
        check_below("state", batch.observation, int(space.n), f"the model has {int(space.n)} states")
        check_below("next_state", batch.next_observation, int(space.n), f"the model has {int(space.n)} states")
    elif sorted(batch.observation.shape[1:]) != sorted(space.shape):
        raise InputError(
            f"observation has the shape {batch.observation.shape[1:]} per transition, the model takes {space.shape}"
        )
    return batch


def _make(env: Any) -> Any:
    import gymnasium

    if isinstance(env, gymnasium.Env):
        return env
    if not isinstance(env, str):
        raise InputError(
            f"env must be an id or a Gymnasium environment, one and not vectorised; found a {type(env).__name__}"
        )
    try:
        return gymnasium.make(env, disable_env_checker=True)
    except Exception as error:  # whatever Gymnasium and the environment's constructor raise
        raise InputError(f"env: {env} cannot be made: {' '.join(str(error).split())}") from None


def _needs_sb3() -> None:
    try:
        import stable_baselines3  # noqa: F401
    except ModuleNotFoundError as error:
        what = "a model of Stable-Baselines3"
        raise missing_package(what, str(error.name), extra="stable-baselines3", first="torch") from None
