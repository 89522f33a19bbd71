"""The audit of a DQN of Stable-Baselines3: plain, or with the policy network of `EpsilonIPEDQN`."""

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

from ipe.audit.auditing import audit
from ipe.audit.fitting import Fit
from ipe.audit.result import Audit, SampleAudit
from ipe.audit.runs import FRAMES, check_draws, check_frames, refuse_refit, stacked
from ipe.audit.sb3_inputs import channels_last, normalised, seen
from ipe.audit.transitions import Transitions
from ipe.behaviours import epsilon_greedy, sample
from ipe.deep.environments.failure import EnvironmentFailure, one_line
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

    The evaluation policy is the policy network of an `EpsilonIPEDQN`; for a plain DQN it is fitted. Where the
    observation space is `Discrete` the Q-network is a table, and audited as one.

    If the model has a `VecNormalize`, observations and rewards are normalised as in training, by its statistics, which
    stay as they are; Q is in units of normalised rewards. A saved model has none, whatever it was trained under: load
    the statistics too, and pass the model (`DQN.load(path, env=VecNormalize.load(statistics, venv))`).

    Args:
        model: a DQN, or the path of one that was saved. Loading unpickles, as Stable-Baselines3 does: load only
            what you trust.
        env: where transitions are collected: an id or a Gymnasium environment, wrapped as in training (without
            Stable-Baselines3's own vectorised wrappers).
        transitions: the batch, instead, as such an environment gives it: not normalised.
        frames: how many to collect, by the model's own exploration as it was saved.
        draws: the seed of the episodes and of exploration.
        fit: how a policy is fitted.
        refit: fit a policy even if the model has a policy network; refused for a table.
        deterministic, worst, tolerance: as for `ipe.audit.audit`.

    Raises:
        InputError: naming the argument or the file.
    """
    check_frames(frames)
    if (env is None) == (transitions is None):
        raise InputError("give either env, to collect transitions in, or transitions")
    own = load_dqn(model) if isinstance(model, (str, os.PathLike)) else _checked(model)
    if hasattr(own.observation_space, "n") and not own.observation_space.shape:
        refuse_refit(refit)
    batch = collect_sb3(own, env, frames, draws) if transitions is None else _fitting(own, transitions)
    batch = normalised(own, batch)
    options: dict[str, Any] = {"deterministic": deterministic, "worst": worst, "tolerance": tolerance}
    gamma = float(own.gamma)
    q, pi = _networks(own)
    if batch.discrete:
        states = np.arange(int(own.observation_space.n))
        return audit(batch, q=q(states), gamma=gamma, policy=None if pi is None else pi(states), **options)
    here, there = np.asarray(batch.observation), np.asarray(batch.next_observation)
    policy = None if pi is None or refit else pi(there)
    rows: dict[str, Any] = {"q": q(here), "q_next": q(there), "policy_next": policy}
    result = audit(channels_last(own, batch), gamma=gamma, fit=fit, **rows, **options)
    if policy is None or not isinstance(result, SampleAudit):
        return result
    return dataclasses.replace(result, source="network")


def load_dqn(path: str | os.PathLike[str]) -> Any:
    """A saved DQN, with the class that it was saved from.

    Raises:
        InputError: a package is missing, or the file is none that Stable-Baselines3 saved a DQN in.
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
        return _checked(kind.load(file, device="cpu", buffer_size=1))  # it makes a replay, which nobody needs here
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:  # torch, pickle and Stable-Baselines3 raise a dozen kinds
        said = " ".join(str(error).split())
        raise InputError(f"{path}: it cannot be loaded as a DQN ({type(error).__name__}: {said})") from None


def collect_sb3(model: Any, env: Any, frames: int = FRAMES, draws: int = 0) -> Transitions:
    """Transitions that a DQN's exploration makes.

    Args:
        model: the DQN.
        env: an id, or a Gymnasium environment, which stays open.
        frames: how many.
        draws: the seed of the episodes and of exploration.

    Returns:
        What the environment gave: not normalised, even if the model has a `VecNormalize`.

    Raises:
        InputError: env is none, does not fit the model, or failed.
    """
    check_frames(frames)
    check_draws(draws)
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
    batch = stacked(rows)
    if not batch.discrete:
        return batch
    here, there = (np.asarray(x, dtype=np.intp) - start for x in (batch.observation, batch.next_observation))
    return dataclasses.replace(batch, observation=here, next_observation=there)


@contextmanager
def _failures(env: Any, frame: int) -> Iterator[None]:
    """Whatever an environment raises, as a sentence."""
    try:
        yield
    except Exception as error:
        own = env.unwrapped
        name = type(own).__name__ if own.spec is None else own.spec.id
        raise InputError(f"env: {name} failed at frame {frame}: {one_line(error)}") from None


def _observed(env: Any, observation: Any) -> NDArray[Any]:
    """A copy: an environment may write the next observation into the same array."""
    array = np.array(observation)
    if array.shape != env.observation_space.shape:
        raise EnvironmentFailure(f"the observation has the shape {array.shape}, expected {env.observation_space.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise EnvironmentFailure("the observation is not finite")
    return array


def _behaviour(model: Any, observation: NDArray[Any]) -> NDArray[Any]:
    """Probabilities of the actions, shape (1, A): without the global generators that `predict` draws from."""
    here = seen(model, observation[None])
    if hasattr(model, "behaviour"):
        return np.asarray(model.behaviour(here).pi)
    return np.asarray(epsilon_greedy(_outputs(model, model.q_net, here), model.exploration_rate))


def _networks(model: Any) -> tuple[Any, Any]:
    """Q and, if there is a policy network, the policy, as functions of observations."""
    start = int(getattr(model.observation_space, "start", 0))

    def q(observations: NDArray[Any]) -> NDArray[np.float64]:
        return _outputs(model, model.q_net, observations + start if observations.ndim == 1 else observations)

    def pi(observations: NDArray[Any]) -> NDArray[np.float64]:
        shifted = observations + start if observations.ndim == 1 else observations
        return np.asarray(softmax(_outputs(model, model.policy.policy_net, shifted)))

    return q, pi if hasattr(model.policy, "policy_net") else None


def _outputs(model: Any, network: Any, observations: NDArray[Any]) -> NDArray[np.float64]:
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
        own, found = getattr(model, name), getattr(env, name)
        if getattr(own, "n", None) != getattr(found, "n", None) or sorted(own.shape) != sorted(found.shape or ()):
            raise InputError(f"env: its {name.replace('_', ' ')} is {found}, the model's is {own}")


def _fitting(model: Any, batch: Transitions) -> Transitions:
    if batch.observation is None or batch.next_observation is None:
        raise InputError("observation is missing: the Q-network needs it")
    discrete = getattr(model.observation_space, "n", None)
    if batch.discrete != (discrete is not None and not model.observation_space.shape):
        raise InputError(f"the transitions' observations do not fit the model's space, {model.observation_space}")
    if batch.discrete:
        for name, states in (("state", batch.observation), ("next_state", batch.next_observation)):
            if (wrong := states >= int(model.observation_space.n)).any():
                i = int(np.argmax(wrong))
                raise InputError(
                    f"{name}[{i}] = {states[i]}, but the model has {int(model.observation_space.n)} states"
                )
    elif sorted(batch.observation.shape[1:]) != sorted(model.observation_space.shape):
        raise InputError(
            f"observation has the shape {batch.observation.shape[1:]} per transition, the model takes "
            f"{model.observation_space.shape}"
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
    except Exception as error:  # whatever Gymnasium and the environment's own constructor raise
        raise InputError(f"env: {env} cannot be made: {' '.join(str(error).split())}") from None


def _needs_sb3() -> None:
    try:
        import stable_baselines3  # noqa: F401
    except ModuleNotFoundError as error:
        raise InputError(
            f"a model of Stable-Baselines3 needs {error.name}, which is not installed: pip install torch, then pip "
            'install "ipe[stable-baselines3]"'
        ) from None
