"""The command line: what each command prints and writes, and one sentence for everything that goes wrong."""

from __future__ import annotations

import doctest
import io
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import ipe
from ipe.cli import main, program
from ipe.cli.inputs import read_mdp, read_values
from ipe.cli.polytope import grid_around
from ipe.cli.reproduce import STUDIES
from ipe.cli.solve import Arguments
from ipe.inverse.choice import METHODS_OF, Method
from ipe.mdp_files import load_mdp, save_mdp, save_values
from ipe.polytope import paper_grid, value_polytope
from tests.needs import Run
from tests.tiers import tiered

PLAIN_KEYS = (
    "form", "norm", "achievable", "residual", "residual_lower_bound", "sup_residual", "objective", "gap",
    "converged", "stopped", "unique", "method", "iterations",
)  # fmt: skip


def process(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    """`ipe` as a process of its own."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "ipe", *words], **{**pipes, **options})


# What it prints and writes.


def test_solve_prints_the_result_as_the_library_does(run: Run) -> None:
    code, out, err = run("solve", "switch-stay", "--values", "18,-6")
    assert (code, err) == (0, "")
    table, _, following = out.rstrip("\n").rpartition("\n\n")
    assert table == str(ipe.evaluation_policy(ipe.zoo.switch_stay(), v=[18.0, -6.0]))
    assert following.startswith("next: ")


def test_json_is_strict_and_holds_everything(run: Run) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    code, out, err = run("solve", "switch-stay", "--values", "18,-6", "--json")
    found = json.loads(out, parse_constant=refuse)
    result = ipe.evaluation_policy(ipe.zoo.switch_stay(), v=[18.0, -6.0])
    assert (code, err) == (0, "")
    assert found["inverse_temperatures"] == ["inf", "-inf"]
    assert [float(eta) for eta in found["inverse_temperatures"]] == result.inverse_temperatures.tolist()
    assert found["policy"] == result.policy.tolist()
    assert found["v"] == result.v.tolist()
    assert found["values"] == result.values.tolist()
    assert tuple(found["distance_bounds"]) == result.distance_bounds
    for key in PLAIN_KEYS:
        assert found[key] == getattr(result, key)
    assert found["gamma"] == 0.9
    assert found["action_names"] == ["stay", "switch"]


def test_json_keys_are_those_of_the_documentation(run: Run) -> None:
    page = (Path(__file__).parent.parent / "docs" / "command-line.md").read_text()
    section = page.split("## JSON")[1].split("## ")[0]
    documented = [key for row in re.findall(r"^\| (`.*?) \|", section, re.M) for key in re.findall(r"`(\w+)`", row)]
    _, out, _ = run("solve", "garnet:n_states=5,successors=2", "--values", "1,2,3,4,5", "--json")
    assert sorted(json.loads(out)) == sorted(documented)
    assert json.loads(out)["state_names"] is None


def test_every_option_reaches_the_solver(run: Run, tmp_path: Path) -> None:
    mdp = ipe.zoo.garnet(20, 3, 3, seed=4)
    rng = np.random.default_rng(0)
    q, d = rng.normal(size=(20, 3)), rng.random((20, 3))
    np.save(tmp_path / "q.npy", q)
    np.save(tmp_path / "d.npy", d)
    name = "garnet:n_states=20,n_actions=3,successors=3,seed=4"
    words = ("solve", name, "--values", "q.npy", "--weights", "d.npy", "--json")
    for norm, method in [(norm, method) for norm, methods in METHODS_OF.items() for method in methods[1:]]:
        code, out, err = run(*words, "--norm", norm, "--method", method, "--rtol", "1e-3", "--atol", "1e-12")
        assert (code, err) == (0, "")
        options: Any = {"norm": norm, "method": method}
        result = ipe.evaluation_policy(mdp, q=q, weights=d, rtol=1e-3, atol=1e-12, **options)
        assert json.loads(out)["residual"] == result.residual
        assert json.loads(out)["method"] == result.method
    loose = json.loads(run(*words, "--tolerance", "10")[1])
    assert loose["achievable"] is True
    assert json.loads(run(*words)[1])["achievable"] is False


def test_values_from_files_numbers_and_a_pipe(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = ipe.zoo.switch_stay()
    q = [[16.3, 17.0], [20.0, 15.3]]
    expected = run("solve", "switch-stay", "--values", "16.3,17;20,15.3")[1]
    assert "achievable    yes" in expected
    for suffix in (".npy", ".npz", ".json", ".csv", ".txt"):
        save_values(q, tmp_path / f"q{suffix}", mdp)
        assert run("solve", "switch-stay", "--values", f"q{suffix}")[1] == expected
        content = (tmp_path / f"q{suffix}").read_bytes()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert run("solve", "switch-stay", "--values", "-")[1] == expected
    assert run("solve", "switch-stay", "--values=-6,-18")[0] == 0
    assert run("solve", "switch-stay", "--values", " -6 , -18 ")[0] == 0


def test_numbers_say_their_form() -> None:
    one_state = ipe.FiniteMDP(np.ones((1, 3, 1)), [[1.0, 2.0, 3.0]], 0.5)
    assert read_values("1,2,3;", one_state)[0] == "q"
    one_action = ipe.FiniteMDP(np.eye(2)[:, None, :], [[1.0], [2.0]], 0.5)
    assert read_values("1;2", one_action)[0] == "q"
    assert read_values("1,2", one_action)[0] == "v"


def test_mdps_from_files_and_names(run: Run, tmp_path: Path) -> None:
    mdp = ipe.zoo.chain(4, slip=0.25, terminal=False, gamma=0.5)
    for suffix in (".npz", ".json"):
        save_mdp(mdp, tmp_path / f"m{suffix}")
        assert run("solve", f"m{suffix}", "--values", "1,2,3,4")[0] == 0
    made = read_mdp("chain:n=4, slip=0.25,terminal=FALSE,gamma=.5")
    assert (made.transitions != mdp.transitions).nnz == 0
    assert made.gamma == 0.5
    assert read_mdp("garnet:n_states=2e1,seed=1_0").n_states == 20
    save_mdp(mdp, tmp_path / "garnet.npz")
    assert read_mdp("./garnet.npz").n_states == 4


def test_out_writes_the_policy_and_does_not_overwrite(run: Run, tmp_path: Path) -> None:
    solve = ("solve", "switch-stay", "--values", "18,-6", "--out")
    code, out, _ = run(*solve, "p.json")
    assert code == 0
    assert out.splitlines()[-2] == "wrote p.json"
    assert (tmp_path / "p.json").read_text() == run("solve", "switch-stay", "--values", "18,-6", "--json")[1]
    assert run(*solve, "p.npz", "--json")[1] == (tmp_path / "p.json").read_text()
    with np.load(tmp_path / "p.npz", allow_pickle=False) as arrays:
        assert sorted(arrays) == ["inverse_temperatures", "policy", "v", "values"]
        assert arrays["policy"].tolist() == [[1.0, 0.0], [1.0, 0.0]]
        assert arrays["inverse_temperatures"].tolist() == [math.inf, -math.inf]
    before = (tmp_path / "p.npz").read_bytes()
    (tmp_path / "p.json").write_text("mine")
    assert run(*solve, "p.json") == (2, "", "ipe solve: --out p.json exists; give --overwrite to replace it\n")
    assert (tmp_path / "p.json").read_text() == "mine"
    assert run(*solve, "p.npz", "--overwrite")[0] == 0
    assert (tmp_path / "p.npz").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.json", "p.npz"]


def test_a_miss_is_exit_code_3_or_flagged(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", np.random.default_rng(0).normal(size=(30, 4)))
    words = ("solve", "garnet:n_states=30", "--values", "q.npy", "--norm", "linf", "--method", "interior-point")
    impossible = ("--rtol", "1e-300", "--atol", "1e-300")
    code, out, err = run(*words, *impossible, "--out", "p.npz")
    assert (code, out) == (3, "")
    assert re.fullmatch(
        r"ipe solve: interior point stopped after \d+ iterations with a gap of \S+ for an objective of "
        r"\S+; ask for less \(--rtol, --atol\), or take what there is \(--on-miss flag\)\n",
        err,
    )
    assert not (tmp_path / "p.npz").exists()
    code, out, err = run(*words, *impossible, "--on-miss", "flag")
    assert (code, err) == (0, "")
    assert "NOT CONVERGED" in out
    assert json.loads(run(*words, *impossible, "--on-miss", "flag", "--json")[1])["converged"] is False


def test_zoo_lists_and_shows(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("zoo")
    assert code == 0
    assert all(name in out for name in ipe.zoo.names())
    assert "n_states=1000, n_actions=4, successors=5, seed=0, gamma=0.95" in out
    listed = json.loads(run("zoo", "--json")[1])
    assert [entry["name"] for entry in listed] == list(ipe.zoo.names())
    assert listed[0]["parameters"] == {"gamma": 0.9, "slip": 0.0}
    assert "s1     switch       0  s0" in run("zoo", "switch-stay")[1]
    assert "too many for a table" in run("zoo", "garnet")[1]
    (tmp_path / "m.json").write_text(run("zoo", "chain:n=3,slip=0.1", "--json")[1])
    back, made = load_mdp(tmp_path / "m.json"), ipe.zoo.chain(3, slip=0.1)
    assert (back.transitions != made.transitions).nnz == 0
    assert (back.rewards == made.rewards).all()
    assert run("zoo", "m.json")[1].splitlines()[2:-1] == run("zoo", "chain:n=3,slip=0.1")[1].splitlines()[2:-1]


def test_polytope_of_two_chosen_states(run: Run, tmp_path: Path) -> None:
    name = "garnet:n_states=4,n_actions=2,successors=2"
    for others, said in (("uniform", "the other states following the uniform policy"), ("any", "following any policy")):
        code, out, err = run("polytope", name, "--states", "0,2", "--others", others, "--out", f"{others}.svg")
        assert (code, err) == (0, "")
        assert said in out
        assert (tmp_path / f"{others}.svg").exists()


@pytest.mark.parametrize("suffix", tiered([".svg", ".png", ".pdf"], ".svg"))
def test_draw_and_polytope(run: Run, tmp_path: Path, suffix: str) -> None:
    start = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix]
    for command, more in (("draw", ()), ("polytope", ()), ("polytope", ("--no-map",))):
        file = tmp_path / f"{command}{len(more)}{suffix}"
        code, out, err = run(command, "switch-stay", "--out", file.name, *more)
        assert (code, err) == (0, "")
        assert out.startswith(f"wrote {file.name}: ")
        assert file.read_bytes().startswith(start)
        assert run(command, "switch-stay", "--out", file.name, *more)[0] == 2
        assert run(command, "switch-stay", "--out", file.name, "--overwrite", *more)[0] == 0
    assert (tmp_path / f"polytope0{suffix}").read_bytes() != (tmp_path / f"polytope1{suffix}").read_bytes()


@pytest.mark.parametrize("name", ["switch-stay", "switch-stay:gamma=0", "dadashi-1", "dadashi-3", "dadashi-5"])
def test_the_grid_lies_around_the_polytope(name: str) -> None:
    polytope = value_polytope(read_mdp(name))
    grid = grid_around(polytope.vertices)
    assert (grid.min(axis=0) < polytope.vertices.min(axis=0)).all()
    assert (grid.max(axis=0) > polytope.vertices.max(axis=0)).all()
    assert 50 < len(grid) < 500
    if name == "switch-stay":
        assert (grid == paper_grid()).all()


def test_the_grid_around_a_single_point() -> None:
    assert len(grid_around(np.array([[5.0, 5.0]]))) < 500
    assert len(grid_around(np.zeros((1, 2)))) < 500


def test_help_and_version(run: Run) -> None:
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    for name, command in program.COMMANDS.items():
        assert f"{name} " in out
        assert command.summary in out
        code, text, err = run(name, "--help")
        assert (code, err) == (0, "")
        assert f"usage: ipe {name}" in text
        assert f"examples:\n  ipe {name}" in text
        assert "(default: None)" not in text
        assert run(name, "-h")[1] == text
    assert run("-h")[1] == out
    assert run("help") == (0, out, "")
    assert run("help", "zoo")[1] == run("zoo", "--help")[1]
    for word in ("--version", "version"):
        assert run(word) == (0, f"ipe {metadata.version('ipe-rl')}\n", "")


def test_help_of_a_command_with_commands(run: Run) -> None:
    code, out, err = run("reproduce", "--help")
    assert (code, err) == (0, "")
    for name in STUDIES:
        assert f"  {name} " in out
        code, text, err = run("reproduce", name, "--help")
        assert (code, err) == (0, "")
        assert f"usage: ipe reproduce {name} [OPTIONS]" in text
        assert f"examples:\n  ipe reproduce {name}" in text


def test_the_methods_and_norms_offered_are_those_of_the_library() -> None:
    hints = get_type_hints(Arguments)
    assert get_args(hints["method"]) == get_args(Method)
    assert get_args(hints["norm"]) == tuple(METHODS_OF)


def test_the_examples_in_the_documentation(run: Run, tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "command-line.md").read_text()
    examples = [
        example
        for block in re.findall(r"```console\n(.*?)```", page, re.S)
        for example in re.findall(r"^\$ ipe (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)
    ]
    assert len(examples) >= 6
    for line, expected in examples:
        words = shlex.split(line)
        _, out, err = run(*(words[: words.index(">")] if ">" in words else words))
        if ">" in words:
            (tmp_path / words[-1]).write_text(out)
            out = ""
        assert doctest.OutputChecker().check_output(expected, out + err, doctest.ELLIPSIS), f"{line}\n{out}{err}"


# What goes wrong.

COMMANDS = ", ".join(program.COMMANDS)

WRONG = {
    # the words themselves
    "": f"which command: {COMMANDS}? `ipe --help` says what they do",
    "-v": "the command comes first, and '-v' is none",
    "--json zoo": "the command comes first, and '--json' is none",
    "--verison": "there is no option --verison (did you mean --version?); see `ipe --help`",
    "sovle switch-stay": "there is no command 'sovle' (did you mean solve?); see `ipe --help`",
    "eval runs/x": "there is no command 'eval'; here it is `ipe evaluate`; see `ipe --help`",
    "plot runs/x": "there is no command 'plot'; here it is `ipe curves`; see `ipe --help`",
    "frobnicate": f"there is no command 'frobnicate' (there are {COMMANDS}); see `ipe --help`",
    "solve": "MDP and --values VALUES are missing; see `ipe solve --help`",
    "solve switch-stay": "--values VALUES is missing",
    "solve --values 1,2": "MDP is missing",
    "solve switch-stay --vlaues 1,2": "there is no option --vlaues (did you mean --values?)",
    "solve switch-stay --zzz=1 --values 1,2": "there is no option --zzz; see",
    "solve switch-stay --values": "--values needs a value",
    "solve switch-stay --values --json": "--values needs a value",
    "solve switch-stay --values 1,2 --out": "--out needs a value",
    "solve switch-stay --values 1,2 extra": "'extra' is one too many",
    "solve switch-stay --values 1,2 -x": "there is no option -x",
    "solve switch-stay --values 1,2 --no-json": "there is no option --no-json",
    "solve switch-stay --values 1,2 --json=3": "--json takes no value, found '3'",
    "solve switch-stay --values 1,2 --values 3,4": "--values is given twice",
    "solve switch-stay --values 1,2 --on_miss flag --on-miss flag": "--on-miss is given twice",
    "zoo a b": "'b' is one too many",
    "draw switch-stay": "--out FILE is missing",
    "polytope --out x.svg": "MDP is missing",
    # options
    "solve switch-stay --values 1,2 --norm l3": "--norm must be one of 'l2', 'l1', 'linf'; found 'l3'",
    "solve switch-stay --values 1,2 --method magic": "--method must be one of 'auto', 'closed-form', 'projected-cg', ",
    "solve switch-stay --values 1,2 --method pdhg": "method 'pdhg' does not solve l2",
    "solve switch-stay --values 1,2 --on-miss maybe": "--on-miss must be one of 'raise', 'flag'; found 'maybe'",
    "solve switch-stay --values 1,2 --rtol abc": "--rtol must be a number, found 'abc'",
    "solve switch-stay --values 1,2 --rtol -1": "rtol must be a finite number > 0, found -1.0",
    "solve switch-stay --values 1,2 --atol nan": "atol must be a finite number > 0, found nan",
    "solve switch-stay --values 1,2 --tolerance inf": "tolerance must be a finite number > 0, found inf",
    # values and weights
    "solve switch-stay --values 1,2,3": "--values must have shape (2,), one value per state; found (3,)",
    "solve switch-stay --values '1,2;3'": "--values: row 1 has 1 numbers, row 0 has 2",
    "solve switch-stay --values '1,2;3,4;5,6'": "--values must have shape (2, 2)",
    "solve switch-stay --values 1,x": "--values: there is no file '1,x', and 'x' is not a number",
    "solve switch-stay --values ''": "--values is empty",
    "solve switch-stay --values 1,nan": "--values[1] = nan is not a finite number",
    "solve switch-stay --values no.npy": "no.npy: there is no such file",
    "solve switch-stay --values .": "the suffix must be .npy, .npz, .json, .csv or .txt; found none",
    "solve switch-stay --values bad.csv": "bad.csv: line 2, column 1: 'oops' is not a number",
    "solve switch-stay --values 1,2 --weights 1,2,3": "--weights must have shape (2,) for v; found (3,)",
    "solve switch-stay --values 1,2 --weights '1,2;3,4'": "--weights must have shape (2,) for v; found (2, 2)",
    "solve switch-stay --values 1,2 --weights -1,2": "--weights[0] = -1 is not a finite number >= 0",
    "solve switch-stay --values 1,2 --weights 0,0": "--weights are zero for every row",
    "solve switch-stay --values 1,2 --weights no.csv": "no.csv: there is no such file",
    "solve switch-stay --values 1,2 --weights bad.csv": "bad.csv: line 2, column 1: 'oops' is not a number",
    "solve switch-stay --values - --weights -": "--values and --weights cannot both be standard input",
    "solve chain:n=3 --values 1,2,3": "--values: state 2 is terminal and has value 0, but 3 was given",
    # MDPs
    "solve '' --values 1,2": "MDP is empty",
    "solve swich-stay --values 1,2": "the zoo has no such MDP (did you mean switch-stay?); `ipe zoo` lists its names",
    "solve no.json --values 1,2": "no.json: there is no such file",
    "solve ./garnet --values 1,2": "./garnet: the suffix must be .npz or .json; found none",
    "solve bad.csv --values 1,2": "bad.csv: the suffix must be .npz or .json; found .csv",
    "solve bad.json --values 1,2": "bad.json: transitions[0, 1] sum to 0.9, not to 1 (off by -0.1)",
    "solve garnet:n_stats=5 --values 1,2": "garnet has no parameter 'n_stats' (did you mean n_states?)",
    "solve garnet:n_states=1.5 --values 1,2": "garnet: n_states must be a whole number >= 1, found 1.5",
    "solve garnet:n_states=1e18 --values 1,2": "garnet: an MDP of 4000000000000000000 pairs",
    "solve garnet:n_states=1e30 --values 1,2": "garnet: n_states must be a whole number >= 1, found 1e+30",
    "solve garnet:n_states=1e15 --values 1,2": "GB of memory, and this machine has",
    "solve garnet:seed=x --values 1,2": "garnet: seed must be a whole number >= 0, found 'x'",
    "solve garnet: --values 1,2": "garnet: parameters are key=value, with commas between them; found ''",
    "solve garnet:seed --values 1,2": "garnet: parameters are key=value, with commas between them; found 'seed'",
    "solve garnet:seed=1,seed=2 --values 1,2": "garnet: seed is given twice",
    "solve chain:gamma=1 --values 1,2": "chain: gamma must lie in [0, 1), found 1",
    "solve chain:terminal=1 --values 1,2": "chain: terminal must be true or false, found 1",
    "zoo nothing": "there is no file 'nothing', and the zoo has no such MDP",
    "draw garnet --out x.svg": "a drawing holds at most 12 states; this MDP has 1000",
    "polytope garnet --out x.svg --states 1": "--states must be two states, as in 0,5; found '1'",
    "polytope garnet --out x.svg --states 1,x": "--states must be two states, as in 0,5; found '1,x'",
    "polytope garnet --out x.svg --states 1,1": "states must be two different states, found 1 twice",
    "polytope garnet --out x.svg --states 1,1000 --others any": "states[1] must be a whole number from 0 to 999",
    "polytope switch-stay --out x.svg --others any": "--others is about the states other than --states",
    "polytope garnet --out x.svg": "exactly two states that are not terminal; this one has 1000",
    "solve switch-stay --values ١,٢": "there is no file '١,٢', and '١' is not a number",
    "solve switch-stay --values 1,2 --rtol １": "--rtol must be a number, found '１'",
    "zoo chain:n=٣": "chain: n must be a whole number",
    # files
    "solve switch-stay --values 1,2 --out p.txt": "--out p.txt: the suffix must be .npz or .json; found .txt",
    "solve switch-stay --values 1,2 --out no/p.npz": "--out no/p.npz: there is no folder ",
    "solve switch-stay --values 1,2 --out .": "--out . is a folder, not a file",
    "solve switch-stay --values 1,2 --out ''": "--out is empty",
    "solve switch-stay --values 1,2 --out bad.json": "--out bad.json exists; give --overwrite to replace it",
    "draw switch-stay --out x.gif": "--out x.gif: the suffix must be .svg, .png or .pdf; found .gif",
    "draw switch-stay --out no/x.svg": "--out no/x.svg: there is no folder ",
    "polytope switch-stay --out x": "--out x: the suffix must be .svg, .png or .pdf; found none",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_input_gets_one_sentence_and_writes_nothing(run: Run, tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.csv").write_text("1\noops\n")
    (tmp_path / "bad.json").write_text(
        '{"format": "ipe.mdp", "version": 1, "gamma": 0.9, "states": 1, "actions": 2, "transitions": ['
        '{"state": 0, "action": 0, "next": 0, "reward": 1},'
        '{"state": 0, "action": 1, "next": {"0": 0.9}, "reward": 1}]}'
    )
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = run(*shlex.split(line))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("ipe: " if line.split()[:1] and line.split()[0] not in program.COMMANDS else "ipe")
    assert WRONG[line] in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "switch-stay", "--values", "1," * 5000),
        ("solve", "x" * 5000, "--values", "1,2"),
        ("solve", "switch-stay", "--values", "1,2", "--out", "x" * 5000 + ".npz"),
        ("solve", "switch-stay", "--values", "1,2", "--" + "x" * 5000),
        ("zoo", "garnet:" + "x" * 5000 + "=1"),
        ("zoo", "chain:n=" + "9" * 5000),
        ("draw", "switch-stay", "--out", "x" * 300 + ".svg"),
        ("x" * 5000,),
    ],
    ids=lambda words: f"{words[0][:9]} {len(words)}",
)
def test_very_long_words_are_refused_and_not_repeated_in_full(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert len(err) < 1500
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(run: Run, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    code, _, err = run("solve", "switch-stay", "--values", "1,2", "--out", "closed/p.npz")
    assert code == 2
    assert "cannot be written to" in err


# As a process.


def test_exit_codes_of_the_process(tmp_path: Path) -> None:
    bad = process("draw", "switch-stay", "--out", "x.svg", "--what", cwd=tmp_path)
    out, err = bad.communicate()
    assert (bad.returncode, out) == (2, b"")
    assert err == b"ipe draw: there is no option --what; see `ipe draw --help`\n"
    assert not list(tmp_path.iterdir())


class Pipe(io.TextIOWrapper):
    """A standard output that is no terminal and has only the characters of ASCII."""

    def __init__(self, target: Any = None) -> None:
        super().__init__(io.BytesIO() if target is None else target, encoding="ascii")

    def written(self) -> str:
        self.flush()
        content: bytes = self.buffer.getvalue()  # type: ignore[attr-defined]
        return content.decode("ascii")


def test_help_in_a_pipe_has_no_colours_and_names_outside_ascii_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", help_text := Pipe())
    assert main(["solve", "--help"]) == 0
    assert "--values VALUES" in help_text.written()
    assert "\x1b" not in help_text.written()
    save_mdp(ipe.FiniteMDP(np.ones((1, 1, 1)), [[1.0]], 0.5, state_names=["état"]), tmp_path / "m.json")
    monkeypatch.setattr("sys.stdout", shown := Pipe())
    assert main(["zoo", str(tmp_path / "m.json")]) == 0
    assert "\\xe9tat" in shown.written()


def test_a_broken_pipe_is_quiet() -> None:
    child = process("zoo", "garnet:n_states=2000", "--json", stdin=subprocess.DEVNULL)
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline() == b"{\n"
    child.stdout.close()
    with child.stderr as said:
        assert said.read() == b""
    assert child.wait() == program.BROKEN_PIPE


def test_a_reader_that_has_left_before_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with Pipe(os.fdopen(writer, "wb")) as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        assert main(["solve", "--help"]) == program.BROKEN_PIPE
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full disk at hand")
def test_a_full_disk_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with Pipe(open("/dev/full", "wb")) as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main(["zoo"]) == program.FAILED
    assert capsys.readouterr().err == "ipe zoo: cannot write the output: No space left on device\n"


def interrupt(child: subprocess.Popen[bytes]) -> None:
    """Ctrl-C; the process then has a second to end, and some more on a busy machine."""
    time.sleep(0.5)
    assert child.poll() is None, "it was over before it could be interrupted"
    child.send_signal(signal.SIGINT)


def ended(child: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """What it has written when it is over, in a minute at most: if not, it is not left to run on."""
    try:
        return child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        raise


def test_control_c_in_a_long_solve(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.save(content, np.random.default_rng(0).normal(size=(50_000, 4)))
    words = ("solve", "garnet:n_states=5e4", "--values", "-", "--norm", "l1", "--rtol", "1e-14", "--out", "p.npz")
    child = process(*words, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert child.stdin is not None
    child.stdin.write(content.getvalue())  # more than a pipe holds: once it is through, the command runs
    child.stdin.flush()
    interrupt(child)
    out, err = ended(child)
    assert err == b"ipe solve: interrupted\n"
    # Python dies by the signal itself if that came while it was executing generated code; a shell calls both 130.
    assert child.returncode in (program.INTERRUPTED, -signal.SIGINT)
    # The best policy so far, or nothing if the MDP was still being made.
    assert [path.name for path in tmp_path.iterdir()] == (["p.npz"] if out else [])
    assert not out or b"(interrupted)" in out


def test_control_c_in_code_that_does_not_return_to_python() -> None:
    script = (
        "import hashlib, os, sys\n"
        "from ipe.cli.interrupt import ending_soon\n"
        "with ending_soon(lambda: os.write(2, b'over') + 96):\n"
        "    print('ready', flush=True)\n"
        "    hashlib.pbkdf2_hmac('sha512', b'', b'', 10**9)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    interrupt(child)
    _, err = ended(child)
    assert (child.returncode, err) == (100, b"over")


@pytest.mark.slow
@pytest.mark.parametrize("presses", [1, 2])
def test_a_command_that_answers_control_c_takes_its_time_unless_asked_twice(presses: int) -> None:
    script = (
        "import hashlib, os, sys, time\n"
        "from ipe.cli.interrupt import answering, ending_soon\n"
        "with ending_soon(lambda: os.write(2, b'over') + 96):\n"
        "    try:\n"
        "        with answering():\n"
        "            print('ready', flush=True)\n"
        "            time.sleep(60)\n"
        "    except KeyboardInterrupt:\n"
        "        print('answering', flush=True)\n"
        f"        time.sleep(1.5) if {presses} == 1 else hashlib.pbkdf2_hmac('sha512', b'', b'', 10**9)\n"
        "        print('the best so far')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    interrupt(child)
    assert child.stdout.readline() == b"answering\n"
    if presses == 2:
        interrupt(child)
    out, err = ended(child)
    assert (child.returncode, out, err) == ((0, b"the best so far\n", b"") if presses == 1 else (100, b"", b"over"))


@pytest.mark.slow
def test_python_ends_by_itself_if_it_can() -> None:
    script = (
        "import os, time\n"
        "from ipe.cli.interrupt import ending_soon\n"
        "try:\n"
        "    with ending_soon(lambda: os.write(2, b'late')):\n"
        "        print('ready', flush=True)\n"
        "        time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    time.sleep(1.5)\n"
        "    print('by itself')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    interrupt(child)
    out, err = ended(child)
    assert (child.returncode, out, err) == (0, b"by itself\n", b"")


def test_the_command_line_itself_imports_nothing_heavy() -> None:
    """What `ipe.cli` adds to `import ipe`: neither tyro nor matplotlib before a command needs them."""
    script = (
        "import sys, ipe\n"
        "before = set(sys.modules)\n"
        "from ipe.cli import main\n"
        "assert main(['--help']) == 0\n"
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('ipe')), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    added = {name.partition(".")[0].strip("'[], ") for name in done.stderr.split()}
    assert not added & {"tyro", "matplotlib", "scipy", "numpy", "gymnasium"}
