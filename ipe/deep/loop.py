r"""The loop over frames: a batch of seeds, each with its environment, and one compiled program.

A frame is a step in every environment, then one call of the program (`ipe.deep.learner`), which returns the next
actions. What a run does depends on its settings and its seed alone: not on the batch that it is in, not on when it was
checkpointed. A seed whose environment fails, or whose errors stop being finite, is recorded as such and left behind;
the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipe.deep.checkpoints import Checkpoint, under
from ipe.deep.environments import Environment, EnvironmentFailure, EnvironmentSpec, make_environment
from ipe.deep.frame import END, Frame, store
from ipe.deep.learner import COUNTS, Program, advance, compiled_start, copy_targets, program_of
from ipe.deep.native import library
from ipe.deep.networks import Architecture, initial_parameters
from ipe.deep.optimisers import initial_moments
from ipe.deep.randomness import FrameDraws, network_generator
from ipe.deep.records import Records
from ipe.deep.replay import CONTINUES, TERMINATED, TRUNCATED, Format, Slots, empty
from ipe.deep.schedules import Timetable
from ipe.deep.settings import TrainingSettings
from ipe.errors import InputError

WINDOW = 1000
"""Frames per row of progress."""


@dataclass
class Outcome:
    """How a seed's run ended, or that it has not."""

    seed: int
    status: str = "running"
    """running, done, failed (its environment) or diverged."""
    frame: int = 0
    """Its last one; or the one that went wrong, counted from 1, with which its records end (0: the first reset)."""
    reason: str = ""


