"""Where the states, actions and arrows of a small MDP go on paper.

States stand in a row if every move leads to a neighbour, else on a circle. An action with one outcome
is an arrow; one with several goes to a dot first, and from there with its probabilities on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from ipe.base.arrays import Array
from ipe.figures.curves import Inside, arc, at, left_of, loop, trim, unit
from ipe.mdp import FiniteMDP


@dataclass(frozen=True)
class Move:
    """One arrow: where it leads, its probability, its reward if that depends on it, its control points."""

    target: int
    probability: float
    reward: float | None
    curve: Array


@dataclass(frozen=True)
class Pair:
    """An allowed pair (s, a): its arrows, and its dot with the line to it if it has several outcomes."""

    state: int
    action: int
    moves: tuple[Move, ...]
    dot: Array | None = None
    stem: Array | None = None


@dataclass(frozen=True)
class Layout:
    """Centres of the states, half the width of each, and the pairs."""

    centres: Array
    half: float
    pairs: tuple[Pair, ...]


def layout(mdp: FiniteMDP, half: float, widest: float) -> Layout:
    """Places for everything but the labels. `half` is half the width of a state; between two states there must be room
    for the widest label of an arrow."""
    outcomes = {(int(s), int(a)): _outcomes(mdp, int(s), int(a)) for s, a in np.argwhere(mdp.allowed)}
    in_row = all(abs(s - target) <= 1 for (s, _), found in outcomes.items() for target, _, _ in found)
    plan = (_Row if in_row else _Circle)(mdp, outcomes, half, widest)
    pairs = [plan.pair(s, a) for s, a in outcomes]
    if isinstance(plan, _Circle):
        pairs = _untangle(plan, pairs)
    return Layout(plan.centres, half, tuple(pairs))


def inside_state(centre: Array, half: float, square: bool) -> Inside:
    """Which points lie in the shape of a state, a disc or a square, or so close that an arrow must end there."""
    reach = half + 0.03
    if square:
        return lambda points: np.abs(points - centre).max(axis=-1) < reach
    return lambda points: np.hypot(*(points - centre).T) < reach


class _Plan(ABC):
    """The whole diagram, as far as the path of one pair depends on it: all places, and all pairs that leave a state."""

    centres: Array
    gap: float
    return_bulge = 0.24

    def __init__(self, mdp: FiniteMDP, outcomes: _Table, half: float, widest: float) -> None:
        self.mdp, self.outcomes, self.half = mdp, outcomes, half
        self.crowd = max(len(self.dots(s)) for s in range(mdp.n_states))
        self.gap = max(1.7, widest + 0.5) if self.crowd == 0 else max(2.3 + 0.25 * self.crowd, widest + 0.9)
        self.place_states()

    @abstractmethod
    def place_states(self) -> None:
        """Set the centres of the states."""

    @abstractmethod
    def outward(self, s: int) -> float:
        """The direction, in degrees, in which nothing lies."""

    @abstractmethod
    def bulge(self, s: int, target: int, a: int) -> float:
        """How far the arrow of an action with one outcome bends to the left of its way."""

    @abstractmethod
    def onward_bulge(self, s: int, target: int, a: int, dot: Array) -> float:
        """How far an arrow from a dot bends to the left of its way."""

    @abstractmethod
    def dot_place(self, s: int, a: int) -> Array:
        """Where the dot of an action with several outcomes goes."""

    def dots(self, state: int) -> list[int]:
        return [a for (s, a), found in self.outcomes.items() if s == state and len(found) > 1]

    def only(self, state: int, target: int) -> list[int]:
        """The actions that surely lead from one state to the other."""
        return [a for (s, a), found in self.outcomes.items() if s == state and [t for t, _, _ in found] == [target]]

    def inside(self, state: int) -> Inside:
        return inside_state(self.centres[state], self.half, bool(self.mdp.terminal[state]))

    def loop_direction(self, s: int, a: int) -> float:
        loops = self.only(s, s)
        return self.outward(s) + 62.0 * (loops.index(a) - 0.5 * (len(loops) - 1))

    def pair(self, s: int, a: int) -> Pair:
        found = self.outcomes[s, a]
        if len(found) > 1:
            return self.through_dot(s, a, self.dot_place(s, a))
        target, probability, reward = found[0]
        if target == s:
            curve = loop(self.centres[s], self.loop_direction(s, a), self.half + 0.62)
        else:
            curve = arc(self.centres[s], self.centres[target], self.bulge(s, target, a))
        curve = trim(curve, self.inside(s), self.inside(target))
        return Pair(s, a, (Move(target, probability, reward, curve),))

    def through_dot(self, s: int, a: int, dot: Array) -> Pair:
        stem = trim(arc(self.centres[s], dot, 0.0), self.inside(s), None)
        aside = left_of(dot - self.centres[s])
        lean = sum(float((self.centres[t] - dot) @ aside) for t, _, _ in self.outcomes[s, a] if t != s)
        moves = []
        for target, probability, reward in self.outcomes[s, a]:
            # The way back runs beside the stem, on the side where the other arrows are not.
            back = self.return_bulge if lean > 0 else -self.return_bulge
            bulge = back if target == s else self.onward_bulge(s, target, a, dot)
            curve = trim(arc(dot, self.centres[target], bulge), None, self.inside(target))
            moves.append(Move(target, probability, reward, curve))
        return Pair(s, a, tuple(moves), dot, stem)


class _Row(_Plan):
    """States from left to right. Of two states, the first one's actions leave above, the second one's below."""

    def place_states(self) -> None:
        self.two = self.mdp.n_states == 2
        self.gap *= 1.4 if self.two and self.crowd else 1.0
        self.return_bulge = 0.24 if self.two else 0.17
        self.centres = np.stack([self.gap * np.arange(self.mdp.n_states), np.zeros(self.mdp.n_states)], axis=1)

    def outward(self, s: int) -> float:
        if s == 0:
            return 180.0
        if s == self.mdp.n_states - 1:
            return 0.0
        return 270.0 if any(self.goes_right(a) for a in self.dots(s)) else 90.0

    def rank(self, s: int, a: int) -> int:
        """The place of an action among those that leave a state of two, from the inside out."""
        return [b for t, b in self.outcomes if t == s and b not in self.only(s, s)].index(a)

    def bulge(self, s: int, target: int, a: int) -> float:
        if self.two:
            return 0.3 + 0.5 * self.rank(s, a)
        return 0.3 + 0.4 * self.only(s, target).index(a)

    def goes_right(self, a: int) -> bool:
        """Whether an action moves to the right on the whole: one side for it, whatever it does at the ends."""
        return sum(p * (t - s) for (s, b), found in self.outcomes.items() if a == b for t, p, _ in found) >= 0

    def dot_place(self, s: int, a: int) -> Array:
        if self.two:
            rank, count = self.rank(s, a), self.rank(s, self.dots(s)[-1]) + 1
            direction = 36.0 if count == 1 else 22.0 + min(48.0, 140.0 / (count - 1)) * rank
            distance = (0.36 + 0.05 * rank) * self.gap
            return np.asarray(self.centres[s] + distance * unit(direction + (180.0 if s == 1 else 0.0)))
        right = self.goes_right(a)
        side = [b for b in self.dots(s) if self.goes_right(b) == right]
        direction = 90.0 + 50.0 * (0.5 * (len(side) - 1) - side.index(a))
        return np.asarray(self.centres[s] + (self.half + 0.75) * unit(direction if right else -direction))

    def onward_bulge(self, s: int, target: int, a: int, dot: Array) -> float:
        distance = float(np.hypot(*(self.centres[target] - dot)))
        outward = np.array([0.0, np.sign(dot[1])])
        side = float(np.sign(left_of(self.centres[target] - dot) @ outward)) or 1.0
        return side * distance * (0.1 + 0.04 * self.rank(s, a) * (1 + self.rank(s, a)) if self.two else 0.08)


class _Circle(_Plan):
    """States clockwise from the top."""

    def place_states(self) -> None:
        n = self.mdp.n_states
        radius = 1.25 * self.gap / (2 * np.sin(np.pi / n))
        self.centres = radius * np.array([unit(self.outward(s)) for s in range(n)])

    def outward(self, s: int) -> float:
        return 90 - 360 * s / self.mdp.n_states

    def bulge(self, s: int, target: int, a: int) -> float:
        return 0.1 * self.gap + 0.4 * self.only(s, target).index(a)

    def onward_bulge(self, s: int, target: int, a: int, dot: Array) -> float:
        return 0.06 * float(np.hypot(*(self.centres[target] - dot)))

    def dot_place(self, s: int, a: int) -> Array:
        """Towards the next states; `_untangle` moves it from there."""
        return np.asarray(self.centres[s] + (self.half + 0.85) * unit(self.aim(s, a)))

    def aim(self, s: int, a: int) -> float:
        away = sum((p * (self.centres[t] - self.centres[s]) for t, p, _ in self.outcomes[s, a]), np.zeros(2))
        return float(np.degrees(np.arctan2(away[1], away[0])))

    def other_dots(self, s: int, a: int) -> Iterator[tuple[Array, float]]:
        """Places for a dot, each with how little it is liked."""
        for degrees in range(-105, 106, 15):
            for more in (0.65, 0.85, 1.1, 1.4):
                place = self.centres[s] + (self.half + more) * unit(self.aim(s, a) + degrees)
                yield np.asarray(place), abs(degrees) / 30 + abs(more - 0.85)


def _untangle(plan: _Circle, pairs: list[Pair]) -> list[Pair]:
    """Move the dots, one after the other, to where their arrows run clear of all others: a few rounds."""
    for _ in range(3 if len(pairs) <= 16 else 1):
        before = list(pairs)
        for i, pair in enumerate(pairs):
            if pair.dot is not None:
                pairs[i] = _clearest(plan, pair, pairs[:i] + pairs[i + 1 :])
        if all(old is new for old, new in zip(before, pairs, strict=True)):
            break
    return pairs


def _clearest(plan: _Circle, pair: Pair, others: list[Pair]) -> Pair:
    strokes = KDTree(np.concatenate([_points(other) for other in others] or [np.full((1, 2), 1e9)]))
    dots = KDTree(np.array([other.dot for other in others if other.dot is not None] or [np.full(2, 1e9)]))
    candidates, costs = [], []
    for dot, dislike in plan.other_dots(pair.state, pair.action):
        candidates.append(plan.through_dot(pair.state, pair.action, dot))
        costs.append(dislike + _tangle(plan, candidates[-1], dot, strokes, dots))
    best = candidates[int(np.argmin(costs))]
    return pair if np.array_equal(np.asarray(best.dot), np.asarray(pair.dot)) else best


def _tangle(plan: _Circle, pair: Pair, dot: Array, strokes: KDTree, dots: KDTree) -> float:
    """How much a pair runs over other arrows, other dots and states that it has nothing to do with."""
    points = _points(pair)
    cost = 0.5 * float((strokes.query(points)[0] < 0.09).sum())
    cost += 8.0 * float(strokes.query(dot)[0] < 0.22) + 8.0 * float(dots.query(dot)[0] < 0.5)
    cost += 8.0 * float((dots.query(points)[0] < 0.15).any())
    strangers = np.delete(plan.centres, [pair.state, *(move.target for move in pair.moves)], axis=0)
    for centre in strangers:
        cost += 3.0 * float((np.hypot(*(points - centre).T) < plan.half + 0.1).sum())
    return cost + 4.0 * float((np.hypot(*(plan.centres - dot).T) < plan.half + 0.4).sum())


def _points(pair: Pair) -> Array:
    t = np.linspace(0.0, 1.0, 25)
    curves = [move.curve for move in pair.moves] + ([] if pair.stem is None else [pair.stem])
    return np.concatenate([at(curve, t) for curve in curves])


_Table = dict[tuple[int, int], list[tuple[int, float, float | None]]]


def _outcomes(mdp: FiniteMDP, s: int, a: int) -> list[tuple[int, float, float | None]]:
    """Next state, probability, and reward where it depends on the next state."""
    row = s * mdp.n_actions + a
    entries = slice(int(mdp.transitions.indptr[row]), int(mdp.transitions.indptr[row + 1]))
    rewards = None if mdp.transition_rewards is None else mdp.transition_rewards[entries]
    vary = rewards is not None and bool((rewards != rewards[0]).any())
    return [
        (int(target), float(p), float(rewards[i]) if rewards is not None and vary else None)
        for i, (target, p) in enumerate(
            zip(mdp.transitions.indices[entries], mdp.transitions.data[entries], strict=True)
        )
    ]
