"""Environments from settings: found, made, and tried for a few steps before anybody trains on them."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import warnings
from typing import Any

import numpy as np

from ipe.base.numbers import whole_number
from ipe.base.packages import missing_package
from ipe.base.words import did_you_mean
from ipe.deep.environments.environment import Environment
from ipe.deep.environments.failure import EnvironmentFailure, one_line
from ipe.deep.environments.observations import EnvironmentSpec, read_action_space, read_observation_space
from ipe.deep.environments.wrapping import atari_options, is_atari, preprocessed, stacked
from ipe.deep.setting_groups import EnvironmentSettings
from ipe.errors import InputError

_PROBE_STEPS = 16
_ZOO = "zoo/"
"""What the id of an environment begins with that is an MDP of the zoo."""
_OURS = {"max_episode_steps": "frame_limit", "render_mode": None, "id": None, "disable_env_checker": None}


def make_environment(settings: EnvironmentSettings, seed: int, render_mode: str | None = None) -> Environment:
    """Make the environment of one seed, after trying it.

    A throwaway copy plays a few steps twice first. If the copy does something wrong, the environment is refused here,
    before training. If it does not repeat itself from the same seed and actions, that is a warning: a run cannot be
    repeated or resumed to the byte then.

    Args:
        settings: the environment's id, frame limit and options.
        seed: the seed of the run, 0 or more. Episode e starts from `episode_seed(seed, e)`.
        render_mode: "rgb_array" for an environment that `render` can draw.

    Returns:
        The environment, before its first `reset`.

    Raises:
        InputError: the id, an option, a space or the environment's first steps are not what they should be, or a
            package is missing; the sentence says what was expected and what was found.
    """
    whole_number(seed, "seed", 0)
    if render_mode not in (None, "rgb_array"):
        raise InputError(f"render_mode must be rgb_array or None, found {render_mode!r}")
    probe = _build(settings, 0, None)
    try:
        _try(probe)
        if render_mode is not None and not probe.drawable:
            raise InputError(f"{settings.id} cannot be drawn: it has no render mode {render_mode}")
    finally:
        probe.close()
    return _build(settings, int(seed), render_mode)


def spec_of(settings: EnvironmentSettings) -> EnvironmentSpec:
    """The spaces of an environment, which is tried for that; errors as for `make_environment`."""
    environment = make_environment(settings, 0)
    environment.close()
    return environment.spec


def _build(settings: EnvironmentSettings, seed: int, render_mode: str | None) -> Environment:
    try:
        import gymnasium
    except ImportError:
        raise missing_package(repr(settings.id), "Gymnasium", extra="gymnasium") from None
    order = settings.channel_order
    if settings.id.lower().startswith("minatar/"):
        env = _make_minatar(settings, render_mode)
        order = "last" if order == "auto" else order  # Seaquest has as many channels as pixels to a side
    elif settings.id.startswith(_ZOO):
        env = _make_of_the_zoo(settings)
    else:
        env = _make_gymnasium(gymnasium, settings, render_mode)
    try:
        actions, first_action = read_action_space(env.action_space, settings.id)
        env, stack = stacked(env, settings)
        spec, encode = read_observation_space(env.observation_space, settings.id, actions, stack, order)
    except BaseException:
        env.close()
        raise
    return Environment(env, spec, encode, first_action, seed)


def _make_minatar(settings: EnvironmentSettings, render_mode: str | None) -> Any:
    from gymnasium.wrappers import TimeLimit

    from ipe.deep.environments.minatar import MinAtar

    env = MinAtar(settings.id, render_mode, **settings.options)
    return env if settings.frame_limit is None else TimeLimit(env, settings.frame_limit)


def _make_of_the_zoo(settings: EnvironmentSettings) -> Any:
    from gymnasium.wrappers import TimeLimit

    from ipe.zoo.environments import zoo_environment

    env = zoo_environment(settings.id.removeprefix(_ZOO), dict(settings.options))
    return env if settings.frame_limit is None else TimeLimit(env, settings.frame_limit)


def _make_gymnasium(gymnasium: Any, settings: EnvironmentSettings, render_mode: str | None) -> Any:
    for key in settings.options:
        if key in _OURS:
            instead = f"; the setting for it is {_OURS[key]}" if _OURS[key] else ""
            raise InputError(f"{settings.id}: {key} cannot be an option{instead}")
    module, _, env_id = settings.id.rpartition(":")
    if env_id.startswith("ALE/") and module in ("", "ale_py"):
        _import_atari(settings.id)
    elif module:
        _import(module, settings.id)
    if env_id not in gymnasium.registry:
        where = f"after importing {module}, " if module else ""
        raise InputError(where + _unknown(env_id, list(gymnasium.registry), gymnasium.__version__))
    _import_box2d_quietly(gymnasium.registry[env_id].entry_point)
    atari = is_atari(settings)
    arguments: dict[str, Any] = atari_options(settings) if atari else dict(settings.options)
    if render_mode is not None:  # an environment without pictures need not take the argument
        arguments["render_mode"] = render_mode
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # pygame greets on standard output
    limit = None if atari else settings.frame_limit
    try:
        env = gymnasium.make(env_id, max_episode_steps=limit, disable_env_checker=True, **arguments)
    except gymnasium.error.DependencyNotInstalled as error:
        raise InputError(_missing(settings.id, error)) from error
    except Exception as error:  # whatever the environment's own constructor raises for these arguments
        given = ", ".join(f"{key}={value!r}" for key, value in settings.options.items())
        text = one_line(error).partition(" was raised from the environment creator")[0]
        raise InputError(f"{settings.id}{given and f'({given})'} cannot be made: {text}") from error
    return preprocessed(env, settings) if atari else env


def _import_box2d_quietly(entry_point: Any) -> None:
    """Import Box2D without the warnings of its bindings, which no user can change; all other warnings are left."""
    if not str(entry_point).startswith("gymnasium.envs.box2d") or "Box2D" in sys.modules:
        return
    with warnings.catch_warnings(), contextlib.suppress(ImportError):  # if it is missing, `gymnasium.make` says so
        warnings.filterwarnings("ignore", "builtin type [Ss]wig", DeprecationWarning)
        importlib.import_module("Box2D")


def _import_atari(full_id: str) -> None:
    try:
        atari = importlib.import_module("ale_py")
    except ImportError:
        raise missing_package(full_id, "ale-py") from None
    atari.ALEInterface.setLoggerMode(atari.LoggerMode.Error)  # it greets on standard error


def _import(module: str, full_id: str) -> None:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(error.name + ".")):
            raise InputError(
                f"{full_id}: there is no module {error.name!r} to import, neither installed nor in a folder of "
                f"sys.path; `ipe` looks in the current folder too"
            ) from None
        raise InputError(f"{full_id}: the module {module!r} cannot be imported: {one_line(error)}") from error
    except Exception as error:  # a module's code can raise anything
        raise InputError(f"{full_id}: the module {module!r} cannot be imported: {one_line(error)}") from error


def _unknown(env_id: str, registry: list[str], version: str) -> str:
    base, number = _split(env_id)
    versions = sorted(v for b, v in map(_split, registry) if b == base and v is not None)
    if number is not None and versions and number < versions[-1]:
        return f"Gymnasium {version} has no {env_id} any more: {base}-v{versions[-1]} replaces it"
    if versions:
        return f"there is no environment {env_id!r} (did you mean {base}-v{versions[-1]}?)"
    hint = did_you_mean(env_id, registry)
    hint = hint or "; one that a package registers is named with it: package.module:EnvId"
    return f"there is no environment {env_id!r}{hint}"


def _split(env_id: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(.+)-v(\d+)", env_id)
    return (match[1], int(match[2])) if match else (env_id, None)


def _missing(env_id: str, error: Exception) -> str:
    if "box2d" in str(error).lower():
        return str(missing_package(env_id, "Box2D", extra="gymnasium"))
    return f"{env_id} needs a package that is not installed: {' '.join(str(error).split())}"


def _try(probe: Environment) -> None:
    """Play a few steps, then play them again from the same seed."""
    try:
        first = _play(probe, probe.reset())
        again = _play(probe, probe.restore({"episode": 0, "actions": np.zeros(0, dtype=np.int32)}))
    except EnvironmentFailure as failure:
        raise InputError(f"{probe.spec.id} failed when it was tried, {failure.message}") from failure
    if first != again:
        warnings.warn(
            f"{probe.spec.id} does not repeat itself from the same seed and the same actions: runs cannot be repeated, "
            "or resumed to the byte",
            stacklevel=3,
        )


def _play(probe: Environment, observation: Any) -> list[Any]:
    """Play the first steps, with every action in turn, and return what they showed."""
    seen: list[Any] = [observation.tobytes()]
    for t in range(_PROBE_STEPS):
        step = probe.step(t % probe.spec.actions)
        seen.append((step.observation.tobytes(), step.reward, step.terminated, step.truncated))
        if step.terminated or step.truncated:
            seen.append(probe.reset().tobytes())
    return seen
