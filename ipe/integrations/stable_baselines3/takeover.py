"""What a plain DQN of Stable-Baselines3 hands over to one with a policy network."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.utils import check_for_correct_spaces
from stable_baselines3.dqn import DQN
from stable_baselines3.dqn.policies import DQNPolicy

from ipe.errors import InputError


def plain_dqn(given: Any, env: Any, device: Any) -> Any:
    """The DQN that is meant by a model or by the file of a saved one.

    Args:
        given: a `stable_baselines3.DQN`, or a path or open file that its `save` wrote.
        env: for a file, the environment to go on with, or its id; None: no environment.
        device: for a file, the device of the networks.

    Raises:
        InputError: it is something else than a plain DQN.
    """
    if isinstance(given, (str, os.PathLike)) or hasattr(given, "read"):
        _check_file(given)
        return _fitting(lambda: DQN.load(given, env=maybe_make_env(env, 0), device=device))
    if not isinstance(given, DQN):
        raise InputError(f"model: a DQN or the file of a saved one is needed, found {type(given).__name__}")
    if type(given) is not DQN:
        raise InputError(
            f"model: {type(given).__name__} is a class of its own, and what it does otherwise than DQN cannot be taken "
            "over; only a plain DQN can"
        )
    return given


def _check_file(file: Any) -> None:
    """Refuse a file that `EpsilonIPEDQN.load` should read, or that another algorithm wrote."""
    try:
        data, parameters, _ = load_from_zip_file(file, device="cpu")
    except FileNotFoundError:
        raise InputError(f"model: there is no file {file} (and none with .zip at its end)") from None
    if hasattr(file, "seek"):
        file.seek(0)
    policy_class = (data or {}).get("policy_class")
    if "policy.policy_optimizer" in parameters:
        raise InputError("model: the file holds an EpsilonIPEDQN already; EpsilonIPEDQN.load reads it")
    if not (isinstance(policy_class, type) and issubclass(policy_class, DQNPolicy)):
        name = getattr(policy_class, "__name__", "an unknown class")
        raise InputError(f"model: the file's policy is {name}, so that it is not a DQN's")


def environment_for(plain: Any, env: Any) -> Any:
    """The environment to go on with, wrapped: the given one if it fits the DQN, else the DQN's own.

    Raises:
        InputError: its observations, its actions or the number of its copies are not the DQN's.
    """
    if env is None:
        return plain.get_env()
    env = DQN._wrap_env(maybe_make_env(env, plain.verbose), plain.verbose)
    _fitting(lambda: check_for_correct_spaces(env, plain.observation_space, plain.action_space))
    replay = plain.replay_buffer
    if replay is not None and replay.size() and replay.n_envs != env.num_envs:
        raise InputError(
            f"env: {env.num_envs} environments side by side, and the model's replay was filled by {replay.n_envs}; "
            "give as many, or empty the replay (model.replay_buffer.reset())"
        )
    return env


def _fitting(check: Callable[[], Any]) -> Any:
    """What a function of Stable-Baselines3 returns; its refusal of an environment as an `InputError`."""
    try:
        return check()
    except ValueError as error:
        if "spaces do not match" not in str(error):
            raise
        raise InputError(f"env: {error}") from None


def take_over(model: Any, plain: Any, env: Any) -> None:
    """Let a model that is not set up yet go on where a plain DQN stopped.

    The settings, the counters, the last observation and the replay are taken as they are; the networks and the
    optimiser's state are copied. The policy network starts anew.
    """
    left_out = set(plain._excluded_save_params())
    model.__dict__.update({name: value for name, value in plain.__dict__.items() if name not in left_out})
    model.replay_buffer = plain.replay_buffer
    if env is not plain.get_env():
        model.n_envs, model._last_obs = env.num_envs, None  # learning begins with a reset
        if model.replay_buffer is not None and not model.replay_buffer.size():
            model.replay_buffer = None  # made anew, for as many environments
        elif hasattr(model.replay_buffer, "env"):
            model.replay_buffer.env = env  # hindsight asks it for rewards
    model._setup_model()
    model.set_parameters(deepcopy(plain.get_parameters()), exact_match=False, device=model.device)
