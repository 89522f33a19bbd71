"""Several environments per agent: every frame against the specification, bytes, stops, stacks of frames, failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import ipe
from ipe.cli.program import main
from ipe.deep import evaluate, paper_settings, resume, train
from ipe.deep.checkpoints import load_checkpoint, save_checkpoint
from ipe.deep.environments import episode_seed, make_environment
from ipe.deep.loop import Loop
from ipe.deep.randomness import environment_seed
from ipe.deep.replay import TRUNCATED, Slots
from ipe.errors import InputError
from ipe.experiments import make_sweep
from tests.deep_helpers import DRIFT, advance, networks_of, result, run, small
from tests.deep_oracle import Oracle, Transition, kept
from tests.environment_helpers import OWN
from tests.environments import mark
from tests.test_deep_learner import ADAM, adopt, distance
from tests.tiers import tiered


class Several(Oracle):
    """One seed in training in k environments, after the specification: k frames, then k updates."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        settings, seed = arguments[:2]
        self.each = settings.environments
        more = [make_environment(settings.environment, environment_seed(seed, j)) for j in range(1, self.each)]
        self.worlds = [self.environment, *more]
        self.shown = [self.observation, *(self._read(world.reset()) for world in more)]
        self.streams: list[list[Transition]] = [[] for _ in self.worlds]
        self.actions: list[int] = []
        self.choose()

    def choose(self) -> None:
        before, self.actions = self.frame, []
        for j, observation in enumerate(self.shown):
            self.frame, self.observation = before + j, observation
            self.actions.append(self._act())
        self.frame = before

    def advance(self) -> None:
        own = self.settings
        for j, world in enumerate(self.worlds):
            step = world.step(self.actions[j])
            end = "terminated" if step.terminated else "truncated" if step.truncated else ""
            after = self._read(step.observation)
            self.streams[j].append(Transition(self.shown[j], self.actions[j], step.reward, after, end))
            self.shown[j] = self._read(world.reset()) if end else after
        parts = [stream[len(stream) - kept(stream, own.replay // self.each) :] for stream in self.streams]
        self.history = [transition for part in parts for transition in part]
        self.ends = set(np.cumsum([len(part) for part in parts]).tolist())
        self.powers = [1.0] * len(self.history)
        for _ in range(self.each):
            minibatch = [int(u * len(self.history)) for u in self.draws.batch(self.frame)[0]]
            self.frame += 1
            beyond = self.frame - own.warm_up
            if beyond > 0 and beyond % own.update_every == 0:
                self._update(minibatch)
            if beyond > 0 and self.frame % own.target_period == 0:
                self.target = [w.copy() for w in self.q]
        self.choose()

    def borders(self) -> set[int]:
        return self.ends


CASES: dict[str, dict[str, Any]] = {
    "three, the paper's, replay of 30": {"environments": 3, "replay": 30},
    "two, three steps, warm-up, every second frame, double": {
        "environments": 2, "n_step": 3, "warm_up": 9, "update_every": 2, "double_q": True},
    "five, epsilon-greedy, adam, dueling": {
        "environments": 5, "behaviour": "epsilon-greedy", "epsilon": {"final": 0.1, "steps": 50}, "optimiser": ADAM,
        "dueling": True, "width": 32, "replay": 60},
    "two, delta as DQN's": {"environments": 2, "delta_q": "dqn", "n_step": 2},
    "three, mixed steps by entropy": {
        "environments": 3, "n_step": 3, "traces": {"kind": "peng", "decay_from": "actions"}, "replay": 30},
}  # fmt: skip


@pytest.mark.parametrize("case", tiered(CASES, "three, the paper's, replay of 30"))
def test_every_frame_is_the_specifications(case: str) -> None:
    values = {"environment": {"frame_limit": 7}, **CASES[case]}
    settings = small(DRIFT, values.pop("behaviour", "epsilon-ipe"), **{"frames": 30_000, **values})
    other = settings.model_copy(update={"gamma": 0.7, "target_period": 11})
    loop = Loop([settings, other], [0, 4])
    first = {name: networks_of(loop, name) for name in ("q", "policy" if loop.program.learns_policy else "q")}
    policies = first.get("policy", first["q"])
    oracles = [Several(loop.settings[i], loop.seeds[i], first["q"][i], policies[i]) for i in range(2)]
    each = settings.environments
    for group in range(1, 60 // each + 1):
        loop.advance()
        assert loop.frame == group * each
        actions = loop.checkpoint().arrays["actions"][: 2 * each].reshape(2, each)
        for i, oracle in enumerate(oracles):
            oracle.advance()
            assert actions[i].tolist() == oracle.actions, group
        for name in (name for name in ("q", "target", "policy") if name != "policy" or loop.program.learns_policy):
            for found, oracle in zip(networks_of(loop, name), oracles, strict=True):
                assert distance(found, getattr(oracle, name)) < each * 1e-2 * 1e-2 + 2e-7, (group, name)
        adopt(loop, oracles)  # type: ignore[arg-type]
    ends = {transition.end for oracle in oracles for stream in oracle.streams for transition in stream}
    assert ends == {"", "terminated", "truncated"}


def test_draws_are_uniform_over_what_all_rings_keep() -> None:
    slots = Slots(4, 5, environments=2)  # two seeds of two environments
    out = np.zeros((4, 3), np.int32)
    for t in range(9):  # the first environment of each seed truncates every episode at once, and keeps fewer
        slots.push(np.array([True, t == 0, True, False]), out)
    kept_now = (slots.count - slots.oldest).reshape(2, 2)
    assert kept_now[0, 0] < kept_now[0, 1] == 5
    n = int(slots.kept[0])
    found = np.zeros((2, n), np.int32)
    slots.sample(np.tile((np.arange(n) + 0.5) / n, (2, 1)), found)
    assert len(set(found[0].tolist())) == n
    assert (found[0] // slots.size).tolist() == [0] * kept_now[0, 0] + [1] * 5


@pytest.mark.slow
def test_no_transition_crosses_an_episode_or_an_environment() -> None:
    options = {"terminate_after": 6, "vary": True, "truncate_after": 4}
    settings = small(OWN + "Counting-v0", environment={"options": options}, environments=4)
    loop = run(settings, [0, 5], 75)
    slots, arrays = loop.slots, loop.checkpoint().arrays
    observations, steps = arrays["state.replay.observation"], arrays["state.replay.step"]
    n = int(slots.kept.min())
    out = np.zeros((2, n), np.int32)
    slots.sample(np.tile((np.arange(n) + 0.5) / n, (2, 1)), out)
    for i, seed in enumerate([0, 5]):
        ring, slot = np.divmod(out[i], slots.size)
        here = observations[(i * 4 + ring) * slots.size + slot]
        after = observations[(i * 4 + ring) * slots.size + (slot + 1) % slots.size]
        step = steps[(i * 4 + ring) * slots.size + slot]
        for j in range(4):
            marks = {mark(environment_seed(seed, j), episode) for episode in range(80)}
            assert set(here[ring == j, 0]) <= marks
        assert np.array_equal(step[:, 1], 3 * here[:, 1] + step[:, 0])
        goes_on = step[:, 2] != 1
        assert np.array_equal(after[goes_on], here[goes_on] + [0, 1])
        assert (step[:, 2] == TRUNCATED).any()


@pytest.mark.slow
def test_episodes_have_the_frames_of_their_environments() -> None:
    loop = run(small(OWN + "Counting-v0", environment={"options": {"terminate_after": 4}}, environments=2), [0], 10)
    arrays = loop.records.arrays()
    assert arrays["episodes.frame"].tolist() == [7, 8, 15, 16]  # the fourth steps are the frames 7 and 8
    assert set(arrays["episodes.length"]) == {4}


# ---- bytes


CHANGES: list[Any] = [
    pytest.param({"environments": 2, "warm_up": 10, "update_every": 3}, marks=pytest.mark.slow),
    {"environments": 4, "priority": {"exponent": 0.6, "steps": 50}, "dueling": True, "width": 32},
    pytest.param({"environments": 3, "width": 18, "n_step": 3, "replay": 63}, marks=pytest.mark.slow),
    pytest.param({"environments": 2, "behaviour": "ez-greedy", "longest": 5.0, "warm_up": 10}, marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize("changes", CHANGES)
def test_a_seed_depends_neither_on_its_batch_nor_on_a_stop(changes: dict[str, Any], tmp_path: Path) -> None:
    values = {"environment": {"frame_limit": 6}, "frames": 36_000, **changes}
    settings = small(DRIFT, values.pop("behaviour", "epsilon-ipe"), **values)
    groups = 120 // settings.environments
    together = run(settings, [0, 1, 2], groups)
    for i in (0, 2):
        assert result(run(settings, [i], groups), 0) == result(together, i)
    loop = run(settings, [0, 1, 2], 7)
    for count in (1, 11, groups - 19):
        save_checkpoint(tmp_path, loop.checkpoint())
        loop = Loop(loop.settings, loop.seeds, load_checkpoint(tmp_path))
        advance(loop, count)
    assert loop.frame == together.frame
    for name, array in together.checkpoint().arrays.items():
        if not name.endswith("frames_per_second"):
            assert loop.checkpoint().arrays[name].tobytes() == array.tobytes(), name


@pytest.mark.slow
def test_stacks_of_frames_resume_to_the_byte_and_learn_as_whole_ones(tmp_path: Path) -> None:
    settings = small("CartPole-v1", environment={"stack": 3, "frame_limit": 12}, environments=2)
    straight, loop = run(settings, [0, 1], 60), run(settings, [0, 1], 33)
    save_checkpoint(tmp_path, loop.checkpoint())
    loop = Loop(loop.settings, loop.seeds, load_checkpoint(tmp_path))
    advance(loop, 27)
    assert [result(loop, i) for i in range(2)] == [result(straight, i) for i in range(2)]
    shape = loop.checkpoint().arrays["state.replay.observation"].shape
    assert shape[1] == 5  # a frame once, and how many came before it


@pytest.mark.slow
def test_images_resume_to_the_byte(tmp_path: Path) -> None:
    settings = small(OWN + "Catch-v0", environments=2)
    straight, loop = run(settings, [0], 40), run(settings, [0], 22)
    save_checkpoint(tmp_path, loop.checkpoint())
    loop = Loop(loop.settings, loop.seeds, load_checkpoint(tmp_path))
    advance(loop, 18)
    assert result(loop, 0) == result(straight, 0)


@pytest.mark.slow
def test_a_checkpoint_holds_the_filled_part_alone() -> None:
    early, late = (run(small(DRIFT, environments=4), [0], n).checkpoint().arrays for n in (2, 60))
    assert early["state.replay.step"].nbytes * 4 < late["state.replay.step"].nbytes


@pytest.mark.slow
def test_a_failing_environment_stops_its_seed_alone() -> None:
    options = {"bad": episode_seed(environment_seed(5, 1), 1), "fault": "raise"}
    settings = small(DRIFT, environment={"options": options}, environments=2)
    loop = run(settings, [5, 2], 100)
    failed, other = loop.outcomes
    assert failed.status == "failed"
    assert failed.frame % 2 == 0  # the second environment's frames are the even ones
    assert failed.reason.startswith("environment 1: ")
    assert other.status == "running"
    assert result(loop, 1) == result(run(settings, [2], 100), 0)


@pytest.mark.slow
def test_the_records_keep_their_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipe.deep.loop.WINDOW", 10)
    loop = run(small(DRIFT, environments=4, frames=48), [0], 12)
    assert loop.done
    assert loop.records.arrays()["progress.frame"].tolist() == [12, 20, 32, 40, 48]
    assert loop.outcomes[0].frame == 48


# ---- from end to end


@pytest.mark.slow
def test_it_trains_resumes_loads_and_evaluates(tmp_path: Path) -> None:
    tiny: dict[str, Any] = {"width": 16, "batch": 8, "replay": 64}
    settings = paper_settings("CartPole-v1", frames=80, environments=4, priority={"exponent": 0.6}, **tiny)
    folder = tmp_path / "run"
    train(settings, out=folder, processes=0, progress=False)
    done = resume(folder, frames=160, processes=0, progress=False)
    assert done.outcomes[0].frame == 160
    whole = train(settings.model_copy(update={"frames": 160}), out=tmp_path / "whole", processes=0, progress=False)
    assert done.episodes.equals(whole.episodes)
    one, other = ipe.load_agent(folder).tensors, ipe.load_agent(tmp_path / "whole").tensors
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert evaluate(folder, episodes=1).seeds[0].returns.size == 1


def test_all_three_are_settings_of_a_sweep() -> None:
    base = {"environment": "CartPole-v1", "frames": 32_000, "width": 32, "batch": 8, "replay": 64}
    grid = {"dueling": [False, True], "environments": [1, 16], "priority.exponent": [0.0, 0.6]}
    content = {"name": "three", "seeds": 2, "base": base, "grid": grid}
    sweep = make_sweep(content)
    assert len({setting.key for setting in sweep.settings}) == 8
    assert {"dueling=true environments=16 priority.exponent=0.6"} <= {setting.name for setting in sweep.settings}
    with pytest.raises(InputError, match=r"halving.frames: 1000 must be a multiple of environments = 16"):
        make_sweep(content | {"halving": {"frames": [1000, 32_000], "runs": [1, 2]}})


@pytest.mark.parametrize(("words", "sentence"), [
    (["--environments", "3"], "must be a multiple of environments = 3"),
    (["--environments", "4", "--replay", "50"], "replay = 50 must be a multiple of environments = 4"),
    (["--environments", "0"], "environments: input should be greater than or equal to 1, found 0"),
])  # fmt: skip
def test_wrong_uses_are_refused(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "CartPole-v1", *words, "--out", str(tmp_path / "run")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_more_frames_must_be_a_multiple_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny: dict[str, Any] = {"width": 16, "batch": 8, "replay": 64, "frames": 8}
    train(paper_settings("CartPole-v1", environments=4, **tiny), out=tmp_path / "run", processes=0, progress=False)
    assert main(["train", "--resume", str(tmp_path / "run"), "--frames", "10"]) == 2
    assert "frames = 10 must be a multiple of environments = 4" in capsys.readouterr().err
