"""`ipe train`, `ipe evaluate` and `ipe watch`, as a user runs them."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from pydantic import BaseModel

from ipe.behaviours import Behaviour, Hyperparameter
from ipe.cli.interrupt import hearing_signals
from ipe.cli.options import option_names
from ipe.cli.parsing import parse
from ipe.cli.seeds import seeds_option, trained_seeds
from ipe.cli.settings_options import changes, options_of
from ipe.cli.train import Arguments
from ipe.cli.training_progress import batch_line, seconds_left, table_lines
from ipe.cli.training_report import best_trailing
from ipe.cli.training_settings import settings_from
from ipe.deep import Progress, SeedProgress, TrainingSettings, default_settings, paper_settings
from ipe.deep.environments import episode_seed
from ipe.deep.settings import extra_fields
from ipe.entropy import softmax
from ipe.errors import InputError
from ipe.experiments.results import load_results
from ipe.experiments.status import sweep_status
from tests.needs import ROOT, Run

OWN = "tests.test_cli_train:"
SMALL = ("--width", "8", "--batch", "4", "--replay", "500", "--processes", "0")


class Wandering(gymnasium.Env):  # type: ignore[misc]
    """A random vector; ends after ten steps. What its options say, happens at a frame counted over its episodes.

    Args:
        dies_at: the process ends there.
        sleeps_at: the step takes half a minute there, with a file "asleep" in the current folder to tell.
        fails_at: it raises there, if the seed of its first episode was even.
    """

    def __init__(self, dies_at: int = 0, sleeps_at: int = 0, fails_at: int = 0) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._at = {dies_at: "die", sleeps_at: "sleep", fails_at: "fail"}
        self._frames, self._parity = 0, -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._t = 0
        self._parity = (seed or 0) % 2 if self._parity < 0 else self._parity
        return self.observation_space.low * 0.5, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._frames += 1
        self._t += 1
        what = self._at.get(self._frames)
        if what == "die":
            os._exit(5)
        if what == "sleep":
            Path("asleep").touch()
            time.sleep(30.0)
        if what == "fail" and self._parity == 0:
            raise OSError("the wheel came off")
        x = self.np_random.uniform(-1.0, 1.0, 3).astype(np.float32)
        return x, float(action), self._t == 10, False, {}


bold = Behaviour(
    "bold",
    "with probabilities in proportion to exp(boldness Q)",
    probabilities=lambda view, numbers: softmax(numbers["boldness"] * view.q, view.allowed),
    hyperparameters=(Hyperparameter("boldness", "How much larger values are preferred.", 2.0, high=10.0),),
)


if "Wandering-v0" not in gymnasium.registry:
    gymnasium.register("Wandering-v0", entry_point=Wandering)


def process(*words: str, **options: Any) -> subprocess.Popen[str]:
    """`ipe` as a process of its own."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": variables}
    return subprocess.Popen([sys.executable, "-m", "ipe", *words], **{**pipes, **options})


# The options are those of the settings.


def settings_of(*words: str) -> TrainingSettings:
    arguments = parse(Arguments, words, "ipe train")
    assert arguments is not None
    return settings_from(str(arguments.environment), changes(arguments.training), arguments.settings)


def model_paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from model_paths(kind, f"{prefix}{name}.")
        else:
            yield prefix + name


def test_every_setting_has_an_option() -> None:
    expected = {path.replace("_", "-") for path in model_paths(TrainingSettings)}
    expected = (expected - {"environment.id", "environment.frame-limit"}) | {"frame-limit"}
    others = {
        "environment",
        "resume",
        "seeds",
        "out",
        "processes",
        "batch-seeds",
        "checkpoint-seconds",
        "evaluate-every",
        "evaluate-episodes",
        "data-seed",
        "keep-transitions",
        "tensorboard",
    }
    others |= {"settings", "plan"}
    numbers = {name.replace("_", "-") for name in extra_fields()}
    assert expected | others <= set(option_names(Arguments)) <= expected | others | numbers


