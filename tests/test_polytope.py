"""The value polytope of two-state MDPs: the paper's example, and properties on random ones."""

from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ipe.base.arrays import Array, Mask
from ipe.errors import InputError
from ipe.inverse import evaluation_policy
from ipe.inverse.problem import Norm
from ipe.mdp import FiniteMDP
from ipe.planning import greedy_policy, policy_values
from ipe.polytope import ValuePolytope, paper_grid, value_map, value_polytope
from ipe.zoo import dadashi, garnet, switch_stay
from tests.strategies import random_pi
from tests.tiers import examples

NORMS: tuple[Norm, ...] = ("l2", "l1", "linf")
ORDER = {"l2": 2, "l1": 1, "linf": np.inf}


@st.composite
def two_state_mdps(draw: st.DrawFn, min_actions: int = 1) -> FiniteMDP:
    """Two live states among up to two terminal ones, in any order; masks; whole rewards make for ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_terminal = draw(st.integers(0, 2))
    n_states, n_actions = 2 + n_terminal, draw(st.integers(min_actions, 4))
    terminal = np.zeros(n_states, dtype=bool)
    terminal[rng.choice(n_states, n_terminal, replace=False)] = True
    if draw(st.booleans()):
        transitions = rng.dirichlet(np.full(n_states, 0.5), size=(n_states, n_actions))
    else:
        transitions = np.eye(n_states)[rng.integers(n_states, size=(n_states, n_actions))]
    rewards = rng.normal(size=(n_states, n_actions)) * draw(st.sampled_from([1e-3, 1.0, 1e3]))
    if draw(st.booleans()):
        rewards = np.round(rewards)
    transitions[terminal], rewards[terminal] = 0.0, 0.0
    allowed = np.ones((n_states, n_actions), dtype=bool)
    if draw(st.booleans()):
        allowed = rng.random((n_states, n_actions)) < 0.7
        allowed[np.arange(n_states), rng.integers(n_actions, size=n_states)] = True
    gamma = draw(st.sampled_from([0.0, 0.3, 0.9, 0.99]))
    return FiniteMDP(transitions, rewards, gamma, allowed=allowed & ~terminal[:, None], terminal=terminal)


def full(polytope: ValuePolytope, point: Array) -> Array:
    """The value function of all states with the values `point` in the two live ones."""
    v = np.zeros(polytope.mdp.n_states)
    v[list(polytope.states)] = point
    return v


def scale_of(polytope: ValuePolytope) -> float:
    return max(1.0, float(np.abs(polytope.vertices).max()))


def sampled_values(polytope: ValuePolytope, rng: np.random.Generator, count: int) -> Array:
    values = [policy_values(polytope.mdp, random_pi(rng, polytope.mdp)).v for _ in range(count)]
    return np.array(values)[:, polytope.states]


def random_points(polytope: ValuePolytope, rng: np.random.Generator, count: int, margin: float = 0.0) -> Array:
    """Uniform in the bounding box, widened on each side by `margin` times its width."""
    low, high = polytope.vertices.min(axis=0), polytope.vertices.max(axis=0)
    width = (high - low).max() * margin
    return np.asarray(rng.uniform(low - width, high + width, size=(count, 2)))


def even_odd(polygons: tuple[Array, ...], points: Array) -> Mask:
    """Whether a ray to the right of each point crosses the sides of the polygons an odd number of times."""
    inside = np.zeros(len(points), dtype=bool)
    x, y = points.T
    for polygon in polygons:
        for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            if y0 != y1:
                inside ^= ((y0 > y) != (y1 > y)) & (x < x0 + (y - y0) / (y1 - y0) * (x1 - x0))
    return inside


def arrangement_boundary(polytope: ValuePolytope) -> Array:
    """The boundary found the long way: every line L(s, a), cut at every other, kept where the midpoint says so."""
    mdp, values = polytope.mdp, polytope.vertices
    policies = polytope.deterministic_policies
    segments = []
    for i in (0, 1):
        for a in np.unique(policies[:, i]):
            on_line = values[policies[:, i] == a]
            order = np.argsort(on_line[:, 1 - i], kind="stable")
            segments.append((i, int(a), on_line[order[0]], on_line[order[-1]]))
    kept = []
    for i, _, start, end in segments:
        cuts = {0.0, 1.0}
        for _, _, other_start, other_end in segments:
            d, e, gap = end - start, other_end - other_start, other_start - start
            cross = d[0] * e[1] - d[1] * e[0]
            if abs(cross) > 1e-14 * np.abs(d).max() * np.abs(e).max():
                cuts.add(float(np.clip((gap[0] * e[1] - gap[1] * e[0]) / cross, 0.0, 1.0)))
        ends = sorted(cuts)
        for t0, t1 in itertools.pairwise(ends):
            if (t1 - t0) * np.abs(end - start).max() < 1e-9 * scale_of(polytope):
                continue
            middle = start + (t0 + t1) / 2 * (end - start)
            s = polytope.states[i]
            rows = mdp.transitions[s * mdp.n_actions + np.flatnonzero(mdp.allowed[s])].toarray()
            q = mdp.rewards[s, mdp.allowed[s]] + mdp.gamma * rows @ full(polytope, middle)
            extreme = min(abs(middle[i] - q.max()), abs(middle[i] - q.min())) <= 1e-10 * scale_of(polytope)
            if extreme and polytope.contains(middle, 1e-10):
                kept.append([start + t0 * (end - start), start + t1 * (end - start)])
    return np.array(kept).reshape(-1, 2, 2)


class TestSwitchStay:
    polytope = value_polytope(switch_stay())

    def test_vertices(self) -> None:
        assert self.polytope.deterministic_policies.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
        assert_allclose(
            self.polytope.vertices, [[10.0, 20.0], [10.0, 9.0], [17.0, 20.0], [-100 / 19, -90 / 19]], rtol=1e-13
        )

    def test_two_triangles_meet_in_one_point(self) -> None:
        lower, upper = sorted(self.polytope.polygons, key=lambda polygon: polygon[:, 1].mean())
        pinch = [10.0, 110 / 9]
        assert_allclose(sorted(upper.tolist()), [pinch, [10.0, 20.0], [17.0, 20.0]], rtol=1e-13)
        assert_allclose(sorted(lower.tolist()), [[-100 / 19, -90 / 19], [10.0, 9.0], pinch], rtol=1e-13)
        shared = {tuple(p) for p in upper.tolist()} & {tuple(p) for p in lower.tolist()}
        assert len(shared) == 1
        triangle_areas = 7 * (20 - 110 / 9) / 2 + (110 / 9 - 9) * (10 + 100 / 19) / 2
        assert self.polytope.area == pytest.approx(triangle_areas, rel=1e-13)

    def test_paper_grid(self) -> None:
        grid = paper_grid()
        assert grid.shape == (195, 2)
        assert grid.min(axis=0).tolist() == [-6, -6]
        assert grid.max(axis=0).tolist() == [18, 22]
        inside = self.polytope.contains(grid)
        assert inside.sum() == 18
        assert (inside & (self.polytope.boundary_distance(grid) > 1e-9)).sum() == 7

    def test_value_maps(self) -> None:
        grid = paper_grid()
        inside = self.polytope.contains(grid)
        images = value_map(self.polytope.mdp, grid)
        assert_allclose(images[inside], grid[inside], atol=1e-9)
        assert self.polytope.contains(images).all()
        assert (np.abs(images - grid).max(axis=1) > 1e-3)[~inside].all()
        greedy = value_map(self.polytope.mdp, grid, policy="greedy")
        assert len(np.unique(greedy.round(9), axis=0)) == 3
        assert np.abs(greedy[:, None] - self.polytope.vertices).max(axis=2).min(axis=1).max() < 1e-9


@given(two_state_mdps(), st.integers(0, 2**32 - 1))
def test_values_of_policies_are_inside(mdp: FiniteMDP, seed: int) -> None:
    polytope = value_polytope(mdp)
    assert polytope.contains(sampled_values(polytope, np.random.default_rng(seed), 20)).all()


@given(two_state_mdps())
def test_vertices_are_the_values_of_the_deterministic_policies(mdp: FiniteMDP) -> None:
    polytope = value_polytope(mdp)
    assert len(polytope.vertices) == np.prod([mdp.allowed[s].sum() for s in polytope.states])
    for actions, value in zip(polytope.deterministic_policies, polytope.vertices, strict=True):
        pi = np.zeros((mdp.n_states, mdp.n_actions))
        pi[polytope.states, actions] = 1.0
        assert_allclose(full(polytope, value), policy_values(mdp, pi).v, atol=1e-11 * scale_of(polytope))


@given(two_state_mdps(min_actions=2), st.integers(0, 2**32 - 1))
def test_points_inside_are_the_values_of_their_evaluation_policy(mdp: FiniteMDP, seed: int) -> None:
    polytope = value_polytope(mdp)
    points = random_points(polytope, np.random.default_rng(seed), 50)
    inside = points[polytope.contains(points, tolerance=0.0)][:5]
    for point in inside:
        values = evaluation_policy(mdp, v=full(polytope, point)).values
        assert_allclose(values[list(polytope.states)], point, atol=1e-9 * scale_of(polytope))


@given(two_state_mdps(min_actions=2), st.integers(0, 2**32 - 1))
def test_area_is_what_monte_carlo_membership_says(mdp: FiniteMDP, seed: int) -> None:
    polytope = value_polytope(mdp)
    count = 5000
    box = np.prod(np.ptp(polytope.vertices, axis=0))
    share = polytope.area / box if box > 0 else 0.0
    hits = polytope.contains(random_points(polytope, np.random.default_rng(seed), count), tolerance=0.0)
    # Five standard errors, and one hit for shares so small that the normal approximation fails.
    assert abs(hits.mean() - share) <= 5 * np.sqrt(share * (1 - share) / count) + 5 / count or box == 0


@given(two_state_mdps(), st.integers(0, 2**32 - 1))
def test_point_in_polygon_agrees_with_membership(mdp: FiniteMDP, seed: int) -> None:
    polytope = value_polytope(mdp)
    points = random_points(polytope, np.random.default_rng(seed), 1000, margin=0.1)
    clear = polytope.boundary_distance(points) > 1e-9 * scale_of(polytope)
    inside = polytope.contains(points[clear], tolerance=1e-13)
    assert (even_odd(polytope.polygons, points[clear]) == inside).all()


@given(two_state_mdps())
def test_boundary_is_that_of_the_arrangement_of_all_lines(mdp: FiniteMDP) -> None:
    polytope = value_polytope(mdp)
    reference = arrangement_boundary(polytope)
    tolerance = 1e-8 * scale_of(polytope)
    samples = [start + t * (end - start) for start, end in reference for t in (0.0, 0.3, 0.5, 0.9, 1.0)]
    if samples:
        assert polytope.boundary_distance(np.array(samples)).max() <= tolerance
    for start, end in polytope.segments:
        if np.abs(end - start).max() <= tolerance:
            continue
        for t in (0.1, 0.5, 0.9):
            point = start + t * (end - start)
            d = reference[:, 1] - reference[:, 0]
            along = np.clip(((point - reference[:, 0]) * d).sum(axis=1) / (d * d).sum(axis=1), 0, 1)
            gaps = point - (reference[:, 0] + along[:, None] * d)
            assert np.abs(gaps).max(axis=1).min() <= tolerance


@given(two_state_mdps())
def test_polygons_are_simple_and_counterclockwise(mdp: FiniteMDP) -> None:
    polytope = value_polytope(mdp)
    assert len(polytope.polygons) <= 2
    assert polytope.contains(polytope.segments.mean(axis=1)).all()
    assert polytope.contains(polytope.segments).all()
    for polygon in polytope.polygons:
        x, y = polygon.T
        assert (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() > 0
        assert len(np.unique(polygon, axis=0)) == len(polygon)
        sides = list(zip(polygon, np.roll(polygon, -1, axis=0), strict=True))
        for (i, one), (j, other) in itertools.combinations(enumerate(sides), 2):
            if j - i not in (1, len(sides) - 1):
                assert not crosses(*one, *other)


def crosses(a: Array, b: Array, c: Array, d: Array) -> bool:
    """Whether the segments a-b and c-d cross in a point inside both."""

    def turn(p: Array, q: Array, r: Array) -> float:
        return float((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))

    return turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0


@given(two_state_mdps(), st.sampled_from(NORMS), st.integers(0, 2**32 - 1))
@example(switch_stay(), "linf", 0)
def test_nearest_is_achievable_and_nothing_achievable_is_nearer(mdp: FiniteMDP, norm: Norm, seed: int) -> None:
    rng = np.random.default_rng(seed)
    polytope = value_polytope(mdp)
    points = random_points(polytope, rng, 40, margin=1.0)
    nearest, distance = polytope.nearest(points, norm)
    tolerance = 1e-9 * scale_of(polytope)
    assert polytope.contains(nearest).all()
    assert_allclose(np.linalg.norm(points - nearest, ORDER[norm], axis=1), distance, atol=1e-3 * tolerance)
    inside = polytope.contains(points)
    assert (nearest[inside] == points[inside]).all()
    assert (distance[inside] == 0).all()
    # Candidates: values of random policies, and points along the boundary, where the nearest one must be.
    t = rng.random((200, 1, 1))
    along = polytope.segments[None, :, 0] + t * (polytope.segments[:, 1] - polytope.segments[:, 0])
    candidates = np.concatenate([sampled_values(polytope, rng, 20), along.reshape(-1, 2), polytope.vertices])
    gaps = np.linalg.norm(points[:, None] - candidates, ORDER[norm], axis=2).min(axis=1)
    assert (distance <= gaps + tolerance).all()


@given(two_state_mdps(), st.integers(0, 2**32 - 1))
def test_sup_distance_lies_between_its_bounds(mdp: FiniteMDP, seed: int) -> None:
    polytope = value_polytope(mdp)
    points = random_points(polytope, np.random.default_rng(seed), 50, margin=1.0)
    rho = polytope.residual(points)
    distance = polytope.nearest(points, "linf", tolerance=0.0)[1]
    slack = 1e-10 * scale_of(polytope)
    assert (rho / (1 + mdp.gamma) <= distance + slack).all()
    assert (distance <= rho / (1 - mdp.gamma) + slack).all()


def test_both_sup_distance_bounds_are_attained() -> None:
    # One action, to itself: the polytope is the point r / (1 - gamma); a shift of both values by +-x and (x, -x).
    stay = FiniteMDP(np.eye(2)[:, None], [[1.0], [1.0]], 0.5)
    swap = FiniteMDP(np.eye(2)[::-1][:, None], [[1.0], [1.0]], 0.5)
    polytopes = value_polytope(stay), value_polytope(swap)
    assert polytopes[0].residual([3.0, 3.0]) / 0.5 == polytopes[0].nearest([3.0, 3.0], "linf")[1] == 1.0
    assert polytopes[1].residual([3.0, 1.0]) / 1.5 == polytopes[1].nearest([3.0, 1.0], "linf")[1] == 1.0


@given(two_state_mdps(), st.integers(0, 2**32 - 1))
def test_membership_and_residual_are_those_of_the_evaluation_policy(mdp: FiniteMDP, seed: int) -> None:
    rng = np.random.default_rng(seed)
    polytope = value_polytope(mdp)
    for point in [*random_points(polytope, rng, 4, margin=0.2), *sampled_values(polytope, rng, 2)]:
        result = evaluation_policy(mdp, v=full(polytope, point))
        assert polytope.residual(point) == pytest.approx(result.sup_residual, abs=1e-13 * scale_of(polytope))
        assert bool(polytope.contains(point)) == result.achievable
        low, high = result.distance_bounds
        distance = float(polytope.nearest(point, "linf")[1])
        assert low - 1e-9 * scale_of(polytope) <= distance <= high + 1e-9 * scale_of(polytope)


@pytest.mark.parametrize("example", [1, 2, 3, 4, 5])
def test_examples_of_dadashi(example: int) -> None:
    polytope = value_polytope(dadashi(example))
    count = 100_000
    points = random_points(polytope, np.random.default_rng(0), count)
    inside = polytope.contains(points, tolerance=0.0)
    assert (even_odd(polytope.polygons, points) == inside).all()
    share = polytope.area / np.prod(np.ptp(polytope.vertices, axis=0))
    assert abs(inside.mean() - share) <= 5 * np.sqrt(share * (1 - share) / count)
    images = value_map(polytope.mdp, points[:500])
    assert_allclose(images[inside[:500]], points[:500][inside[:500]], atol=1e-9)
    assert polytope.contains(images).all()


@pytest.mark.parametrize(("example", "polygons"), [(1, 1), (2, 1), (4, 2)])
def test_two_actions_give_two_polygons_iff_they_tie_inside(example: int, polygons: int) -> None:
    mdp = dadashi(example)
    polytope = value_polytope(mdp)
    ties = []
    for s in (0, 1):  # V(s) = q_V(s, a) for both actions a: two equations
        p = mdp.transitions[[2 * s, 2 * s + 1]].toarray()
        ties.append(np.linalg.solve(np.eye(2)[[s, s]] - mdp.gamma * p, mdp.rewards[s]))
    pinches = [tie for tie in ties if polytope.contains(tie)]
    assert len(polytope.polygons) == 1 + len(pinches) == polygons
    for pinch in pinches:
        assert_allclose([np.abs(polygon - pinch).max(axis=1).min() for polygon in polytope.polygons], 0.0, atol=1e-12)


@given(two_state_mdps(), st.integers(0, 2**32 - 1))
@examples(30)
def test_value_map_is_the_librarys_evaluation_and_greedy_policy(mdp: FiniteMDP, seed: int) -> None:
    polytope = value_polytope(mdp)
    points = random_points(polytope, np.random.default_rng(seed), 6, margin=0.5)
    states = list(polytope.states)
    ipe_images, greedy_images = value_map(mdp, points), value_map(mdp, points, policy="greedy")
    for point, ipe_image, greedy_image in zip(points, ipe_images, greedy_images, strict=True):
        v = full(polytope, point)
        assert_allclose(ipe_image, evaluation_policy(mdp, v=v).values[states], atol=1e-9 * scale_of(polytope))
        expected = policy_values(mdp, greedy_policy(mdp, v=v)).v[states]
        assert_allclose(greedy_image, expected, atol=1e-9 * scale_of(polytope))


class TestDegenerate:
    def test_one_action_in_a_state_gives_a_segment(self) -> None:
        mask = np.array([[True, False], [True, True]])
        mdp = switch_stay()
        polytope = value_polytope(FiniteMDP(mdp.transitions, mdp.rewards, 0.9, allowed=mask))
        assert polytope.polygons == ()
        assert polytope.area == 0.0
        assert_allclose(polytope.segments, [[[10, 9], [10, 20]]], rtol=1e-13)
        assert polytope.contains([[10.0, 15.0], [10.0, 21.0], [11.0, 15.0]]).tolist() == [True, False, False]
        assert_allclose(polytope.nearest([12.0, 25.0], "l1")[0], [10, 20])

    def test_actions_that_differ_by_rounding_give_a_segment(self) -> None:
        tenths = 0.1 + 0.2, 0.3
        transitions = np.array([[[t, 1 - t] for t in tenths], [[1, 0], [0, 1]]])
        polytope = value_polytope(FiniteMDP(transitions, [[tenths[0], tenths[1]], [1, 2]], 0.9))
        assert polytope.polygons == ()
        assert polytope.segments.shape == (1, 2, 2)

    def test_one_policy_gives_a_point(self) -> None:
        polytope = value_polytope(FiniteMDP(np.eye(2)[:, None], [[1.0], [2.0]], 0.9))
        assert_allclose(polytope.segments, [[[10, 20], [10, 20]]])
        assert polytope.polygons == ()
        assert_allclose(polytope.nearest([13.0, 24.0])[1], 5.0)
        assert repr(polytope) == "ValuePolytope(0 polygons, area 0, 1 deterministic policy)"

    def test_no_rewards_give_the_origin(self) -> None:
        mdp = switch_stay()
        polytope = value_polytope(FiniteMDP(mdp.transitions, np.zeros((2, 2)), 0.9))
        assert (polytope.segments == 0).all()
        assert polytope.polygons == ()

    def test_gamma_zero_gives_the_rectangle_of_rewards(self) -> None:
        polytope = value_polytope(switch_stay(gamma=0.0))
        assert sorted(polytope.polygons[0].tolist()) == [[-1, 0], [-1, 2], [1, 0], [1, 2]]
        assert polytope.area == 4.0

    # The last two: nearly parallel lines, which cross in points that rounding moves far apart.
    @pytest.mark.parametrize(
        "to_other", [[0.0, 0.3, 1.0], [0.3, 0.3 + 1e-6, 0.3 + 3e-6], [0.5, 0.5 + 1e-5, 0.5 + 2e-5]]
    )
    def test_three_actions_that_tie_in_one_point_pinch_there(self, to_other: list[float]) -> None:
        # Three lines x = 10 + c (y - t) of different slopes c through (10, t), and state 1 as in Switch-Stay.
        t, gamma = 110 / 9, 0.9
        p = np.array(to_other)
        slopes = gamma * p / (1 - gamma * (1 - p))
        rewards = (10 - slopes * t) * (1 - gamma * (1 - p))
        transitions = np.stack([np.stack([1 - p, p], axis=1), np.eye(2)[[1, 0, 0]]])
        polytope = value_polytope(FiniteMDP(transitions, [rewards, [2.0, 0.0, 0.0]], gamma))
        assert [len(polygon) for polygon in polytope.polygons] == [3, 3]
        for polygon in polytope.polygons:
            assert np.abs(polygon - [10, t]).max(axis=1).min() < 1e-8

    def test_terminal_states_and_order_of_states(self) -> None:
        # State 1 is terminal; 0 and 2 are Switch-Stay with a third action, only in state 2, that ends the episode.
        transitions = np.zeros((3, 3, 3))
        transitions[0, 0, 0] = transitions[0, 1, 2] = transitions[2, 0, 2] = transitions[2, 1, 0] = 1.0
        transitions[2, 2, 1] = 1.0
        allowed = np.array([[True, True, False], [False] * 3, [True] * 3])
        mdp = FiniteMDP(transitions, [[1, -1, 0], [0, 0, 0], [2, 0, 0]], 0.9, allowed=allowed, terminal=[1])
        polytope = value_polytope(mdp)
        assert polytope.states == (0, 2)
        assert len(polytope.vertices) == 6
        ends = polytope.deterministic_policies[:, 1] == 2
        assert_allclose(polytope.vertices[ends], [[10, 0], [-1, 0]], rtol=1e-13)

    @pytest.mark.parametrize("gamma", [0.999, 1 - 1e-6, 1 - 1e-9])
    def test_discounts_near_one(self, gamma: float) -> None:
        # The upper triangle has the corners (a, 2a), (2 gamma a - 1, 2a) and (a, (a + 1) / gamma), a = 1 / (1 - gamma).
        # The lower one becomes a sliver of width 2, which vanishes in the rounding of values of size 1e9.
        a = 1 / (1 - gamma)
        polytope = value_polytope(switch_stay(gamma=gamma))
        assert len(polytope.polygons) == (2 if gamma < 1 - 1e-8 else 1)
        upper = max(polytope.polygons, key=lambda polygon: float(polygon[:, 1].max()))
        expected = [[a, (a + 1) / gamma], [a, 2 * a], [2 * gamma * a - 1, 2 * a]]
        assert_allclose(sorted(upper.tolist()), expected, rtol=1e-6)
        assert polytope.contains(polytope.vertices).all()

    def test_many_actions(self) -> None:
        polytope = value_polytope(garnet(2, 100, 2, seed=3, gamma=0.9))
        assert len(polytope.vertices) == 10_000
        assert polytope.contains(polytope.vertices).all()
        assert len(polytope.segments) < 100
        points = random_points(polytope, np.random.default_rng(0), 20_000)
        hits = polytope.contains(points).mean()
        share = polytope.area / np.prod(np.ptp(polytope.vertices, axis=0))
        assert hits == pytest.approx(share, abs=0.02)


class TestShapes:
    polytope = value_polytope(switch_stay())

    def test_points_of_any_shape(self) -> None:
        points = paper_grid().reshape(13, 15, 2)
        assert self.polytope.contains(points).shape == (13, 15)
        nearest, distance = self.polytope.nearest(points)
        assert (nearest.shape, distance.shape) == ((13, 15, 2), (13, 15))
        assert self.polytope.boundary_distance(points).shape == (13, 15)
        assert value_map(self.polytope.mdp, points).shape == (13, 15, 2)
        assert self.polytope.nearest(points[3, 4])[1] == distance[3, 4]
        assert value_map(self.polytope.mdp, np.empty((0, 2))).shape == (0, 2)

    def test_tolerance_is_relative_to_the_values(self) -> None:
        outside = [17.0, 20.0 + 1e-8]  # residual 1e-9, relative to 20
        assert self.polytope.residual(outside) == pytest.approx(1e-9, rel=1e-3)
        assert self.polytope.contains(outside)
        assert not self.polytope.contains(outside, tolerance=1e-11)
        assert not self.polytope.contains(outside, tolerance=0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: value_polytope(garnet(5, 2, 2)), "exactly two states that are not terminal; this one has 5"),
        (
            lambda p: value_polytope(FiniteMDP(np.eye(2)[:, None], [[0.0], [1.0]], 0.9, terminal=[0])),
            "exactly two states that are not terminal; this one has 1",
        ),
        (lambda p: p.contains([1.0, 2.0, 3.0]), r"v must have shape \(..., 2\).*found \(3,\)"),
        (lambda p: p.contains(1.0), r"v must have shape \(..., 2\).*found \(\)"),
        (lambda p: p.contains([[0.0, 1.0], [np.nan, 1.0]]), r"v\[1, 0\] = nan is not a finite number"),
        (lambda p: p.nearest([0.0, -np.inf]), r"v\[1\] = -inf is not a finite number"),
        (lambda p: p.contains("ab"), "v must hold real numbers"),
        (lambda p: p.contains([0.0, 1.0], tolerance=-1.0), "tolerance must be a number >= 0, found -1.0"),
        (lambda p: p.contains([0.0, 1.0], tolerance=np.nan), "tolerance must be a number >= 0, found nan"),
        (lambda p: p.nearest([0.0, 1.0], norm="l3"), "norm must be one of l2, l1, linf; found 'l3'"),
        (lambda p: p.boundary_distance([0.0, 1.0], norm="max"), "norm must be one of l2, l1, linf; found 'max'"),
        (
            lambda p: value_map(p.mdp, [[0.0, 1.0]], policy=cast(Any, "random")),
            "policy must be one of ipe, greedy; found 'random'",
        ),
        (lambda p: value_map(p.mdp, [[0.0, np.inf]]), r"points\[0, 1\] = inf is not a finite number"),
        (lambda p: value_map(garnet(3, 2, 2), [[0.0, 1.0]]), "this one has 3"),
    ],
)
def test_wrong_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(value_polytope(switch_stay()))


@pytest.mark.parametrize("rest", [1e-3, 1e-7, 1e-8, 1e-10])
def test_no_part_is_lost_where_gamma_is_next_to_one(rest: float) -> None:
    """A polygon too thin to be told from a segment is one; every deterministic policy is on the boundary's hull."""
    polytope = value_polytope(switch_stay(gamma=1 - rest))
    ends = polytope.segments.reshape(-1, 2)
    for vertex in polytope.vertices:
        assert np.abs(ends - vertex).max(axis=1).min() <= 1e-6 / rest
