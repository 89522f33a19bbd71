"""Learning from a fixed batch: kept transitions, data sets, and what is learned from them."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from ipe.audit import (
    Transitions,
    audit_contents,
    audit_run,
    load_transitions,
    make_transitions,
    save_transitions,
)
from ipe.audit.support import support_of
from ipe.cli import main
from ipe.deep import evaluate, load_agent, resume, train
from ipe.deep.data import Data, data_from, joined, learning_from
from ipe.deep.environments import make_environment, spec_of
from ipe.deep.loop import Loop
from ipe.deep.networks import forward
from ipe.deep.recording import Recording
from ipe.deep.replay import CONTINUES, TERMINATED, TRUNCATED
from ipe.deep.setting_groups import EnvironmentSettings
from ipe.deep.settings import TrainingSettings
from ipe.errors import InputError
from ipe.experiments.data_sets import kept_transitions, read_data
from ipe.experiments.store import open_store
from tests.deep_helpers import DRIFT, advance, networks_of, small
from tests.deep_oracle import Oracle, Transition
from tests.test_audit_sources import recorded
from tests.tiers import tiered

LIMITED: dict[str, Any] = {"id": DRIFT, "frame_limit": 12}
WORDS = {CONTINUES: "", TERMINATED: "terminated", TRUNCATED: "truncated"}


def settings_of(**changes: Any) -> TrainingSettings:
    return small(DRIFT, environment={"frame_limit": 12}, **changes)


def kept(frames: int = 60, **changes: Any) -> tuple[Loop, dict[int, Data]]:
    loop = Loop([settings_of(**changes)] * 2, [0, 3], keep_transitions=True)
    advance(loop, frames)
    return loop, loop.kept()


def random_transitions(n: int = 40, actions: int = 4) -> Transitions:
    """Transitions in whose order episodes go on, terminate, are cut off, and break off without a word."""
    generator = np.random.default_rng(1)
    here = generator.normal(size=(n, 3)).astype(np.float32)
    there = generator.normal(size=(n, 3)).astype(np.float32)
    ends = generator.choice(4, n)
    ends[0] = CONTINUES
    for i in range(n - 1):
        if ends[i] == CONTINUES:
            there[i] = here[i + 1]
    return Transitions(
        here, generator.integers(actions, size=n), generator.normal(size=n), there, ends == 1, (ends == 2)
    )


def same(one: Data, other: Data) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.arrays().values(), other.arrays().values(), strict=True))


def test_a_data_set_holds_the_transitions_it_was_made_of() -> None:
    given = random_transitions()
    data = data_from(given, spec_of(EnvironmentSettings(**LIMITED)))
    found = data.transitions()
    np.testing.assert_array_equal(found.observation, given.observation)
    np.testing.assert_array_equal(found.next_observation, given.next_observation)
    np.testing.assert_array_equal(found.action, given.action)
    np.testing.assert_array_equal(found.terminated, given.terminated)
    np.testing.assert_allclose(found.reward, given.reward, rtol=1e-6)
    assert same(data, data_from(found, spec_of(EnvironmentSettings(**LIMITED))))
    going = data.end[:-1] == CONTINUES
    assert 0 < going.sum() < 39
    np.testing.assert_array_equal(np.diff(data.start), np.where(going, 1, 2))
    assert data.end[-1] != CONTINUES


def test_kept_transitions_are_those_of_the_environment() -> None:
    loop, found = kept()
    for seed, data in found.items():
        environment = make_environment(loop.settings[0].environment, seed)
        observation, seen = environment.reset(), set()
        batch = data.transitions()
        assert len(batch) == 60
        for i in range(60):
            np.testing.assert_array_equal(np.asarray(batch.observation)[i], observation)
            step = environment.step(int(batch.action[i]))
            np.testing.assert_array_equal(np.asarray(batch.next_observation)[i], step.observation)
            assert batch.reward[i] == np.float32(step.reward)
            assert batch.terminated[i] == step.terminated
            if i < 59:
                assert np.asarray(batch.truncated)[i] == (step.truncated and not step.terminated)
            seen.add((step.terminated, step.truncated))
            observation = environment.reset() if step.terminated or step.truncated else step.observation
        assert {(True, False), (False, True), (False, False)} <= seen


@pytest.mark.slow
def test_kept_transitions_survive_a_checkpoint_and_change_nothing() -> None:
    whole, expected = kept()
    half, _ = kept(25)
    resumed = Loop(half.settings, half.seeds, half.checkpoint(), keep_transitions=True)
    advance(resumed, 35)
    assert all(same(resumed.kept()[seed], expected[seed]) for seed in expected)
    without = Loop(whole.settings, whole.seeds)
    advance(without, 60)
    assert without.kept() == {}
    for name, array in without.networks().items():
        np.testing.assert_array_equal(array, whole.networks()[name])


@pytest.mark.slow
def test_several_environments_are_kept_one_after_the_other() -> None:
    loop = Loop([settings_of(environments=2)], [0], keep_transitions=True)
    advance(loop, 10)
    (data,) = loop.kept().values()
    assert len(data) == 20
    assert data.end[9] != CONTINUES
    batch = data.transitions()
    first = make_environment(loop.settings[0].environment, 0)
    np.testing.assert_array_equal(np.asarray(batch.observation)[0], first.reset())


def test_a_recording_can_be_gone_on_with_after_it_was_read() -> None:
    recording = Recording(1)
    recording.show(0, np.zeros(1, np.float32))
    recording.step(0, 1, 0.0, CONTINUES, np.ones(1, np.float32))
    assert recording.data(0, 1).end.tolist() == [TRUNCATED]  # type: ignore[union-attr]
    recording.step(0, 0, 0.0, TERMINATED, np.ones(1, np.float32))
    assert recording.data(0, 1).end.tolist() == [CONTINUES, TERMINATED]  # type: ignore[union-attr]


class OnData(Oracle):
    """One seed that learns from a data set, in NumPy and double precision."""

    def learn_from(self, data: Data) -> None:
        batch = data.transitions()
        here, there = (np.asarray(x, np.float64) for x in (batch.observation, batch.next_observation))
        ends = [WORDS[int(end)] for end in data.end]
        rows = zip(here, batch.action, batch.reward, there, ends, strict=True)
        self.history = [Transition(s, int(a), float(r), after, end) for s, a, r, after, end in rows]
        self.powers = [1.0] * len(data)

    def advance(self) -> None:
        minibatch = [math.floor(u * len(self.history)) for u in self.draws.batch(self.frame)[0]]
        self.frame += 1
        self._update(minibatch)
        if self.frame % self.settings.target_period == 0:
            self.target, self.policy_target = [w.copy() for w in self.q], [w.copy() for w in self.policy]


CASES: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "three steps": {"n_step": 3, "delta_steps": 2, "optimiser": {"kind": "adam"}},
    "three mixed steps": {"n_step": 3, "traces": {"kind": "watkins", "decay_from": "coin"}},
    "no policy network": {"behaviour": "epsilon-greedy", "double_q": True},
}


@pytest.mark.parametrize("case", tiered(CASES, "the paper's"))
def test_every_update_is_the_specifications(case: str) -> None:
    data = data_from(random_transitions(), spec_of(EnvironmentSettings(**LIMITED)))
    settings = learning_from(settings_of(**CASES[case]), data)
    loop = Loop([settings] * 2, [0, 5], data=data)
    names = ["q", "policy"] if settings.learns_policy else ["q"]
    start = {name: networks_of(loop, name) for name in names}
    oracles = [OnData(settings, seed, *([*(start[n][i] for n in names)] * 2)[:2]) for i, seed in enumerate((0, 5))]
    for oracle in oracles:
        oracle.learn_from(data)
    for _ in range(20):
        loop.advance()
        for oracle in oracles:
            oracle.advance()
    for name in names:
        for i, oracle in enumerate(oracles):
            moved = max(abs(a - b).max() for a, b in zip(networks_of(loop, name)[i], start[name][i], strict=True))
            pairs = zip(networks_of(loop, name)[i], getattr(oracle, name), strict=True)
            assert max(abs(a - b).max() for a, b in pairs) < 0.02 * moved
            assert moved > 1e-3


def gradient_of(loop: Loop, name: str, before: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """The gradient of the first update, from what it left in the mean squares of RMSprop."""
    after = loop.checkpoint().arrays
    decay = loop.settings[0].optimiser.decay
    found = {}
    for part in ("matrix", "rest"):
        moved = after[f"state.{name}.{part}"] - before[f"state.{name}.{part}"]
        found[part] = -np.sign(moved) * np.sqrt(after[f"state.{name}_moments.square.{part}"] / (1 - decay))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("products", ["native", "xla"])
@pytest.mark.parametrize("what", ["cloning", "conservative weight"])
def test_the_gradients_are_those_of_automatic_differentiation(
    what: str, products: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipe.deep.programs.library.choose", lambda net: products)
    data = data_from(random_transitions(), spec_of(EnvironmentSettings(**LIMITED)))
    cloning = what == "cloning"
    more: dict[str, Any] = {"behaviour": "cloning"} if cloning else {"conservative_weight": 3.0}
    settings = learning_from(settings_of(**more), data)
    loop = Loop([settings] * 2, [0, 5], data=data)
    before = loop.checkpoint().arrays
    loop.advance()
    assert loop.program.products == products
    found = gradient_of(loop, "policy" if cloning else "q", before)
    batch, net, rows = data.transitions(), loop.program.architecture, loop._frame.minibatch
    of = {int(place): i for i, place in enumerate(data.start)}
    chosen = np.array([[of[int(place)] for place in row] for row in rows])
    here, there = (jnp.asarray(np.asarray(x)[chosen]) for x in (batch.observation, batch.next_observation))
    action = jnp.asarray(batch.action[chosen])
    start = {n: jnp.asarray(before[f"state.{'policy' if cloning else 'q'}.{n}"]) for n in found}

    def loss(parameters: dict[str, Any]) -> Any:
        out = forward(net, parameters, here)[0]
        taken = jnp.take_along_axis(out, action[..., None], axis=-1)[..., 0]
        gap = jax.nn.logsumexp(out, axis=-1) - taken
        if cloning:
            return gap.mean(axis=1).sum()
        best = jax.lax.stop_gradient(forward(net, parameters, there)[0].max(-1))
        goes_on = settings.gamma * (1 - jnp.asarray(batch.terminated[chosen], jnp.float32))
        error = jnp.asarray(batch.reward[chosen], jnp.float32) + goes_on * best - taken
        return (error**2 + 3.0 * gap).mean(axis=1).sum()

    for name, slope in jax.grad(loss)(start).items():
        np.testing.assert_allclose(found[name], np.asarray(slope), rtol=2e-3, atol=2e-5)
        assert abs(slope).max() > 1e-3


@pytest.mark.slow
def test_a_seed_learns_the_same_in_any_batch_and_after_a_checkpoint() -> None:
    data = data_from(random_transitions(), spec_of(EnvironmentSettings(**LIMITED)))
    settings = learning_from(settings_of(), data)
    together, alone = Loop([settings] * 2, [0, 5], data=data), Loop([settings], [5], data=data)
    advance(together, 30)
    advance(alone, 12)
    checkpoint = alone.checkpoint()
    assert not any("replay" in name or "slots" in name for name in checkpoint.arrays)
    alone = Loop([settings], [5], checkpoint, data=data)
    advance(alone, 18)
    for name, array in alone.networks().items():
        np.testing.assert_array_equal(array[0], together.networks()[name][1])
        assert (together.networks()[name][0] != array[0]).any()


def networks(folder: Path) -> list[NDArray[Any]]:
    store = open_store(folder)
    manifests = [store.publication(job) for job in store.jobs]
    return [array for each in manifests if each is not None for _, array in sorted(each.read_networks().items())]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has kept its transitions."""
    folder = tmp_path_factory.mktemp("source") / "run"
    settings = settings_of(frames=300)
    train(settings, seeds=2, out=folder, processes=0, progress=False, keep_transitions=True)
    return folder


