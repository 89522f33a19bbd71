"""The zoo: its numbers against the papers' and against Gymnasium's own tables and steps."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ipe import zoo
from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.mdp import FiniteMDP

GYMNASIUM = ("frozen-lake", "cliff-walking", "taxi")


def dense(mdp: FiniteMDP) -> Array:
    return np.asarray(mdp.transitions.toarray()).reshape(mdp.n_states, mdp.n_actions, mdp.n_states)


def optimal(mdp: FiniteMDP) -> Array:
    """Optimal values by plain value iteration, to 1e-12."""
    v = np.zeros(mdp.n_states)
    for _ in range(100_000):
        q = np.where(mdp.allowed, mdp.rewards + mdp.gamma * dense(mdp) @ v, -np.inf)
        new = np.where(mdp.terminal, 0.0, q.max(axis=1))
        if np.abs(new - v).max() < 1e-13:
            return np.asarray(new)
        v = new
    raise AssertionError("did not converge")


def values(mdp: FiniteMDP, actions: list[int]) -> Array:
    s = np.arange(mdp.n_states)
    return np.asarray(
        np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * dense(mdp)[s, actions], mdp.rewards[s, actions]),
        dtype=np.float64,
    )


def test_switch_stay_has_the_values_of_the_specification() -> None:
    mdp = zoo.switch_stay()
    assert values(mdp, [0, 0]) == pytest.approx([10, 20])
    assert values(mdp, [1, 0]) == pytest.approx([17, 20])
    assert values(mdp, [0, 1]) == pytest.approx([10, 9])
    assert values(mdp, [1, 1]) == pytest.approx([-5.263, -4.737], abs=5e-4)
    assert mdp.start is not None
    assert mdp.start.tolist() == [1, 0]


def test_switch_stay_slips() -> None:
    p = dense(zoo.switch_stay(slip=0.1))
    assert p[0] == pytest.approx(np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert p[1] == pytest.approx(np.array([[0.1, 0.9], [0.9, 0.1]]))
    assert np.array_equal(zoo.switch_stay(slip=0.1).rewards, zoo.switch_stay().rewards)


@pytest.mark.parametrize(
    ("example", "gamma", "r_hat", "p_hat"),
    [
        (1, 0.9, "0.06 0.38 -0.13 0.64", "0.01 0.99 0.92 0.08 0.08 0.92 0.70 0.30"),
        (2, 0.9, "0.88 -0.02 -0.98 0.42", "0.96 0.04 0.19 0.81 0.43 0.57 0.72 0.28"),
        (3, 0.9, "-0.93 -0.49 0.63 0.78 0.14 0.41", "0.52 0.48 0.5 0.5 0.99 0.01 0.85 0.15 0.11 0.89 0.1 0.9"),
        (4, 0.9, "-0.45 -0.1 0.5 0.5", "0.7 0.3 0.99 0.01 0.2 0.8 0.99 0.01"),
        (5, 0.8, "-0.1 -1 0.1 0.4 1.5 0.1", "0.9 0.1 0.2 0.8 0.7 0.3 0.05 0.95 0.25 0.75 0.3 0.7"),
    ],
)
def test_dadashi_is_what_the_paper_prints(example: int, gamma: float, r_hat: str, p_hat: str) -> None:
    mdp = zoo.dadashi(example)
    r, p = (np.array(text.split(), dtype=float) for text in (r_hat, p_hat))
    assert mdp.gamma == gamma
    for i, j, k in itertools.product(range(2), range(mdp.n_actions), range(2)):
        assert mdp.rewards[i, j] == r[i * mdp.n_actions + j]
        assert dense(mdp)[i, j, k] == p.reshape(-1, 2)[i * mdp.n_actions + j][k]
    assert zoo.dadashi(example, gamma=0.5).gamma == 0.5


def test_garnet_is_a_function_of_its_seed_with_distinct_successors() -> None:
    one, again, other = zoo.garnet(50, 3, 4, seed=1), zoo.garnet(50, 3, 4, seed=1), zoo.garnet(50, 3, 4, seed=2)
    assert np.array_equal(dense(one), dense(again))
    assert not np.array_equal(dense(one), dense(other))
    assert (np.diff(one.transitions.indptr) == 4).all()
    assert (np.diff(zoo.garnet(6, 2, 6).transitions.indptr) == 6).all()


def test_river_swim_by_hand() -> None:
    mdp = zoo.river_swim(4)
    left, right = (
        np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]),
        np.array([[0.4, 0.6, 0, 0], [0.05, 0.6, 0.35, 0], [0, 0.05, 0.6, 0.35], [0, 0, 0.4, 0.6]]),
    )
    assert np.array_equal(dense(mdp)[:, 0], left)
    assert np.array_equal(dense(mdp)[:, 1], right)
    assert mdp.rewards.tolist() == [[0.005, 0], [0, 0], [0, 0], [0, 1]]
    assert mdp.n_states == 4


def test_swimming_up_the_river_is_worth_it() -> None:
    mdp = zoo.river_swim()
    q = mdp.rewards + mdp.gamma * dense(mdp) @ optimal(mdp)
    assert (q[:, 1] > q[:, 0]).all()


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9])
def test_chain_has_its_closed_form(n: int, gamma: float) -> None:
    s = np.arange(n - 1)
    ending, going_on = zoo.chain(n, gamma=gamma), zoo.chain(n, terminal=False, gamma=gamma)
    assert optimal(ending) == pytest.approx([*(gamma ** (n - 2.0 - s)), 0.0], abs=1e-9)
    assert optimal(going_on) == pytest.approx(gamma ** np.maximum(n - 2.0 - np.arange(n), 0) / (1 - gamma), abs=1e-9)
    assert ending.terminal.tolist() == [False] * (n - 1) + [True]
    assert not going_on.terminal.any()


def test_chain_slips() -> None:
    mdp = zoo.chain(4, slip=0.25)
    p = dense(mdp)
    assert p[1].tolist() == [[0.75, 0, 0.25, 0], [0.25, 0, 0.75, 0]]
    assert p[0].tolist() == [[0.75, 0.25, 0, 0], [0.25, 0.75, 0, 0]]
    assert mdp.rewards.tolist() == [[0, 0], [0, 0], [0.25, 0.75], [0, 0]]
    assert mdp.transition_rewards is not None
    assert np.array_equal(mdp.transition_rewards, mdp.transitions.indices == 3)


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: zoo.switch_stay(slip=1.5), "slip must be a number from 0 to 1, found 1.5"),
    (lambda: zoo.switch_stay(slip="a"), "slip must be a number from 0 to 1, found 'a'"),  # type: ignore[arg-type]
    (lambda: zoo.switch_stay(gamma=1.0), r"gamma must lie in \[0, 1\), found 1.0"),
    (lambda: zoo.chain(slip=float("nan")), "slip must be a number from 0 to 1, found nan"),
    (lambda: zoo.chain(1), "n must be a whole number >= 2, found 1"),
    (lambda: zoo.chain(terminal="false"), "terminal must be true or false, found 'false'"),  # type: ignore[arg-type]
    (lambda: zoo.river_swim(2.5), "n must be a whole number >= 2, found 2.5"),  # type: ignore[arg-type]
    (lambda: zoo.dadashi(0), "example must be one of 1, 2, 3, 4, 5, found 0"),
    (lambda: zoo.dadashi("1"), "example must be one of 1, 2, 3, 4, 5, found '1'"),  # type: ignore[arg-type]
    (lambda: zoo.garnet(True), "n_states must be a whole number >= 1, found True"),
    (lambda: zoo.garnet(5, 0), "n_actions must be a whole number >= 1, found 0"),
    (lambda: zoo.garnet(3, 2, 4), "successors = 4 is more than the 3 states there are"),
    (lambda: zoo.garnet(5, 2, 2, seed=-1), "seed must be a whole number >= 0, found -1"),
    (lambda: zoo.make("swich-stay"), r"no 'swich-stay' \(did you mean switch-stay\?\); it has switch-stay, .*taxi"),
    (lambda: zoo.make("xyz"), "the zoo has no 'xyz'; it has switch-stay"),
    (lambda: zoo.make(3), "the zoo has no 3; it has"),  # type: ignore[arg-type]
    (lambda: zoo.make("chain", slpi=0.1), r"chain has no parameter 'slpi' \(did you mean slip\?\); it takes n, slip"),
    (lambda: zoo.make("dadashi-1", example=2), "dadashi-1 has no parameter 'example'; it takes gamma"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_wrong_arguments(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_every_name_makes_its_mdp_and_takes_a_discount() -> None:
    assert zoo.names() == tuple(zoo.ZOO)
    for name in zoo.names():
        if name in GYMNASIUM:
            pytest.importorskip("gymnasium")
        constructor, description = zoo.ZOO[name]
        assert "gamma" in inspect.signature(constructor).parameters
        assert description
        assert zoo.make(name, gamma=0.25).gamma == 0.25
    assert np.array_equal(zoo.make("dadashi-5").rewards, zoo.dadashi(5).rewards)
    assert zoo.make("river-swim", n=9).n_states == 9


def test_without_gymnasium_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(InputError, match=r'pip install "ipe-rl\[gymnasium\]"'):
        zoo.make("taxi")


# Gymnasium's tables. The oracle reads env.P itself, tuple by tuple.

TABLES: list[tuple[str, dict[str, Any]]] = [
    ("FrozenLake", {}),
    ("FrozenLake", {"is_slippery": False}),
    ("FrozenLake", {"map_name": "8x8"}),
    ("CliffWalking", {}),
    ("Taxi", {}),
]


@pytest.mark.parametrize(("name", "kwargs"), TABLES)
def test_tables_are_gymnasiums(name: str, kwargs: dict[str, Any]) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    mdp = zoo.from_gymnasium(name, 0.9, **kwargs)
    newest = max((i for i in gymnasium.registry if i.rpartition("-v")[0] == name), key=lambda i: int(i.split("-v")[1]))
    env = gymnasium.make(newest, **kwargs).unwrapped
    end = len(env.P)
    assert mdp.n_states == end + 1
    assert np.flatnonzero(mdp.terminal).tolist() == [end]
    assert mdp.state_name(end) == "end"
    assert mdp.start is not None
    assert np.array_equal(mdp.start, [*env.initial_state_distrib, 0.0])
    p = dense(mdp)
    for s, a in itertools.product(range(end), range(mdp.n_actions)):
        row = np.zeros(end + 1)
        for probability, following, _, terminated in env.P[s][a]:
            row[end if terminated else following] += probability
        assert np.abs(p[s, a] - row).max() <= 1e-15
        assert abs(mdp.rewards[s, a] - sum(t[0] * t[2] for t in env.P[s][a])) <= 1e-14
    assert mdp.allowed[:end].all()
    assert mdp.action_names


@pytest.mark.parametrize("name", ["FrozenLake", "CliffWalking", "Taxi"])
def test_steps_of_the_environment_are_transitions_of_the_mdp(name: str) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    kwargs = {"is_slippery": False} if name == "FrozenLake" else {}
    mdp = zoo.from_gymnasium(name, **kwargs)
    newest = max((i for i in gymnasium.registry if i.rpartition("-v")[0] == name), key=lambda i: int(i.split("-v")[1]))
    env = gymnasium.make(newest, **kwargs)
    rng = np.random.default_rng(0)
    p, ends = dense(mdp), 0
    s, _ = env.reset(seed=0)
    for _ in range(3000):
        a = int(rng.integers(mdp.n_actions))
        following, reward, terminated, truncated, _ = env.step(a)
        assert p[s, a, mdp.n_states - 1 if terminated else following] == 1.0
        assert reward == mdp.rewards[s, a]
        ends += terminated
        s = env.reset()[0] if terminated or truncated else following
    if name == "FrozenLake":
        assert ends > 50
    env.close()


def test_known_optimal_values() -> None:
    pytest.importorskip("gymnasium")
    lake = zoo.from_gymnasium("FrozenLake", 0.9, is_slippery=False)
    assert optimal(lake)[0] == pytest.approx(0.9**5, rel=1e-12)
    wide = zoo.from_gymnasium("FrozenLake", 0.9, is_slippery=False, map_name="8x8")
    assert optimal(wide)[0] == pytest.approx(0.9**13, rel=1e-12)
    # 13 steps of -1 along the edge of the cliff.
    assert optimal(zoo.from_gymnasium("CliffWalking", 0.5))[36] == pytest.approx(-(1 - 0.5**13) / 0.5, rel=1e-12)
    assert optimal(zoo.from_gymnasium("FrozenLake", 0.99))[0] == pytest.approx(0.5420, abs=1e-4)


class Table:
    """An environment of one table, made here."""

    def __init__(self, table: Any, **attributes: Any) -> None:
        self.P = table
        for name, value in attributes.items():
            setattr(self, name, value)

    @property
    def unwrapped(self) -> Table:
        return self


def test_tuples_that_lead_to_the_same_state_are_averaged() -> None:
    table = {
        0: {0: [(0.1, 0, 5.0, False), (0.3, 0, 1.0, False), (0.2, 1, 8.0, True), (0.4, 0, 2.0, True)]},
        1: {0: [(1.0, 1, 0.1, False)]},
    }
    mdp = zoo.from_gymnasium(Table(table), 0.9)
    assert dense(mdp)[0, 0] == pytest.approx([0.4, 0.0, 0.6])
    assert mdp.transition_rewards is not None
    assert mdp.transition_rewards == pytest.approx([0.8 / 0.4, 2.4 / 0.6, 0.1])
    assert mdp.transition_rewards[2] == 0.1
    assert mdp.rewards[0, 0] == pytest.approx(0.1 * 5 + 0.3 * 1 + 0.2 * 8 + 0.4 * 2)
    assert mdp.start is None


def test_a_table_in_which_nothing_ends_gets_no_terminal_state() -> None:
    mdp = zoo.from_gymnasium(Table([[[(1.0, 0, 1.0, False)]]], initial_state_distrib=[1.0]), 0.9)
    assert mdp.n_states == 1
    assert not mdp.terminal.any()


def test_a_pair_without_tuples_is_not_allowed() -> None:
    table = {0: {0: [(1.0, 0, 1.0, False)], 1: []}}
    assert zoo.from_gymnasium(Table(table), 0.9).allowed.tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (3, "int has no table of transitions"),
        (Table(None), "Table has no table of transitions"),
        (Table({}), "Table: env.unwrapped.P must hold lists"),
        (Table({1: {0: []}}), "must hold lists"),
        (Table({0: {0: [(1.0, 0, 1.0)]}}), "must hold lists"),
        (Table({0: {0: [(1.0, 0.5, 1.0, False)]}}), "must hold lists"),
        (Table({0: {0: [(1.0, 4, 1.0, False)]}}), r"env.unwrapped.P\[0\]\[0\] leads to state 4, which the table does"),
        (Table({0: {0: [(0.5, 0, 1.0, False)]}}), r"Table: transitions\[0, 0\] sum to 0.5, not to 1"),
        (Table({0: {0: [(1.5, 0, 1.0, False), (-0.5, 0, 1.0, False)]}}), r"transitions\[0, 0, 0\] = -0.5 is negative"),
        (Table({0: {0: [(1.0, 0, float("nan"), False)]}}), r"rewards\[0, 0, 0\] = nan is not a finite number"),
        (Table({0: {0: [(1.0, 0, 1.0, False)]}}, fickle_passenger=True), "does not follow its table"),
    ],
)
def test_wrong_tables(env: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        zoo.from_gymnasium(env, 0.9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: zoo.from_gymnasium("Taxi-v99"),
            r"Gymnasium [0-9.]+ has no environment 'Taxi-v99'; it has Taxi-v[0-9]",
        ),
        (lambda: zoo.from_gymnasium("Nothing"), "has no environment 'Nothing'; nor any version of it"),
        (lambda: zoo.from_gymnasium("Blackjack"), "Blackjack has no table of transitions"),
        (lambda: zoo.make("frozen-lake", slippery=True), r"cannot make FrozenLake-v1\(slippery=True\): .*slippery"),
        (lambda: zoo.make("frozen-lake", env="Taxi"), "cannot make FrozenLake"),
        (lambda: zoo.make("taxi", gamma=2), "Taxi: gamma must lie in"),
    ],
)
def test_wrong_environments(call: Callable[[], object], message: str) -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(InputError, match=message):
        call()


def test_an_environment_that_is_already_made() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    assert np.array_equal(dense(zoo.from_gymnasium(env)), dense(zoo.from_gymnasium("FrozenLake-v1", is_slippery=False)))
    assert np.array_equal(dense(zoo.from_gymnasium(env)), dense(zoo.from_gymnasium("FrozenLake", is_slippery=False)))
    with pytest.raises(InputError, match="is_slippery was given together with an environment"):
        zoo.from_gymnasium(env, is_slippery=False)
    env.close()
