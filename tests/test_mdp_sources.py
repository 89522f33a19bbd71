"""Finite MDPs from functions, from samples, and from and to the forms of other libraries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import ipe
from ipe import FiniteMDP, InputError, zoo

untyped: Any = FiniteMDP
PAIRS: dict[str, Any] = {"R": np.zeros(2), "Q": np.full((2, 2), 0.5), "s_indices": [0, 1], "a_indices": [0, 0]}


def same(one: FiniteMDP, other: FiniteMDP) -> None:
    np.testing.assert_allclose(one.transitions.toarray(), other.transitions.toarray(), atol=1e-15)
    np.testing.assert_allclose(one.rewards, other.rewards, atol=1e-15)
    np.testing.assert_array_equal(one.allowed, other.allowed)
    np.testing.assert_array_equal(one.terminal, other.terminal)
    assert one.gamma == other.gamma


def test_functions_make_the_grid_of_the_zoo() -> None:
    n, slip, grid = 4, 0.2, zoo.slippery_grid(4)
    moves = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}
    order = list(moves)

    def step(cell: tuple[int, int], move: str) -> dict[tuple[int, int], float]:
        out: dict[tuple[int, int], float] = {}
        for turn, p in ((0, 1 - slip), (1, slip / 2), (3, slip / 2)):
            dx, dy = moves[order[(order.index(move) + turn) % 4]]
            to = min(max(cell[0] + dx, 0), n - 1), min(max(cell[1] + dy, 0), n - 1)
            out[to] = out.get(to, 0.0) + p
        return out

    cells = [(x, y) for y in range(n) for x in range(n)]
    pay = {(cell, move): grid.rewards[i, a] for i, cell in enumerate(cells) for a, move in enumerate(order)}
    mdp = FiniteMDP.from_functions(cells, order, step, lambda cell, move: pay[cell, move], 0.95, start=(0, 0))
    same(mdp, grid)
    assert mdp.state_name(5) == "(1, 1)"
    assert mdp.action_names == ("up", "right", "down", "left")
    assert mdp.start is not None
    assert mdp.start[0] == 1.0


def test_functions_with_terminal_states_action_sets_and_rewards_of_the_next_state() -> None:
    chain = zoo.chain(4, slip=0.1)

    def step(s: int, move: str) -> dict[int, float]:
        way = {"left": -1, "right": 1}[move]
        out: dict[int, float] = {}
        for to, p in ((s + way, 0.9), (s - way, 0.1)):
            out[max(to, 0)] = out.get(max(to, 0), 0.0) + p
        return out

    mdp = FiniteMDP.from_functions(
        range(4), lambda s: ["left", "right"], step, lambda s, a, to: float(to == 3), 0.9, terminal=[3], start={0: 1.0}
    )
    same(mdp, chain)
    masked = FiniteMDP.from_functions("ab", [0, 1], lambda s, a: None if s == "a" and a else "b", lambda s, a: 0.0, 0.5)
    assert masked.allowed.tolist() == [[True, False], [True, True]]
    assert masked.is_deterministic


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": []}, "states is empty"),
        ({"states": None}, "states must be a list of hashable things; found None"),
        ({"actions": 3}, "actions must be a list of hashable things; found 3"),
        ({"actions": lambda s: 3}, "actions of 'a' must be a list of hashable things; found 3"),
        ({"transition": {}}, "transition must be a function; found {}"),
        (
            {"transition": lambda s, a: [0.5, 0.5]},
            r"action 0: transition gives \[0.5, 0.5\], neither a state nor",
        ),
        ({"transition": lambda s, a: {"a": "1"}}, r"state 'a', action 0: the probability '1' of 'a' is not a number"),
        ({"reward": 1.0}, "reward must be a function; found 1.0"),
        ({"terminal": 7}, "terminal must be a list of states, or a function of a state; found 7"),
        ({"terminal": [["a"]]}, r"terminal names \['a'\]"),
        ({"start": ["a"]}, r"start must be a state or a dictionary {state: probability}; found \['a'\]"),
        ({"start": {"a": "x"}}, "start: the probability 'x' of 'a' is not a number"),
        ({"states": ["a", "a"]}, "states holds 'a' twice"),
        ({"states": [["a"]]}, "is not hashable"),
        ({"actions": []}, "actions is empty"),
        ({"transition": lambda s, a: "c"}, r"state 'a', action 0: transition leads to 'c', which is not one of"),
        ({"transition": lambda s, a: {"a": 0.5}}, r"state 'a', action 0: the probabilities sum to 0.5, not to 1"),
        ({"transition": lambda s, a: {"a": -1, "b": 2}}, r"state 'a', action 0: the probability -1 of 'a'"),
        ({"transition": lambda s, a: {"a": float("nan")}}, "the probability nan of 'a' is not a number"),
        ({"transition": lambda s, a: None}, "state 'a' has no action, and is not terminal"),
        ({"reward": lambda s, a: float("inf")}, r"state 'a', action 0: the reward inf is not a finite number"),
        ({"reward": lambda s, a, t: "1"}, r"state 'a', action 0, next state 'b': the reward '1' is not"),
        ({"reward": lambda s: 0.0}, r"reward must take \(state, action\) or"),
        ({"gamma": 1.0}, r"gamma must lie in \[0, 1\)"),
        ({"terminal": ["z"]}, "terminal names 'z'"),
        ({"start": "z"}, "start names 'z'"),
    ],
)
def test_wrong_functions_are_refused_with_the_state_and_the_action(changes: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "states": ["a", "b"],
        "actions": [0, 1],
        "transition": lambda s, a: "b",
        "reward": lambda s, a: 0.0,
        "gamma": 0.9,
    }
    with pytest.raises(InputError, match=message):
        untyped.from_functions(**(good | changes))


def test_an_exception_of_a_users_function_names_the_state_and_the_action() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        untyped.from_functions(["a", "b"], [0, 1], lambda s, a: "b", lambda s, a: 1 / a, 0.9)
    assert caught.value.__notes__ == ["raised for state 'a', action 0"]


def test_samples_of_an_mdp_lead_back_to_it() -> None:
    mdp, rng = zoo.river_swim(4), np.random.default_rng(0)
    s, a = rng.integers(4, size=200_000), rng.integers(2, size=200_000)
    P = mdp.transitions.toarray().reshape(4, 2, 4)
    following = (P[s, a].cumsum(axis=1) > rng.random(200_000)[:, None]).argmax(axis=1)
    found = FiniteMDP.from_transitions(s, a, mdp.rewards[s, a], following, gamma=mdp.gamma)
    np.testing.assert_allclose(found.transitions.toarray(), mdp.transitions.toarray(), atol=0.02)
    np.testing.assert_allclose(found.rewards, mdp.rewards, atol=1e-12)


def test_unvisited_pairs_are_masked_and_ends_lead_to_one_state() -> None:
    mdp = FiniteMDP.from_transitions(
        [0, 0, 1, 1], [0, 0, 1, 1], [1.0, 3.0, 2.0, 4.0], [1, 0, 0, 7], [False, False, False, True], gamma=0.9
    )
    assert mdp.state_names == ("s0", "s1", "end")
    assert mdp.allowed.tolist() == [[True, False], [False, True], [False, False]]
    assert mdp.terminal.tolist() == [False, False, True]
    assert mdp.rewards.tolist() == [[2.0, 0.0], [0.0, 3.0], [0.0, 0.0]]
    assert mdp.transitions.toarray()[3].tolist() == [0.5, 0.0, 0.5]


def test_a_prior_counts_for_every_next_state_of_a_visited_pair() -> None:
    mdp = FiniteMDP.from_transitions([0, 0, 1], [0, 0, 0], [1.0, 3.0, 0.0], [0, 0, 1], gamma=0.9, n_states=3, prior=1.0)
    np.testing.assert_allclose(mdp.transitions.toarray(), [[0.6, 0.2, 0.2], [0.25, 0.5, 0.25], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(mdp.rewards, [[2.0], [0.0], [0.0]])
    assert mdp.terminal.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": [0.5, 1]}, "state must be a list of whole numbers"),
        ({"state": [-1, 1]}, r"state\[0\] = -1 is negative"),
        ({"action": [0]}, "action must have the 2 entries of state"),
        ({"reward": [0.0, np.nan]}, r"reward\[1\] = nan is not a finite number"),
        ({"next_state": [0, 1, 2]}, "next_state must have the 2 entries"),
        ({"terminated": [0, 1]}, "terminated must hold booleans"),
        ({"n_states": 1}, "n_states = 1, but the transitions hold the number 1"),
        ({"n_actions": 0}, "n_actions must be a whole number >= 1"),
        ({"prior": -1.0}, "prior must be a finite number >= 0"),
        ({"gamma": 1.0}, r"gamma must lie in \[0, 1\)"),
        ({"state": [2**62, 0]}, "an MDP of 4611686018427387905 states and 1 actions takes about"),
        ({"action": [2**40, 0]}, "an MDP of 2 states and 1099511627777 actions takes about"),
        ({name: [] for name in ("state", "action", "reward", "next_state")}, "state is empty"),
    ],
)
def test_wrong_samples_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"state": [0, 1], "action": [0, 0], "reward": [0.0, 1.0], "next_state": [1, 0], "gamma": 0.9}
    with pytest.raises(InputError, match=message):
        untyped.from_transitions(**(good | changes))


@pytest.mark.parametrize("mdp", [zoo.switch_stay(slip=0.1), zoo.garnet(12, 3, 4), zoo.river_swim(), zoo.chain(5)])
def test_there_and_back_through_pymdptoolbox(mdp: FiniteMDP) -> None:
    P, R = mdp.to_mdptoolbox()
    assert all(np.allclose(matrix.sum(axis=1), 1.0) for matrix in P)
    same(FiniteMDP.from_mdptoolbox(P, R, mdp.gamma, terminal=mdp.terminal), mdp)
    dense = np.stack([matrix.toarray() for matrix in P])
    same(FiniteMDP.from_mdptoolbox(dense, R, mdp.gamma, terminal=mdp.terminal), mdp)


def test_the_other_rewards_of_pymdptoolbox() -> None:
    mdp = zoo.garnet(6, 2, 3)
    P, _ = mdp.to_mdptoolbox()
    per_state = FiniteMDP.from_mdptoolbox(P, np.arange(6.0), 0.9)
    assert per_state.rewards.tolist() == [[s, s] for s in range(6)]
    full = np.random.default_rng(0).normal(size=(2, 6, 6))
    expected = np.einsum("ast,ast->sa", np.stack([matrix.toarray() for matrix in P]), full)
    np.testing.assert_allclose(FiniteMDP.from_mdptoolbox(P, full, 0.9).rewards, expected)
    with pytest.raises(InputError, match="rewards must have shape"):
        untyped.from_mdptoolbox(P, np.zeros(5), 0.9)
    with pytest.raises(InputError, match=r"transitions\[0\] must be a matrix"):
        untyped.from_mdptoolbox([1.0], np.zeros(1), 0.9)
    with pytest.raises(InputError, match="transitions is empty"):
        untyped.from_mdptoolbox([], np.zeros(1), 0.9)
    masked = FiniteMDP(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), 0.9, allowed=[[True, False], [True, True]])
    with pytest.raises(InputError, match="action 1 is not allowed in state 0"):
        masked.to_mdptoolbox()


@pytest.mark.slow
@pytest.mark.parametrize("mdp", [zoo.chain(5), zoo.river_swim(), zoo.garnet(12, 3, 4)])
def test_there_and_back_through_quantecon(mdp: FiniteMDP) -> None:
    pytest.importorskip("quantecon")
    ddp = mdp.to_quantecon()
    same(FiniteMDP.from_quantecon(ddp, terminal=mdp.terminal), mdp)
    found = ddp.solve(method="policy_iteration").v
    np.testing.assert_allclose(found, ipe.planning.optimal_values(mdp).v, atol=1e-6)


@pytest.mark.slow
def test_quantecons_product_form_and_its_masks() -> None:
    quantecon = pytest.importorskip("quantecon")
    R, Q = [[5, 10], [-1, -float("inf")]], [[(0.5, 0.5), (0, 1)], [(0, 1), (0.5, 0.5)]]
    mdp = FiniteMDP.from_quantecon(quantecon.markov.DiscreteDP(np.array(R), np.array(Q), 0.95))
    assert mdp.allowed.tolist() == [[True, True], [True, False]]
    assert mdp.rewards.tolist() == [[5, 10], [-1, 0]]
    sparse_form = quantecon.markov.DiscreteDP(
        np.array([5.0, 10.0, -1.0]),
        sparse.csr_matrix(np.array([[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])),
        0.95,
        [0, 0, 1],
        [0, 1, 0],
    )
    same(FiniteMDP.from_quantecon(sparse_form), mdp)
    with pytest.raises(InputError, match="ddp must be a DiscreteDP of QuantEcon, found int without R"):
        FiniteMDP.from_quantecon(3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"R": np.array([[0.0, np.nan], [0.0, 0.0]])}, r"rewards\[0, 1\] = nan is not a finite number"),
        ({"R": np.array([[0.0, 0.0], [-np.inf, -np.inf]])}, "violated for state 1"),
        ({"R": "x"}, "R must hold real numbers"),
        ({"Q": np.full((2, 2, 2), 0.4)}, r"transitions\[0, 0\] sum to 0.8, not to 1"),
        ({"beta": "x"}, "beta must be a finite number, found 'x'"),
        ({"beta": 1.0}, r"gamma must lie in \[0, 1\)"),
        (PAIRS | {"s_indices": [0, 5]}, r"s_indices\[1\] = 5 is not a state: there are 2"),
        (PAIRS | {"a_indices": [0, -1]}, r"a_indices\[1\] = -1 is negative"),
        (PAIRS | {"s_indices": [0]}, "s_indices must be 2 whole numbers, one per pair"),
        (PAIRS | {"Q": np.full((3, 2), 0.5)}, "Q must have one row for each of the 2 pairs of R"),
        (PAIRS | {"R": np.array([0.0, np.nan])}, r"rewards\[1, 0\] = nan is not a finite number"),
    ],
)
def test_wrong_models_of_quantecon_are_refused_by_the_pair(changes: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"R": np.zeros((2, 2)), "Q": np.full((2, 2, 2), 0.5), "beta": 0.9}
    with pytest.raises(InputError, match=message):
        FiniteMDP.from_quantecon(SimpleNamespace(**(good | changes)))


@pytest.mark.parametrize(
    ("P", "R", "message"),
    [
        (None, np.zeros((2, 2)), r"transitions must have shape \(actions, states, states\); found None"),
        ([np.eye(2), np.eye(3)], np.zeros((2, 2)), r"transitions\[1\] must have the shape"),
        (np.full((2, 2, 2), 0.4), np.zeros((2, 2)), r"transitions\[0, 0\] sum to 0.8"),
        (
            np.stack([np.eye(2), [[2.0, -1.0], [0.0, 1.0]]]),
            np.zeros((2, 2)),
            r"transitions\[0, 1, 1\] = -1 is negative",
        ),
        (np.full((2, 2, 2), 0.5), [[0.0, np.nan], [0.0, 0.0]], r"rewards\[0, 1\] = nan is not a finite number"),
        (np.full((2, 2, 2), 0.5), [sparse.eye(2), sparse.eye(3)], "rewards is not an array of numbers"),
        (np.full((2, 2, 2), 0.5), None, "rewards must hold real numbers"),
    ],
)
def test_wrong_arrays_of_pymdptoolbox_are_refused_by_the_pair(P: Any, R: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        untyped.from_mdptoolbox(P, R, 0.9)