def test_help_has_a_text_and_a_default_for_every_option(run: Run) -> None:
    code, out, _ = run("train", "--help")
    text = " ".join(out.split())
    assert code == 0
    for name in set(option_names(Arguments)) - {"environment"}:
        assert re.search(rf"--{re.escape(name)} .*?\w+ \w+", text), name
    for part in ("epsilon options", "optimiser options", "environment options", "training options"):
        assert part in out
    assert (
        "Frames between copies of the Q-network to the target network. 1: no target network. (default: 500; "
        "MinAtar 100)" in text
    )
    assert re.search(r"\(default: 128; 256 with [^)]*boltzmann[^)]* epsilon-greedy[^)]*; MinAtar 128\)", text)
    assert "(default: none; LunarLander 5000)" in text
    assert "delta^2 (paper), |delta| (absolute), or another of the policy updates." in text
    assert not re.search(r":math:|\\|`", out.partition("training options")[2])


def in_environment(settings: TrainingSettings, **own: Any) -> TrainingSettings:
    return settings.model_copy(update={"environment": settings.environment.model_copy(update=own)})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("LunarLander-v3", paper_settings("LunarLander-v3")),
        ("minatar/Freeway --behaviour=ipe", paper_settings("minatar/Freeway", "ipe")),
        ("X --frames 2e6 --frame_limit 1000", in_environment(paper_settings("X", frames=2_000_000), frame_limit=1000)),
        (
            "minatar/Freeway --behaviour epsilon-greedy --epsilon.final 0.1 --epsilon.kind exponential",
            paper_settings("minatar/Freeway", "epsilon-greedy", epsilon={"final": 0.1, "kind": "exponential"}),
        ),
        ("X --behaviour boltzmann --temperature .5", paper_settings("X", "boltzmann", temperature=0.5)),
        (
            "X --optimiser.kind adam --optimiser.momentum 0.8 --optimiser.clip 10",
            paper_settings("X", optimiser={"kind": "adam", "momentum": 0.8, "clip": 10.0}),
        ),
        (
            "FrozenLake-v1 --gamma 0.9 --width 64 --value-step-size 1e-4 --policy-step-size 1e-5 --target-period 7 "
            "--batch 16 --replay 1000 --warm-up 9 --update-every 4 --policy-update absolute --entropy-bonus .1 "
            "--delta-q online --double-q --huber 1 --n-step 3 --precision bfloat16",
            paper_settings(
                "FrozenLake-v1", gamma=0.9, width=64, value_step_size=1e-4, policy_step_size=1e-5, target_period=7,
                batch=16, replay=1000, warm_up=9, update_every=4, policy_update="absolute", entropy_bonus=0.1,
                delta_q="online", double_q=True, huber=1.0, n_step=3, precision="bfloat16",
            ),
        ),
        (
            "X --environment.options sticky_action_prob=0.2,minimal_actions=true,n=3,name=a",
            in_environment(
                paper_settings("X"), options={"sticky_action_prob": 0.2, "minimal_actions": True, "n": 3, "name": "a"}
            ),
        ),
        ("X --environment.options=k=1 --gamma=0", in_environment(paper_settings("X", gamma=0.0), options={"k": 1})),
    ],
)  # fmt: skip
def test_options_reach_the_settings(words: str, expected: TrainingSettings) -> None:
    assert settings_of(*shlex.split(words)) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("CartPole-v1", default_settings("CartPole-v1")),
        ("CartPole-v1 --settings tuned --gamma .9", default_settings("CartPole-v1", gamma=0.9)),
        ("CartPole-v1 --optimiser.momentum .5", default_settings("CartPole-v1", optimiser={"momentum": 0.5})),
        ("CartPole-v1 --settings paper", paper_settings("CartPole-v1")),
        ("LunarLander-v3 --settings paper --width 64", paper_settings("LunarLander-v3", width=64)),
    ],
)
def test_whose_settings_a_run_starts_from(words: str, expected: TrainingSettings) -> None:
    assert settings_of(*words.split()) == expected


