"""Pictures of certificates, and the polytope of two chosen states of any MDP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ipe
from ipe import InputError, zoo
from ipe.figures import draw_certificate, draw_polytope
from ipe.figures.certificate import residual_per_state, undecided
from ipe.planning import policy_values, random_policy, uniform_policy
from ipe.polytope import two_state_mdp, value_polytope


def test_the_panels_show_the_residual_the_promises_and_the_entropy(tmp_path: Path) -> None:
    mdp = zoo.slippery_grid(6)
    q = np.random.default_rng(0).normal(size=(36, 4))
    result = ipe.evaluation_policy(mdp, q=q, norm="linf")
    assert residual_per_state(result).max() == pytest.approx(result.sup_residual)
    assert ((undecided(result) >= 0) & (undecided(result) <= 1 + 1e-12)).all()
    figure = result.plot(tmp_path / "certificate.png", shape=(6, 6))
    assert (tmp_path / "certificate.png").stat().st_size > 1000
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array().ravel(), residual_per_state(result))
    lines = figure.axes[1].lines[1].get_xydata()
    np.testing.assert_allclose(lines, np.column_stack([result.promised, result.values]))


def test_terminal_states_and_state_values_are_drawn_too() -> None:
    mdp = zoo.chain(5)
    result = ipe.evaluation_policy(mdp, v=[1.0, 2.0, 3.0, 4.0, 0.0])
    figure = draw_certificate(result)
    assert np.asarray(figure.axes[0].lines[0].get_xydata()).shape == (4, 2)
    assert "in the l2 norm; exact" in figure.get_suptitle()


@pytest.mark.parametrize(
    ("shape", "message"),
    [((5, 5), "shape 5 x 5 has 25 cells"), (6, "shape must be two numbers"), ((0, 36), r"shape\[0\] must be a whole")],
)
def test_wrong_shapes_are_refused(shape: Any, message: str) -> None:
    result = ipe.evaluation_policy(zoo.slippery_grid(6), q=np.zeros((36, 4)))
    with pytest.raises(InputError, match=message):
        draw_certificate(result, shape=shape)
    with pytest.raises(InputError, match="the suffix of a figure"):
        result.plot("x.txt")


@pytest.mark.parametrize("mdp", [zoo.garnet(12, 3, 4, seed=2), zoo.river_swim(7), zoo.chain(6, slip=0.2)])
@pytest.mark.parametrize("seed", range(3))
def test_two_chosen_states_keep_the_values_of_every_policy(mdp: ipe.FiniteMDP, seed: int) -> None:
    others = random_policy(mdp, seed)
    states = (0, 3)
    small = two_state_mdp(mdp, states, others)
    mixed = random_policy(mdp, seed + 10)
    full = others.copy()
    full[list(states)] = mixed[list(states)]
    own = np.append(mixed[list(states)], np.zeros((1, mdp.n_actions)), axis=0)
    expected = policy_values(mdp, full).v[list(states)]
    np.testing.assert_allclose(policy_values(small, own).v[:2], expected, atol=1e-8)
    assert bool(value_polytope(mdp, states, others).contains(expected, tolerance=1e-7))


def test_the_picture_says_that_the_others_follow_a_fixed_policy(tmp_path: Path) -> None:
    mdp = zoo.river_swim(6)
    figure = draw_polytope(mdp, tmp_path / "p.svg", states=(0, 5))
    assert figure.axes[0].get_title() == "all policies in s0 and s5;\nthe other states follow the uniform policy"
    figure = draw_polytope(mdp, states=(0, 5), policy=uniform_policy(mdp))
    assert figure.axes[0].get_title() == "all policies in s0 and s5;\nthe other states follow a fixed policy"


def test_wrong_states_are_refused() -> None:
    mdp: Any = zoo.chain(5)
    for states, message in (
        ((0, 4), r"states\[1\] = 4 is terminal"),
        ((0, 0), "two different states"),
        ((0, 9), r"states\[1\] must be a whole number from 0 to 4"),
        ((0,), "states must be two states"),
        (3, "states must be two states"),
    ):
        with pytest.raises(InputError, match=message):
            value_polytope(mdp, states)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="give states too"):
        value_polytope(zoo.switch_stay(), policy=[[1, 0], [1, 0]])
    with pytest.raises(InputError, match="exactly two states that are not terminal"):
        value_polytope(mdp)
