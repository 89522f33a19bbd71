"""What is asked of value functions, policies and weights: the shape, finite numbers, zeros where nothing is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from ipe.base.numbers import check_positive
from ipe.checks import check_one_form, check_policy, check_q, check_v, check_weights
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from tests.strategies import generators, mdps, random_pi, random_q, random_v

NAN = float("nan")

# Three states, the last one terminal; the second action is not allowed in the second state.
MDP = FiniteMDP(
    np.array([[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]] * 2, [[0.0] * 3] * 2]),
    np.zeros((3, 2)),
    0.9,
    allowed=[[True, True], [True, False], [True, True]],
    terminal=[2],
)


@given(mdps(), generators())
def test_what_is_right_comes_back_as_it_was(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    v, q, pi = random_v(rng, mdp), random_q(rng, mdp), random_pi(rng, mdp)
    assert np.array_equal(check_v(mdp, v), v)
    assert np.array_equal(check_q(mdp, q), q)
    assert np.array_equal(check_policy(mdp, pi), pi)
    assert np.array_equal(check_q(mdp, np.where(mdp.allowed, q, np.nan)), q)


def test_the_answer_is_a_copy() -> None:
    v, q, pi = np.zeros(3), np.zeros((3, 2)), np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]])
    check_v(MDP, v)[0] = check_q(MDP, q)[0, 0] = check_policy(MDP, pi)[0, 0] = 9.0
    full = FiniteMDP(np.ones((1, 1, 1)), [[0.0]], 0.5)
    table = np.zeros((1, 1))
    check_q(full, table)[0, 0] = 9.0
    assert v[0] == q[0, 0] == table[0, 0] == 0.0
    assert pi[0, 0] == 0.5


def test_places_that_the_mdp_does_not_have_become_zero() -> None:
    assert check_q(MDP, [[1, 2], [3, 99], [NAN, 0]]).tolist() == [[1, 2], [3, 0], [0, 0]]
    assert check_policy(MDP, [[0.5, 0.5], [1, 0], [NAN, 7]]).tolist() == [[0.5, 0.5], [1, 0], [0, 0]]
    weights = check_weights(MDP, [[1, 2], [3, -4], [NAN, 0]], "q")
    assert weights is not None
    assert weights.tolist() == [[1, 2], [3, 0], [0, 0]]
    states = check_weights(MDP, [1, 0, NAN], "v")
    assert states is not None
    assert states.tolist() == [1, 0, 0]
    assert check_weights(MDP, None, "v") is None


def test_one_form() -> None:
    assert check_one_form(MDP, [1, 2, 0], None)[0] == "v"
    assert check_one_form(MDP, None, np.zeros((3, 2)))[0] == "q"
    for both in ((None, None), ([1, 2, 0], np.zeros((3, 2)))):
        with pytest.raises(InputError, match=r"give either v .* or q .*, and not both"):
            check_one_form(MDP, *both)


V_WRONG: list[tuple[Any, str]] = [
    ([1, 2], r"v must have shape \(3,\), one value per state; found \(2,\)"),
    ([[1, 2, 0]], r"found \(1, 3\)"),
    ([1, NAN, 0], r"v\[1\] = nan is not a finite number"),
    ([-np.inf, 1, 0], r"v\[0\] = -inf is not a finite number"),
    ([1, 2, 3], "v: state 2 is terminal and has value 0, but 3 was given"),
    (["1", "2", "0"], "v must hold real numbers, found dtype <U1"),
    ([1j, 0, 0], "v must hold real numbers, found dtype complex128"),
    ([[1], [1, 2]], "v is not an array"),
    (None, "v must hold real numbers, found dtype object"),
]
Q_WRONG: list[tuple[Any, str]] = [
    ([1, 2, 0], r"q must have shape \(3, 2\), one value per state and action; found \(3,\)"),
    ([[1, 2], [NAN, 0], [0, 0]], r"q\[1, 0\] = nan is not a finite number"),
    ([[1, np.inf], [0, 0], [0, 0]], r"q\[0, 1\] = inf is not a finite number"),
    ([[1, 2], [3, 0], [0, 5]], "q: state 2 is terminal and has value 0, but 5 was given"),
    ([[1, 2], [3, 0], [0, np.inf]], "q: state 2 is terminal and has value 0, but inf was given"),
]
PI_WRONG: list[tuple[Any, str]] = [
    ([[0.5, 0.5]], r"policy must have shape \(3, 2\); found \(1, 2\)"),
    ([[1.5, -0.5], [1, 0], [0, 0]], r"policy\[0, 1\] = -0.5 is not a probability"),
    ([[NAN, 1], [1, 0], [0, 0]], r"policy\[0, 0\] = nan is not a probability"),
    ([[1, 0], [0.9, 0.1], [0, 0]], r"policy\[1, 1\] = 0.1 is not 0, but the action is not allowed there"),
    ([[0.5, 0.4], [1, 0], [0, 0]], r"policy\[0\] sums to 0.9, not to 1 \(off by -0.1\)"),
    ([[np.inf, 0], [1, 0], [0, 0]], r"policy\[0\] sums to inf, not to 1"),
    ([[0, 0], [1, 0], [0, 0]], r"policy\[0\] sums to 0, not to 1"),
]


@pytest.mark.parametrize(("v", "message"), V_WRONG)
def test_wrong_state_values(v: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_v(MDP, v)


@pytest.mark.parametrize(("q", "message"), Q_WRONG)
def test_wrong_action_values(q: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_q(MDP, q)


@pytest.mark.parametrize(("pi", "message"), PI_WRONG)
def test_wrong_policies(pi: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_policy(MDP, pi)


@pytest.mark.parametrize(
    ("weights", "form", "message"),
    [
        ([1, 1], "v", r"weights must have shape \(3,\) for v; found \(2,\)"),
        ([1, 1, 1], "q", r"weights must have shape \(3, 2\) for q; found \(3,\)"),
        ([1, -1, 0], "v", r"weights\[1\] = -1 is not a finite number >= 0"),
        ([[1, NAN], [0, 0], [0, 0]], "q", r"weights\[0, 1\] = nan is not a finite number >= 0"),
        ([0, 0, 5], "v", "weights are zero for every row: at least one must be positive"),
        ([[0, 0], [0, 5], [5, 5]], "q", "weights are zero for every row"),
    ],
)
def test_wrong_weights(weights: Any, form: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_weights(MDP, weights, form)


def test_the_name_given_stands_in_the_message() -> None:
    with pytest.raises(InputError, match=r"^v0 must have shape"):
        check_v(MDP, [1], name="v0")


@pytest.mark.parametrize("value", [0, -1.0, NAN, np.inf, "1", True, None, [1.0]])
def test_what_is_not_a_positive_number(value: Any) -> None:
    with pytest.raises(InputError, match=r"tau must be a .*number > 0, found"):
        check_positive(value, "tau")


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(3)])
def test_positive_numbers(value: Any) -> None:
    assert check_positive(value, "tau") == float(value)
