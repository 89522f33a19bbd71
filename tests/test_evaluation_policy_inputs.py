"""Every wrong input to `evaluation_policy` is refused by one sentence that names the field or the place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ipe
from ipe import FiniteMDP, InputError, evaluation_policy
from ipe.zoo import garnet, switch_stay


def masked() -> FiniteMDP:
    """Three states: 0 has both actions, 1 only the first, 2 is terminal."""
    P = np.zeros((3, 2, 3))
    P[0, 0] = [0.5, 0.5, 0.0]
    P[0, 1] = P[1, 0] = [0.0, 0.0, 1.0]
    allowed = np.array([[True, True], [True, False], [False, False]])
    return FiniteMDP(P, [[1.0, 2.0], [3.0, 0.0], [0.0, 0.0]], 0.9, allowed=allowed, terminal=[2])


GOOD_Q = [[1.0, 2.0], [3.0, np.nan], [0.0, 0.0]]
GOOD_V = [1.0, 3.0, 0.0]


def refused(message: str, **given: Any) -> None:
    with pytest.raises(InputError) as caught:
        evaluation_policy(masked(), **given)
    assert str(caught.value) == message


def test_the_values_used_below_are_accepted() -> None:
    assert evaluation_policy(masked(), q=GOOD_Q).converged
    assert evaluation_policy(masked(), v=GOOD_V).converged


def test_neither_or_both_forms() -> None:
    message = "give either v (one value per state) or q (one value per state and action), and not both"
    refused(message)
    refused(message, v=GOOD_V, q=GOOD_Q)


@pytest.mark.parametrize(
    ("v", "message"),
    [
        ([1.0, 2.0], "v must have shape (3,), one value per state; found (2,)"),
        ([[1.0], [2.0], [0.0]], "v must have shape (3,), one value per state; found (3, 1)"),
        (1.0, "v must have shape (3,), one value per state; found ()"),
        ([1.0, np.nan, 0.0], "v[1] = nan is not a finite number"),
        ([1.0, 2.0, np.inf], "v[2] = inf is not a finite number"),
        ([1.0, 2.0, 0.5], "v: state 2 is terminal and has value 0, but 0.5 was given"),
        ([1.0 + 1j, 2.0, 0.0], "v must hold real numbers, found dtype complex128"),
        (["1", "2", "0"], "v must hold real numbers, found dtype <U1"),
        ([1e200, 2.0, 0.0], "v[0] = 1e+200 is too large: at most 1e+100"),
    ],
)
def test_state_values(v: Any, message: str) -> None:
    refused(message, v=v)


@pytest.mark.parametrize(
    ("q", "message"),
    [
        ([[1.0, 2.0]], "q must have shape (3, 2), one value per state and action; found (1, 2)"),
        (GOOD_V, "q must have shape (3, 2), one value per state and action; found (3,)"),
        ([[1.0, np.nan], [3.0, 0.0], [0.0, 0.0]], "q[0, 1] = nan is not a finite number"),
        ([[1.0, 2.0], [-np.inf, 0.0], [0.0, 0.0]], "q[1, 0] = -inf is not a finite number"),
        ([[1.0, 2.0], [3.0, 0.0], [0.0, 7.0]], "q: state 2 is terminal and has value 0, but 7 was given"),
        ([[1.0, -2e150], [3.0, 0.0], [0.0, 0.0]], "q[0, 1] = -2e+150 is too large: at most 1e+100"),
        (np.array([[1, 2], [3, 0], [0, 0]], dtype=object), "q must hold real numbers, found dtype object"),
    ],
)
def test_action_values(q: Any, message: str) -> None:
    refused(message, q=q)


def test_ragged_values() -> None:
    with pytest.raises(InputError, match="q is not an array"):
        evaluation_policy(masked(), q=[[1.0, 2.0], [3.0], [0.0, 0.0]])


def test_huge_rewards() -> None:
    mdp = FiniteMDP(np.ones((1, 1, 1)), [[1e150]], 0.9)
    with pytest.raises(InputError, match=r"rewards\[0, 0\] = 1e\+150 is too large"):
        evaluation_policy(mdp, v=[1.0])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 1.0, 1.0], "weights must have shape (3, 2) for q; found (3,)"),
        ([[1.0, -1.0], [1.0, 0.0], [0.0, 0.0]], "weights[0, 1] = -1 is not a finite number >= 0"),
        ([[1.0, 1.0], [np.nan, 0.0], [0.0, 0.0]], "weights[1, 0] = nan is not a finite number >= 0"),
        ([[1.0, np.inf], [1.0, 0.0], [0.0, 0.0]], "weights[0, 1] = inf is not a finite number >= 0"),
        ([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], "weights are zero for every row: at least one must be positive"),
        ([[0.0, 0.0], [0.0, 5.0], [5.0, 5.0]], "weights are zero for every row: at least one must be positive"),
        ([["a", "b"]] * 3, "weights must hold real numbers, found dtype <U1"),
    ],
)
def test_weights(weights: Any, message: str) -> None:
    refused(message, q=GOOD_Q, weights=weights)


def test_weights_of_the_other_form() -> None:
    refused("weights must have shape (3,) for v; found (3, 2)", v=GOOD_V, weights=np.ones((3, 2)))
    refused("weights[0] = -1 is not a finite number >= 0", v=GOOD_V, weights=[-1.0, 1.0, 1.0])
    refused("weights are zero for every row: at least one must be positive", v=GOOD_V, weights=[0.0, 0.0, 1.0])


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_weights_of_the_sup_norm_are_not_normalised(size: float) -> None:
    message = f"weights: the largest is {size:g}; for linf it must lie between 1e-100 and 1e+100"
    refused(message, q=GOOD_Q, norm="linf", weights=np.full((3, 2), size))
    assert evaluation_policy(masked(), q=GOOD_Q, norm="l2", weights=np.full((3, 2), size)).converged


@pytest.mark.parametrize("norm", ["l3", "L2", "", 2, None, ["l2"], np.array(["l2", "l1"])])
def test_norm(norm: Any) -> None:
    meant = " (did you mean l2?)" if isinstance(norm, str) and norm == "L2" else ""
    refused(f"norm must be one of l2, l1, linf; found {norm!r}{meant}", q=GOOD_Q, norm=norm)


@pytest.mark.parametrize("method", ["HiGHS", "", 3, None, ["auto"], np.array(["highs", "pdhg"])])
def test_method(method: Any) -> None:
    methods = "auto, closed-form, projected-cg, highs, interior-point, pdhg"
    meant = " (did you mean highs?)" if isinstance(method, str) and method == "HiGHS" else ""
    refused(f"method must be one of {methods}; found {method!r}{meant}", q=GOOD_Q, method=method)


@pytest.mark.parametrize(
    ("norm", "method", "able"),
    [
        ("l2", "highs", "closed-form, projected-cg, interior-point"),
        ("l2", "pdhg", "closed-form, projected-cg, interior-point"),
        ("l1", "projected-cg", "closed-form, highs, interior-point, pdhg"),
        ("linf", "projected-cg", "closed-form, highs, interior-point, pdhg"),
    ],
)
def test_method_of_another_norm(norm: str, method: str, able: str) -> None:
    refused(f"method '{method}' does not solve {norm}; {able} do", q=GOOD_Q, norm=norm, method=method)


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_closed_form_where_there_is_none(norm: Any) -> None:
    with pytest.raises(InputError, match="closed form only for v, for deterministic transitions or"):
        evaluation_policy(garnet(5, 2, 2), q=np.arange(10.0).reshape(5, 2), norm=norm, method="closed-form")
    assert evaluation_policy(garnet(5, 2, 2), v=np.zeros(5), norm=norm, method="closed-form").method == "closed form"


def test_dense_factors_of_a_large_problem() -> None:
    mdp = garnet(20_000, 2, 2)
    q = np.zeros((20_000, 2))
    q[:, 1] = 1.0
    with pytest.raises(InputError, match=r"method 'interior-point' .* at most 12000 states; found 20000"):
        evaluation_policy(mdp, q=q, method="interior-point")


@pytest.mark.parametrize("name", ["rtol", "atol", "tolerance"])
@pytest.mark.parametrize("value", [0.0, -1e-8, np.nan, np.inf])
def test_tolerances_out_of_range(name: str, value: float) -> None:
    refused(f"{name} must be a finite number > 0, found {value!r}", q=GOOD_Q, **{name: value})


@pytest.mark.parametrize("name", ["rtol", "atol", "tolerance"])
@pytest.mark.parametrize("value", [True, "1e-8", [1e-8], 1j])
def test_tolerances_that_are_no_numbers(name: str, value: Any) -> None:
    refused(f"{name} must be a finite number > 0, found {value!r}", q=GOOD_Q, **{name: value})


def test_tolerance_may_not_be_none() -> None:
    refused("tolerance must be a finite number > 0, found None", q=GOOD_Q, tolerance=None)


@pytest.mark.parametrize("on_miss", ["ignore", None, True, ["raise"]])
def test_on_miss(on_miss: Any) -> None:
    refused(f"on_miss must be one of raise, flag; found {on_miss!r}", q=GOOD_Q, on_miss=on_miss)


@pytest.mark.parametrize("mdp", [None, "switch_stay", np.eye(2), switch_stay])
def test_the_mdp(mdp: Any) -> None:
    with pytest.raises(InputError, match="mdp must be a FiniteMDP, found"):
        evaluation_policy(mdp, v=[0.0, 0.0])


def test_nothing_is_positional_but_the_mdp() -> None:
    with pytest.raises(TypeError, match="positional"):
        evaluation_policy(switch_stay(), [0.0, 0.0])  # type: ignore[call-arg]


def test_other_functions_ask_for_an_mdp_too() -> None:
    for call in (
        lambda: ipe.is_achievable("x", v=[0.0]),  # type: ignore[arg-type]
        lambda: ipe.policy_values(None, [[1.0]]),  # type: ignore[arg-type]
        lambda: ipe.optimal_values("x"),  # type: ignore[arg-type]
        lambda: ipe.value_polytope(None),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match="mdp must be a FiniteMDP, found"):
            call()


def test_a_gamma_too_small_to_divide_by_is_refused() -> None:
    with pytest.raises(InputError, match="gamma = 1e-310 is too small to divide by: 0, or at least 1e-100"):
        evaluation_policy(switch_stay(gamma=1e-310), q=np.zeros((2, 2)), norm="linf")
