"""The settings that were tuned for environments: where they apply, what they share, what they reach."""

from __future__ import annotations

import pytest

from ipe.base.nested import flatten
from ipe.deep import default_settings, paper_settings
from ipe.deep.defaults import TUNED, origin_of
from ipe.deep.settings import TrainingSettings, deep_behaviours
from ipe.errors import InputError
from ipe.experiments import make_sweep

OTHERS = ("LunarLander-v3", "minatar/Freeway", "Taxi-v3", "my.module:CartPole-v1")


@pytest.mark.parametrize("environment", OTHERS)
@pytest.mark.parametrize("behaviour", deep_behaviours())
def test_other_environments_have_the_papers_settings(environment: str, behaviour: str) -> None:
    assert default_settings(environment, behaviour, gamma=0.9) == paper_settings(environment, behaviour, gamma=0.9)
    assert origin_of(environment) == "paper"


@pytest.mark.parametrize("environment", TUNED)
def test_the_papers_settings_are_still_to_be_had(environment: str) -> None:
    assert default_settings(environment, origin="paper", width=8) == paper_settings(environment, width=8)
    assert default_settings(environment, origin="tuned") == default_settings(environment) != paper_settings(environment)


@pytest.mark.parametrize("environment", TUNED)
def test_all_behaviours_share_the_settings_of_an_environment(environment: str) -> None:
    """Otherwise a comparison of two behaviours, each with its defaults, would compare the settings too."""
    shared = set(TrainingSettings.model_fields) - {"behaviour"}  # the numbers of a behaviour are its alone
    every = [default_settings(environment, behaviour).model_dump(include=shared) for behaviour in deep_behaviours()]
    assert all(one == every[0] for one in every)


@pytest.mark.parametrize("environment", TUNED)
def test_tuned_settings_are_changed_field_by_field(environment: str) -> None:
    usual = flatten(default_settings(environment).model_dump())
    changed = flatten(default_settings(environment, optimiser={"epsilon": 1e-3}, width=7).model_dump())
    assert changed == usual | {"optimiser.epsilon": 1e-3, "width": 7}


def test_what_was_not_tuned_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"no settings were tuned for Taxi-v3, only for CartPole-v1, Acrobot-v1"):
        default_settings("Taxi-v3", origin="tuned")
    with pytest.raises(InputError, match="there is no setting gama"):
        default_settings("CartPole-v1", gama=0.9)


def test_sweeps_start_from_the_papers_settings() -> None:
    """Their files and stores were made with those."""
    sweep = make_sweep({"name": "s", "seeds": 1, "base": {"environment": "CartPole-v1"}})
    assert sweep.settings[0].settings == paper_settings("CartPole-v1")
