"""MDPs and value functions in files: exact round trips, and one clear sentence for whatever is wrong."""

from __future__ import annotations

import copy
import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipe import zoo
from ipe.base.atomic import write_atomic
from ipe.checks import check_q
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.mdp_files import load_mdp, load_values, save_mdp, save_values
from tests.strategies import generators, mdps, random_q, random_v
from tests.tiers import examples

DOCS = Path(__file__).parent.parent / "docs" / "formats.md"
SMALL: dict[str, Any] = {
    "format": "ipe.mdp",
    "version": 1,
    "gamma": 0.9,
    "states": ["s", "t", "end"],
    "actions": ["go", "stay"],
    "terminal": ["end"],
    "start": {"s": 0.5, "t": 0.5},
    "transitions": [
        {"state": "s", "action": "go", "next": {"t": 0.25, "end": 0.75}, "reward": {"t": 1, "end": -1}},
        {"state": "s", "action": "stay", "next": {"s": 1.0}, "reward": 2.0},
        {"state": "t", "action": "go", "next": {"end": 1}, "reward": 3},
    ],
}


def identical(one: FiniteMDP, other: FiniteMDP) -> None:
    for name in ("data", "indices", "indptr"):
        left, right = getattr(one.transitions, name), getattr(other.transitions, name)
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes()
    for name in ("rewards", "allowed", "terminal", "start", "transition_rewards"):
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None)
        assert left is None or left.tobytes() == right.tobytes()
    assert one.gamma == other.gamma
    assert (one.state_names, one.action_names) == (other.state_names, other.action_names)


ODD_NAMES = FiniteMDP(
    np.array([[[0.1, 0.9]], [[1 / 3, 2 / 3]]]),
    np.array([[[-0.0, 1e-300]], [[1e300, 0.1 + 0.2]]]),
    0.1 + 0.2,
    start=[0.1, 0.9],
    state_names=["1", "0"],
    action_names=["é → 😀 \n \ud800"],
)
EXAMPLES = [
    ODD_NAMES,
    zoo.switch_stay(),
    zoo.dadashi(3),
    zoo.chain(4, slip=0.1),
    zoo.river_swim(),
    zoo.garnet(50, 3, 4),
    FiniteMDP(np.zeros((2, 1, 2)), np.zeros((2, 1)), 0.5, terminal=[0, 1]),
    FiniteMDP(np.stack([np.eye(2)] * 2, axis=1), np.ones((2, 2)), 0.0, allowed=[[True, False], [True, True]]),
]


