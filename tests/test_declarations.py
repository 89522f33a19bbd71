"""One declaration is all that a behaviour takes: a new one acts in the tabular agent, in training and in evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ipe.behaviours import BEHAVIOURS, Behaviour, Hyperparameter, View, declare, ipe
from ipe.errors import InputError
from ipe.tabular import simulate
from ipe.updates import UPDATES, PolicyUpdate
from ipe.zoo import switch_stay
from tests.tiers import tiered

FLAT = Behaviour(
    "flattened",
    "with the evaluation policy, its logits divided by a number that grows with the steps",
    probabilities=lambda view, numbers: ipe(view.logits / (1.0 + numbers["flatness"] * view.step), view.allowed),
    hyperparameters=(Hyperparameter("flatness", "How much flatter the policy gets in each step.", 0.5, high=10.0),),
    needs_policy=True,
)
COIN = Behaviour(
    "coin",
    "epsilon-greedily, with half the epsilon that it is given",
    epsilon=lambda view, numbers: numbers["epsilon"] / 2.0,
    hyperparameters=(Hyperparameter("epsilon", "Twice the epsilon.", 0.4, high=1.0, scheduled=True),),
)


@pytest.fixture(params=tiered([FLAT, COIN], FLAT), ids=lambda behaviour: str(behaviour.name))
def behaviour(request: pytest.FixtureRequest) -> Iterator[Behaviour]:
    yield declare(request.param)
    del BEHAVIOURS[request.param.name]


@pytest.mark.slow
def test_it_acts_in_the_tabular_agent(behaviour: Behaviour) -> None:
    given: dict[str, Any] = {"flatness": 2.0} if behaviour is FLAT else {"epsilon": 0.3}
    runs = simulate(switch_stay(), behaviour.name, steps=20, runs=3, record="trajectory", alpha_pi=0.5, **given)
    for t in range(20):
        q, theta = runs.q[0, :, t], runs.theta[0, :, t]
        expected = behaviour.act(View(q, theta, step=t), given)
        np.testing.assert_allclose(runs.probabilities[0, :, t], expected.probabilities, rtol=1e-10)
    assert np.isfinite(runs.epsilon).all() == (behaviour is COIN)
    assert runs.settings[behaviour.hyperparameters[0].name] == list(given.values())
    with pytest.raises(InputError, match="temperature has no effect with behaviour"):
        simulate(switch_stay(), behaviour.name, temperature=1.0)


def settings_of(behaviour: Behaviour, **changes: Any) -> Any:
    from ipe.deep import paper_settings

    small = {"frames": 1200, "width": 16, "batch": 8, "replay": 500, "warm_up": 20}
    return paper_settings("CartPole-v1", behaviour.name, **{**small, **changes})


def test_it_trains_and_plays(behaviour: Behaviour, tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from ipe.deep import evaluate, train
    from ipe.deep.playing import agent
    from ipe.experiments.trained import read_trained

    changes: dict[str, Any] = {"flatness": 3.0} if behaviour is FLAT else {"epsilon": {"final": 0.2, "steps": 100}}
    settings = settings_of(behaviour, **changes)
    assert settings.learns_policy == behaviour.needs_policy
    result = train(settings, seeds=2, out=tmp_path / "run", processes=0)
    epsilon = result.progress["epsilon"].to_numpy(zero_copy_only=False)
    assert np.isnan(epsilon).all() if behaviour is FLAT else epsilon[-1] == pytest.approx(0.1, rel=1e-4)

    played = evaluate(tmp_path / "run", episodes=2, behaviour=True)
    assert played.policy == (
        "flattened, from the policy network" if behaviour is FLAT else "coin on Q with epsilon = 0.2"
    )
    trained = read_trained(tmp_path / "run")
    assert trained.settings == settings
    choice = agent(trained, 0, 0, behaviour=True)(np.zeros(4, np.float32))
    if behaviour is COIN:
        assert choice.epsilon == pytest.approx(0.1)
    else:
        assert 0.0 < choice.epsilon <= 1.0  # the one that the policy network asks for


def test_its_numbers_are_settings(behaviour: Behaviour) -> None:
    from ipe.deep.settings import behaviours_with, extra_fields, no_effect, paper_settings, read_settings

    settings = settings_of(behaviour)
    assert read_settings(settings.model_dump()) == settings
    assert "flatness" not in paper_settings("CartPole-v1").model_dump()
    if behaviour is COIN:
        assert {"epsilon-greedy", "coin"} <= set(behaviours_with("epsilon.final"))
        assert "flatness" not in settings.model_dump()
        return
    assert settings.flatness == settings.numbers["flatness"] == 0.5
    assert settings_of(behaviour, flatness=2.0).program == settings.program
    assert {"epsilon-ipe", "ipe", "flattened"} <= set(behaviours_with("policy_step_size"))
    assert no_effect("flatness", "ipe", "adam") == "with the behaviour ipe; it is for flattened"
    assert extra_fields()["flatness"].description == "How much flatter the policy gets in each step."
    for wrong, message in {
        11.0: r"flatness = 11 must be in \[0, 10\]",
        float("nan"): "flatness: input should be a finite number",
        "2": "flatness: input should be a valid number",
    }.items():
        with pytest.raises(InputError, match=message):
            settings_of(behaviour, flatness=wrong)
    with pytest.raises(InputError, match="flatness has no effect with the behaviour ipe; it is for flattened"):
        paper_settings("CartPole-v1", "ipe", flatness=1.0)
    with pytest.raises(InputError, match=r"there is no setting flatnes \(did you mean flatness\?\)"):
        settings_of(behaviour, flatnes=1.0)


def test_its_numbers_are_options(behaviour: Behaviour) -> None:
    from ipe.cli.settings_options import options_of
    from ipe.deep.settings import TrainingSettings, extra_fields

    options = options_of(TrainingSettings, {"flatness": "0.5"}, more=extra_fields())
    assert hasattr(options(), "flatness") == (behaviour is FLAT)


def test_names_are_taken_once(behaviour: Behaviour) -> None:
    assert declare(behaviour) is behaviour
    with pytest.raises(InputError, match="there is a behaviour 'greedy' already"):
        declare(Behaviour("greedy", "", probabilities=lambda view, numbers: view.q))
    with pytest.raises(InputError, match="there is a policy update 'paper' already"):
        UPDATES.declare(PolicyUpdate("paper", "", step=UPDATES["paper"].step))


def test_a_declaration_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="behaviour 'x': give either probabilities or epsilon"):
        Behaviour("x", "")
    with pytest.raises(InputError, match="behaviour 'x': with a memory for every state, deep must be False"):
        Behaviour("x", "", epsilon=lambda view, numbers: 0.1, memory=BEHAVIOURS["vdbe"].memory)


def test_every_declaration_has_its_sentences() -> None:
    every: list[Behaviour | PolicyUpdate] = [*BEHAVIOURS.values(), *UPDATES.values()]
    for declared in every:
        assert declared.summary, declared.name
        for each in (*declared.hyperparameters, *getattr(declared, "network_numbers", ())):
            assert each.sentence.endswith("."), (declared.name, each.name)
            if each.default is not None:
                each.check(each.default)