@pytest.mark.slow
def test_the_first_line_says_whose_settings(run: Run) -> None:
    few = ("--frames", "20", "--processes", "0")
    for i, (words, said) in enumerate(
        {
            "CartPole-v1": "CartPole-v1, epsilon-ipe, tuned settings: 1 seed of 20 frames, in r0\n",
            "CartPole-v1 --width 8 --epsilon.final .1 --behaviour epsilon-greedy": "CartPole-v1, epsilon-greedy, tuned "
            "settings but for --width, --epsilon.final: 1 seed of 20 frames, in r1\n",
            "CartPole-v1 --settings paper": "CartPole-v1, epsilon-ipe, the paper's settings for LunarLander: 1 seed of",
        }.items()
    ):
        code, _, err = run("train", *words.split(), "--out", f"r{i}", *few)
        assert code == 0
        assert err.startswith(said)


def test_the_numbers_of_a_behaviour_of_the_users_are_options(run: Run, tmp_path: Path) -> None:
    named = ("train", "CartPole-v1", "--behaviour", f"{OWN}bold")
    code, out, _ = run(*named, "--help")
    assert code == 0
    assert "--boldness X How much larger values are preferred. (default: 2)" in " ".join(out.split())
    assert run(*named, "--boldness", "3.5", "--frames", "20", "--out", "mine", *SMALL)[0] == 0
    (setting,) = load_results(tmp_path / "mine").sweep.settings
    assert setting.settings.model_dump()["boldness"] == 3.5
    code, out, _ = run("train", "--help")
    assert "--boldness" not in out


@pytest.mark.slow
def test_a_plan_starts_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("train", "CartPole-v1", "--seeds", "3", "--processes", "2", "--plan")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines()[1:] if line)
    assert code == 0
    assert out.splitlines()[0] == "CartPole-v1 epsilon-ipe"
    assert rows["runs"] == "3 (3 seeds each), in 1 job"
    assert re.fullmatch(r"about [\d.]+[MG]B in 1 process, of [\d.]+[MG]B available here", rows["memory"])
    assert "time" in rows
    assert not list(tmp_path.iterdir())


def test_options_of_any_model() -> None:
    options = options_of(Model, {"flag": "true", "off": "", "word": "none", "part.x": "1"})
    parsed: Any = parse(options, ["--flag", "false", "--off", "--word", "w", "--part.x", "2"], "test")
    assert changes(parsed) == {"flag": False, "off": True, "word": "w", "part": {"x": 2.0}}
    assert changes(options()) == {}


class Part(BaseModel):
    """A part."""

    x: float = 1.0
    """A number."""


class Model(BaseModel):
    """Fields that the settings do not have."""

    flag: bool = True
    """On."""
    off: bool = False
    """Off."""
    word: str | None = None
    """A word."""
    hidden: int = 3
    """No option."""
    part: Part = Part()
    """Of it."""