class Loop:
    """A batch of seeds in training.

    Args:
        settings: of every seed; they agree in `TrainingSettings.program`.
        seeds: all different from each other, or of different settings.
        checkpoint: where to go on from. Default: at the start.
        pulse: two numbers that are kept up to date for who watches: which of the environments is being waited for, -1
            for none; and in which frame, counted from 1 (0: the first reset; -1: it is being made).
        give_up: the outcome of seeds whose environment is not to be asked any more at that outcome's frame.
    """

    def __init__(
        self,
        settings: Sequence[TrainingSettings],
        seeds: Sequence[int],
        checkpoint: Checkpoint | None = None,
        *,
        pulse: MutableSequence[int] | None = None,
        give_up: Mapping[int, Outcome] | None = None,
    ) -> None:
        self.settings, self.seeds = list(settings), list(seeds)
        self.frames = settings[0].frames
        self.outcomes = [Outcome(seed) for seed in seeds]
        self._pulse = [-1, -1] if pulse is None else pulse
        self._give_up = dict(give_up or {})
        self.environments = [self._make(i) for i in range(len(seeds))]
        self.form, self.program, self.lanes = _shapes(self.settings, self.environments, checkpoint)
        self.slots = Slots(self.lanes, settings[0].replay)
        self.records = Records()
        self.frame = 0
        self._returns = np.zeros(len(seeds))
        self._lengths = np.zeros(len(seeds), np.int64)
        filled = [min(lane, len(seeds) - 1) for lane in range(self.lanes)]
        self._timetable = Timetable([self.settings[i] for i in filled])
        self._draws = FrameDraws([self.seeds[i] for i in filled], settings[0].batch)
        self._numbers = jnp.asarray(np.array([list(self.settings[i].numbers.values()) for i in filled], np.float32).T)
        self._frame = Frame.empty(self.lanes, self.form, settings[0].batch)
        self._clock = (0, time.perf_counter())
        self._state: dict[str, Any] = {}
        self._spare: dict[str, Any] = {}
        self._actions: Any = None
        if checkpoint is None:
            self._begin([self.seeds[i] for i in filled])
        else:
            self._resume(checkpoint)
        # XLA copies what it updates in place: it does not see that all that reads it comes before. A call in C it does.
        learning = [name for name in ("q", "policy") if name in self._state and self.program.products == "xla"]
        self._spare = {name: jax.tree.map(jnp.copy, self._state[name]) for name in learning}

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""
        return self.frame >= self.frames or all(outcome.status != "running" for outcome in self.outcomes)

    @property
    def memory(self) -> int:
        """Bytes of the networks and the replay, per seed."""
        return sum(int(leaf.nbytes) for leaf in jax.tree.leaves(self._state)) // self.lanes

    def advance(self) -> None:
        """One frame."""
        frame = self._frame
        self._step_environments(np.asarray(self._actions))
        frame.pad(len(self.seeds))
        self.slots.push(frame.step[:, END] == TRUNCATED, frame.slots)
        self.slots.sample(self._draws.batch(self.frame), frame.minibatch)
        updating = self._timetable.fill(frame, self.frame)
        self.frame += 1
        frame.draw[:] = self._draws.action(self.frame)
        self._state, self._spare, self._actions = advance(
            self.program, updating, self._state, self._spare, self._numbers, frame
        )
        if (due := self._timetable.copies(self.frame)) is not None:
            self._state = copy_targets(self._state, due)
        if self.frame % WINDOW == 0 or self.frame == self.frames:
            self._read_counts()
        if self.frame == self.frames:
            self._finish()

    def _make(self, i: int) -> Environment:
        self._pulse[1] = -1
        self._pulse[0] = i
        environment = make_environment(self.settings[i].environment, self.seeds[i])
        self._pulse[0] = -1
        return environment

    def _given_up(self, i: int, frame: int) -> bool:
        """Whether a seed's environment is not to be asked at this frame; its seed is stopped then."""
        last = self._give_up.get(self.seeds[i])
        if last is None or frame < last.frame:
            return False
        self._stop(i, last.status, frame, last.reason)
        return True

    def close(self) -> None:
        """Let go of the environments."""
        for environment in self.environments:
            environment.close()

    def checkpoint(self) -> Checkpoint:
        """Everything that it takes to go on, to the byte."""
        arrays = {f"state.{name}": np.asarray(leaf) for name, leaf in _named(self._state)}
        arrays |= {f"slots.{name}": array.copy() for name, array in self.slots.arrays().items()}
        arrays |= {f"records.{name}": array for name, array in self.records.arrays().items()}
        arrays |= {"actions": np.asarray(self._actions), "current": self._frame.current.copy()}
        arrays |= {"returns": self._returns.copy(), "lengths": self._lengths.copy()}
        episodes = []
        for i, environment in enumerate(self.environments):
            state = environment.state()
            arrays[f"environment.{i}.actions"] = state["actions"]
            episodes.append(state["episode"])
        data = {
            "seeds": self.seeds,
            "settings": [own.model_dump() for own in self.settings],
            "products": self.program.products,
            "episodes": episodes,
            "outcomes": [vars(outcome) for outcome in self.outcomes],
        }
        return Checkpoint(self.frame, arrays, data)

    def networks(self) -> dict[str, np.ndarray[Any, Any]]:
        """The networks of every seed: `q.matrix`, `q.rest`, `policy.matrix`, `policy.rest`, first axis seeds."""
        names = ["q", "policy"] if self.program.learns_policy else ["q"]
        parts = {f"{name}.{part}": self._state[name][part] for name in names for part in ("matrix", "rest")}
        return {name: np.asarray(array)[: len(self.seeds)] for name, array in parts.items()}

    def _begin(self, seeds: list[int]) -> None:
        generators = [network_generator(seed) for seed in seeds]
        net = self.program.architecture
        q = initial_parameters(net, generators)
        kind = self.program.optimiser_kind
        state = {
            "q": q,
            "target": jax.tree.map(jnp.copy, q),
            "q_moments": initial_moments(kind, q),
            "counts": jnp.zeros((self.lanes, len(COUNTS)), jnp.float32),
            "replay": jax.tree.map(jnp.asarray, empty(self.lanes, self.slots.size, self.form)),
        }
        if self.program.learns_policy:
            policy = initial_parameters(net, generators)
            state |= {"policy": policy, "policy_moments": initial_moments(kind, policy)}
        self._pulse[1] = 0
        for i, environment in enumerate(self.environments):
            if self._given_up(i, 0):
                continue
            self._pulse[0] = i
            try:
                self._frame.current[i] = self.form.pack(environment.reset()[None])[0]
            except EnvironmentFailure as failure:
                self._stop(i, "failed", 0, str(failure))
        self._pulse[0] = -1
        frame = self._frame
        frame.pad(len(self.seeds))
        self._timetable.fill(frame, -1)
        frame.draw[:] = self._draws.action(0)
        self._state, self._actions = compiled_start(self.program)(state, self._numbers, frame)

    def _resume(self, checkpoint: Checkpoint) -> None:
        arrays, data = checkpoint.arrays, checkpoint.data
        if data["seeds"] != self.seeds:
            raise InputError(f"the checkpoint is of seeds {data['seeds']}, not of {self.seeds}")
        self.frame = checkpoint.frame
        self.records = Records.from_arrays(under("records.", arrays))
        self.slots.restore(under("slots.", arrays))
        self._returns, self._lengths = np.array(arrays["returns"]), np.array(arrays["lengths"])
        self._actions = arrays["actions"]
        self._state = _tree(under("state.", arrays))
        self._frame.current[:] = arrays["current"]
        self.outcomes = [Outcome(**outcome) for outcome in data["outcomes"]]
        self._clock = (self.frame, time.perf_counter())
        self._pulse[1] = self.frame + 1
        for i, environment in enumerate(self.environments):
            if self.outcomes[i].status in ("failed", "diverged") or self._given_up(i, self.frame + 1):
                continue
            if self.frame < self.frames:
                self.outcomes[i].status = "running"
            self._pulse[0] = i
            state = {"episode": data["episodes"][i], "actions": arrays[f"environment.{i}.actions"]}
            try:
                observation = self.form.pack(environment.restore(state)[None])[0]
            except EnvironmentFailure as failure:
                raise InputError(f"seed {self.seeds[i]}: {failure}") from None
            if not np.array_equal(observation, self._frame.current[i]):
                raise InputError(
                    f"seed {self.seeds[i]}: the environment, started from the same seed and given the same actions, "
                    "does not come to the state of the checkpoint; it does not draw all its randomness from its seed"
                )
        self._pulse[0] = -1

    def _step_environments(self, actions: np.ndarray[Any, Any]) -> None:
        frame, pulse = self._frame, self._pulse
        pulse[1] = self.frame + 1
        for i, environment in enumerate(self.environments):
            if self.outcomes[i].status != "running":
                continue
            if self._give_up and self._given_up(i, self.frame + 1):
                continue
            action = int(actions[i])
            if action < 0:  # no action has a probability
                self._diverge(i, np.asarray(self._state["counts"])[i])
                continue
            pulse[0] = i
            try:
                observation, reward, terminated, truncated = environment.step(action)
                store(self.form, frame.arrived, i, observation)
                self._returns[i] += reward
                self._lengths[i] += 1
                end = TERMINATED if terminated else TRUNCATED if truncated else CONTINUES
                if end != CONTINUES:
                    observation = environment.reset()
            except EnvironmentFailure as failure:
                self._stop(i, "failed", self.frame + 1, str(failure))
                continue
            store(self.form, frame.current, i, observation)
            frame.step[i] = action, reward, end
            if end != CONTINUES:
                self.records.episode(self.seeds[i], self.frame + 1, float(self._returns[i]), int(self._lengths[i]))
                self._returns[i] = self._lengths[i] = 0
        pulse[0] = -1

    def _read_counts(self) -> None:
        """A row of progress per seed; stops those whose errors are not finite."""
        counts = np.asarray(self._state["counts"], np.float64)
        self._state["counts"] = jnp.zeros_like(self._state["counts"])
        then, before = self._clock
        self._clock = (self.frame, time.perf_counter())
        speed = (self.frame - then) / max(self._clock[1] - before, 1e-9)
        for i, seed in enumerate(self.seeds):
            if self.outcomes[i].status != "running":
                continue
            seen = dict(zip(COUNTS, counts[i].tolist(), strict=True))
            if seen["sound"] < seen["updates"]:
                self._diverge(i, counts[i])
                continue
            of_frames = {name: seen[name] / seen["frames"] for name in ("epsilon", "entropy")}
            updates = seen["updates"] or np.nan
            of_updates = {name: seen[name] / updates for name in ("td_error", "ipe_error", "q_mean")}
            values = self._applicable(of_frames | of_updates)
            self.records.progress(seed, self.frame, **values, frames_per_second=speed)

    def _applicable(self, values: dict[str, float]) -> dict[str, float]:
        """NaN for what the behaviour does not have."""
        without = [] if self.program.learns_policy else ["entropy", "ipe_error"]
        if self.program.behaviour.epsilon is None:
            without.append("epsilon")
        return values | dict.fromkeys(without, np.nan)

    def _diverge(self, i: int, counts: np.ndarray[Any, Any]) -> None:
        """Stop a seed at its first update of errors that are not finite; if there was none, at its next action."""
        seen = dict(zip(COUNTS, counts.tolist(), strict=True))
        if back := int(seen["updates"] - seen["sound"]):
            wrong = self._timetable.frame_of_update(i, self.frame, back)
            self._stop(i, "diverged", wrong, "the temporal-difference errors are not finite")
        else:
            self._stop(i, "diverged", self.frame + 1, "the action values are not finite")

    def _stop(self, i: int, status: str, frame: int, reason: str) -> None:
        self.outcomes[i] = Outcome(self.seeds[i], status, frame, reason)
        self.records.drop_from(self.seeds[i], frame)

    def _finish(self) -> None:
        for outcome in self.outcomes:
            if outcome.status == "running":
                outcome.status, outcome.frame = "done", self.frame


