"""Behaviours and updates of the user's own: functions, declarations, `package.module:name`; here and in workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ipe.behaviours import Behaviour
from ipe.cli.program import main
from ipe.deep import evaluate, load_agent, paper_settings, train
from ipe.errors import InputError
from ipe.experiments import make_sweep
from ipe.tabular import simulate
from ipe.zoo import switch_stay
from tests import own_behaviours as own

MODULE = "tests.own_behaviours"
SMALL: dict[str, Any] = {"frames": 300, "width": 16, "batch": 8, "replay": 100}


@pytest.mark.slow
def test_a_function_acts_in_the_tabular_agent() -> None:
    runs = simulate(switch_stay(), own.cautious, steps=20, runs=3, record="trajectory", boldness=3.0)
    sharpened = runs.policies[:, :, :-1] ** 3.0
    np.testing.assert_allclose(runs.probabilities, sharpened / sharpened.sum(axis=-1, keepdims=True), rtol=1e-10)
    assert runs.behaviour == "cautious"
    assert runs.settings["boldness"] == [3.0]
    swept_over = {"epsilon": [0.0, 1.0]}
    swept = simulate(switch_stay(), own.annealing, steps=20, runs=3, sweep=swept_over, update="none")
    greedy = simulate(
        switch_stay(), "epsilon-greedy", steps=20, runs=3, sweep={"epsilon": [0.0, 1.0]}, ties="first", update="none"
    )
    np.testing.assert_array_equal(swept.q, greedy.q)
    assert (
        simulate(switch_stay(), lambda values: values * 0.0 + 1.0 / values.shape[-1], steps=2, runs=1).behaviour
        == "<lambda>"
    )


@pytest.mark.slow
def test_a_name_with_its_module_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, called in ((f"{MODULE}:cautious", own.cautious), (f"{MODULE}:always", own.always)):
        by_name = simulate(switch_stay(), name, steps=20, runs=3)
        by_itself = simulate(switch_stay(), called, steps=20, runs=3)
        assert by_name.behaviour == name
        np.testing.assert_array_equal(by_name.q, by_itself.q)
    (tmp_path / "own_coins.py").write_text(
        "from ipe.behaviours import Behaviour, declare\n"
        "declare(Behaviour('own-coin', 'epsilon-greedily', epsilon=lambda view, numbers: 0.25))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert simulate(switch_stay(), "own_coins:own-coin", steps=2, runs=1).behaviour == "own_coins:own-coin"


@pytest.mark.slow
def test_an_update_of_ones_own() -> None:
    by_itself = simulate(switch_stay(), "ipe", update=own.slow_update, steps=20, runs=3, slowness=2.0, alpha_pi=0.1)
    by_name = simulate(
        switch_stay(), "ipe", update=f"{MODULE}:slow_update", steps=20, runs=3, slowness=2.0, alpha_pi=0.1
    )
    assert (by_itself.update, by_name.update) == ("slow_update", f"{MODULE}:slow_update")
    np.testing.assert_array_equal(by_itself.theta, by_name.theta)
    assert by_itself.theta.any()
    paper = simulate(switch_stay(), "ipe", steps=20, runs=3)
    np.testing.assert_array_equal(simulate(switch_stay(), "ipe", update=own.own_update, steps=20, runs=3).q, paper.q)
    with pytest.raises(InputError, match=r"of an update with a gradient; found 'tests.own_behaviours:slow_update'"):
        paper_settings("CartPole-v1", policy_update=own.slow_update)
    with pytest.raises(InputError, match="its parameters must be theta, transition, alpha, and then numbers"):
        simulate(switch_stay(), "ipe", update=lambda theta: theta)


WRONG: dict[str, tuple[Any, str]] = {
    "loops over values": (own.loops, "behaviour loops: it cannot be compiled, because with arrays of JAX it raises"),
    "no probabilities": (own.half, r"behaviour half: what it returns are no probabilities: for q = \[-1.0"),
    "a single number": (lambda q: 0.5 + 0.0 * q.sum(), r"for q of the shape \(3,\) it returns the shape \(\)"),
    "an unknown parameter": (lambda q, mood: q, "the parameter mood is none of q, logits, policy, allowed, step and"),
    "no module": ("nowhere:x", "nowhere:x: the module 'nowhere' cannot be imported: ModuleNotFoundError"),
    "nothing there": (f"{MODULE}:missing", "has no behaviour 'missing'"),
    "a number": (f"{MODULE}:not_a_behaviour", "is neither a Behaviour nor a function, but int"),
    "a misspelt name": ("gredy", "behaviour must be one of .*greedy.*; found 'gredy'"),
    "not a name": (5, "behaviour must be one of .*; found 5"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_a_behaviour_is_refused_with_the_reason(case: str) -> None:
    given, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        simulate(switch_stay(), given)


def test_a_function_without_allowed_is_refused_where_actions_are_masked() -> None:
    from ipe import FiniteMDP

    mdp = FiniteMDP(
        [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]],
        [[0.0, 1.0], [1.0, 0.0]],
        gamma=0.9,
        allowed=[[True, True], [True, False]],
    )
    with pytest.raises(InputError, match="not every action is allowed in every state"):
        simulate(mdp, own.annealing, runs=2, steps=5)


@pytest.mark.slow
def test_it_trains_in_worker_processes(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    settings = paper_settings("CartPole-v1", own.cautious, boldness=3.0, policy_update=own.own_update, **SMALL)
    assert (settings.behaviour, settings.learns_policy, settings.width) == (f"{MODULE}:cautious", True, 16)
    assert paper_settings("CartPole-v1", own.cautious).width == 128
    settings = settings.model_copy(update={"policy_update": f"{MODULE}:own_update"})
    result = train(settings, seeds=1, out=tmp_path / "run", processes=1)
    assert result.status == "done"
    played = evaluate(tmp_path / "run", episodes=1, behaviour=True, frame_limit=20)
    assert played.policy == f"{MODULE}:cautious, from the policy network"


@pytest.mark.slow
@pytest.mark.parametrize("delta_q", ["target", "online", "dqn"])
def test_a_target_of_ones_own_that_says_what_dqns_says_learns_the_same(delta_q: Any, tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    networks: list[dict[str, Any]] = []
    for behaviour in ("epsilon-ipe", f"{MODULE}:plain_target"):
        settings = paper_settings("CartPole-v1", behaviour, delta_q=delta_q, **SMALL)
        out = tmp_path / str(len(networks))
        train(settings, seeds=1, out=out, processes=0)
        networks.append(load_agent(out, 0).tensors)
    assert any(name.startswith("policy") for name in networks[0])
    for name, tensor in networks[0].items():
        np.testing.assert_allclose(networks[1][name], tensor, rtol=1e-4, atol=1e-6, err_msg=name)


def test_it_is_a_word_on_the_command_line_and_in_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gymnasium")
    words = ["train", "CartPole-v1", "--behaviour", f"{MODULE}:annealing", "--epsilon.final", "0.2", "--frames", "200"]
    assert main([*words, "--width", "16", "--processes", "0", "--out", str(tmp_path / "run")]) == 0
    assert f"{MODULE}:annealing" in capsys.readouterr().err
    assert main(["train", "CartPole-v1", "--behaviour", "gredy"]) == 2
    assert "or package.module:name; found 'gredy'" in capsys.readouterr().err
    base = {"environment": "CartPole-v1", "behaviour": f"{MODULE}:cautious", **SMALL}
    sweep = make_sweep({"name": "own", "seeds": 1, "base": base, "grid": {"boldness": [1.0, 4.0]}})
    assert [setting.settings.numbers["boldness"] for setting in sweep.settings] == [1.0, 4.0]


def test_what_workers_cannot_know_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")

    def local(q: Any) -> Any:
        return own.annealing(q, 0)

    settings = paper_settings("CartPole-v1", local, **SMALL)
    assert settings.behaviour == "local"
    with pytest.raises(InputError, match="the behaviour 'local' is declared in this process alone"):
        train(settings, out=tmp_path / "run", processes=1)
    assert not (tmp_path / "run").exists()
    assert train(settings, out=tmp_path / "run", processes=0).status == "done"
    with pytest.raises(InputError, match="there is a behaviour 'greedy' already"):
        paper_settings("CartPole-v1", Behaviour("greedy", "", epsilon=lambda view, numbers: 0.1))
    with pytest.raises(InputError, match=r"the number width of tests.own_behaviours:wide has the name of a setting"):
        paper_settings("CartPole-v1", own.wide)
