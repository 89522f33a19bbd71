r"""Finite Markov decision processes.

A `FiniteMDP` is states :math:`s \in \{0, \dots, S-1\}`, for each the actions
:math:`\mathcal{A}(s) \subseteq \{0, \dots, A-1\}` that are allowed there, probabilities
:math:`P(s'|s,a)`, expected rewards :math:`r(s,a)` and a discount :math:`\gamma \in [0, 1)`.
A terminal state has no actions and the value 0.

In state s an agent picks an action a, earns r(s,a) and moves to a state drawn from :math:`P(\cdot|s,a)`. A policy
:math:`\pi(a|s)` says how likely it picks each action. The value of a policy is the discounted sum of rewards that it
earns: :math:`V^\pi = r^\pi + \gamma P^\pi V^\pi` (`ipe.planning`). This library asks the inverse question: which
policy has given values (`ipe.inverse`)?

Whatever form the arrays come in, the MDP holds one sparse matrix with the row `s * A + a` for the pair (s, a), empty
where the pair does not exist. Nothing is repaired: a row that does not sum to one, a negative entry or a NaN is
refused, and the error names its (state, action).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ipe.base.arrays import Array, Mask
from ipe.base.numbers import finite_number
from ipe.mdp_exchange import arrays_from_mdptoolbox, arrays_from_quantecon, mdptoolbox_form, quantecon_form
from ipe.mdp_functions import arrays_from_functions
from ipe.mdp_input import (
    ROW_SUM_TOLERANCE,
    allowed_mask,
    as_rows,
    check_gamma,
    check_names,
    check_probabilities,
    check_rewards,
    check_terminal_rows,
    keep_rows,
    start_distribution,
    terminal_mask,
)
from ipe.mdp_samples import arrays_from_transitions

__all__ = ["ROW_SUM_TOLERANCE", "FiniteMDP"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class FiniteMDP:
    r"""A finite MDP :math:`(P, r, \gamma)` with action sets and terminal states.

    Args:
        transitions: :math:`P(s'|s,a)`, as one of

            - a dense array of shape (S, A, S);
            - a sparse matrix of shape (S * A, S) whose row `s * A + a` is :math:`P(\cdot|s,a)`;
            - a sequence of A sparse matrices of shape (S, S), one per action.
        rewards: :math:`r(s,a)` of shape (S, A); or rewards that depend on the next state,
            :math:`r(s,a,s')`, dense of shape (S, A, S) or sparse of shape (S * A, S). Planning uses their
            expectation, simulation the rewards themselves.
        gamma: the discount, in [0, 1).
        allowed: boolean, shape (S, A): the action sets :math:`\mathcal{A}(s)`. Default: every action in
            every state that is not terminal. What stands in rows of other actions is ignored.
        terminal: the terminal states, as a boolean mask of length S or as indices. Their rows must be
            empty, or stay in place with reward 0.
        start: the state in which episodes start, or a distribution over states, or None.
        state_names, action_names: names for tables and drawings.
        tolerance: how far the sum of a row may be from one.

    Example:
        >>> import numpy as np
        >>> stay, switch = np.eye(2), np.eye(2)[::-1]
        >>> mdp = FiniteMDP(np.stack([stay, switch], axis=1), [[1.0, -1.0], [2.0, 0.0]], gamma=0.9)
        >>> mdp
        FiniteMDP(2 states, 2 actions, gamma=0.9, deterministic)
        >>> FiniteMDP(np.stack([stay, 0.9 * switch], axis=1), [[1.0, -1.0], [2.0, 0.0]], gamma=0.9)
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: transitions[0, 1] sum to 0.9, not to 1 (off by -0.1); 2 rows are wrong
    """

    transitions: sparse.csr_array
    rewards: Array
    gamma: float
    allowed: Mask
    terminal: Mask
    start: Array | None
    transition_rewards: Array | None
    """:math:`r(s,a,s')`, aligned with `transitions.data`, when the rewards depend on the next state."""
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        gamma: float,
        *,
        allowed: ArrayLike | None = None,
        terminal: ArrayLike | None = None,
        start: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        tolerance: float = ROW_SUM_TOLERANCE,
    ) -> None:
        rows = as_rows(transitions)
        n_states = rows.shape[1]
        n_actions = rows.shape[0] // n_states
        ended = terminal_mask(terminal, n_states)
        pairs = allowed_mask(allowed, ended, n_actions)
        check_terminal_rows(rows, ended, n_actions)

        rows = keep_rows(rows, pairs.ravel())
        check_probabilities(rows, pairs, finite_number(tolerance, "tolerance", 0.0))
        expected, per_transition = check_rewards(rewards, rows, pairs, ended)

        for array in (rows.data, rows.indices, rows.indptr, expected, pairs, ended):
            array.flags.writeable = False
        fields = {
            "transitions": rows,
            "rewards": expected,
            "gamma": check_gamma(gamma),
            "allowed": pairs,
            "terminal": ended,
            "start": start_distribution(start, ended),
            "transition_rewards": per_transition,
            "state_names": check_names(state_names, n_states, "state_names"),
            "action_names": check_names(action_names, n_actions, "action_names"),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_functions(
        cls,
        states: Iterable[Hashable],
        actions: Iterable[Hashable] | Callable[[Any], Iterable[Hashable]],
        transition: Callable[[Any, Any], Any],
        reward: Callable[..., float],
        gamma: float,
        *,
        terminal: Iterable[Hashable] | Callable[[Any], bool] | None = None,
        start: Any = None,
    ) -> FiniteMDP:
        """An MDP whose states and actions are any hashable things and whose dynamics are functions.

        Args:
            states: the states: numbers, strings, tuples, ...
            actions: the actions, or a function that gives the actions of a state.
            transition: `transition(state, action)` gives the next state, a dictionary {next state: probability}, or
                None where the action is not allowed.
            reward: `reward(state, action)` or `reward(state, action, next_state)`.
            gamma: the discount, in [0, 1).
            terminal: the terminal states, or a function that tells whether a state is terminal.
            start: the state in which episodes start, a dictionary {state: probability}, or None.

        Returns:
            The MDP, with the states and actions in their order, and their texts as names.

        Raises:
            InputError: naming the state and the action whose answer is wrong.

        Example:
            >>> def step(floor, move):
            ...     return None if not 0 <= floor + move <= 3 else {floor + move: 0.9, floor: 0.1}
            >>> lift = FiniteMDP.from_functions(range(4), [-1, 1], step, lambda floor, move: float(floor == 3), 0.9)
            >>> lift
            FiniteMDP(4 states, 2 actions, gamma=0.9, 6 of 8 pairs allowed, stochastic)
        """
        given = arrays_from_functions(states, actions, transition, reward, terminal=terminal, start=start)
        return cls(given.pop("transitions"), given.pop("rewards"), gamma, **given)

    @classmethod
    def from_transitions(
        cls,
        state: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_state: ArrayLike,
        terminated: ArrayLike | None = None,
        *,
        gamma: float,
        n_states: int | None = None,
        n_actions: int | None = None,
        prior: float = 0.0,
    ) -> FiniteMDP:
        r"""The empirical MDP of transitions that were seen: counts for probabilities, means for rewards.

        Args:
            state, action, reward, next_state: one entry per transition; states and actions as numbers from 0.
            terminated: which transitions ended their episode. They lead to one added terminal state, named `end`.
            gamma: the discount, in [0, 1).
            n_states, n_actions: how many there are; by default as many as the transitions name.
            prior: the pseudo-count of every next state of a visited pair, 0 or more. 1 is Laplace's rule.

        Returns:
            The MDP. A pair (s, a) that was never visited is not allowed, and a state without any visited pair is
            terminal.

        Example:
            >>> FiniteMDP.from_transitions([0, 0, 1], [0, 0, 1], [1.0, 0.0, 2.0], [0, 1, 0], gamma=0.9).rewards
            array([[0.5, 0. ],
                   [0. , 2. ]])
        """
        sizes: dict[str, Any] = {"n_states": n_states, "n_actions": n_actions}
        given = arrays_from_transitions(state, action, reward, next_state, terminated, prior=prior, **sizes)
        return cls(given.pop("transitions"), given.pop("rewards"), gamma, **given)

    @classmethod
    def from_quantecon(cls, ddp: Any, *, terminal: ArrayLike | None = None) -> FiniteMDP:
        """The MDP of a QuantEcon `DiscreteDP`, in either form. Actions of reward minus infinity are not allowed.

        Args:
            ddp: the `DiscreteDP`.
            terminal: states that stay in place with reward 0 and are to count as terminal.
        """
        return cls(**arrays_from_quantecon(ddp), terminal=terminal)

    def to_quantecon(self) -> Any:
        """A QuantEcon `DiscreteDP` of the allowed pairs. Terminal states stay in place with reward 0."""
        return quantecon_form(self.transitions, self.rewards, self.gamma, self.allowed, self.terminal)

    @classmethod
    def from_mdptoolbox(
        cls, transitions: Any, rewards: Any, gamma: float, *, terminal: ArrayLike | None = None
    ) -> FiniteMDP:
        """The MDP of pymdptoolbox's arrays.

        Args:
            transitions: P of shape (A, S, S), or one sparse matrix (S, S) per action.
            rewards: R of shape (S, A), (A, S, S) or (S,).
            gamma: the discount, in [0, 1).
            terminal: states that stay in place with reward 0 and are to count as terminal.
        """
        return cls(**arrays_from_mdptoolbox(transitions, rewards), gamma=gamma, terminal=terminal)

    def to_mdptoolbox(self) -> tuple[list[Any], Array]:
        """The arrays of pymdptoolbox: one sparse matrix (S, S) per action, and expected rewards (S, A)."""
        return mdptoolbox_form(self.transitions, self.rewards, self.allowed, self.terminal)

    @property
    def n_states(self) -> int:
        """The number of states S, terminal ones included."""
        return int(self.rewards.shape[0])

    @property
    def n_actions(self) -> int:
        """The number of actions A, the union over all states."""
        return int(self.rewards.shape[1])

    @property
    def all_allowed(self) -> bool:
        """Whether every action is allowed in every state (then there is no terminal state either)."""
        return bool(self.allowed.all())

    @property
    def is_deterministic(self) -> bool:
        """Whether every allowed pair (s, a) has exactly one successor."""
        counts = np.diff(self.transitions.indptr)
        return bool((counts[self.allowed.ravel()] == 1).all())

    def state_name(self, state: int) -> str:
        """The name of a state: the one given, or `s3` for state 3."""
        return self.state_names[state] if self.state_names else f"s{state}"

    def action_name(self, action: int) -> str:
        """The name of an action: the one given, or `a3` for action 3."""
        return self.action_names[action] if self.action_names else f"a{action}"

    def with_gamma(self, gamma: float) -> FiniteMDP:
        """The same MDP with another discount. Both share their arrays."""
        twin = object.__new__(FiniteMDP)
        for name in self.__dataclass_fields__:
            object.__setattr__(twin, name, getattr(self, name))
        object.__setattr__(twin, "gamma", check_gamma(gamma))
        return twin

    def __repr__(self) -> str:
        parts = [f"{self.n_states} states", f"{self.n_actions} actions", f"gamma={self.gamma:g}"]
        if n_terminal := int(self.terminal.sum()):
            parts.append(f"{n_terminal} terminal")
        live = ~self.terminal
        if not self.allowed[live].all():
            parts.append(f"{int(self.allowed.sum())} of {int(live.sum()) * self.n_actions} pairs allowed")
        parts.append("deterministic" if self.is_deterministic else "stochastic")
        return f"FiniteMDP({', '.join(parts)})"