def check_spec(spec: EnvironmentSpec) -> None:
    """That there is a network for these observations."""
    if spec.image and min(spec.observation_shape[:2]) < 3:
        height, width = spec.observation_shape[:2]
        raise InputError(f"{spec.id}: an image must be at least 3 by 3 for the convolution, found {height} by {width}")


def architecture(settings: TrainingSettings, spec: EnvironmentSpec) -> Architecture:
    """The shape of a run's networks."""
    return Architecture(spec.observation_shape, settings.width, settings.channels, spec.actions, settings.precision)


def _shapes(
    settings: Sequence[TrainingSettings], environments: Sequence[Environment], checkpoint: Checkpoint | None
) -> tuple[Format, Program, int]:
    own, spec = settings[0], environments[0].spec
    check_spec(spec)
    form = Format(spec.observation_shape, np.dtype(spec.dtype).name, spec.binary, spec.scale)
    net = architecture(own, spec)
    if net.image and len(settings) > 1:
        raise InputError(f"images are trained one seed at a time, found {len(settings)}")
    program = program_of(own, net, form, Slots(1, own.replay).size, _products(net, checkpoint))
    # XLA rounds a batch of one differently from larger ones, among which it makes no difference.
    alone = net.image or program.products == "native"
    return form, program, len(settings) if alone else max(2, len(settings))


def _products(net: Architecture, checkpoint: Checkpoint | None) -> str:
    """Those that a run has begun with: it goes on to the byte. (Those of the first version were XLA's.)"""
    if checkpoint is None:
        return library.choose(net)
    begun = str(checkpoint.data.get("products", "xla"))
    if begun == "native" and (why := library.reason(net)):
        raise InputError(f"the run was begun with native products, which cannot be used here: {why}")
    return begun


def _named(tree: Any) -> list[tuple[str, Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(".".join(str(key.key) for key in path), leaf) for path, leaf in leaves]


def _tree(arrays: dict[str, Any]) -> dict[str, Any]:
    """The nested dictionaries that `_named` has flattened, as JAX's own arrays: donated, they must not be NumPy's."""
    tree: dict[str, Any] = {}
    for name, array in arrays.items():
        *path, last = name.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = jnp.array(array, copy=True)
    return tree
