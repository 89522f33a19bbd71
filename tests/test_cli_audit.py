"""`ipe audit`, as a user runs it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ipe
from ipe.planning import optimal_values
from tests.audit_cases import drawn, switch_stay_batch
from tests.needs import Run
from tests.test_audit_sources import make_run, recorded


@pytest.fixture
def run(run: Run) -> Run:
    """`ipe audit` in a folder that holds a batch and values of Switch-Stay."""
    np.savez("batch.npz", **switch_stay_batch())
    np.savez("q.npz", q=[[16.3, 19.0], [20.0, 15.3]])
    return partial(run, "audit")


ARRAYS = ("--transitions", "batch.npz", "--q", "q.npz", "--gamma", "0.9", "--deterministic", "yes")


def test_arrays_become_a_table_json_and_a_figure(run: Run) -> None:
    code, out, err = run(*ARRAYS, "--out", "audit.json", "--figure", "audit.png", "--worst", "1")
    assert (code, err) == (0, "")
    assert "is Q the value of a policy?  no" in out
    assert "between 1.053 and 20" in out
    assert "wrote audit.json" in out
    assert out.splitlines()[-1] == "next: docs/audit.md explains the numbers"
    content = json.loads(Path("audit.json").read_text())
    assert content["kind"] == "table"
    assert content["achievable"] is False
    assert content["unachievable"] == pytest.approx(1.0)
    assert [(own["state"], own["action"]) for own in content["worst"]] == [(0, 1)]
    assert Path("audit.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = run(*ARRAYS, "--json", "--worst", "1")
    assert json.loads(out) == content


def test_a_stochastic_batch_with_an_optimal_q_is_not_accused(run: Run) -> None:
    mdp = ipe.zoo.river_swim(gamma=0.9)
    batch = drawn(mdp, np.random.default_rng(0), 50, reward_noise=0.1)
    np.savez(
        "river.npz",
        state=np.asarray(batch.observation),
        next_state=np.asarray(batch.next_observation),
        action=batch.action,
        reward=batch.reward,
        terminated=batch.terminated,
    )
    np.savez("optimal.npz", q=optimal_values(mdp).q)
    code, out, _ = run("--transitions", "river.npz", "--q", "optimal.npz", "--gamma", "0.9")
    assert code == 0
    assert "nothing here speaks against it" in out
    assert "Fitted to one half of the batch" in out


def test_rows_per_transition_and_a_policy(run: Run) -> None:
    np.savez("rows.npz", q=np.zeros((4, 2)), q_next=np.ones((4, 2)), policy_next=np.full((4, 2), 0.5))
    code, out, _ = run("--transitions", "batch.npz", "--q", "rows.npz", "--gamma", "0.9", "--json")
    assert code == 0
    assert json.loads(out)["policy_source"] == "given"
    np.savez("rows.npz", q=np.zeros((4, 2)), q_next=np.ones((4, 2)))
    code, out, _ = run("--transitions", "batch.npz", "--q", "rows.npz", "--gamma", "0.9")
    assert (code, "fitted to part of the batch" in out) == (0, True)


def test_a_run_is_audited(run: Run) -> None:
    make_run(Path("cart-pole"), "CartPole-v1", "epsilon-ipe")
    code, out, err = run(
        "cart-pole", "--frames", "40", "--seed", "5", "--figure", "audit.svg", "--deterministic", "yes"
    )
    assert (code, err) == (0, "")
    assert "the policy network" in out
    assert Path("audit.svg").read_text().startswith("<?xml")


def test_a_saved_model_is_audited(run: Run) -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3 import DQN

    DQN("MlpPolicy", "FrozenLake-v1", buffer_size=10, policy_kwargs={"net_arch": [4]}, seed=0).save("model.zip")
    code, out, err = run("model.zip", "--env", "FrozenLake-v1", "--frames", "200")
    assert (code, err) == (0, "")
    assert "pairs of state and action, stochastic" in out
    assert run("model.zip")[2].endswith("a saved model needs --env, --transitions or --minari, and one of them only\n")
    assert "a saved model has one seed" in run("model.zip", "--seed", "1")[2]


@pytest.mark.filterwarnings("ignore")
def test_a_minari_data_set_is_audited(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(Path("minari").resolve()))
    recorded(minari, "FrozenLake-v1", "lake/random-v0", 200)
    np.savez("zeros.npz", q=np.zeros((16, 4)))
    code, out, _ = run("--minari", "lake/random-v0", "--q", "zeros.npz", "--gamma", "0.9", "--frames", "150", "--json")
    assert code == 0
    assert json.loads(out)["transitions"] == 150


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "without SOURCE, --transitions (or --minari), --q, --gamma is missing"),
        (("--transitions", "batch.npz", "--gamma", "0.9"), "without SOURCE, --q is missing"),
        ((*ARRAYS, "--minari", "x"), "give --transitions or --minari, not both"),
        ((*ARRAYS, "--env", "CartPole-v1"), "--env goes with SOURCE"),
        ((*ARRAYS, "--refit"), "--refit goes with SOURCE"),
        ((*ARRAYS, "--frames", "5"), "--frames says how many transitions to collect"),
        ((*ARRAYS, "--out", "x.txt"), "--out x.txt: the suffix must be .json"),
        ((*ARRAYS, "--figure", "x.doc"), "--figure x.doc: the suffix must be .svg, .png or .pdf"),
        ((*ARRAYS, "--figure", "batch.npz"), "--figure batch.npz exists; give --overwrite"),
        ((*ARRAYS, "--figure", "nowhere/x.png"), "--figure nowhere/x.png: there is no folder"),
        ((*ARRAYS, "--out", "x", "--figure", "x"), "--out and --figure are the same file"),
        ((*ARRAYS, "--worst", "-1"), "worst must be a whole number"),
        (("nowhere",), "there is no run nowhere"),
        (("nowhere", "--q", "q.npz"), "--q comes with nowhere; leave it out"),
        (("nowhere", "--env", "x"), "--env goes with a model.zip"),
        (("--transitions", "none.npz", "--q", "q.npz", "--gamma", "0.9"), "none.npz: there is no such file"),
        (("--transitions", "batch.npz", "--q", "none.npz", "--gamma", "0.9"), "--q none.npz: there is no such file"),
        (("--transitions", "batch.npz", "--q", "batch.npz", "--gamma", "0.9"), "the key 'q' is missing"),
        (("--transitions", "q.npz", "--q", "q.npz", "--gamma", "0.9"), "q.npz: the key 'action' is missing"),
        (("--transitions", "batch.npz", "--q", "q.npz", "--gamma", "1"), "gamma must lie in [0, 1)"),
        (("--transitions", "batch.npz", "--q", "q.npz", "--gamma", "0.9"), "none of the 4 pairs"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_and_nothing_is_written(run: Run, words: Any, sentence: str) -> None:
    before = sorted(Path().iterdir())
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("ipe audit: ")
    assert err.count("\n") == 1
    assert sorted(Path().iterdir()) == before
