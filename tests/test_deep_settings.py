"""Settings: the paper's bold values, and a sentence with the field for every wrong one."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ipe.deep.setting_groups import WHOLE
from ipe.deep.settings import TrainingSettings, deep_behaviours, paper_settings, read_settings
from ipe.errors import InputError

MINIMAL: dict[str, Any] = {"environment": {"id": "CartPole-v1"}}


def with_value(path: str, value: Any) -> dict[str, Any]:
    """Plain settings with a value at a path."""
    *parts, last = path.split(".")
    values: dict[str, Any] = {**MINIMAL, "environment": dict(MINIMAL["environment"])}
    inner = values
    for part in parts:
        inner = inner.setdefault(part, {})
    inner[last] = value
    return values


WRONG: dict[str, list[Any]] = {
    "environment": [None, "CartPole-v1"],
    "environment.id": ["", 3, None],
    "environment.frame_limit": [0, -1, 2.5, True],
    "environment.options": [{"a": [1]}, 3],
    "environment.stack": [0, 65, 2.0, "four"],
    "environment.channel_order": ["middle", None, 1],
    "environment.preprocessing": ["none ", True],
    "behaviour": ["epsilon_ipe", "greedy", "", None],
    "frames": [0, -5, 1.5, "many", 2**31, True],
    "gamma": [1.0, -0.1, float("nan"), "0.9"],
    "width": [0, 4097, 12.0],
    "channels": [0, 513],
    "network": ["resnet", None],
    "value_step_size": [-1e-3, float("nan"), float("inf")],
    "policy_step_size": [-1.0, float("inf"), None],
    "target_period": [0, 2.5],
    "batch": [0, 4097],
    "replay": [0, 10**8 + 1],
    "warm_up": [-1, 0.5],
    "update_every": [0],
    "epsilon": [0.1],
    "epsilon.initial": [-0.1, 1.1, float("nan")],
    "epsilon.final": [2.0, "0"],
    "epsilon.steps": [0, 1.5],
    "epsilon.kind": ["cosine"],
    "temperature": [0.0, -1.0, float("inf")],
    "optimiser.kind": ["sgd"],
    "optimiser.decay": [1.0, -0.5],
    "optimiser.momentum": [1.0, -0.1],
    "optimiser.epsilon": [0.0],
    "optimiser.clip": [-1.0, float("nan")],
    "policy_update": ["supernatural"],
    "entropy_bonus": [-0.1],
    "delta_q": ["both"],
    "delta_steps": [0, 101, 1.5],
    "delta_correction": ["retrace", None],
    "double_q": [1, "yes"],
    "huber": [-1.0],
    "n_step": [0, 101, 1.5],
    "traces": ["peng"],
    "traces.kind": ["retrace", None],
    "traces.decay": [-0.1, 1.1, float("nan"), "0.9"],
    "traces.decay_from": ["entropy", None],
    "precision": ["float64"],
    "conservative_weight": [-1.0, float("inf"), "1"],
    "data": ["batch.npz", None, "0" * 63],
    "environments": [0, 257, 1.5, True],
    "dueling": [1, "yes"],
    "priority": [0.6],
    "priority.exponent": [-0.1, float("nan"), "0.6"],
    "priority.correction": [-0.1, 1.1],
    "priority.steps": [0, 1.5],
    "priority.epsilon": [0.0, -1.0, float("inf")],
}


def leaves(model: Any, prefix: str = "") -> set[str]:
    """The paths of all fields."""
    found: set[str] = set()
    for name, about in model.model_fields.items():
        inner = about.annotation
        found |= leaves(inner, f"{prefix}{name}.") if hasattr(inner, "model_fields") else {prefix + name}
    return found


def test_every_field_has_wrong_values_here() -> None:
    assert leaves(TrainingSettings) <= set(WRONG)


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, values in WRONG.items() for value in values])
def test_a_wrong_value_is_refused_with_its_field(path: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(with_value(path, value))
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.startswith((f"{path}: ", f"{path}."))
    if not isinstance(value, dict):
        assert sentence.endswith(f"found {value!r}")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("widht", "width"),
        ("epsilon.end", ""),
        ("epsilon.finall", "epsilon.final"),
        ("optimiser.clipp", "optimiser.clip"),
        ("environment.framelimit", "environment.frame_limit"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_one_that_was_meant(path: str, meant: str) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(with_value(path, 1))
    assert str(caught.value) == f"there is no setting {path}" + (f" (did you mean {meant}?)" if meant else "")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(InputError, match="the setting environment is missing"):
        read_settings({})
    with pytest.raises(InputError, match=r"the setting environment\.id is missing"):
        read_settings({"environment": {}})


def test_an_exponential_schedule_needs_positive_ends() -> None:
    with pytest.raises(InputError, match="epsilon: an exponential schedule needs initial and final above 0"):
        read_settings(with_value("epsilon", {"kind": "exponential", "final": 0.0}))
    assert read_settings(with_value("epsilon", {"kind": "exponential", "final": 0.1})).epsilon.final == 0.1


def test_settings_are_frozen_and_survive_plain_data() -> None:
    settings = paper_settings("LunarLander-v3", "epsilon-greedy", optimiser={"clip": 3.0}, n_step=4)
    with pytest.raises(ValidationError):
        settings.gamma = 0.5
    assert read_settings(settings.model_dump()) == settings


def test_settings_that_came_later_leave_the_keys_of_earlier_runs_alone() -> None:
    from ipe.experiments.declared import Setting

    freeway = paper_settings("minatar/Freeway")
    assert Setting("", "", {}, freeway).key == "189f3a50b3323de4"  # as it was before these settings were there
    assert "network" not in freeway.model_dump()
    assert freeway.model_dump(context=WHOLE)["network"] == "auto"
    other = paper_settings("minatar/Freeway", network="minatar", environment={"stack": 2})
    assert (other.model_dump()["network"], other.model_dump()["environment"]["stack"]) == ("minatar", 2)
    assert read_settings(other.model_dump()) == other


@pytest.mark.parametrize(
    ("environment", "behaviour", "expected"),
    [
        # The four tables of the appendix, its bold values and those without a choice.
        (
            "LunarLander-v3",
            "epsilon-greedy",
            {"environment.frame_limit": 5000, "target_period": 500, "epsilon.steps": 25_000, "value_step_size": 1e-3,
             "width": 256, "epsilon.initial": 1.0, "epsilon.final": 0.01, "frames": 500_000},
        ),
        (
            "minatar/Freeway",
            "epsilon-greedy",
            {"environment.frame_limit": None, "target_period": 100, "epsilon.steps": 100_000, "value_step_size": 1e-5,
             "width": 128, "epsilon.initial": 1.0, "epsilon.final": 0.01, "frames": 2_000_000},
        ),
        (
            "LunarLander-v3",
            "epsilon-ipe",
            {"environment.frame_limit": 5000, "target_period": 500, "policy_step_size": 1e-3, "value_step_size": 1e-3,
             "width": 128, "frames": 500_000},
        ),
        (
            "minatar/Freeway",
            "epsilon-ipe",
            {"environment.frame_limit": None, "target_period": 100, "policy_step_size": 1e-3, "value_step_size": 1e-5,
             "width": 128, "frames": 2_000_000},
        ),
    ],
)  # fmt: skip
def test_the_appendix_in_bold(environment: str, behaviour: Any, expected: dict[str, Any]) -> None:
    settings = paper_settings(environment, behaviour)
    common = {
        "gamma": 0.99, "replay": 100_000, "batch": 32, "channels": 16, "warm_up": 0, "update_every": 1, "n_step": 1,
        "huber": 0.0, "double_q": False, "entropy_bonus": 0.0, "policy_update": "paper", "delta_q": "target",
        "optimiser.kind": "rmsprop", "optimiser.decay": 0.99, "optimiser.epsilon": 1e-8, "optimiser.clip": 0.0,
        "epsilon.kind": "linear", "precision": "float32",
    }  # fmt: skip
    for path, value in (common | expected).items():
        found: Any = settings
        for part in path.split("."):
            found = getattr(found, part)
        assert found == value, path
    assert (settings.environment.id, settings.behaviour) == (environment, behaviour)


def test_the_papers_settings_elsewhere_and_changes() -> None:
    assert paper_settings("CartPole-v1").environment.frame_limit is None
    assert paper_settings("my.module:LunarLander-v9").environment.frame_limit == 5000
    assert paper_settings("minatar/Asterix").value_step_size == 1e-5
    for behaviour in deep_behaviours():
        assert paper_settings("CartPole-v1", behaviour).width == (128 if "ipe" in behaviour else 256)
    changed = paper_settings("LunarLander-v3", environment={"frame_limit": 100}, epsilon={"steps": 7}, width=3)
    assert (changed.environment.id, changed.environment.frame_limit) == ("LunarLander-v3", 100)
    assert (changed.epsilon.steps, changed.epsilon.final, changed.width) == (7, 0.01, 3)
    with pytest.raises(InputError, match="there is no setting wdith"):
        paper_settings("CartPole-v1", wdith=3)


def test_step_sizes_periods_and_schedules_share_a_program_and_formulas_do_not() -> None:
    base = paper_settings("CartPole-v1", "epsilon-greedy")

    def program(**changes: Any) -> Any:
        return paper_settings("CartPole-v1", "epsilon-greedy", **changes).program

    traced: list[dict[str, Any]] = [
        {"value_step_size": 0.5}, {"policy_step_size": 0.5}, {"target_period": 3}, {"gamma": 0.5}, {"warm_up": 9},
        {"update_every": 2}, {"epsilon": {"final": 0.5, "steps": 3, "initial": 0.9}}, {"temperature": 2.0},
        {"optimiser": {"decay": 0.5, "epsilon": 1e-3, "momentum": 0.1}},
    ]  # fmt: skip
    for changes in traced:
        assert program(**changes) == base.program, changes
    compiled: list[dict[str, Any]] = [
        {"width": 3}, {"batch": 3}, {"replay": 3}, {"frames": 3}, {"double_q": True}, {"huber": 1.0}, {"n_step": 2},
        {"precision": "bfloat16"}, {"optimiser": {"kind": "adam"}}, {"optimiser": {"clip": 1.0}},
        {"epsilon": {"kind": "exponential"}}, {"entropy_bonus": 0.1}, {"policy_update": "absolute"},
        {"delta_q": "online"}, {"environment": {"frame_limit": 9}}, {"environment": {"options": {"a": 1}}},
    ]  # fmt: skip
    for changes in compiled:
        assert program(**changes) != base.program, changes