WRONG = {
    "train": "ENV is missing, the environment to train on, or --resume RUN",
    "train CartPole-v1 --resume r": "give ENV or --resume RUN, not both; found 'CartPole-v1'",
    "train --resume r --gamma 0.9": "--gamma has no effect with --resume: a run keeps its settings and seeds",
    "train --resume r --seeds 3": "--seeds has no effect with --resume",
    "train --resume r --epsilon.final 0.2": "--epsilon.final has no effect with --resume",
    "train --resume r": "there is no run r",
    "train --resume .": "holds no sweep and no training run: there is no sweep.json in it",
    "train CartPole-v1 --gama 0.9": "there is no option --gama (did you mean --gamma?)",
    "train CartPole-v1 --epsilon.fnal 0.9": "there is no option --epsilon.fnal (did you mean --epsilon.final?)",
    "train CartPole-v1 --settings.gamma 1": "there is no option --settings.gamma",
    "train CartPole-v1 --settings papers": "--settings must be one of 'tuned', 'paper'; found 'papers'",
    "train Taxi-v3 --settings tuned": "no settings were tuned for Taxi-v3, only for CartPole-v1, Acrobot-v1",
    "train --resume r --settings paper": "--settings has no effect with --resume",
    "train --resume r --plan": "--plan has no effect with --resume",
    "train CartPole-v1 --behaviour tests.no_such:thing": "tests.no_such:thing",
    f"train CartPole-v1 --behaviour {OWN}bold --boldness 11": "boldness = 11 must be in [0, 10]",
    f"train CartPole-v1 --behaviour {OWN}bold --boldnes 3": "no option --boldnes (did you mean --boldness?)",
    "train CartPole-v1 --boldness 3": "there is no option --boldness",
    "train CartPole-v1 --environment.frame-limit 9": "there is no option --environment.frame-limit",
    "train CartPole-v1 --lr 0.1": "there is no option --lr: the step sizes are --value-step-size and",
    "train CartPole-v1 --gpu": "there is no option --gpu: training runs on the processor's cores",
    "train CartPole-v1 --frames ٣": "--frames must be a whole number, found '٣'",
    "train CartPole-v1 --seeds ٣": "--seeds must be how many",
    "train CartPole-v1 --gamma 0.9 --gamma 0.8": "--gamma is given twice",
    "train CartPole-v1 --gamma 1": "gamma: input should be less than 1, found 1.0",
    "train CartPole-v1 --gamma nan": "gamma: ",
    "train CartPole-v1 --gamma x": "--gamma must be a number, found 'x'",
    "train CartPole-v1 --frames 1.5": "--frames must be a whole number, found '1.5'",
    "train CartPole-v1 --frames 1e99": "--frames must be a whole number, found '1e99'",
    "train CartPole-v1 --frames 0": "frames: input should be greater than or equal to 1, found 0",
    "train CartPole-v1 --precision float64": "--precision must be one of 'float32', 'bfloat16'; found 'float64'",
    "train CartPole-v1 --behaviour greedy": "--behaviour must be one of ",
    "train CartPole-v1 --seeds x": "--seeds must be how many, or which ones with commas as in 3,5,8; found 'x'",
    "train CartPole-v1 --seeds 0": "seeds must be from 1 to a million, found 0",
    "train CartPole-v1 --seeds 3,3": "seeds[1] = 3 is there twice",
    "train CartPole-v1 --processes -1": "processes must be 0 or more, found -1",
    "train CartPole-v1 --batch-seeds 0": "batch_seeds must ",
    "train CartPole-v1 --checkpoint-seconds nan": "checkpoint_seconds must be 0 or more, found nan",
    "train CartPole-v1 --out ''": "--out is empty",
    "train CartPole-v1 --out .": ". exists and is not an empty folder",
    "train CartPole-v1 --environment.options x": "--environment.options: parameters are key=value",
    "train CartPole-v1 --environment.options x=1": "CartPole-v1(x=1) cannot be made",
    "train CartPole-v1 --epsilon.final 0.2": "--epsilon.final has no effect with the behaviour epsilon-ipe; it is for",
    "train CartPole-v1 --temperature 2": "--temperature has no effect with the behaviour epsilon-ipe; "
    "it is for boltzmann",
    "train CartPole-v1 --behaviour epsilon-greedy --policy-step-size 1": "--policy-step-size has no effect with the "
    "behaviour epsilon-greedy; it is for cloning, conservative, ",
    "train CartPole-v1 --behaviour boltzmann --delta-q online": "--delta-q has no effect with the behaviour boltzmann",
    "train CartPole-v1 --settings paper --optimiser.momentum .5": "--optimiser.momentum has no effect with rmsprop",
    "train CartPole-v1 --channels 8": "--channels has no effect with CartPole-v1, which shows vectors",
    "train CartPol-v1": "there is no environment 'CartPol-v1' (did you mean CartPole-v1?)",
    "train Pendulum-v1": "Pendulum-v1: expected a Discrete action space",
    "evaluate": "RUN is missing",
    "evaluate r": "there is no run r",
    "evaluate . --episodes 0": "episodes must be a whole number >= 1, found 0",
    "evaluate . --seeds x": "--seeds must be trained seeds with commas between them, as in 0,3; found 'x'",
    "evaluate . --seed -1": "seed must be a whole number from 0 to 2^63 - 1, found -1",
    "watch r": "--out FILE is missing",
    "watch r --out x.png": "--out x.png: the suffix must be .gif; found .png",
    "watch r --out no/x.gif": "--out no/x.gif: there is no folder ",
    "watch r --out mine.gif": "--out mine.gif exists; give --overwrite to replace it",
    "watch r --out x.gif": "there is no run r",
    "watch r --out x.gif --fps 100": "fps must lie between 1 and 50, found 100",
    "watch r --out x.gif --episodes 0": "episodes must be a whole number >= 1",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_input_gets_one_sentence_and_writes_nothing(run: Run, tmp_path: Path, line: str) -> None:
    (tmp_path / "mine.gif").write_bytes(b"mine")
    code, out, err = run(*shlex.split(line))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert WRONG[line] in err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.gif"]
    assert (tmp_path / "mine.gif").read_bytes() == b"mine"


def test_without_gymnasium(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    code, _, err = run("train", "CartPole-v1")
    assert code == 2
    assert "'CartPole-v1' needs Gymnasium, which is not installed: pip install" in err


# Training.


def test_train_resume_evaluate(run: Run, tmp_path: Path) -> None:
    words = ("train", f"{OWN}Wandering-v0", *SMALL, "--seeds", "3,5")
    code, out, err = run(*words, "--frames", "300", "--out", "a")
    assert code == 0
    origin = "the paper's settings for LunarLander but for --width, --batch, --replay"
    assert f"{OWN}Wandering-v0, epsilon-ipe, {origin}: 2 seeds of 300 frames, in a\n" in err
    assert "seeds 3, 5: frame 300 of 300, return of the last 20 episodes " in err
    assert err.rstrip().endswith("; done")
    header, *rows, empty, wrote, following = out.splitlines()
    assert header.split() == ["seed", "status", "episodes", "return", "(last", "20)", "best", "(20)", "AUC"]
    assert (empty, wrote[:9]) == ("", "wrote a/:")
    assert following == "next: ipe evaluate a; ipe curves a --out curves.png; ipe watch a --out run.gif"
    table = load_results(tmp_path / "a").episodes.to_pydict()
    for row, seed in zip(rows, (3, 5), strict=True):
        own = [r for r, s in zip(table["return"], table["seed"], strict=True) if s == seed]
        assert row.split()[:3] == [str(seed), "done", "30"]
        assert float(row.split()[3]) == pytest.approx(np.mean(own[-20:]), abs=0.005)
        assert float(row.split()[4]) == pytest.approx(max(np.mean(own[i : i + 20]) for i in range(11)), abs=0.005)

    assert run("train", "a")[2] == "ipe train: a holds a run; go on with it: ipe train --resume a\n"
    assert "a holds a run; go on with it: ipe train --resume a; or choose another" in run(*words, "--out", "a")[2]
    code, out, err = run("train", "--resume", "a", "--frames", "500", "--processes", "0")
    assert code == 0
    assert "2 seeds of 500 frames" in err
    assert run(*words, "--frames", "500", "--out", "b")[1].splitlines()[:3] == out.splitlines()[:3]
    (one,), (other,) = ((tmp_path / name).glob("results/*/*.safetensors") for name in ("a", "b"))
    assert one.read_bytes() == other.read_bytes()
    assert load_results(tmp_path / "a").episodes.equals(load_results(tmp_path / "b").episodes)

    code, out, err = run("evaluate", "a", "--episodes", "5")
    assert (code, err) == (0, "")
    assert "policy: greedy on Q; 5 new episodes per trained seed (evaluation seed 0)" in out
    assert "mean over 2 trained seeds" in out
    code, out, err = run("evaluate", "a", "--episodes", "5", "--behaviour", "--seeds", "5", "--seed", "3", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["policy"], found["seed"], found["episodes"]) == ("epsilon-ipe, from the policy network", 3, 5)
    assert (found["standard_error"], [own["seed"] for own in found["seeds"]]) == (None, [5])
    assert found["seeds"][0]["lengths"] == [10] * 5
    assert found["mean"] == np.mean(found["seeds"][0]["returns"])


@pytest.mark.slow
def test_evaluate_several_runs_side_by_side(run: Run, tmp_path: Path) -> None:
    for name, more in (("a", ()), ("b", ("--behaviour", "epsilon-greedy", "--gamma", "0.9"))):
        assert (
            run("train", f"{OWN}Wandering-v0", "--frames", "40", "--seeds", "2", "--out", name, *more, *SMALL)[0] == 0
        )
    code, out, _ = run("evaluate", "a", "b", "--episodes", "3")
    assert code == 0
    title, _, head, *rows = out.splitlines()
    assert title == f"{OWN}Wandering-v0: greedy on Q; 3 new episodes per trained seed (evaluation seed 0)"
    assert head.split() == ["run", "seeds", "mean", "return", "standard", "error", "worst", "seed", "best", "seed"]
    assert [row.split()[:2] for row in rows[:2]] == [["epsilon-ipe", "2"], ["epsilon-greedy", "2"]]
    alone = json.loads(run("evaluate", "b", "--episodes", "3", "--json")[1])
    assert rows[1].split()[2] == f"{alone['mean']:.2f}"
    assert rows[3].split() == ["settings", "that", "differ", "epsilon-ipe", "epsilon-greedy"]
    assert rows[4].split() == ["gamma", "0.99", "0.9"]
    assert rows[-1] == "next: ipe curves a b --out curves.png"
    both = json.loads(run("evaluate", "a", "b", "--episodes", "3", "--json")[1])
    assert both["runs"][1] == alone


def test_a_folder_that_is_in_use_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine.txt").write_text("mine")
    code, _, err = run("train", f"{OWN}Wandering-v0", *SMALL, "--out", "a")
    assert code == 2
    assert "a exists and is not an empty folder" in err
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["mine.txt"]


def test_seeds_that_fail_are_said_and_the_others_count(run: Run) -> None:
    bad, good = (next(seed for seed in range(99) if episode_seed(seed, 0) % 2 == parity) for parity in (0, 1))
    words = ("train", f"{OWN}Wandering-v0", *SMALL, "--frames", "120", "--environment.options", "fails_at=45")
    code, out, err = run(*words, "--seeds", f"{bad},{good}", "--out", "some")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()[1:3]] == [
        [str(bad), "failed", "4"],
        [str(good), "done", "12"],
    ]
    failed = f"seed {bad} failed at frame 45: at step 4 of episode 4: OSError: the wheel came off"
    assert err.splitlines()[-1] == f"ipe train: {failed}"
    code, out, err = run(*words, "--seeds", f"{bad},", "--out", "none")
    assert code == 3
    assert out.splitlines()[1].split()[:2] == [str(bad), "failed"]
    assert err.splitlines()[-1] == f"ipe train: {failed}"
    assert run("evaluate", "none") == (2, "", f"ipe evaluate: none: there is no seed to evaluate; {failed}\n")
    code, out, err = run("evaluate", "some", "--episodes", "1")
    assert code == 0
    assert out.splitlines()[-2:] == [f"left out: {failed}", "next: ipe watch some --out run.gif; ipe audit some"]


@pytest.mark.slow
def test_a_process_that_dies_is_exit_code_1(run: Run) -> None:
    words = ("train", f"{OWN}Wandering-v0", *SMALL[:-2], "--processes", "1", "--frames", "100", "--out", "a")
    code, out, err = run(*words, "--environment.options", "dies_at=50")
    assert code == 1
    assert "running" in out
    assert "ipe train: epsilon-ipe, seed 0: its process ended 3 times before the next checkpoint; " in err
    assert "the last ended with exit code 5" in err
    assert err.splitlines()[-1].endswith("; go on with: ipe train --resume a")
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_an_environment_that_does_not_repeat_itself_is_a_note(run: Run) -> None:
    code, _, err = run("train", "tests.environments:Unseeded-v0", *SMALL, "--frames", "20", "--out", "a")
    assert code == 0
    assert "ipe train: note: tests.environments:Unseeded-v0 does not repeat itself from the same seed" in err


def test_best_trailing() -> None:
    assert best_trailing([1.0, 2.0]) == 1.5
    assert best_trailing([*[0.0] * 20, *[1.0] * 20, 5.0]) == 24 / 20


# Signals.


def wait_for(child: subprocess.Popen[str], text: str, seconds: float = 180.0) -> list[str]:
    """Read standard error until a line has this text."""
    assert child.stderr is not None
    timer = threading.Timer(seconds, child.kill)
    timer.start()
    lines = []
    for line in child.stderr:
        lines.append(line)
        if text in line:
            break
    timer.cancel()
    assert lines, "it said nothing"
    assert text in lines[-1], "".join(lines)
    return lines


@pytest.mark.parametrize(
    ("number", "code", "processes"),
    [(signal.SIGINT, 130, "1"), pytest.param(signal.SIGTERM, 143, "0", marks=pytest.mark.slow)],
)
def test_signals_stop_with_a_checkpoint(run: Run, tmp_path: Path, number: int, code: int, processes: str) -> None:
    words = ("train", "CartPole-v1", *SMALL[:-2], "--frames", "1e7", "--processes", processes, "--out", "my run")
    child = process(*words, cwd=tmp_path)
    wait_for(child, "seed 0: frame")
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (code, "")
    said = re.fullmatch(
        r"ipe train: stopped at frame (\d+); go on with: ipe train --resume 'my run'", err.splitlines()[-1]
    )
    assert said is not None, err
    assert sweep_status(tmp_path / "my run").total.waiting == 1
    (manifest,) = (tmp_path / "my run").glob("work/*/checkpoint-*.json")
    assert int(manifest.name.split("-")[1]) == int(said[1]) > 0
    assert run("evaluate", "my run", "--episodes", "2")[0] == 0


@pytest.mark.slow
def test_a_second_control_c_does_not_wait(tmp_path: Path) -> None:
    words = ("train", f"{OWN}Wandering-v0", *SMALL, "--frames", "1e6", "--out", "a")
    child = process(*words, "--environment.options", "sleeps_at=40", cwd=tmp_path)
    deadline = time.monotonic() + 180.0
    while not (tmp_path / "asleep").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    begin = time.monotonic()
    child.send_signal(signal.SIGINT)
    time.sleep(1.0)
    assert child.poll() is None, "the first one waits for the step to end"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert time.monotonic() - begin < 15.0
    assert child.returncode == 130
    assert "interrupted at once; go on from the last checkpoint with: ipe train --resume a" in err
    assert "Traceback" not in err


def test_which_signal_it_was() -> None:
    def hear(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, hear)
    try:
        with hearing_signals() as heard:
            assert heard() == []
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            assert heard() == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signal.set_wakeup_fd(-1) == -1


# Progress.


def test_the_table_is_drawn_in_place_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    code, _, err = run("train", f"{OWN}Wandering-v0", *SMALL, "--seeds", "2", "--frames", "500", "--out", "a")
    assert code == 0
    begin, *tables = err.split("\033[J")
    title = f"{OWN}Wandering-v0, epsilon-ipe, the paper's settings for LunarLander but for --width"[:79]
    assert begin == f"{title}\n\033[1F"  # one line, and back up
    assert len(tables) >= 2
    assert all(table.endswith("\033[6F") for table in tables[:-1])  # six lines, and back up
    first, header, *rows, left, stop = tables[-1].splitlines()
    assert first == title
    assert re.fullmatch(r"seed +frame +episodes +return \(last 20\) +epsilon +frames/s", header)
    assert [row.split()[:4] for row in rows] == [[seed, "500", "/", "500"] for seed in ("0", "1")]
    assert re.fullmatch(r"done; [\d.]+ MB of memory per seed", left)
    assert stop == "Ctrl-C stops, with a checkpoint; go on with: ipe train --resume a"


def progress(batch: int, frame: int, seeds: list[int], status: str = "running") -> Progress:
    reason = "the wheel came off" if status == "failed" else ""
    own = [SeedProgress(seed, status, frame, 5, -1.25, 0.5, reason) for seed in seeds]
    return Progress(batch, frame, 1000, 100.0, 27_000_000, own)


def test_time_left() -> None:
    one, other = progress(0, 500, [0]), progress(1, 900, [1])
    assert seconds_left({0: one}, {}, 1, 2) is None
    assert seconds_left({0: one}, {0: 100.0}, 1, 2) == 5.0
    assert seconds_left({0: one, 1: other}, {0: 100.0, 1: 100.0}, 2, 2) == 5.0
    assert seconds_left({0: one, 1: other}, {0: 100.0, 1: 100.0}, 3, 2) == 11.0  # after the second: 1 + 10
    assert seconds_left({0: one, 1: other}, {0: 100.0, 1: 100.0}, 3, 1) == 16.0
    assert seconds_left({0: progress(0, 1000, [0])}, {}, 1, 2) == 0.0
    assert seconds_left({0: progress(0, 400, [0], "failed")}, {0: 10.0}, 1, 2) == 0.0


def test_rows_of_the_table() -> None:
    latest = {0: progress(0, 500, [0, 1]), 1: progress(1, 300, [2], "failed")}
    lines = table_lines(latest, {0: 100.0}, [[0, 1], [2], [3]], 61.0, Path("r"), 20)
    assert [line.split() for line in lines[1:5]] == [
        ["0", "500", "/", "1000", "5", "-1.25", "0.500", "100"],
        ["1", "500", "/", "1000", "5", "-1.25", "0.500", "100"],
        ["2", "300", "/", "1000", "5", "-1.25", "0.500", "failed"],
        ["3", "waiting"],
    ]
    assert lines[5:] == [
        "seed 2 failed at frame 300: the wheel came off",
        "about 61 s left; 27 MB of memory per seed",
        "Ctrl-C stops, with a checkpoint; go on with: ipe train --resume r",
    ]
    many = {0: progress(0, 500, list(range(50)))}
    lines = table_lines(many, {}, [list(range(50))], None, Path("r"), 12)
    assert len(lines) == 12
    assert lines[9:11] == ["... and 42 seeds more", "time left not known yet; 27 MB of memory per seed"]


def test_a_batch_in_one_line() -> None:
    assert batch_line(progress(0, 500, [4, 7]), [4, 7], 99.6, 5.0) == (
        "seeds 4, 7: frame 500 of 1000, return of the last 20 episodes -1.25, 100 frames/s, 27 MB of memory per seed; "
        "about 5 s left"
    )
    assert batch_line(progress(1, 300, [2], "failed"), [2], None, 0.0).endswith(
        "MB of memory per seed, seed 2 failed; done"
    )


# Watching.


def test_watch(run: Run, tmp_path: Path) -> None:
    assert run("train", "CartPole-v1", *SMALL, "--frames", "30", "--out", "a")[0] == 0
    code, out, err = run("watch", "a", "--out", "cart.gif", "--frame-limit", "7")
    assert (code, err) == (0, "")
    sentence = "wrote cart.gif: seed 0, greedy on Q; return 7.00 after 7 frames; 8 pictures"
    assert out.splitlines() == [sentence, "next: ipe evaluate a; ipe audit a"]
    assert (tmp_path / "cart.gif").read_bytes().startswith(b"GIF89a")
    code, out, err = run("watch", "a", "--out", "cart.gif")
    assert code == 2
    code, out, err = run("watch", "a", "--out", "cart.gif", "--overwrite", "--behaviour", "--seed-of-run", "0")
    assert code == 0
    assert out.startswith("wrote cart.gif: seed 0, epsilon-ipe, from the policy network; return ")
    assert "the run has no seed 4; it has 0" in run("watch", "a", "--out", "b.gif", "--seed-of-run", "4")[2]


def test_watch_an_environment_that_cannot_be_drawn(run: Run, tmp_path: Path) -> None:
    assert run("train", f"{OWN}Wandering-v0", *SMALL, "--frames", "20", "--out", "a")[0] == 0
    code, out, err = run("watch", "a", "--out", "a.gif")
    assert (code, out) == (2, "")
    assert err == f"ipe watch: {OWN}Wandering-v0 cannot be drawn: it has no render mode rgb_array\n"
    assert not (tmp_path / "a.gif").exists()


@pytest.mark.parametrize("text", ["x", "9" * 20, "1," + "9" * 5000])
def test_seeds_that_are_none(text: str) -> None:
    for read in (seeds_option, trained_seeds):
        with pytest.raises(InputError, match="--seeds must be") as caught:
            read(text)
        assert len(str(caught.value)) < 200
