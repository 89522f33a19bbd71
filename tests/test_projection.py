"""Two states of any MDP: what is called achieved has a policy, and no policy's values are called excluded."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from ipe import zoo
from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.figures import draw_projection
from ipe.mdp import FiniteMDP
from ipe.planning import optimal_values, policy_values, random_policy
from ipe.polytope import polytope_projection, value_polytope
from ipe.polytope.outer import envelope
from ipe.polytope.planar import signed_area
from tests.strategies import generators, mdps
from tests.tiers import examples


def held_values(mdp: FiniteMDP, t: float, policy: Array) -> float:
    """The value of state 0 where state 1 is held at t, by a linear system."""
    P = (policy[:, :, None] * mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, -1)).sum(axis=1)
    r = (policy * np.where(mdp.allowed, mdp.rewards, 0.0)).sum(axis=1)
    P[1], r[1] = 0.0, t
    return float(np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * P, r)[0])


def deterministic_policies(mdp: FiniteMDP) -> list[Array]:
    return [
        np.eye(mdp.n_actions)[list(choice)] for choice in itertools.product(range(mdp.n_actions), repeat=mdp.n_states)
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sign", [1, -1])
def test_the_curves_are_those_of_all_deterministic_policies(seed: int, sign: int) -> None:
    mdp = zoo.garnet(4, 3, 3, seed=seed, gamma=0.9)
    curve = envelope(mdp, (0, 1), 0, sign, (-20.0, 20.0), 60)
    assert curve.complete
    for t in np.linspace(-20.0, 20.0, 9):
        expected = max(sign * held_values(mdp, t, pi) for pi in deterministic_policies(mdp))
        found = (sign * (curve.lines[0] + curve.lines[1] * t)).max()
        assert found == pytest.approx(expected, abs=1e-7)
    few = envelope(mdp, (0, 1), 0, sign, (-20.0, 20.0), 2)
    for t in np.linspace(-20.0, 20.0, 9):  # chords lie beyond the curve, never within
        exact = (sign * (curve.lines[0] + curve.lines[1] * t)).max()
        assert (sign * (few.lines[0] + few.lines[1] * t)).max() >= exact - 1e-7


@given(mdps(min_states=2, max_states=5, max_actions=3, gammas=(0.0, 0.5, 0.95)), generators())
@examples(40)
def test_no_policy_is_excluded_and_the_extremes_are_achieved(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    live = np.flatnonzero(~mdp.terminal)
    if live.size < 2:
        return
    states = [int(s) for s in rng.choice(live, 2, replace=False)]
    projection = polytope_projection(mdp, states, policies=3)
    values = np.stack([policy_values(mdp, random_policy(mdp, rng)).v[states] for _ in range(8)])
    assert not projection.excluded(values, 1e-7).any()
    assert projection.achieved(optimal_values(mdp).v[states], 1e-7)
    for piece in projection.pieces:
        assert not projection.excluded(piece.vertices, 1e-7).any()
        assert projection.achieved(piece.vertices, 1e-7).all()


def one_other_state(mdp: FiniteMDP, point: Array, tolerance: float) -> bool:
    """Whether some value z of the third state makes (x, y, z) achievable: by trying very many z."""
    z = np.linspace(-60.0, 60.0, 24001)
    v = np.column_stack([np.full_like(z, point[0]), np.full_like(z, point[1]), z])
    q = (mdp.gamma * (mdp.transitions @ v.T)).T.reshape(len(z), 3, -1) + mdp.rewards
    beyond = np.maximum(q.min(axis=2) - v, v - q.max(axis=2)).max(axis=1)
    return bool((beyond <= tolerance).any())


@pytest.mark.parametrize("seed", range(4))
def test_with_one_other_state_both_bounds_are_true(seed: int) -> None:
    mdp = zoo.garnet(3, 2, 2, seed=seed, gamma=0.8)
    projection = polytope_projection(mdp, (0, 1), policies=40)
    sides = [np.linspace(low, high, 15) for low, high in zip(*projection.box, strict=True)]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    achieved, excluded = projection.achieved(grid), projection.excluded(grid)
    assert not (achieved & excluded).any()
    for point, yes, no in zip(grid, achieved, excluded, strict=True):
        if yes:
            assert one_other_state(mdp, point, 0.01)
        if no:
            assert not one_other_state(mdp, point, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_hull_holds_every_policy_and_is_no_larger_than_its_deterministic_ones(seed: int) -> None:
    mdp = zoo.garnet(4, 2, 3, seed=seed, gamma=0.9)
    projection = polytope_projection(mdp, (1, 3), policies=0)
    corners = np.stack([policy_values(mdp, pi).v[[1, 3]] for pi in deterministic_policies(mdp)])
    assert projection.hull is not None
    for corner in projection.hull:
        assert np.abs(corners - corner).max(axis=1).min() < 1e-7
    values = np.stack([policy_values(mdp, random_policy(mdp, k)).v[[1, 3]] for k in range(50)])
    assert not projection.excluded(np.concatenate([corners, values]), 1e-7).any()
    centre = projection.hull.mean(axis=0)
    assert projection.excluded(centre + 1.01 * (projection.hull - centre)).all()


def test_of_two_states_it_is_the_polytope() -> None:
    mdp = zoo.dadashi(1)
    projection, polytope = polytope_projection(mdp, (0, 1)), value_polytope(mdp)
    assert len(projection.pieces) == 1
    assert projection.undecided(40) == 0.0
    assert sum(signed_area(polygon) for polygon in projection.outer) == pytest.approx(polytope.area, rel=1e-9)


def test_wrong_arguments_are_refused() -> None:
    mdp = zoo.chain(5)
    with pytest.raises(InputError, match=r"states\[1\] = 4 is terminal"):
        polytope_projection(mdp, (0, 4))
    with pytest.raises(InputError, match="policies must be a whole number >= 0"):
        polytope_projection(mdp, (0, 1), policies=-1)
    with pytest.raises(InputError, match="n must be a whole number >= 2"):
        polytope_projection(mdp, (0, 1), policies=0).undecided(1)


def test_the_picture_says_what_is_achieved_and_what_is_not_decided(tmp_path: Path) -> None:
    figure = draw_projection(zoo.river_swim(4), (0, 3), tmp_path / "p.svg", policies=5)
    assert figure.axes[0].get_title() == "all policies in all states, seen in s0 and s3"
    told = [text.get_text() for text in figure.legends[0].get_texts()]
    assert told[0] == "achieved: the policy is known"
    assert told[1].startswith("not decided: ")
    assert (tmp_path / "p.svg").exists()