def test_a_run_learns_from_another_runs_transitions_and_is_resumed_to_the_byte(source: Path, tmp_path: Path) -> None:
    both, one = kept_transitions(source), tmp_path / "one"
    assert [len(data) for data in both.values()] == [300, 300]
    settings = settings_of(frames=1500)
    more: dict[str, Any] = {"processes": 0, "progress": False}
    result = train(settings, seeds=2, data=source, out=one, evaluate_every=500, evaluate_episodes=2, **more)
    assert result.status == "done"
    assert result.episodes.num_rows == 0
    assert result.evaluations.num_rows == 6
    assert result.progress.num_rows == 4
    trained = open_store(one).sweep.settings[0].settings
    assert trained.data == joined(list(both.values())).sha256
    assert trained.replay == 600

    short = tmp_path / "short"
    train(settings_of(frames=700), seeds=2, data=source, out=short, **more)
    resume(short, frames=1500, **more)
    assert all(np.array_equal(a, b) for a, b in zip(networks(one), networks(short), strict=True))
    other = tmp_path / "other"
    train(settings, seeds=2, data=source, data_seed=1, out=other, **more)
    assert open_store(other).sweep.settings[0].settings.data == both[1].sha256

    (file,) = (short / "data").iterdir()
    both[0].save(file)
    with pytest.raises(InputError, match="holds other transitions than those that the run was begun with"):
        resume(short, frames=1600, **more)
    file.unlink()
    with pytest.raises(InputError, match="is missing: the data set that the run learns from"):
        resume(short, frames=1600, **more)


