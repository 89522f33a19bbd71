"""Random MDPs, value functions and policies for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ipe.base.arrays import Array
from ipe.mdp import FiniteMDP


def random_mdp(
    rng: np.random.Generator,
    n_states: int = 6,
    n_actions: int = 3,
    *,
    successors: int | None = None,
    gamma: float = 0.9,
    masks: bool = False,
    terminals: bool = False,
) -> FiniteMDP:
    """An MDP with the given number of successors per pair (1: deterministic), masks and terminal states."""
    count = min(successors or n_states, n_states)
    transitions = np.zeros((n_states, n_actions, n_states))
    for s in range(n_states):
        for a in range(n_actions):
            support = rng.choice(n_states, count, replace=False)
            transitions[s, a, support] = 1.0 if count == 1 else rng.dirichlet(np.ones(count))
    rewards = rng.normal(size=(n_states, n_actions))
    terminal = np.zeros(n_states, dtype=bool)
    if terminals and n_states > 1:
        terminal[rng.choice(n_states, rng.integers(1, max(2, n_states // 3 + 1)), replace=False)] = True
        transitions[terminal] = 0.0
        rewards[terminal] = 0.0
    allowed = None
    if masks:
        allowed = rng.random((n_states, n_actions)) < 0.6
        allowed[np.arange(n_states), rng.integers(n_actions, size=n_states)] = True
        allowed[terminal] = False
    return FiniteMDP(transitions, rewards, gamma, allowed=allowed, terminal=terminal)


@st.composite
def mdps(
    draw: st.DrawFn,
    *,
    max_states: int = 8,
    max_actions: int = 4,
    deterministic: bool | None = None,
    min_states: int = 1,
    gammas: tuple[float, ...] = (0.0, 0.3, 0.9, 0.99),
) -> FiniteMDP:
    """Small MDPs of every kind: dense or few successors, deterministic, masked, with terminal states."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_states = draw(st.integers(min_states, max_states))
    if deterministic is None:
        successors = draw(st.sampled_from([None, 1, 2, 3]))
    else:
        successors = 1 if deterministic else draw(st.sampled_from([None, 2, 3]))
    return random_mdp(
        rng,
        n_states,
        draw(st.integers(1, max_actions)),
        successors=successors,
        gamma=draw(st.sampled_from(gammas)),
        masks=draw(st.booleans()),
        terminals=draw(st.booleans()),
    )


@st.composite
def generators(draw: st.DrawFn) -> np.random.Generator:
    """A numpy generator from a drawn seed."""
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def random_q(rng: np.random.Generator, mdp: FiniteMDP, scale: float = 3.0) -> Array:
    """Any action values: hardly ever those of a policy."""
    return np.where(mdp.allowed, scale * rng.normal(size=(mdp.n_states, mdp.n_actions)), 0.0)


def random_v(rng: np.random.Generator, mdp: FiniteMDP, scale: float = 3.0) -> Array:
    """Any state values."""
    return np.where(mdp.terminal, 0.0, scale * rng.normal(size=mdp.n_states))


def random_pi(rng: np.random.Generator, mdp: FiniteMDP) -> Array:
    """A stochastic policy over the allowed actions."""
    pi = np.where(mdp.allowed, rng.exponential(size=(mdp.n_states, mdp.n_actions)), 0.0)
    total = pi.sum(axis=1, keepdims=True)
    normalised: Array = np.divide(pi, total, out=np.zeros_like(pi), where=total > 0)
    return normalised