@pytest.mark.parametrize("suffix", [".npz", ".json", ".NPZ"])
@pytest.mark.parametrize("mdp", EXAMPLES)
def test_round_trip_is_exact(mdp: FiniteMDP, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"mdp{suffix}"
    save_mdp(mdp, path)
    content = path.read_bytes()
    identical(mdp, load_mdp(path))
    save_mdp(load_mdp(str(path)), path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == [path.name]


@examples(40)
@given(mdps())
def test_round_trip_of_random_mdps(mdp: FiniteMDP) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("npz", "json"):
            save_mdp(mdp, f"{folder}/m.{suffix}")
            identical(mdp, load_mdp(f"{folder}/m.{suffix}"))


def test_rows_off_by_more_than_the_tolerance_need_the_tolerance_to_load(tmp_path: Path) -> None:
    mdp = FiniteMDP([[[1.0 + 1e-6]]], [[0.0]], 0.5, tolerance=1e-5)
    save_mdp(mdp, tmp_path / "m.npz")
    with pytest.raises(InputError, match=r"m.npz: transitions\[0, 0\] sum to 1.000001"):
        load_mdp(tmp_path / "m.npz")
    identical(mdp, load_mdp(tmp_path / "m.npz", tolerance=1e-5))


# JSON


def write(folder: Path, content: Any, name: str = "m.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_json_by_hand(tmp_path: Path) -> None:
    mdp = load_mdp(write(tmp_path, SMALL))
    assert mdp.allowed.tolist() == [[True, True], [True, False], [False, False]]
    assert mdp.rewards.tolist() == [[-0.5, 2.0], [3.0, 0.0], [0.0, 0.0]]
    assert mdp.transition_rewards is not None
    assert mdp.transition_rewards.tolist() == [1, -1, 2, 3]
    assert mdp.start is not None
    assert mdp.start.tolist() == [0.5, 0.5, 0]


def test_names_indices_and_printed_names_mean_the_same(tmp_path: Path) -> None:
    numbered = copy.deepcopy(SMALL) | {"states": 3, "actions": 2, "terminal": [2], "start": {"s0": 0.5, "1": 0.5}}
    numbered["transitions"] = [
        {"state": 0, "action": "a0", "next": {"1": 0.25, "s2": 0.75}, "reward": {"s1": 1, "2": -1}},
        {"state": "0", "action": 1, "next": 0, "reward": 2.0},
        {"state": "s1", "action": "0", "next": "2", "reward": 3},
    ]
    named, other = load_mdp(write(tmp_path, SMALL)), load_mdp(write(tmp_path, numbered, "n.json"))
    assert np.array_equal(named.transitions.toarray(), other.transitions.toarray())
    assert np.array_equal(named.rewards, other.rewards)
    assert other.state_names == ()
    swapped = SMALL | {"states": ["1", "0"], "terminal": [], "start": "1", "actions": 1}
    swapped["transitions"] = [{"state": s, "action": 0, "next": "0", "reward": 0} for s in (0, 1)]
    mdp = load_mdp(write(tmp_path, swapped, "w.json"))
    assert mdp.transitions.indices.tolist() == [1, 1]  # the name "0" is state 1
    assert mdp.start is not None
    assert mdp.start.tolist() == [1, 0]


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(SMALL).encode())
    assert load_mdp(path).n_states == 3


def edited(*keys: Any, value: Any = None, drop: bool = False) -> dict[str, Any]:
    content = copy.deepcopy(SMALL)
    place: Any = content
    for key in keys[:-1]:
        place = place[key]
    if drop:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return content


T = "transitions"
NO_LABELS: list[Any] = [0, -1, True, [], None, 2.5]
JSON_WRONG: list[tuple[Any, str]] = [
    ("", "not valid JSON: .* at line 1, column 1"),
    (json.dumps(SMALL)[:-20], "not valid JSON: .* at line 1, column"),
    ("[" * 100_000, "not valid JSON: nested too deeply"),
    ('{"gamma": ' + "1" * 5000 + "}", "not valid JSON: .*digits"),
    ('{"a": 1, "a": 2}', "the key 'a' stands twice in one object"),
    ([1, 2], "the file must hold one object, found"),
    (edited("format", value="other"), "format must be 'ipe.mdp', found \"other\""),
    (edited("format", drop=True), "format must be 'ipe.mdp', found null"),
    *(
        (edited("version", value=v), "version must be 1, the one that this ipe reads; found")
        for v in (2, "1", True, 1.0)
    ),
    (edited("version", drop=True), "version must be 1"),
    *((edited(key, drop=True), f"the key '{key}' is missing") for key in ("gamma", "states", "actions", T)),
    (edited("gama", value=1), r"unknown key 'gama' \(did you mean gamma\?\)"),
    (edited("zzz", value=1), r"unknown key 'zzz' \(known are format, .*start\)"),
    (edited("gamma", value="0.9"), 'gamma must be a number, found "0.9"'),
    (edited("gamma", value=True), "gamma must be a number, found true"),
    (edited("gamma", value=1.5), r"gamma must lie in \[0, 1\), found 1.5"),
    (edited("gamma", value=float("nan")), "gamma = nan is not a finite number"),
    *((edited("states", value=wrong), "states must be a list of names or a number >= 1") for wrong in NO_LABELS),
    (edited("states", value=["s", "t", 3]), r"states\[2\] must be a name, found 3"),
    (edited("states", value=["s", "t", "s"]), "states holds 's' twice"),
    (edited("states", value=10**15), "states and actions: 1000000000000000 x 2 pairs are more than the 100000000"),
    (edited("actions", value=10**30), "states and actions: 3 x 1000000000000000000000000000000 pairs are more than"),
    (edited("actions", value=["go", "go"]), "actions holds 'go' twice"),
    (edited("terminal", value="end"), 'terminal must be a list of states, found "end"'),
    (edited("terminal", value=["ende"]), r"terminal\[0\]: there is no state 'ende' \(did you mean end\?\)"),
    (edited("terminal", value=[7]), r"terminal\[0\]: there is no state 7; they run from 0 to 2"),
    (edited("terminal", value=[True]), r"terminal\[0\] must be the name or the index of a state, found true"),
    (edited("terminal", value=["s", "end"]), r"transitions\[0\]: state 's' is terminal and has no actions"),
    (edited("start", value="nowhere"), "start: there is no state 'nowhere'"),
    (edited("start", value={"s": 0.4}), "start sums to 0.4, not to 1"),
    (edited("start", value={"s": "half"}), r"start\['s'\] must be a number, found \"half\""),
    (edited("start", value="end"), "start gives probability to state 2, which is terminal"),
    (edited(T, value={}), "transitions must be a list, found {}"),
    (edited(T, 0, value=5), r"transitions\[0\] must be an object, found 5"),
    (edited(T, 0, "reward", drop=True), r"transitions\[0\]: the key 'reward' is missing"),
    (edited(T, 0, "rewrad", value=1), r"transitions\[0\]: unknown key 'rewrad' \(did you mean reward\?\)"),
    (edited(T, 1, "state", value="x"), r"transitions\[1\].state: there is no state 'x'"),
    (edited(T, 1, "state", value=1.0), r"transitions\[1\].state must be the name or the index of a state, found 1.0"),
    (edited(T, 1, "action", value="sty"), r"transitions\[1\].action: there is no action 'sty' \(did you mean stay"),
    (edited(T, 1, "action", value="go"), r"transitions\[1\]: the pair 's', 'go' stands twice"),
    (edited(T, 1, "next", value={"x": 1}), r"transitions\[1\].next: there is no state 'x'"),
    (edited(T, 1, "next", value={"s": 0.5, "0": 0.5}), r"transitions\[1\].next holds state '0' twice, under two names"),
    (edited(T, 1, "next", value={"s": float("nan")}), r"transitions\[1\].next\['s'\] = nan is not a finite number"),
    (edited(T, 1, "next", value={"s": 10**400}), r"transitions\[1\].next\['s'\] = inf is not a finite number"),
    (edited(T, 1, "next", value={"s": 0.9}), r"transitions\[0, 1\] sum to 0.9, not to 1 \(off by -0.1\)"),
    (edited(T, 1, "next", value={"s": 1.5, "t": -0.5}), r"transitions\[0, 1, 1\] = -0.5 is negative"),
    (edited(T, 1, "next", value={}), r"transitions\[0, 1\] sum to 0, not to 1"),
    (edited(T, 1, "next", value=None), r"transitions\[1\].next must be the name or the index of a state, found null"),
    (edited(T, 1, "reward", value=None), r"transitions\[1\].reward must be a number, found null"),
    (edited(T, 1, "reward", value=float("inf")), r"transitions\[1\].reward = inf is not a finite number"),
    (edited(T, 0, "reward", value={"t": 1}), r"transitions\[0\].reward: state 'end' has no reward for it"),
    (
        edited(T, 0, "reward", value={"t": 1, "end": 2, "s": 3}),
        r"transitions\[0\].reward: state 's' has a reward for it, but next does not have it",
    ),
    (edited(T, 2, drop=True), "allowed: every state .* at least one action; violated for state 1"),
]


@pytest.mark.parametrize(("content", "message"), JSON_WRONG)
def test_wrong_json(content: Any, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: (?:{message})") as caught:
        load_mdp(path)
    assert "\n" not in str(caught.value)


def test_too_many_pairs_for_json_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipe.mdp_files.json_form.MAX_PAIRS", 3)
    with pytest.raises(InputError, match=r"m.json: states and actions: 2 x 2 pairs are more than the 3 .*; use .npz"):
        save_mdp(zoo.switch_stay(), tmp_path / "m.json")
    assert os.listdir(tmp_path) == []


def test_a_label_of_the_other_kind_is_unknown(tmp_path: Path) -> None:
    content = SMALL | {"states": 1, "actions": 1, "terminal": [], "start": "a0", "transitions": []}
    content["transitions"] = [{"state": 0, "action": 0, "next": 0, "reward": 0}]
    with pytest.raises(InputError, match="start: there is no state 'a0'"):
        load_mdp(write(tmp_path, content))


# NPZ


def arrays(tmp_path: Path, mdp: FiniteMDP | None = None) -> dict[str, Any]:
    save_mdp(mdp or zoo.chain(3, slip=0.25), tmp_path / "right.npz")
    with np.load(tmp_path / "right.npz") as content:
        return dict(content)


def replaced(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda content: content | {name: change(content[name])}


def put(array: Any, at: Any, value: Any) -> Any:
    out = np.array(array)
    out[at] = value
    return out


NPZ_WRONG: list[tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = [
    (lambda c: {k: v for k, v in c.items() if k != "rewards"}, "the key 'rewards' is missing"),
    (lambda c: c | {"reward": 1}, r"unknown key 'reward' \(did you mean rewards\?\)"),
    (replaced("format", lambda _: "other"), "format must be 'ipe.mdp', found 'other'"),
    (replaced("version", lambda _: 2), "version must be 1, the one that this ipe reads; found 2"),
    (replaced("version", lambda _: 1.0), "version must be 1"),
    (replaced("data", lambda a: a.astype(str)), "data must hold floats in 1 dimensions; found dtype <U"),
    (replaced("indices", lambda a: a.astype(float)), "indices must hold whole numbers in 1 dimensions"),
    (replaced("rewards", lambda a: a.ravel()), "rewards must hold floats in 2 dimensions; found dtype float64 in 1"),
    (replaced("gamma", lambda a: np.array([a])), "gamma must hold floats in 0 dimensions"),
    (replaced("gamma", lambda _: 1.5), r"gamma must lie in \[0, 1\)"),
    (replaced("allowed", lambda a: a.astype(int)), "allowed must hold booleans in 2 dimensions"),
    (replaced("terminal", lambda a: a[:-1]), r"terminal, a mask, must have shape \(3,\)"),
    (replaced("indptr", lambda a: a[:-1]), "indptr must have 7 entries, one per pair .* found 6"),
    (replaced("indices", lambda a: a[:-1]), "indices must have the 8 entries of data; found 7"),
    (replaced("transition_rewards", lambda a: a[:-1]), "transition_rewards must have the 8 entries of data; found 7"),
    (replaced("indptr", lambda a: put(a, 0, 1)), "indptr must rise from 0 to 8, the entries of data"),
    (replaced("indptr", lambda a: put(a, 2, 1000)), "indptr must rise from 0 to 8"),
    (replaced("indices", lambda a: put(a, 3, 9)), r"indices\[3\] = 9 is no state; states run from 0 to 2"),
    (replaced("indices", lambda a: put(a, 3, -1)), r"indices\[3\] = -1 is no state"),
    (replaced("indices", lambda a: put(a, 1, a[0])), "indices hold the next state 0 twice in row 0"),
    (replaced("data", lambda a: put(a, 0, np.nan)), r"transitions\[0, 0, 0\] = nan is not a finite number"),
    (replaced("data", lambda a: put(a, 0, 0.5)), r"transitions\[0, 0\] sum to 0.75, not to 1"),
    (replaced("rewards", lambda a: put(a, (1, 1), 7.0)), r"rewards\[1, 1\] = 7 is not the expectation 0.75 of"),
    (replaced("rewards", lambda a: put(a, (1, 1), np.nan)), r"rewards\[1, 1\] = nan is not the expectation"),
    (replaced("transition_rewards", lambda a: put(a, 1, np.inf)), r"rewards\[0, 0, 1\] = inf is not a finite number"),
    (replaced("start", lambda a: a[:-1]), r"start must be a state or have shape \(3,\)"),
    (replaced("action_names", lambda _: np.array(["a", "a"])), "action_names holds 'a' twice"),
    (replaced("action_names", lambda _: np.array([1, 2])), "action_names must hold strings in 1 dimensions"),
    (replaced("rewards", lambda a: a[:, :0]), "indptr must have 1 entries"),
    (replaced("action_names", lambda _: np.array([{}, {}], dtype=object)), "not a readable .npz file.*pickle"),
]


@pytest.mark.parametrize(("change", "message"), NPZ_WRONG)
def test_wrong_npz(change: Callable[[dict[str, Any]], dict[str, Any]], message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    np.savez(path, **change(arrays(tmp_path)))
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: {message}") as caught:
        load_mdp(path)
    assert "\n" not in str(caught.value)


def test_npz_by_hand_with_unsorted_rows(tmp_path: Path) -> None:
    content = arrays(tmp_path)
    for name in ("data", "indices", "transition_rewards"):
        content[name] = content[name].reshape(-1, 2)[:, ::-1].ravel()
    np.savez(tmp_path / "m.npz", **content)
    identical(load_mdp(tmp_path / "m.npz"), load_mdp(tmp_path / "right.npz"))


def test_a_name_that_npz_cannot_hold_is_refused(tmp_path: Path) -> None:
    mdp = FiniteMDP([[[1.0]]], [[0.0]], 0.5, state_names=["a\0"])
    with pytest.raises(InputError, match=r"state_names\[0\] ends in a NUL character"):
        save_mdp(mdp, tmp_path / "m.npz")
    save_mdp(mdp, tmp_path / "m.json")
    assert load_mdp(tmp_path / "m.json").state_names == ("a\0",)


def test_every_damaged_byte_is_noticed_or_does_not_matter(tmp_path: Path) -> None:
    mdp = zoo.chain(3, slip=0.25)
    save_mdp(mdp, tmp_path / "right.npz")
    right = (tmp_path / "right.npz").read_bytes()
    path, noticed = tmp_path / "m.npz", []
    for at in range(0, len(right), 7):
        path.write_bytes(right[:at] + bytes([right[at] ^ 0x11]) + right[at + 1 :])
        try:
            identical(mdp, load_mdp(path))
        except InputError as error:
            noticed.append(str(error))
    assert all(message.startswith(f"{path}: ") for message in noticed)
    assert len(noticed) > 0.5 * len(right) / 7


def test_a_damaged_list_of_arrays_does_not_hide_the_optional_ones(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    save_mdp(zoo.chain(3, slip=0.25), path)
    right = path.read_bytes()
    comment_length = right.rindex(b"PK\x01\x02", 0, right.index(b"terminal.npy", right.index(b"PK\x01\x02"))) + 33
    path.write_bytes(right[:comment_length] + b"\x01" + right[comment_length + 1 :])
    with pytest.raises(InputError, match=r"m.npz: the archive's list of arrays is damaged"):
        load_mdp(path)


@pytest.mark.parametrize("name", ["m.npz", "m.json"])
def test_every_truncated_file_is_noticed(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    save_mdp(zoo.switch_stay(), path)
    right = path.read_bytes()
    for length in range(0, len(right.rstrip()), 37):
        path.write_bytes(right[:length])
        with pytest.raises(InputError, match=re.escape(str(path))):
            load_mdp(path)


@given(st.binary(max_size=300), st.sampled_from([".npz", ".json", ".npy", ".csv", ".txt"]))
def test_any_bytes_at_all(content: bytes, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"m{suffix}"
        path.write_bytes(content)
        for load in (lambda: load_values(path, zoo.garnet(9, 7, 1)), lambda: load_mdp(path)):
            with pytest.raises(InputError, match=re.escape(str(path))):
                load()


# Paths


@pytest.mark.parametrize("load", [load_mdp, lambda path: load_values(path, zoo.switch_stay())])
def test_wrong_paths(load: Callable[[Any], Any], tmp_path: Path) -> None:
    for suffix in (".npz", ".json"):
        with pytest.raises(InputError, match=r"nothing\.\w+: there is no such file"):
            load(tmp_path / f"nothing{suffix}")
        (tmp_path / f"folder{suffix}").mkdir()
        with pytest.raises(InputError, match=r"folder\.\w+: it is a folder, not a file"):
            load(tmp_path / f"folder{suffix}")
    with pytest.raises(InputError, match=r"m.yaml: the suffix must be .* or \.\w+; found .yaml"):
        load(tmp_path / "m.yaml")
    with pytest.raises(InputError, match=r"the suffix must be .*; found none"):
        load(tmp_path / "m")


def test_wrong_paths_to_write(tmp_path: Path) -> None:
    mdp = zoo.switch_stay()
    with pytest.raises(InputError, match=r"the suffix must be .npz or .json; found .pkl"):
        save_mdp(mdp, tmp_path / "m.pkl")
    with pytest.raises(InputError, match="there is no folder"):
        save_mdp(mdp, tmp_path / "nowhere" / "m.json")
    (tmp_path / "m.json").mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        save_mdp(mdp, tmp_path / "m.json")
    with pytest.raises(InputError, match=r"the suffix must be .npy, .npz, .json, .csv or .txt; found .xls"):
        save_values([1, 2], tmp_path / "v.xls", mdp)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(error: Exception) -> Callable[[Any], None]:
        def write(file: Any) -> None:
            file.write(b"half of it")
            raise error

        return write

    with pytest.raises(ZeroDivisionError):
        write_atomic(path, fail(ZeroDivisionError()))
    with pytest.raises(InputError, match=r"cannot write .*file: No space left on device"):
        write_atomic(path, fail(OSError(28, "No space left on device")))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
    write_atomic(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


def test_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    save_mdp(zoo.switch_stay(), link)
    assert link.is_symlink()
    identical(load_mdp(target), zoo.switch_stay())


# Values

CHAIN = FiniteMDP(
    zoo.chain(3).transitions,
    zoo.chain(3).rewards,
    0.9,
    allowed=[[True, True], [False, True], [False, False]],
    terminal=[2],
    state_names=["a", "b", "end"],
    action_names=["left", "right"],
)
NAN = float("nan")


@examples(30)
@given(mdps(), generators())
def test_values_round_trip(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    v, q = random_v(rng, mdp), random_q(rng, mdp)
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("npy", "npz", "json", "csv", "txt"):
            path = f"{folder}/x.{suffix}"
            save_values(v, path, mdp)
            form, again = load_values(path, mdp)
            assert (form, again.tobytes()) == ("v", v.tobytes())
            if mdp.n_actions > 1 or suffix not in ("csv", "txt"):
                save_values(np.where(mdp.allowed, q, np.nan), path, mdp)
                form, again = load_values(path, mdp)
                assert (form, again.tobytes()) == ("q", check_q(mdp, q).tobytes())


VALUES: list[tuple[str, str, str, list[Any]]] = [
    ("x.json", "[1, 2, 0]", "v", [1, 2, 0]),
    ("x.json", "[1, 2, null]", "v", [1, 2, 0]),
    ("x.json", '{"v": [1, 2, 0]}', "v", [1, 2, 0]),
    ("x.json", '{"a": 1, "b": 2}', "v", [1, 2, 0]),
    ("x.json", '{"v": {"b": 2, "a": 1, "end": 0}}', "v", [1, 2, 0]),
    ("x.json", '{"0": 1, "1": 2}', "v", [1, 2, 0]),
    ("x.json", "[[1, 2], [null, 3], [0, 0]]", "q", [[1, 2], [0, 3], [0, 0]]),
    ("x.json", '{"q": [[1, 2], [9, 3], [0, 0]]}', "q", [[1, 2], [0, 3], [0, 0]]),
    ("x.json", '{"a": {"left": 1, "right": 2}, "b": {"right": 3}}', "q", [[1, 2], [0, 3], [0, 0]]),
    ("x.json", '{"q": {"a": [1, 2], "b": {"right": 3}}}', "q", [[1, 2], [0, 3], [0, 0]]),
    ("x.csv", "1\n2\n0\n", "v", [1, 2, 0]),
    ("x.csv", "# values\n1, 2\n\nnan, 3\n0, 0", "q", [[1, 2], [0, 3], [0, 0]]),
    ("x.txt", "1 2\nnan\t3\n 0 0\n", "q", [[1, 2], [0, 3], [0, 0]]),
]


@pytest.mark.parametrize(("name", "content", "form", "expected"), VALUES)
def test_values_by_hand(name: str, content: str, form: str, expected: list[Any], tmp_path: Path) -> None:
    found, values = load_values(write(tmp_path, content, name), CHAIN)
    assert (found, values.tolist()) == (form, expected)


VALUES_WRONG: list[tuple[str, str, str]] = [
    ("x.json", "5", "must hold a list or an object of values, found 5"),
    ("x.json", "[]", r"must hold a list or an object of values, found \[\]"),
    ("x.json", "[1, 2]", "v must have 3 entries, one per state; found 2"),
    ("x.json", '[1, "two", 0]', r"v\[1\] must be a number, found \"two\""),
    ("x.json", "[1, null, 0]", r"v\[1\] must be a number, found null"),
    ("x.json", "[1, NaN, 0]", r"v\[1\] = nan is not a finite number"),
    ("x.json", "[1, 2, 3]", "v: state 2 is terminal and has value 0, but 3 was given"),
    ("x.json", '{"a": 1}', "v has no value for state 'b'"),
    ("x.json", '{"a": 1, "c": 2}', "v: there is no state 'c'"),
    ("x.json", '{"a": 1, "0": 1, "b": 2}', "v holds state '0' twice, under two names"),
    ("x.json", '{"v": [[1, 2], [0, 3], [0, 0]]}', "v must hold numbers, found"),
    ("x.json", '{"q": [1, 2, 0]}', "q must hold lists or objects, found"),
    ("x.json", '{"w": [1, 2, 0]}', "q: there is no state 'w'"),
    ("x.json", "[[1, 2], [0, 3]]", "q must have 3 rows, one per state; found 2"),
    ("x.json", "[[1, 2], [3], [0, 0]]", r"q\[1\] must have 2 entries, one per action; found 1"),
    ("x.json", "[[1, 2], 3, [0, 0]]", r"q\[1\] must be a list or an object of numbers, found 3"),
    ("x.json", '{"a": {"left": 1}, "b": {"right": 3}}', r"q\['a'\] has no value for action 'right'"),
    ("x.json", '{"a": {"left": 1, "right": 2}}', "q has no values for state 'b'"),
    ("x.json", '{"a": {"up": 1}}', r"q\['a'\]: there is no action 'up'"),
    ("x.csv", "1\n2\n", r"v must have shape \(3,\), one value per state; found \(2,\)"),
    ("x.csv", "1\nx\n0\n", "line 2, column 1: 'x' is not a number"),
    ("x.csv", "1,2\n3\n0,0\n", "line 2 has 1 numbers, the lines before it 2"),
    ("x.csv", "1,2,\n", "line 1, column 3: '' is not a number"),
    ("x.csv", "\n# nothing\n", "holds no numbers"),
    ("x.csv", "inf\n2\n0\n", r"v\[0\] = inf is not a finite number"),
    ("x.txt", "1 2 3\n4 5 6\n0 0 0\n", r"q must have shape \(3, 2\)"),
]


@pytest.mark.parametrize(("name", "content", "message"), VALUES_WRONG)
def test_wrong_values(name: str, content: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, content, name)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: {message}"):
        load_values(path, CHAIN)


def test_wrong_arrays_of_values(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 2, 1)))
    with pytest.raises(InputError, match=r"x.npy: values must have the shape .* found \(3, 2, 1\)"):
        load_values(tmp_path / "x.npy", CHAIN)
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match=r"not a readable .npy file"):
        load_values(tmp_path / "x.npy", CHAIN)
    np.savez(tmp_path / "x.npz", v=np.zeros(3), q=np.zeros((3, 2)))
    with pytest.raises(InputError, match="must hold one array, named v or q; found v, q"):
        load_values(tmp_path / "x.npz", CHAIN)
    np.savez(tmp_path / "x.npz", v=np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"v must have shape \(3,\)"):
        load_values(tmp_path / "x.npz", CHAIN)
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"not UTF-8 text: .* at byte 0"):
        load_values(tmp_path / "x.csv", CHAIN)


def test_wrong_values_are_not_written(tmp_path: Path) -> None:
    for values, message in (([1, 2], "v must have shape"), ([1, NAN, 0], r"v\[1\] = nan"), (5, "values must have the")):
        with pytest.raises(InputError, match=f"x.json: {message}"):
            save_values(values, tmp_path / "x.json", CHAIN)
    with pytest.raises(InputError, match="values is not an array"):
        save_values([[1], [1, 2]], tmp_path / "x.json", CHAIN)
    with pytest.raises(InputError, match=r"q of one action would be read as v from \.csv"):
        save_values([[1.0]], tmp_path / "x.csv", FiniteMDP([[[1.0]]], [[0.0]], 0.5))
    assert os.listdir(tmp_path) == []


def test_states_called_v_and_q(tmp_path: Path) -> None:
    mdp = FiniteMDP(np.ones((1, 1, 1)), [[0.0]], 0.5, state_names=["q"], action_names=["go"])
    assert load_values(write(tmp_path, '{"q": {"go": 3}}', "x.json"), mdp)[0] == "q"
    assert load_values(write(tmp_path, '{"q": 3}', "y.json"), mdp) == ("v", np.array([3.0]))


def test_the_documented_examples_load(tmp_path: Path) -> None:
    blocks = re.findall(r"```json\n(.*?)```", DOCS.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    mdp = load_mdp(write(tmp_path, blocks[0]))
    assert mdp.state_names == ("home", "road", "office")
    assert mdp.rewards.tolist() == pytest.approx(np.array([[-1, 0.8 * 10 - 0.2 * 2], [8, 0], [0, 0]]))
    v = load_values(write(tmp_path, blocks[1], "v.json"), mdp)
    q = load_values(write(tmp_path, blocks[2], "q.json"), mdp)
    assert (v[0], v[1].tolist()) == ("v", [4.5, 8.0, 0.0])
    assert (q[0], q[1].tolist()) == ("q", [[6.2, 8.41], [8.0, 0.0], [0.0, 0.0]])


def test_every_array_of_the_npz_form_is_documented(tmp_path: Path) -> None:
    mdp = load_mdp(write(tmp_path, SMALL))
    for name in arrays(tmp_path, mdp):
        assert f"`{name}`" in DOCS.read_text()
