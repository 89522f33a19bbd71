"""Trained seeds as objects: against an independent network, in their environments, as torch modules and ONNX files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ipe
from ipe.behaviours import epsilon_ipe
from ipe.cli.program import main
from ipe.deep import evaluate, paper_settings, train, watch
from ipe.entropy import softmax
from ipe.errors import InputError
from ipe.experiments import make_sweep, run_sweep
from tests.environment_helpers import OWN
from tests.test_deep_evaluation import SMALL, Make, make, network
from tests.tiers import tiered

__all__ = ["make"]  # the fixture

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "vectors": ("CartPole-v1", {}),
    "binary images": (f"{OWN}Catch-v0", {}),
    "places": (f"{OWN}Corridor-v0", {}),
    "images of bytes": (f"{OWN}Spaces-v0", {"observation": "picture"}),
    "grey images": (f"{OWN}Spaces-v0", {"observation": "grey"}),
}


def made(make: Make, case: str) -> tuple[Path, ipe.TrainedAgent, Any]:
    """The folder of a run, the agent of its seed 1, and a thousand observations of its environment."""
    import gymnasium

    env_id, options = CASES[case]
    folder = make(env_id, environment={"options": options})
    agent = ipe.load_agent(folder, 1)
    space = gymnasium.make(env_id.rpartition(":")[2], disable_env_checker=True, **options).observation_space
    space.seed(0)
    shown = np.stack([space.sample() for _ in range(1000)])
    if case == "vectors":  # without the largest numbers of single precision
        shown = np.random.default_rng(0).normal(size=shown.shape)
    return folder, agent, shown


def by_hand(folder: Path, name: str, seed: int, encoded: NDArray[Any], actions: int) -> NDArray[Any]:
    return np.stack([network(folder, name, seed, x.astype(np.float64), actions) for x in encoded])


@pytest.mark.parametrize("case", tiered(CASES, "vectors"))
def test_values_and_policy_are_those_of_the_network_by_hand(make: Make, case: str) -> None:
    folder, agent, shown = made(make, case)
    encoded = agent.encode(shown) / (255.0 if "bytes" in case or "grey" in case else 1.0)
    q, logits = (by_hand(folder, name, 1, encoded, agent.actions) for name in ("q", "policy"))
    np.testing.assert_allclose(agent.values(shown), q, atol=1e-5)
    np.testing.assert_allclose(agent.policy(shown), softmax(logits), atol=1e-5)
    np.testing.assert_allclose(agent.probabilities(shown, greedy=False), epsilon_ipe(q, logits), atol=1e-3)
    np.testing.assert_allclose(agent.values(shown[3]), q[3], atol=1e-5)
    assert agent.policy(shown[3]).shape == (agent.actions,)
    assert agent.act(shown).tolist() == q.argmax(axis=1).tolist()
    assert isinstance(agent.act(shown[3]), int)
    assert agent.act(shown[3]) == q[3].argmax()
    often = np.stack([shown[3]] * 4000)
    share = np.bincount(agent.act(often, greedy=False), minlength=agent.actions) / 4000
    np.testing.assert_allclose(share, epsilon_ipe(q[3], logits[3]), atol=0.04)


@pytest.mark.parametrize("case", tiered(CASES, "vectors", "binary images"))
def test_the_module_of_torch_equals_the_agent(make: Make, case: str) -> None:
    torch = pytest.importorskip("torch")
    _, agent, shown = made(make, case)
    module = agent.to_torch()
    with torch.no_grad():
        encoded = torch.from_numpy(agent.encode(shown))
        np.testing.assert_allclose(module(encoded).numpy(), agent.values(shown), atol=1e-5)
        np.testing.assert_allclose(module.policy(encoded).numpy(), agent.policy(shown), atol=1e-5)
    state = module.state_dict()
    assert {name: array.tolist() for name, array in state.items()} == {
        name: array.tolist() for name, array in agent.tensors.items()
    }


@pytest.mark.parametrize("case", tiered(CASES, "vectors", "binary images"))
def test_the_onnx_file_equals_the_agent(make: Make, case: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    _, agent, shown = made(make, case)
    agent.to_onnx(tmp_path / "agent.onnx")
    session = runtime.InferenceSession(tmp_path / "agent.onnx", providers=["CPUExecutionProvider"])
    values, policy = session.run(["values", "policy"], {"observation": agent.encode(shown)})
    np.testing.assert_allclose(values, agent.values(shown), atol=1e-5)
    np.testing.assert_allclose(policy, agent.policy(shown), atol=1e-5)
    alone = session.run(["values"], {"observation": agent.encode(shown[0])})[0]
    np.testing.assert_allclose(alone[0], agent.values(shown[0]), atol=1e-5)


def test_without_onnx_the_sentence_says_what_to_install(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match="to_onnx needs onnx, which is not installed"):
        ipe.load_agent(make("CartPole-v1")).to_onnx(tmp_path / "agent.onnx")
    assert not (tmp_path / "agent.onnx").exists()


def test_without_torch_the_sentence_says_what_to_install(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipe.experiments.torch_networks", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match="to_torch needs torch, which is not installed: pip install torch"):
        ipe.load_agent(make("CartPole-v1")).to_torch()


def test_it_plays_in_its_environment(tmp_path: Path) -> None:
    import gymnasium

    settings = paper_settings("CartPole-v1", "epsilon-greedy", frames=300, epsilon={"final": 0.5, "steps": 10}, **SMALL)
    train(settings, seeds=2, out=tmp_path / "run", processes=0)
    agent = ipe.load_agent(tmp_path / "run")
    assert repr(agent) == "TrainedAgent(CartPole-v1, epsilon-greedy, seed 0, frame 300)"
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=0)
    for _ in range(5):
        observation, *_ = env.step(agent.act(observation))
    best = int(agent.values(observation).argmax())
    assert agent.probabilities(observation, greedy=False)[best] == pytest.approx(0.75)
    with pytest.raises(InputError, match="trained with epsilon-greedy, which learns no policy"):
        agent.policy(observation)
    assert set(agent.tensors) == {
        f"q.{layer}.{part}" for layer in ("first", "middle", "last") for part in ("weight", "bias")
    }


@pytest.mark.slow
def test_actions_are_the_environments_own(make: Make) -> None:
    agent = ipe.load_agent(make(f"{OWN}Counting-v0", environment={"options": {"start": 5}}))
    seen = np.random.default_rng(0).uniform(0.0, 9.0, (200, 2))
    assert set(agent.act(seen, greedy=False).tolist()) <= {5, 6, 7}
    assert (agent.act(seen) - 5).tolist() == agent.values(seen).argmax(axis=1).tolist()


def test_what_does_not_fit_is_refused(make: Make) -> None:
    folder = make("CartPole-v1")
    agent = ipe.load_agent(folder)
    with pytest.raises(InputError, match="an observation has 1 axes and a batch of them 2; found 3"):
        agent.values(np.zeros((2, 2, 4)))
    with pytest.raises(InputError, match=r"does not fit CartPole-v1: the observation has the shape \(3,\)"):
        agent.act(np.zeros(3))
    with pytest.raises(InputError, match="the observation is nan"):
        agent.act(np.full(4, np.nan))
    with pytest.raises(InputError, match="the run has no seed 7; it has 0, 1"):
        ipe.load_agent(folder, 7)
    for wrong in ("0", True, 1.0, -1):
        with pytest.raises(InputError, match="seed must be a whole number from 0 to"):
            ipe.load_agent(folder, wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="there is no run"):
        ipe.load_agent("nowhere")
    with pytest.raises(InputError, match="the observation is 8, expected one from 0 to 5"):
        ipe.load_agent(make(f"{OWN}Corridor-v0")).act(8)


@pytest.fixture(scope="module")
def sweep_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweeps") / "widths"
    base = {"environment": "CartPole-v1", "frames": 300, "batch": 8, "replay": 64}
    sweep = make_sweep({"name": "widths", "seeds": 1, "base": base, "grid": {"width": [8, 16]}})
    assert run_sweep(sweep, folder, shard=(0, 1), keep_networks=True).status == "done"
    return folder


@pytest.mark.slow
def test_a_setting_of_a_sweep(sweep_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="is a sweep of 2 settings; say which one is meant by its name"):
        ipe.load_agent(sweep_folder)
    for width in (8, 16):
        agent = ipe.load_agent(sweep_folder, 0, setting=f"width={width}")
        assert agent.tensors["q.middle.weight"].shape == (width, width)
    assert evaluate(sweep_folder, episodes=2, setting="width=16").seeds[0].returns.shape == (2,)
    assert watch(sweep_folder, tmp_path / "film.gif", setting="width=16", frame_limit=5).pictures > 1
    for words in (["evaluate", "--episodes", "2"], ["watch", "--out", str(tmp_path / "b.gif"), "--frame-limit", "5"]):
        assert main([words[0], str(sweep_folder), "--setting", "width=16", *words[1:]]) == 0
    assert main(["audit", str(sweep_folder), "--setting", "width=16", "--frames", "300"]) == 0
    assert f"next: ipe watch {sweep_folder} --setting width=16 --out run.gif" in capsys.readouterr().out
