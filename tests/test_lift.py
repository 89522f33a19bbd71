"""The maximum-entropy lift: it reproduces v, no policy with that v has more entropy, and nothing breaks it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.inverse import maximum_entropy_lift
from tests.oracles import entropy_of, most_entropy
from tests.strategies import generators
from tests.tiers import examples


def lift(q: Array, v: float) -> tuple[Array, float]:
    """One row, every action allowed."""
    pi, eta = maximum_entropy_lift(q[None], np.array([v]), np.ones((1, len(q)), dtype=bool))
    return pi[0], float(eta[0])


def check_reproduces(q: Array, v: float, pi: Array) -> None:
    """The mean is v: even relative to the distance of v from the nearer end, far sharper than relative to v."""
    wide, goal = q.astype(np.longdouble), np.longdouble(v)
    lo, hi = wide.min(), wide.max()
    assert abs(pi.sum() - 1.0) < 1e-14
    assert (pi >= 0).all()
    assert abs((pi * wide).sum() - goal) <= 1e-14 * np.abs(wide).max()
    near, distance = (wide - lo, goal - lo) if goal - lo < hi - goal else (hi - wide, hi - goal)
    assert abs((pi * near).sum() - distance) <= 1e-10 * distance + 1e-300 * (hi - lo)


@st.composite
def rows(draw: st.DrawFn) -> tuple[Array, float]:
    """Action values of any size with any kind of ties, and v anywhere strictly between their ends."""
    rng = draw(generators())
    n = draw(st.integers(2, 50))
    kind = draw(st.sampled_from(["normal", "ties", "clusters", "one apart", "spread"]))
    if kind == "normal":
        q = rng.normal(size=n)
    elif kind == "ties":
        q = rng.integers(0, 3, size=n).astype(float)
    elif kind == "clusters":
        q = rng.integers(0, 2, size=n) + 1e-12 * rng.normal(size=n)
    elif kind == "one apart":
        q = np.where(np.arange(n) == rng.integers(n), 1.0, 0.0) + 1e-9 * rng.normal(size=n)
    else:
        q = np.exp(10 * rng.normal(size=n))
    q = q * draw(st.sampled_from([1e-12, 1e-3, 1.0, 1e5, 1e12])) + draw(st.sampled_from([0.0, 0.0, 1.0, -1e6]))
    u = draw(st.sampled_from([0.5, 1e-300, 1e-15, 1e-8, 0.01, 0.3, 0.7, 0.99, 1 - 1e-8, 1 - 1e-15, "mean"]))
    v = q.mean() if isinstance(u, str) else q.min() + u * (q.max() - q.min())
    return q, float(v)


@given(rows())
@examples(400)
def test_reproduces_v_and_is_a_boltzmann_policy(row: tuple[Array, float]) -> None:
    q, v = row
    pi, eta = lift(q, v)
    assert np.isfinite(pi).all()
    if q.min() == q.max():
        assert eta == 0
        assert_allclose(pi, 1.0 / len(q), rtol=1e-15)
    elif v >= q.max():
        assert eta == np.inf
        assert_array_equal(pi, (q == q.max()) / (q == q.max()).sum())
    elif v <= q.min():
        assert eta == -np.inf
        assert_array_equal(pi, (q == q.min()) / (q == q.min()).sum())
    else:
        check_reproduces(q, v, pi)
        # pi is proportional to exp(eta q), with exactly the eta that is returned
        exponents = eta * (q - (q.max() if eta > 0 else q.min()))
        assert_allclose(pi, np.exp(exponents) / np.exp(exponents).sum(), rtol=1e-6, atol=1e-290)


@given(rows(), st.sampled_from([1e-6, 1e6]))
@examples(100)
def test_scale_and_mirror(row: tuple[Array, float], scale: float) -> None:
    q, v = row
    pi, eta = lift(q, v)
    mirrored, mirrored_eta = lift(-q, -v)
    assert_allclose(mirrored, pi, rtol=1e-7, atol=1e-12)
    assert_allclose(mirrored_eta, -eta, rtol=1e-7, atol=1e-7 * max(1.0, abs(eta)) if np.isfinite(eta) else 0)
    power = 2.0 ** round(np.log2(scale))  # a power of two changes no digit
    scaled, scaled_eta = lift(q * power, v * power)
    assert_array_equal(scaled, pi)
    assert scaled_eta == eta / power


@given(generators(), st.integers(3, 12), st.sampled_from([0.02, 0.2, 0.5, 0.8, 0.98]))
@examples(60)
def test_no_policy_with_this_v_has_more_entropy(rng: np.random.Generator, n: int, u: float) -> None:
    q = rng.normal(size=n) if rng.random() < 0.7 else rng.integers(0, 4, size=n).astype(float)
    if q.min() == q.max():
        q[0] += 1.0
    v = float(q.min() + u * (q.max() - q.min()))
    pi, _ = lift(q, v)
    entropy = entropy_of(pi)
    other = most_entropy(q, v)
    assert abs(other @ q - v) < 1e-9  # the other optimiser kept its constraint
    assert entropy >= entropy_of(other) - 1e-9
    assert entropy <= entropy_of(other) + 1e-5  # and came as far, so that the comparison means something
    # Every feasible direction leads downhill.
    _, _, basis = np.linalg.svd(np.stack([np.ones(n), q]))
    for _ in range(20):
        direction = rng.normal(size=n - 2) @ basis[2:]
        falling = direction < 0
        room = float((-pi[falling] / direction[falling]).min())
        for step in (0.9 * room, 1e-3 * room):
            assert entropy_of(pi + step * direction) <= entropy + 1e-12


def test_two_actions_are_a_mixture() -> None:
    for v in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0):
        pi, eta = lift(np.array([2.0, 4.0]), 2.0 + 2.0 * v)
        assert_allclose(pi, [1 - v, v], rtol=1e-14, atol=1e-16)
        with np.errstate(divide="ignore"):
            assert_allclose(eta, 0.5 * (np.log(v) - np.log1p(-v)), rtol=1e-13)


def test_sign_of_eta_is_that_of_v_less_the_mean() -> None:
    q = np.array([0.0, 1.0, 5.0])
    assert lift(q, 1.0)[1] < 0 < lift(q, 3.0)[1]
    pi, eta = lift(q, 2.0)
    assert abs(eta) < 1e-15
    assert_allclose(pi, 1 / 3, rtol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("size", [1e-300, 1e-12, 1.0, 1e12, 1e100])
def test_ends_of_the_range(n: int, size: float) -> None:
    q = size * np.arange(1.0, n + 1.0)
    for v in (q[-1], np.nextafter(q[-1], np.inf), 2 * q[-1]):
        pi, eta = lift(q, v)
        assert_array_equal(pi, np.eye(n)[-1])
        assert eta == (np.inf if n > 1 else 0.0)
    for v in (q[0], np.nextafter(q[0], -np.inf), -q[0]):
        pi, eta = lift(q, v)
        assert_array_equal(pi, np.eye(n)[0])
        assert eta == (-np.inf if n > 1 else 0.0)


@pytest.mark.parametrize("n", [2, 3, 17, 50])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
def test_one_ulp_inside_the_ends(n: int, offset: float) -> None:
    rng = np.random.default_rng(n)
    q = np.sort(rng.random(n)) + offset
    for v in (np.nextafter(q[0], np.inf), np.nextafter(q[-1], -np.inf)):
        pi, eta = lift(q, float(v))
        assert np.isfinite(eta)
        check_reproduces(q, float(v), pi)


@pytest.mark.parametrize("q", [[0.0, 1e12], [0.0, 1.0, 1e12], [0.0, 1.0], [-1e12, 0.0, 1e-12]])
def test_the_smallest_number_above_an_end(q: list[float]) -> None:
    row = np.array(q)
    for v in (np.nextafter(row[0], np.inf), np.nextafter(row[-1], -np.inf)):
        pi, _ = lift(row, float(v))
        assert np.isfinite(pi).all()
        assert abs(pi.sum() - 1) < 1e-14
        assert_allclose(pi @ row, v, rtol=1e-10, atol=1e-300 * np.abs(row).max())


def test_gaps_of_1e_12_and_ties_at_the_top() -> None:
    q = np.array([0.0, 1.0, 1.0 - 1e-12, 1.0])
    pi, _ = lift(q, 1.0)
    assert_array_equal(pi, [0, 0.5, 0, 0.5])  # only exact ties share
    pi, eta = lift(q, 1.0 - 5e-13)
    check_reproduces(q, 1.0 - 5e-13, pi)
    assert eta > 0


@given(generators(), st.integers(1, 6), st.integers(1, 6))
@examples(100)
def test_masks_and_rows_without_actions(rng: np.random.Generator, n_states: int, n_actions: int) -> None:
    allowed = rng.random((n_states, n_actions)) < 0.6
    q = rng.normal(size=(n_states, n_actions))
    lo = np.where(allowed, q, np.inf).min(axis=1)
    hi = np.where(allowed, q, -np.inf).max(axis=1)
    live = allowed.any(axis=1)
    u = rng.choice([0.0, 0.3, 0.5, 1.0], size=n_states)  # the middle has eta = 0 for two actions
    v = np.where(live, np.where(live, lo, 0) + u * np.where(live, hi - np.where(live, lo, 0), 0), 0.0)
    pi, eta = maximum_entropy_lift(q, v, allowed)
    for junk in (np.nan, np.inf, -np.inf, 1e300):
        again, eta_again = maximum_entropy_lift(np.where(allowed, q, junk), v, allowed)
        assert_array_equal(again, pi)
        assert_array_equal(eta_again, eta)
    assert (pi[~allowed] == 0).all()
    assert (eta[~live] == 0).all()
    assert_allclose(pi.sum(axis=1), live.astype(float), rtol=1e-14)
    assert_allclose((pi * q).sum(axis=1), v, rtol=1e-12, atol=1e-12)
    for s in np.flatnonzero(live):  # a masked row is the short row of its allowed actions
        short, eta_short = lift(q[s][allowed[s]], v[s])
        assert_allclose(pi[s][allowed[s]], short, rtol=1e-13)
        assert_allclose(eta[s], eta_short, rtol=1e-12, atol=1e-14)


def test_rows_do_not_influence_each_other() -> None:
    rng = np.random.default_rng(0)
    q = rng.normal(size=(200, 4)) * 10.0 ** rng.integers(-8, 8, size=(200, 1))
    v = q.min(axis=1) + rng.random(200) * (q.max(axis=1) - q.min(axis=1))
    allowed = np.ones(q.shape, dtype=bool)
    pi, eta = maximum_entropy_lift(q, v, allowed)
    for s in (0, 17, 199):
        one, eta_one = maximum_entropy_lift(q[s : s + 1], v[s : s + 1], allowed[s : s + 1])
        assert_array_equal(one[0], pi[s])
        assert eta_one[0] == eta[s]


@pytest.mark.parametrize(
    ("q", "v", "message"),
    [
        ([[0.0, np.nan]], [0.5], r"q\[0, 1\] = nan is not a finite number"),
        ([[0.0, np.inf]], [0.5], r"q\[0, 1\] = inf is not a finite number"),
        ([[0.0, 1.0]], [np.nan], r"v\[0\] = nan is not a finite number"),
        ([[-1e308, 1e308]], [0.0], r"q\[0\] has values from -1e\+308 to 1e\+308: their difference"),
        ([[0.0, 1.0]], [0.5, 0.5], r"v must have shape \(1,\)"),
        ([0.0, 1.0], [0.5], r"q must have shape \(states, actions\)"),
        ([[0.0, 1.0, 2.0]], [0.5], r"allowed must be boolean with shape \(1, 3\)"),
    ],
)
def test_wrong_inputs(q: list[object], v: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        maximum_entropy_lift(np.array(q), np.array(v), np.ones((1, 2), dtype=bool))