@pytest.mark.slow
def test_what_was_learned_acts_in_several_ways(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, plain, clone = (tmp_path / name for name in ("run", "plain", "clone"))
    more: dict[str, Any] = {"data": source, "processes": 0, "progress": False}
    train(settings_of(frames=50), out=run, **more)
    train(settings_of(frames=50, behaviour="epsilon-greedy"), out=plain, **more)
    train(settings_of(frames=50, behaviour="cloning"), out=clone, **more)
    words = {name: evaluate(run, episodes=3, behaviour=name) for name in ("greedy", "ipe", "epsilon-ipe", "tau-ipe")}
    assert [result.policy for result in words.values()] == [
        "greedy on Q",
        *(f"{name}, from the policy network" for name in ("ipe", "epsilon-ipe", "tau-ipe")),
    ]
    np.testing.assert_array_equal(
        words["epsilon-ipe"].seeds[0].returns, evaluate(run, episodes=3, behaviour=True).seeds[0].returns
    )
    np.testing.assert_array_equal(words["greedy"].seeds[0].returns, evaluate(run, episodes=3).seeds[0].returns)
    boltzmann = evaluate(plain, episodes=1, behaviour="boltzmann").policy
    assert boltzmann == "boltzmann on Q with temperature = 1"
    assert evaluate(clone, episodes=1, behaviour=True).policy == "cloning, from the policy network"
    capsys.readouterr()
    for folder, name, said in (
        (plain, "ipe", "the behaviour ipe needs a policy network, and the run, trained with epsilon-greedy, has none"),
        (run, "ez-greedy", "goes by what it remembers"),
        (run, "epsilon-ip", "behaviour must be one of"),
    ):
        assert main(["evaluate", str(folder), "--act-as", name]) == 2
        assert said in capsys.readouterr().err
    assert main(["evaluate", str(run), "--act-as", "ipe", "--behaviour"]) == 2
    assert main(["evaluate", str(run), "--act-as", "ipe", "--episodes", "1"]) == 0
    assert "policy: ipe, from the policy network" in capsys.readouterr().out


def test_an_audit_on_the_data_set_tells_what_is_beyond_its_support(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = np.random.default_rng(0)
    states, action = generator.integers(15, size=200), generator.integers(2, size=200)
    steps = {"state": states, "action": action, "reward": np.zeros(200), "terminated": generator.random(200) < 0.2}
    batch = make_transitions({**steps, "next_state": generator.integers(16, size=200)})
    run = tmp_path / "lake"
    settings = small("FrozenLake-v1", frames=30)
    train(settings, data=batch, out=run, processes=0, progress=False)
    found = audit_run(run)
    agent = load_agent(run)
    q = agent.values(np.arange(16))
    pairs = {(int(s), int(a)) for s, a in zip(states, action, strict=True)}
    following = np.asarray(batch.next_observation)[~batch.terminated]
    beyond = [(int(s), int(q[s].argmax())) not in pairs for s in following]
    assert found.support is not None
    assert found.support.neighbours is None
    assert found.support.transitions == len(beyond)
    assert found.support.beyond == pytest.approx(np.mean(beyond))
    assert 0.0 < found.support.beyond < 1.0
    assert audit_contents(found)["support"]["beyond"] == found.support.beyond
    assert audit_run(run, frames=20).support is None
    capsys.readouterr()
    assert main(["audit", str(run)]) == 0
    assert "the data never take the greedy action;" in capsys.readouterr().out
    for command, said in (("curves", "has no training episodes to draw"), ("report", "no training episodes")):
        assert main([command, str(run), "--out", str(tmp_path / f"x.{'png' if command == 'curves' else 'html'}")]) == 2
        assert said in capsys.readouterr().err
    assert main(["status", str(run)]) == 0


def test_support_of_vectors_is_that_of_the_nearest_states() -> None:
    generator = np.random.default_rng(0)
    here = np.concatenate([generator.normal(size=(30, 2)), generator.normal(size=(30, 2)) + 100.0])
    action = np.repeat([0, 1], 30)  # far apart, each group has taken one action
    batch = Transitions(here, action, np.zeros(60), here[::-1].copy(), np.arange(60) == 59)
    found = support_of(batch, np.tile([2.0, 5.0], (60, 1)))
    assert found is not None
    np.testing.assert_allclose([found.beyond, found.excess], [29 / 59, 3 * 29 / 59])
    assert (found.transitions, found.neighbours) == (59, 10)
    ended = dataclasses.replace(batch, terminated=np.ones(60, bool))
    assert support_of(ended, np.zeros((60, 2))) is None


def test_a_file_of_transitions_is_a_data_set(source: Path, tmp_path: Path) -> None:
    data = kept_transitions(source)[0]
    save_transitions(data.transitions(), tmp_path / "batch.npz")
    where = settings_of().environment
    assert np.asarray(load_transitions(tmp_path / "batch.npz").truncated).any()
    assert read_data(tmp_path / "batch.npz", where).sha256 == data.sha256
    assert read_data(data.transitions(), where).sha256 == data.sha256
    with pytest.raises(InputError, match="data must be a path, minari:NAME or Transitions, found int"):
        read_data(3, where)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_minari_data_set_is_learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    recorded(minari, "FrozenLake-v1", "lake/random-v0", 120)
    recorded(minari, "CartPole-v1", "pole/random-v0", 60)
    lake = read_data("minari:lake/random-v0", EnvironmentSettings(id="FrozenLake-v1"))
    assert lake.observation.shape[1:] == (16,)
    assert len(lake) == 120
    with pytest.raises(InputError, match=r"minari:pole/random-v0: .*the shape"):
        read_data("minari:pole/random-v0", EnvironmentSettings(id="LunarLander-v3"))
    train(
        small("CartPole-v1", frames=20), data="minari:pole/random-v0", out=tmp_path / "run", processes=0, progress=False
    )
    assert open_store(tmp_path / "run").sweep.settings[0].settings.replay == 60


def test_numbered_states_become_one_hot_vectors() -> None:
    steps = {"state": [14, 3], "action": [1, 2], "reward": [1.0, 0.0], "next_state": [15, 4]}
    data = read_data(make_transitions({**steps, "terminated": [1, 0]}), EnvironmentSettings(id="FrozenLake-v1"))
    assert data.observation.argmax(axis=1).tolist() == [14, 15, 3, 4]
    assert data.end.tolist() == [TERMINATED, TRUNCATED]


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["train", *words, "--processes", "0"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") <= 2
    return error


def write(path: Path, **changes: Any) -> str:
    save_transitions(dataclasses.replace(random_transitions(actions=2), **changes), path)
    return str(path)


def test_wrong_data_sets_are_refused_in_a_sentence(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = ("--out", str(tmp_path / "new"))
    vectors, four = write(tmp_path / "three.npz"), np.zeros((40, 4))
    other_actions = write(tmp_path / "five.npz", action=np.full(40, 2), observation=four, next_observation=four)
    fits = write(tmp_path / "fits.npz", observation=four, next_observation=four)
    numbered = write(tmp_path / "numbers.npz", observation=np.arange(40), next_observation=np.arange(40))
    steps: dict[str, Any] = {name: np.zeros(0) for name in ("reward", "terminated")}
    np.savez(tmp_path / "empty.npz", action=np.zeros(0, int), observation=four[:0], next_observation=four[:0], **steps)
    cartpole = ("CartPole-v1", *out, "--data")
    assert "the observation has the shape (3,), expected (4,)" in refusal(capsys, *cartpole, vectors)
    assert "action[0] = 2, but CartPole-v1 has 2 actions" in refusal(capsys, *cartpole, other_actions)
    assert "holds numbered states, and CartPole-v1" in refusal(capsys, *cartpole, numbered)
    assert "there are no transitions" in refusal(capsys, *cartpole, str(tmp_path / "empty.npz"))
    assert "its transitions are of tests.deep_environments:Drift-v0" in refusal(capsys, *cartpole, str(source))
    assert "train: nothing.npz: there is no such run or file" in refusal(capsys, *cartpole, "nothing.npz")
    (tmp_path / "table.csv").touch()
    said = refusal(capsys, *cartpole, str(tmp_path / "table.csv"))
    assert said.endswith("table.csv: the suffix must be .npz; found .csv\n")
    assert said.count("table.csv") == 1  # the file is named once
    assert "environments = 2, but learning from a data set" in refusal(capsys, *cartpole, fits, "--environments", "2")
    assert "priority.exponent must be 0" in refusal(capsys, *cartpole, fits, "--priority.exponent", "0.6")
    assert "--replay has no effect with --data" in refusal(capsys, *cartpole, fits, "--replay", "500")
    assert "--keep-transitions has no effect" in refusal(capsys, *cartpole, fits, "--keep-transitions")
    assert "chooses among the seeds of a run" in refusal(capsys, *cartpole, fits, "--data-seed", "0")
    assert "does not go with --data" in refusal(capsys, *cartpole, fits, "--plan")
    assert "continuous actions" in refusal(capsys, "Pendulum-v1", *out, "--data", fits)
    assert "--data-seed chooses" in refusal(capsys, "CartPole-v1", *out, "--data-seed", "0")
    monkeypatch.setitem(__import__("sys").modules, "minari", None)
    assert "minari" in refusal(capsys, *cartpole, "minari:CartPole/random-v0")
    assert "imitates the actions of a data set" in refusal(capsys, "CartPole-v1", *out, "--behaviour", "cloning")
    assert not (tmp_path / "new").exists()
    drift = (DRIFT, *out, "--data", str(source))
    assert "there are no transitions of seed 7; there are of 0, 1" in refusal(capsys, *drift, "--data-seed", "7")
    unkept = tmp_path / "unkept"
    train(settings_of(frames=20), out=unkept, processes=0, progress=False)
    assert "has not kept its transitions" in refusal(capsys, DRIFT, *out, "--data", str(unkept))
