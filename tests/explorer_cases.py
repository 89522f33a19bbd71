"""Random two-state MDPs and value functions for the explorer's tests, and node, which runs its mathematics."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ipe.base.arrays import Array
from ipe.mdp import FiniteMDP
from ipe.planning import policy_values, random_policy
from ipe.polytope.boundary import two_states

RUNNER = Path(__file__).with_name("browser") / "explorer_math.mjs"
VALUE_KINDS = ("inside", "edge", "corner", "near", "outside", "far", "zero")


@dataclass(frozen=True)
class Case:
    """An MDP, a value function of its two states, and how both were made."""

    mdp: FiniteMDP
    v: Array
    kind: str


def node(calls: Sequence[Sequence[Any]]) -> list[Any]:
    """The results of functions of `ipe/explorer/web/math`, each call being a name and arguments."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed: the explorer's JavaScript cannot run")
    asked = json.dumps(_words(calls), allow_nan=False)
    done = subprocess.run([program, str(RUNNER)], input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results: list[Any] = _numbers(json.loads(done.stdout))
    return results


def _words(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _words(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _words(entry) for key, entry in value.items()}
    return [_words(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _numbers(value: Any) -> Any:
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    if isinstance(value, dict):
        return {key: _numbers(entry) for key, entry in value.items()}
    return [_numbers(entry) for entry in value] if isinstance(value, list) else value


def random_two_states(rng: np.random.Generator) -> FiniteMDP:
    """Two states, 2 to 4 actions; some with a terminal state, a mask, rewards of the next state, equal actions."""
    actions = int(rng.integers(2, 5))
    ends = rng.random() < 0.2
    states = 3 if ends else 2
    p = rng.dirichlet(np.full(states, rng.choice([0.3, 1.0, 3.0])), size=(states, actions))
    if rng.random() < 0.25:  # one successor each
        p = np.eye(states)[rng.integers(states, size=(states, actions))]
    scale = 10.0 ** rng.choice([-3, -1, 0, 0, 0, 1, 4])
    r = scale * rng.normal(size=(states, actions, states) if rng.random() < 0.2 else (states, actions))
    if rng.random() < 0.2:  # two actions that are the same
        p[:, 1], r[:, 1] = p[:, 0], r[:, 0]
    allowed = np.ones((states, actions), dtype=bool)
    if rng.random() < 0.2:
        allowed[rng.integers(2), rng.integers(actions)] = False
    if ends:
        p[2], r[2], allowed[2] = np.eye(3)[2], 0.0, False
    gamma = float(rng.choice([0.0, 0.5, 0.9, 0.99, 0.999, rng.random()]))
    return FiniteMDP(p, r, gamma, allowed=allowed, terminal=[2] if ends else None)


def random_case(rng: np.random.Generator) -> Case:
    """A random MDP with values inside, on the edge or outside of its polytope, near or very far."""
    mdp = random_two_states(rng)
    kind = str(rng.choice(VALUE_KINDS))
    pi = random_policy(mdp, rng)
    corners = np.stack([_certain(rng, row) for row in mdp.allowed])
    if kind == "edge":
        pi[0] = corners[0]
    elif kind == "corner":
        pi = corners
    v = policy_values(mdp, pi).v[list(two_states(mdp))]
    size = max(float(np.abs(mdp.rewards).max()) / (1 - mdp.gamma), 1e-3)
    if kind in ("near", "outside", "far"):
        v = v + {"near": 1e-6, "outside": 1.0, "far": 1e6}[kind] * size * rng.normal(size=2)
    return Case(mdp, np.zeros(2) if kind == "zero" else v, kind)


def _certain(rng: np.random.Generator, allowed: Any) -> Array:
    """All probability on one allowed action."""
    pi = np.zeros(len(allowed))
    if allowed.any():
        pi[rng.choice(np.flatnonzero(allowed))] = 1.0
    return pi


def whole(mdp: FiniteMDP, v: Array) -> Array:
    """The values of the two states as those of the MDP: 0 in terminal states."""
    values = np.zeros(mdp.n_states)
    values[list(two_states(mdp))] = v
    return values


def compact(mdp: FiniteMDP, table: Any) -> list[list[float]]:
    """A table of shape (S, A) as the page has it: a list per state of the actions that it has."""
    array = np.asarray(table)
    return [array[s, mdp.allowed[s]].tolist() for s in two_states(mdp)]
