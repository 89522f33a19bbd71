"""Environments: what is refused before training, and what stops a seed during it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from ipe.deep.environments import EnvironmentFailure, make_environment
from ipe.deep.setting_groups import EnvironmentSettings
from ipe.errors import InputError
from tests.environment_helpers import OWN, make, refusal, trace
from tests.environments import SPACES

# ---- spaces


@pytest.mark.parametrize("name", ["dict", "tuple", "multi_discrete", "text"])
def test_other_spaces_are_refused_by_name(name: str) -> None:
    kind = type(SPACES[name]).__name__
    said = refusal(OWN + "Spaces-v0", observation=name)
    assert f"expected a Box, MultiBinary or Discrete observation space, found {kind}" in said
    said = refusal(OWN + "Spaces-v0", action=name)
    assert f"expected a Discrete action space, found {kind}" in said


def test_shapes_without_a_network_are_refused() -> None:
    for name in ("scalar", "four_axes", "empty"):
        assert "expected observations with 1, 2 or 3 axes" in refusal(OWN + "Spaces-v0", observation=name)


def test_continuous_actions_are_refused() -> None:
    for said in (refusal("Pendulum-v1"), refusal("LunarLander-v3", continuous=True)):
        assert "expected a Discrete action space, found Box" in said
        assert "continuous" in said


# ---- what goes wrong

FAULTS = {
    "nan": r"the observation is nan at \[1\]",
    "infinite": r"the observation is -inf at \[1\]",
    "huge": r"the observation is 1e\+39 at \[1\], expected a finite number of single precision",
    "shape": r"the observation has the shape \(3,\), expected \(2,\)",
    "text": "ValueError: could not convert string",
    "none": r"the observation has the shape \(\), expected \(2,\)",
    "raise": "OSError: the wheel came off",
    "reward_nan": "the reward is nan",
    "reward_infinite": "the reward is inf",
    "reward_huge": r"the reward is -1e\+39, expected a finite number of single precision",
    "reward_none": "TypeError: ",
    "old_api": "step must return observation, reward, terminated, truncated, info",
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("frame_limit", [None, 100])  # with Gymnasium's TimeLimit around it, and without
def test_a_fault_stops_the_seed_with_its_step(fault: str, frame_limit: int | None) -> None:
    environment = make(OWN + "Faulty-v0", frame_limit=frame_limit, fault=fault, at=21)
    environment.reset()
    for _ in range(20):
        environment.step(0)
    with pytest.raises(EnvironmentFailure, match="^at step 20 of episode 0: .*" + FAULTS[fault]) as caught:
        environment.step(0)
    assert caught.value.message == str(caught.value)
    assert "\n" not in caught.value.message
    assert len(environment.state()["actions"]) == 20
    with pytest.raises(RuntimeError, match="call reset"):  # it does not go on from there
        environment.step(0)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_early_fault_is_refused_before_training(fault: str) -> None:
    with pytest.raises(
        InputError, match="Faulty-v0 failed when it was tried, at step 1 of episode 0: .*" + FAULTS[fault]
    ):
        make(OWN + "Faulty-v0", fault=fault, at=2)


@pytest.mark.parametrize("fault", ["nan", "infinite", "huge", "shape", "text", "none", "raise"])
def test_a_fault_at_the_first_reset_is_refused(fault: str) -> None:
    with pytest.raises(InputError, match="failed when it was tried, at the start of episode 0: .*" + FAULTS[fault]):
        make(OWN + "Faulty-v0", fault=fault, at=0)


def test_a_reset_without_info_is_refused() -> None:
    said = refusal(OWN + "Faulty-v0", fault="bare_reset")
    assert "reset must return (observation, info), it returned ndarray of shape (2,)" in said


def test_entries_that_are_no_bits() -> None:
    from ipe.deep.environments.observations import read_observation_space

    _, bits = read_observation_space(SPACES["bit_picture"], "x", 2)
    _, picture = read_observation_space(SPACES["grey"], "x", 2)
    _, cell = read_observation_space(SPACES["discrete_from_3"], "x", 2)
    zeros = np.zeros((4, 5))
    assert bits(zeros).dtype == np.uint8  # whole numbers of another type are welcome
    for wrong, largest, encode in (
        (2, 1, bits),
        (0.5, 1, bits),
        (-1, 1, bits),
        (256, 255, picture),
        (np.nan, 255, picture),
    ):
        x = zeros.copy()
        x[2, 3] = wrong
        with pytest.raises(EnvironmentFailure, match=rf"at \[2, 3\], expected a whole number from 0 to {largest}"):
            encode(x)
    with pytest.raises(EnvironmentFailure, match=r"has the shape \(5, 4\), expected \(4, 5\)"):
        bits(zeros.T)
    with pytest.raises(EnvironmentFailure, match="the observation is 2, expected one from 3 to 6"):
        cell(2)


def test_what_is_no_exception_passes_through() -> None:
    environment = make(OWN + "Faulty-v0", fault="exit", at=21)
    environment.reset()
    with pytest.raises(SystemExit):
        trace(environment, [0] * 30)


# ---- ids, options, packages


@pytest.mark.parametrize(
    ("env_id", "said"),
    [
        ("LunarLander-v2", "has no LunarLander-v2 any more: LunarLander-v3 replaces it"),
        ("LunarLandr-v3", "there is no environment 'LunarLandr-v3' (did you mean LunarLander-v3?)"),
        ("LunarLander", "there is no environment 'LunarLander' (did you mean LunarLander-v3?)"),
        ("cartpole-v1", "(did you mean CartPole-v1?)"),
        ("Games/Pong-v5", "package.module:EnvId"),
        ("no_such_package.envs:Own-v0", "there is no module 'no_such_package' to import"),
        ("tests.no_such_module:Own-v0", "there is no module 'tests.no_such_module' to import"),
        ("json:Own-v0", "after importing json, there is no environment 'Own-v0'"),
        (OWN + "Countin-v0", "(did you mean Counting-v0?)"),
    ],
)
def test_an_unknown_id(env_id: str, said: str) -> None:
    assert said in refusal(env_id)


@pytest.mark.parametrize("env_id", ["ALE/Pong-v5", "ale_py:ALE/Pong-v5"])
def test_atari_without_its_package(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    assert refusal(env_id) == f"{env_id} needs ale-py, which is not installed: pip install ale-py"


def test_atari_comes_preprocessed_and_in_stacks() -> None:
    pytest.importorskip("ale_py")
    pytest.importorskip("cv2")
    environment = make("ALE/Pong-v5", frame_limit=3)
    assert environment.spec.observation_shape == environment.reset().shape == (84, 84, 4)
    assert [environment.step(0).truncated for _ in range(3)] == [False, False, True]  # of what the agent sees
    assert "frameskip cannot be an option" in refusal("ALE/Pong-v5", frameskip=2)


def test_a_module_that_fails_when_it_is_imported(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_environments.py").write_text("raise OSError('no\\ndisk')\n")
    (tmp_path / "needy_environments.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "cannot be imported: OSError: no disk" in refusal("broken_environments:Own-v0")
    assert "cannot be imported: ModuleNotFoundError" in refusal("needy_environments:Own-v0")


def test_wrong_options() -> None:
    assert "CartPole-v1(foo=1) cannot be made: TypeError" in refusal("CartPole-v1", foo=1)
    said = refusal(OWN + "Faulty-v0", at=-1)
    assert "Faulty-v0(at=-1) cannot be made: ValueError: at must be 0 or more, found -1" in said
    settings = EnvironmentSettings(id="CartPole-v1", options={"max_episode_steps": 9})
    with pytest.raises(InputError, match="max_episode_steps cannot be an option; the setting for it is frame_limit"):
        make_environment(settings, 0)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_that_is_none(seed: Any) -> None:
    with pytest.raises(InputError, match="seed must be a whole number >= 0, found"):
        make("CartPole-v1", seed=seed)


def test_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "gymnasium", None)
        assert 'pip install "ipe-rl[gymnasium]"' in refusal("CartPole-v1")
        assert 'pip install "ipe-rl[gymnasium]"' in refusal("minatar/Freeway")
    for name in [name for name in sys.modules if name.split(".")[0] == "Box2D" or "envs.box2d" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    assert refusal("LunarLander-v3") == (
        'LunarLander-v3 needs Box2D, which is not installed: pip install "ipe-rl[gymnasium]"'
    )


def test_warnings_are_left_as_they_are() -> None:
    with pytest.warns(DeprecationWarning, match="CartPole-v0 is out of date"):
        make("CartPole-v0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make("LunarLander-v3")


def test_nothing_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, ipe.deep.environments; print([m for m in ('gymnasium', 'minatar', 'Box2D') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
