"""FiniteMDP: every form of input is the same MDP, and every wrong input is refused by its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.zoo import garnet, switch_stay
from tests.strategies import mdps

P = np.array([[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]] * 2])
R = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]])


def rows(p: Array) -> Array:
    return p.reshape(-1, p.shape[2])


def same(one: FiniteMDP, other: FiniteMDP) -> None:
    assert np.array_equal(one.transitions.toarray(), other.transitions.toarray())
    assert np.array_equal(one.rewards, other.rewards)
    assert np.array_equal(one.allowed, other.allowed)
    assert np.array_equal(one.terminal, other.terminal)


FORMS: dict[str, Callable[[Array], Any]] = {
    "lists": lambda p: p.tolist(),
    "csr": lambda p: sparse.csr_array(rows(p)),
    "csc": lambda p: sparse.csc_array(rows(p)),
    "coo": lambda p: sparse.coo_array(rows(p)),
    "lil": lambda p: sparse.lil_array(rows(p)),
    "old matrix": lambda p: sparse.csr_matrix(rows(p)),
    "one per action": lambda p: [sparse.csr_array(p[:, a]) for a in range(p.shape[1])],
    "one per action, csc": lambda p: tuple(sparse.csc_matrix(p[:, a]) for a in range(p.shape[1])),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_transitions_is_the_same_mdp(form: str) -> None:
    same(FiniteMDP(P, R, 0.9, terminal=[2]), FiniteMDP(FORMS[form](P), R, 0.9, terminal=[2]))


@given(mdps())
def test_sparse_rows_and_dense_arrays_agree_on_random_mdps(mdp: FiniteMDP) -> None:
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    for form in FORMS.values():
        again = FiniteMDP(form(dense), mdp.rewards, mdp.gamma, allowed=mdp.allowed, terminal=mdp.terminal)
        same(mdp, again)


def test_duplicates_are_summed_and_zeros_dropped() -> None:
    entries = sparse.coo_array(([0.25, 0.75, 0.0, 1.0], ([0, 0, 0, 1], [1, 1, 0, 0])), shape=(2, 2))
    mdp = FiniteMDP(entries, np.zeros((2, 1)), 0.5)
    assert mdp.transitions.nnz == 2
    assert mdp.is_deterministic


def test_the_input_is_copied_and_the_fields_cannot_be_changed() -> None:
    p, r = P.copy(), R.copy()
    matrix = sparse.csr_array(rows(p))
    mdp, other = FiniteMDP(p, r, 0.9, terminal=[2], start=0), FiniteMDP(matrix, r, 0.9, terminal=[2])
    p[:], r[:] = 0.0, 0.0
    matrix.data[:] = 0.0
    same(mdp, other)
    assert mdp.rewards[0, 0] == 1.0
    assert mdp.start is not None
    for array in (mdp.rewards, mdp.allowed, mdp.terminal, mdp.transitions.data, mdp.start):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        mdp.gamma = 0.5  # type: ignore[misc]


def test_masks_and_terminal_states() -> None:
    allowed = np.array([[True, False], [False, True], [True, True]])
    mdp = FiniteMDP(P, R, 0.9, allowed=allowed, terminal=[2])
    assert mdp.allowed.tolist() == [[True, False], [False, True], [False, False]]
    assert mdp.rewards.tolist() == [[1.0, 0.0], [0.0, 4.0], [0.0, 0.0]]
    assert np.diff(mdp.transitions.indptr).tolist() == [2, 0, 0, 1, 0, 0]
    assert repr(mdp) == "FiniteMDP(3 states, 2 actions, gamma=0.9, 1 terminal, 2 of 4 pairs allowed, stochastic)"
    same(mdp, FiniteMDP(P, R, 0.9, allowed=allowed, terminal=np.array([False, False, True])))


@pytest.mark.parametrize("form", ["lists", "csr", "coo", "one per action"])
@pytest.mark.parametrize("garbage", [-1.0, np.nan, 7.0])
def test_rows_of_actions_that_are_not_allowed_are_not_looked_at(form: str, garbage: float) -> None:
    p, r = P.copy(), R.copy()
    p[0, 1], r[0, 1] = garbage, np.nan
    allowed = np.array([[True, False], [True, True], [True, True]])
    clean = FiniteMDP(P, R, 0.9, allowed=allowed, terminal=[2])
    same(clean, FiniteMDP(FORMS[form](p), r, 0.9, allowed=allowed, terminal=[2]))


def test_an_mdp_of_terminal_states_only() -> None:
    mdp = FiniteMDP(np.zeros((2, 1, 2)), np.zeros((2, 1)), 0.9, terminal=[0, 1])
    assert not mdp.allowed.any()
    assert mdp.is_deterministic


@pytest.mark.parametrize("kind", [np.asarray, lambda r: sparse.csr_array(rows(r)), lambda r: sparse.coo_array(rows(r))])
def test_rewards_of_transitions(kind: Any) -> None:
    r = np.random.default_rng(0).normal(size=P.shape)
    r[2] = 0.0
    mdp = FiniteMDP(P, kind(r), 0.9, terminal=[2])
    assert mdp.rewards[:2] == pytest.approx((P * r).sum(axis=2)[:2], rel=1e-15)
    assert mdp.transition_rewards is not None
    sources = np.repeat(np.arange(6), np.diff(mdp.transitions.indptr))
    assert np.array_equal(mdp.transition_rewards, rows(r)[sources, mdp.transitions.indices])


def test_rewards_of_transitions_that_never_happen_are_not_looked_at() -> None:
    r = np.zeros(P.shape)
    r[0, 0, 2] = np.nan
    assert np.isfinite(FiniteMDP(P, r, 0.9, terminal=[2]).rewards).all()


def test_start() -> None:
    assert FiniteMDP(P, R, 0.9, terminal=[2]).start is None
    one, several = (FiniteMDP(P, R, 0.9, terminal=[2], start=start).start for start in (1, [0.25, 0.75, 0.0]))
    assert one is not None
    assert several is not None
    assert one.tolist() == [0.0, 1.0, 0.0]
    assert several.tolist() == [0.25, 0.75, 0.0]


def test_names_and_discount() -> None:
    mdp = switch_stay()
    assert (mdp.state_name(1), mdp.action_name(0)) == ("s1", "stay")
    plain = garnet(3, 2, 1)
    assert (plain.state_name(2), plain.action_name(1), plain.state_names) == ("s2", "a1", ())
    twin = mdp.with_gamma(0.0)
    assert (twin.gamma, mdp.gamma) == (0.0, 0.9)
    assert twin.transitions is mdp.transitions
    with pytest.raises(InputError, match="gamma must lie in"):
        mdp.with_gamma(1.0)


def test_tolerance_of_row_sums() -> None:
    p = P * (1 + 1e-6)
    with pytest.raises(InputError, match=r"transitions\[0, 0\] sum to 1.000001, not to 1 \(off by 1e-06\); 4 rows"):
        FiniteMDP(p, R, 0.9, terminal=[2])
    assert FiniteMDP(p, R, 0.9, terminal=[2], tolerance=1e-5).n_states == 3


def changed(array: Array, index: tuple[int, ...], value: float) -> Array:
    out = array.copy()
    out[index] = value
    return out


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"transitions": np.zeros((2, 2))}, r"transitions must have shape .* found shape \(2, 2\)"),
    ({"transitions": np.zeros((2, 1, 3))}, r"found shape \(2, 1, 3\)"),
    ({"transitions": np.zeros((0, 1, 0))}, r"found shape \(0, 1, 0\)"),
    ({"transitions": []}, r"found shape \(0,\)"),
    ({"transitions": [[[1.0], [1.0, 2.0]]]}, "transitions is not an array"),
    ({"transitions": P.astype(str)}, "transitions must hold real numbers, found dtype <U"),
    ({"transitions": P.astype(complex)}, "transitions must hold real numbers, found dtype complex128"),
    ({"transitions": sparse.csr_array((5, 3))}, r"with a whole number of actions; found shape \(5, 3\)"),
    ({"transitions": sparse.coo_array([1.0, 2.0])}, r"found shape \(2,\)"),
    ({"transitions": sparse.csr_array(rows(P)).astype(complex)}, "found dtype complex128"),
    ({"transitions": sparse.csr_array(([1.0], [7], [0, 1, 1, 1, 1, 1, 1]), shape=(6, 3))}, "not a valid sparse matrix"),
    (
        {"transitions": [sparse.eye_array(3), sparse.eye_array(2)]},
        r"transitions\[1\] must have the shape .* \(3, 3\); found shape \(2, 2\)",
    ),
    ({"transitions": changed(P, (1, 0, 2), np.nan)}, r"transitions\[1, 0, 2\] = nan is not a finite number"),
    ({"transitions": changed(P, (1, 0, 2), np.inf)}, r"transitions\[1, 0, 2\] = inf is not a finite number"),
    ({"transitions": changed(P, (1, 0, 2), -0.5)}, r"transitions\[1, 0, 2\] = -0.5 is negative"),
    (
        {"transitions": sparse.csr_array(rows(changed(P, (1, 0, 2), -0.5)))},
        r"transitions\[1, 0, 2\] = -0.5 is negative",
    ),
    (
        {"transitions": changed(P, (1, 0, 2), 0.25)},
        r"transitions\[1, 0\] sum to 0.75, not to 1 \(off by -0.25\); 1 row is",
    ),
    (
        {"transitions": changed(P, (2, 1, 0), 0.25)},
        r"state 2 is terminal, but transitions\[2, 1\] leads to state 0 with probability 0.25",
    ),
    ({"rewards": R[:2]}, r"rewards must have shape \(3, 2\) or \(3, 2, 3\); found shape \(2, 2\)"),
    ({"rewards": changed(R, (1, 1), np.nan)}, r"rewards\[1, 1\] = nan is not a finite number"),
    ({"rewards": changed(R, (2, 1), -1.0)}, r"state 2 is terminal, but rewards\[2, 1\] = -1 is not 0"),
    ({"rewards": changed(R, (2, 1), np.nan)}, r"state 2 is terminal, but rewards\[2, 1\] = nan is not 0"),
    ({"rewards": "many"}, "rewards must hold real numbers"),
    ({"rewards": changed(np.zeros(P.shape), (0, 0, 1), np.inf)}, r"rewards\[0, 0, 1\] = inf is not a finite number"),
    ({"rewards": changed(np.zeros(P.shape), (2, 0, 1), -3.0)}, r"state 2 is terminal, but rewards\[2, 0, 1\] = -3"),
    (
        {"rewards": sparse.csr_array(rows(changed(np.zeros(P.shape), (2, 0, 1), -3.0)))},
        r"state 2 is terminal, but rewards\[2, 0, 1\] = -3 is not 0",
    ),
    ({"rewards": sparse.csr_array((3, 3))}, r"rewards, sparse, must have shape \(6, 3\); found shape \(3, 3\)"),
    ({"rewards": sparse.csr_array((6, 3), dtype=complex)}, "rewards must hold real numbers, found dtype complex128"),
    *(({"gamma": gamma}, r"gamma must lie in \[0, 1\), found") for gamma in (1.0, -0.1, np.nan, np.inf, 2)),
    *(
        ({"gamma": gamma}, r"gamma must lie in \[0, 1\), found")
        for gamma in (True, "0.9", None, [0.9], np.complex128(0.5 + 1j), np.array(0.9))
    ),
    ({"allowed": np.ones((3, 3), dtype=bool)}, r"allowed must be boolean with shape \(3, 2\); found bool, shape"),
    ({"allowed": np.ones((3, 2))}, r"found float64, shape \(3, 2\)"),
    ({"allowed": [[True], [True, False], [True]]}, "allowed is not an array"),
    ({"allowed": [[True, True], [False, False], [True, True]]}, "at least one action; violated for state 1"),
    ({"terminal": [True, False]}, r"terminal, a mask, must have shape \(3,\); found shape \(2,\)"),
    ({"terminal": [3]}, "terminal names state 3, but states run from 0 to 2"),
    ({"terminal": [-1]}, "terminal names state -1"),
    ({"terminal": [2.0]}, "terminal must be a boolean mask or a list of state indices"),
    ({"terminal": 2}, "terminal must be a boolean mask or a list"),
    ({"terminal": [[2], [1, 2]]}, "terminal is not an array"),
    ({"start": 3}, "start names state 3, but states run from 0 to 2"),
    ({"start": -1}, "start names state -1"),
    ({"start": 2}, "start gives probability to state 2, which is terminal"),
    ({"start": [0.5, 0.5]}, r"start must be a state or have shape \(3,\); found shape \(2,\)"),
    ({"start": 0.5}, r"start must be a state or have shape \(3,\); found shape \(\)"),
    ({"start": [0.5, 0.25, 0.0]}, "start sums to 0.75, not to 1"),
    ({"start": [1.5, -0.5, 0.0]}, r"start\[1\] = -0.5 is not a probability"),
    ({"start": [np.nan, 1.0, 0.0]}, r"start\[0\] = nan is not a probability"),
    ({"start": [[1.0], [1.0, 2.0]]}, "start is not an array"),
    ({"state_names": ["a", "b"]}, "state_names must be 3 strings; found 2"),
    ({"state_names": "abc"}, "state_names must be 3 strings; found 'abc'"),
    ({"state_names": 3}, "state_names must be 3 strings; found 3"),
    ({"state_names": ["a", "b", 3]}, r"state_names\[2\] must be a string; found 3"),
    ({"action_names": ["go", "go"]}, "action_names holds 'go' twice"),
    *(({"tolerance": value}, "tolerance must be a finite number >= 0") for value in (np.nan, np.inf, -1.0, "0", True)),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_input_is_refused_by_its_place(wrong: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {"transitions": P, "rewards": R, "gamma": 0.9, "terminal": [2]}
    assert FiniteMDP(**right).n_actions == 2
    with pytest.raises(InputError, match=message):
        FiniteMDP(**{**right, **wrong})


def test_a_negative_duplicate_does_not_hide_in_a_sum() -> None:
    entries = sparse.coo_array(([1.5, -0.5, 1.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    with pytest.raises(InputError, match=r"transitions\[0, 0, 0\] = -0.5 is negative"):
        FiniteMDP(entries, np.zeros((2, 1)), 0.9)
    per_action = sparse.csr_array(([1.5, -0.5, 1.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    with pytest.raises(InputError, match=r"transitions\[0, 0, 0\] = -0.5 is negative"):
        FiniteMDP([per_action], np.zeros((2, 1)), 0.9)


def test_what_stays_in_a_terminal_state_is_dropped() -> None:
    mdp = FiniteMDP(P, R, 0.9, terminal=[2])
    assert mdp.transitions[[4, 5]].nnz == 0
