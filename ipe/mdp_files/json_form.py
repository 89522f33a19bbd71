"""The JSON form of an MDP: states and actions by name or by index, one object per pair (s, a)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ipe.base.files import check_keys
from ipe.base.numbers import is_number, is_whole
from ipe.base.words import did_you_mean, short
from ipe.errors import InputError
from ipe.mdp import FiniteMDP

FORMAT = "ipe.mdp"
VERSION = 1
MAX_PAIRS = 10**8
"""The most pairs (s, a) of a JSON file: a few bytes could otherwise claim all memory."""

_REQUIRED = ("format", "version", "gamma", "states", "actions", "transitions")
_OPTIONAL = ("terminal", "start")
_PAIR = ("state", "action", "next", "reward")
_INDEX = re.compile(r"[sa]?(0|[1-9][0-9]{0,15})")


@dataclass(frozen=True)
class Labels:
    """How a file may call its states or its actions: by name, by index, or as `s3` and `a1` if it names none."""

    kind: str
    count: int
    names: dict[str, int]

    def index(self, label: Any, field: str) -> int:
        """The index that a label stands for."""
        if isinstance(label, str):
            if label in self.names:
                return self.names[label]
            match = _INDEX.fullmatch(label)
            prefixed = label.startswith(self.kind[0])
            if match is None or (label[0] in "sa" and (self.names or not prefixed)):
                raise InputError(f"{field}: there is no {self.kind} {label!r}{did_you_mean(label, self.names)}")
            position = int(match.group(1))
        elif is_whole(label):
            position = label
        else:
            raise InputError(f"{field} must be the name or the index of a {self.kind}, found {short(label)}")
        if not 0 <= position < self.count:
            raise InputError(f"{field}: there is no {self.kind} {label!r}; they run from 0 to {self.count - 1}")
        return position


def labels(value: Any, kind: str) -> Labels:
    """Labels from the field `states` or `actions`: a list of names, or how many there are."""
    field = f"{kind}s"
    if is_whole(value) and value >= 1:
        return Labels(kind, value, {})
    if not isinstance(value, list) or not value:
        raise InputError(f"{field} must be a list of names or a number >= 1, found {short(value)}")
    names: dict[str, int] = {}
    for i, name in enumerate(value):
        if not isinstance(name, str):
            raise InputError(f"{field}[{i}] must be a name, found {short(name)}")
        if name in names:
            raise InputError(f"{field} holds {name!r} twice")
        names[name] = i
    return Labels(kind, len(value), names)


def check_pairs(n_states: int, n_actions: int) -> None:
    """Refuse what is too large for this format."""
    if n_states * n_actions > MAX_PAIRS:
        raise InputError(
            f"states and actions: {n_states} x {n_actions} pairs are more than the {MAX_PAIRS} of .json; use .npz"
        )


def parse(content: Any, tolerance: float) -> FiniteMDP:
    """The MDP in the content of a JSON file."""
    if not isinstance(content, dict):
        raise InputError(f"the file must hold one object, found {short(content)}")
    if content.get("format") != FORMAT:
        raise InputError(f"format must be {FORMAT!r}, found {short(content.get('format'))}")
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise InputError(f"version must be {VERSION}, the one that this ipe reads; found {short(version)}")
    check_keys(content, _REQUIRED, _OPTIONAL)
    states, actions = labels(content["states"], "state"), labels(content["actions"], "action")
    check_pairs(states.count, actions.count)
    terminal = _terminal(content.get("terminal", []), states)
    entries = content["transitions"]
    if not isinstance(entries, list):
        raise InputError(f"transitions must be a list, found {short(entries)}")
    pairs = _Pairs(states, actions, terminal)
    for i, entry in enumerate(entries):
        pairs.add(entry, f"transitions[{i}]")
    return FiniteMDP(
        pairs.matrix(pairs.probabilities),
        pairs.matrix(pairs.rewards) if pairs.depend_on_next else pairs.expected,
        number(content["gamma"], "gamma"),
        allowed=pairs.allowed,
        terminal=sorted(terminal),
        start=_start(content.get("start"), states),
        state_names=list(states.names) or None,
        action_names=list(actions.names) or None,
        tolerance=tolerance,
    )


class _Pairs:
    """Collects the entries of `transitions`."""

    def __init__(self, states: Labels, actions: Labels, terminal: set[int]) -> None:
        self.states, self.actions, self.terminal = states, actions, terminal
        self.allowed = np.zeros((states.count, actions.count), dtype=bool)
        self.expected = np.zeros((states.count, actions.count))
        self.depend_on_next = False
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.probabilities: list[float] = []
        self.rewards: list[float] = []

    def add(self, entry: Any, field: str) -> None:
        if not isinstance(entry, dict):
            raise InputError(f"{field} must be an object, found {short(entry)}")
        check_keys(entry, _PAIR, (), field)
        s = self.states.index(entry["state"], f"{field}.state")
        a = self.actions.index(entry["action"], f"{field}.action")
        if s in self.terminal:
            raise InputError(f"{field}: state {entry['state']!r} is terminal and has no actions")
        if self.allowed[s, a]:
            raise InputError(f"{field}: the pair {entry['state']!r}, {entry['action']!r} stands twice")
        self.allowed[s, a] = True
        following = distribution(entry["next"], self.states, f"{field}.next")
        rewards = self._rewards(entry["reward"], following, f"{field}.reward", (s, a))
        self.rows += [s * self.actions.count + a] * len(following)
        self.columns += following.keys()
        self.probabilities += following.values()
        self.rewards += rewards

    def _rewards(self, reward: Any, following: dict[int, float], field: str, pair: tuple[int, int]) -> list[float]:
        if not isinstance(reward, dict):
            self.expected[pair] = number(reward, field)
            return [float(self.expected[pair])] * len(following)
        self.depend_on_next = True
        given = by_label(reward, self.states, field)
        for state in sorted(given.keys() ^ following.keys()):
            what = "no reward for it" if state in following else "a reward for it, but next does not have it"
            raise InputError(f"{field}: state {self._name(state)!r} has {what}")
        return [given[state] for state in following]

    def _name(self, state: int) -> str:
        return list(self.states.names)[state] if self.states.names else str(state)

    def matrix(self, entries: list[float]) -> sparse.csr_array:
        shape = (self.allowed.size, self.states.count)
        return sparse.csr_array((entries, (self.rows, self.columns)), shape=shape, dtype=np.float64)


def number(value: Any, field: str) -> float:
    """A finite number of a JSON file; true and false are refused."""
    if not is_number(value):
        raise InputError(f"{field} must be a number, found {short(value)}")
    try:
        out = float(value)
    except OverflowError:  # an integer of hundreds of digits
        out = math.inf
    if not math.isfinite(out):
        raise InputError(f"{field} = {out:g} is not a finite number")
    return out


def by_label(value: dict[str, Any], known: Labels, field: str) -> dict[int, float]:
    """The numbers of an object {label: number}, by index."""
    out: dict[int, float] = {}
    for label, entry in value.items():
        position = known.index(label, field)
        if position in out:
            raise InputError(f"{field} holds {known.kind} {label!r} twice, under two names")
        out[position] = number(entry, f"{field}[{label!r}]")
    return out


def distribution(value: Any, states: Labels, field: str) -> dict[int, float]:
    """A distribution over states: one state, or an object {state: probability}."""
    if not isinstance(value, dict):
        return {states.index(value, field): 1.0}
    return by_label(value, states, field)


def _terminal(value: Any, states: Labels) -> set[int]:
    if not isinstance(value, list):
        raise InputError(f"terminal must be a list of states, found {short(value)}")
    return {states.index(label, f"terminal[{i}]") for i, label in enumerate(value)}


def _start(value: Any, states: Labels) -> Any:
    if value is None:
        return None
    start = np.zeros(states.count)
    for state, probability in distribution(value, states, "start").items():
        start[state] = probability
    return start


def dump(mdp: FiniteMDP) -> Iterator[str]:
    """The lines of an MDP's JSON file, one per pair (s, a). Python's `repr` of a float gives it back exactly."""
    state = mdp.state_names or [str(s) for s in range(mdp.n_states)]
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "gamma": mdp.gamma,
        "states": mdp.state_names or mdp.n_states,
        "actions": mdp.action_names or mdp.n_actions,
    }
    if mdp.terminal.any():
        head["terminal"] = [mdp.state_names[s] if mdp.state_names else int(s) for s in np.flatnonzero(mdp.terminal)]
    if mdp.start is not None:
        head["start"] = {state[s]: float(mdp.start[s]) for s in np.flatnonzero(mdp.start)}
    yield "{\n"
    for key, value in head.items():
        yield f"  {json.dumps(key)}: {json.dumps(value)},\n"
    yield '  "transitions": ['
    separator = "\n"
    for pair in _pairs(mdp, state):
        yield f"{separator}    {json.dumps(pair)}"
        separator = ",\n"
    yield "\n  ]\n}\n"


def _pairs(mdp: FiniteMDP, state: Any) -> Iterator[dict[str, Any]]:
    rows = mdp.transitions
    for s, a in np.argwhere(mdp.allowed):
        row = s * mdp.n_actions + a
        entries = range(rows.indptr[row], rows.indptr[row + 1])
        following = [state[rows.indices[i]] for i in entries]
        reward: Any = float(mdp.rewards[s, a])
        if mdp.transition_rewards is not None:
            reward = {name: float(mdp.transition_rewards[i]) for name, i in zip(following, entries, strict=True)}
        yield {
            "state": mdp.state_names[s] if mdp.state_names else int(s),
            "action": mdp.action_names[a] if mdp.action_names else int(a),
            "next": {name: float(rows.data[i]) for name, i in zip(following, entries, strict=True)},
            "reward": reward,
        }
