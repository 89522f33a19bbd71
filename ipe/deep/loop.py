r"""The training loop of DQN with an evaluation policy, for a batch of seeds at once.

Each frame (`Loop.advance`) is a step of DQN: act in every environment, store the transition in the replay, draw a
minibatch, update the Q-network towards the target network, then the policy network, then choose the next actions; now
and then copy the Q-network to the target network. The arithmetic of a frame is one compiled program
(`ipe.deep.learner`); the environments, the slots of the replay and the random numbers are the host's. Seeds that act in
k environments take k frames at once, then do k updates (`ipe.deep.several`).

What a seed's run does depends on its settings and its seed alone: not on the batch that it is in, and not on when it
was checkpointed. A seed whose environment fails, or whose errors stop being finite, is recorded as such and left
behind; the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, MutableSequence, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ipe.base.nested import flatten, nested
from ipe.deep.actors import Actors
from ipe.deep.checkpoints import Checkpoint, under
from ipe.deep.data import Data
from ipe.deep.environments import spec_of
from ipe.deep.evaluating import Evaluating, Kept
from ipe.deep.frame import END, Frame
from ipe.deep.greedy import Greedy
from ipe.deep.learner import COUNTS, advance, compiled_start, copy_targets, first_estimates
from ipe.deep.measuring import all_sound, record_progress, stop_diverged
from ipe.deep.memory import check_training_memory
from ipe.deep.networks import initial_parameters
from ipe.deep.optimisers import initial_moments
from ipe.deep.priorities import Priorities
from ipe.deep.programs import as_before, hyperparameters, lanes_of, program_of
from ipe.deep.progress import Outcome
from ipe.deep.randomness import MEMORY, FrameDraws, network_generator
from ipe.deep.recording import Recording
from ipe.deep.records import WINDOW, Records
from ipe.deep.replay import TRUNCATED, Slots, empty, filled, refilled
from ipe.deep.schedules import Timetable
from ipe.deep.settings import TrainingSettings
from ipe.deep.several import choose_actions, store, update
from ipe.errors import InputError

_REPLAY = ("state.replay.observation", "state.replay.step")


class Loop:
    """A batch of seeds in training.

    Args:
        settings: the settings of every seed; all agree in `TrainingSettings.program`.
        seeds: the seeds, all different from each other or of different settings.
        checkpoint: the checkpoint to go on from. Default: begin.
        pulse, give_up: what a watchdog reads, and what it knows; see `ipe.deep.actors.Actors`.
        evaluating: when the seeds are evaluated, and with how many episodes. Default: never.
        data: the data set that all seeds learn from, without acting. Default: they act, and learn from that.
        keep_transitions: whether to keep all transitions (`kept`).
    """

    def __init__(
        self,
        settings: Sequence[TrainingSettings],
        seeds: Sequence[int],
        checkpoint: Checkpoint | None = None,
        *,
        pulse: MutableSequence[int] | None = None,
        give_up: Mapping[int, Outcome] | None = None,
        evaluating: Evaluating | None = None,
        data: Data | None = None,
        keep_transitions: bool = False,
    ) -> None:
        self.settings, self.seeds = list(settings), list(seeds)
        self.data = data
        self.frames, self.frame = settings[0].frames, 0
        self._as_before = checkpoint is not None and "network" not in checkpoint.data
        if self._as_before:
            settings = [as_before(setting) for setting in settings]
        self.actors = Actors(settings, self.seeds, pulse, give_up, acting=data is None)
        if keep_transitions:
            self.actors.kept = Recording(len(self.actors.environments))
        self.evaluating, self.notes = evaluating, list[str]()
        self.best, self._stopped = Kept(len(seeds)), Kept(len(seeds))
        # Runs of the first version do not say whose products they were begun with: they were XLA's.
        begun_with = None if checkpoint is None else str(checkpoint.data.get("products", "xla"))
        spec = self.actors.environments[0].spec if data is None else spec_of(settings[0].environment)
        self.program = program_of(settings[0], spec, begun_with, None if data is None else data.places)
        self.lanes = lanes_of(self.program, len(seeds))
        check_training_memory(settings[0], spec, [self.lanes])
        self._greedy: Greedy | None = None
        if evaluating is not None:
            self.actors.records = Records(evaluating.episodes)
            self._greedy = Greedy(settings, self.seeds, evaluating, self.program.architecture, pulse)
        self._each = each = self.program.environments
        self.slots = Slots(
            self.lanes * each, 1 if data is not None else settings[0].replay // each, self.program.form.stack, each
        )
        of_lane = [min(lane, len(seeds) - 1) for lane in range(self.lanes)]  # padding does what the last seed does
        self._timetable = Timetable([self.settings[i] for i in of_lane])
        self._draws = FrameDraws([self.seeds[i] for i in of_lane], settings[0].batch)
        self._chances = FrameDraws([self.seeds[i] for i in of_lane], 0, MEMORY) if self.program.remembers else None
        self._numbers = jnp.asarray(hyperparameters([self.settings[i] for i in of_lane]))
        by_priority = self.program.priority_exponent
        self._priorities = Priorities([self.settings[i] for i in of_lane], self.slots) if by_priority else None
        self._frame = self._rows = Frame.empty(self.lanes, self.program.form, settings[0].batch, weighted=by_priority)
        if data is not None:
            self._rows = self._frame = Frame.of_updates(self.lanes, settings[0].batch, each)
            self._frame.slots[:, 2] = data.places - 1
        elif each > 1:
            self._rows = Frame.empty(self.lanes * each, self.program.form, 0)
            self._frame = Frame.of_updates(self.lanes, settings[0].batch, each, weighted=by_priority)
        self._state: dict[str, Any] = {}
        self._actions: Any = None
        if checkpoint is None:
            self._begin([self.seeds[i] for i in of_lane])
        else:
            self._restore(checkpoint)
        # XLA copies what it updates in place, because it does not see that every reader comes before the update. A
        # call in C sees it.
        learning = [name for name in ("q", "policy") if name in self._state and self.program.products == "xla"]
        self._spare: dict[str, Any] = {name: jax.tree.map(jnp.copy, self._state[name]) for name in learning}
        self._clock = (self.frame, time.perf_counter())

    def advance(self) -> None:
        """Do one frame of DQN for every seed; for one that acts in k environments, k frames."""
        if self.data is not None:
            self._learn_from(self.data)
            return
        if self._each > 1:
            self._advance_several()
            return
        frame, number = self._frame, self.frame + 1

        # Act: the environments take the actions that were chosen at the end of the last frame.
        for i in self.actors.step(np.asarray(self._actions), number, self.program.form, frame):
            stop_diverged(self.actors, self._timetable, i, np.asarray(self._state["counts"])[i], self.frame)
        frame.pad(len(self.seeds))

        # Remember: each transition gets its slots in the replay. If there is an update, draw a minibatch for it.
        self._remember(frame)
        updating = self._timetable.fill(frame, self.frame)
        if updating != "none":
            self._sample(self.frame)

        # Learn, and choose the next actions: the compiled program stores the transitions, updates the Q-network and
        # the policy network on the minibatch, and draws actions from the behaviour of the updated networks.
        frame.draw[:] = self._draws.action(number)
        if self._chances is not None:
            frame.chance[:] = self._chances.action(number)
        self._state, self._spare, self._actions = advance(
            self.program, updating, self._state, self._spare, self._numbers, frame
        )
        self.frame = number
        if self._priorities is not None and updating != "none":
            self._priorities.learn(self._state["delta"], frame.updates > 0)

        self._copy_targets(number)
        self._end_frames(number - 1)

    def _learn_from(self, data: Data) -> None:
        """Do one update of every seed, on a minibatch of its own from a data set."""
        first, frame = self.frame, self._frame
        numbers = (self._draws.batch(first) * len(data)).astype(np.int64)
        frame.minibatch[:] = data.start[numbers]
        updating = self._timetable.fill(frame, first)
        self._state, self._spare = update(self.program, updating, self._state, self._spare, self._numbers, frame)
        self.frame = first + 1
        self._copy_targets(self.frame)
        self._end_frames(first)

    def _advance_several(self) -> None:
        """Do a frame of DQN in each of a seed's environments, by the same networks, then as many updates."""
        rows, frame, first = self._rows, self._frame, self.frame

        # Act, in all environments, and remember.
        for i in self.actors.step(np.asarray(self._actions), first + 1, self.program.form, rows):
            stop_diverged(self.actors, self._timetable, i, np.asarray(self._state["counts"])[i], first)
        rows.pad(len(self.seeds), self._each)
        self._remember(rows)
        frame.heads[:] = rows.slots[:, 2].reshape(self.lanes, -1)
        self._state = store(self.program, self._state, rows)

        # Learn, as many times, each on a minibatch of its own.
        for number in range(first, first + self._each):
            if (updating := self._timetable.fill(frame, number)) != "none":
                self._sample(number)
                self._state, self._spare = update(
                    self.program, updating, self._state, self._spare, self._numbers, frame
                )
                if self._priorities is not None:
                    self._priorities.learn(self._state["delta"], frame.updates > 0)
            self._copy_targets(number + 1)

        # Choose the next actions.
        self._fill_rows(first + self._each)
        self._state, self._actions = choose_actions(self.program, self._state, self._numbers, rows)
        self.frame = first + self._each
        self._end_frames(first)

    def _fill_rows(self, first: int) -> None:
        """Write what each environment's next action depends on into its row; `first` is the frame of the first one's
        action, counted from 0."""
        rows = self._rows
        for j in range(self._each):
            self._timetable.fill(self._frame, first + j - 1)
            for name in ("epsilon", "acting_step", "at_random"):
                getattr(rows, name)[j :: self._each] = getattr(self._frame, name)
            rows.draw[j :: self._each] = self._draws.action(first + j)
            if self._chances is not None and first > 0:  # for the step that was just taken
                rows.chance[j :: self._each] = self._chances.action(first - self._each + j + 1)

    def _remember(self, rows: Frame) -> None:
        """Give the transitions that were just made their slots in the replay."""
        self.slots.push(rows.step[:, END] == TRUNCATED, rows.slots)
        if self._priorities is not None:
            self._priorities.add()

    def _sample(self, number: int) -> None:
        """Draw the minibatch of a frame, counted from 0."""
        if self._priorities is None:
            self.slots.sample(self._draws.batch(number), self._frame.minibatch)
        else:
            self._priorities.sample(self._draws.batch(number), number, self._frame)

    def _copy_targets(self, number: int) -> None:
        """Every `target_period` frames, copy the Q-network to the target network."""
        if (due := self._timetable.copies(number)) is not None:
            self._state = copy_targets(self._state, due)

    def _end_frames(self, before: int) -> None:
        """Record what is due after the frames since `before`."""
        if self.frame // WINDOW > before // WINDOW or self.frame == self.frames:
            self._record_progress()
        if self._greedy is not None and any(map(self._greedy.evaluating.due, range(before + 1, self.frame + 1))):
            self._evaluate(self._greedy)
        if self.frame == self.frames:
            self.actors.finish(self.frame)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""
        return self.frame >= self.frames or not self.actors.running

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcome of each seed so far."""
        return self.actors.outcomes

    @property
    def records(self) -> Records:
        """The episodes and the progress of all seeds so far."""
        return self.actors.records

    @property
    def memory(self) -> int:
        """The bytes that the networks, the optimisers and the replay of one seed take."""
        return sum(int(leaf.nbytes) for leaf in jax.tree.leaves(self._state)) // self.lanes

    def kept(self) -> dict[int, Data]:
        """Return the transitions of each seed so far, if they are kept; those of several environments one environment
        after the other. A seed without transitions is left out."""
        if self.actors.kept is None:
            return {}
        of_seed = {seed: self.actors.kept.data(i * self._each, self._each) for i, seed in enumerate(self.seeds)}
        return {seed: data for seed, data in of_seed.items() if data is not None}

    def networks(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the networks: `q.matrix`, `q.rest`, `policy.matrix`, `policy.rest`; the first axis is the seeds.

        The networks of a seed that failed or diverged are of no use, and NaN; those of a seed that was stopped are as
        they were then.
        """
        networks = {name: np.array(array) for name, array in self._networks().items()}
        for name, array in networks.items():
            for i in np.flatnonzero(self._stopped.frames):
                array[i] = self._stopped.networks[name][i]
            array[[outcome.lost for outcome in self.outcomes]] = np.nan
        return networks

    def _networks(self) -> dict[str, NDArray[Any]]:
        """The networks that are in training, without a copy; those of a seed that has ended mean nothing."""
        names = ["q", "policy"] if self.program.learns_policy else ["q"]
        parts = {f"{name}.{part}": self._state[name][part] for name in names for part in ("matrix", "rest")}
        return {name: np.asarray(array)[: len(self.seeds)] for name, array in parts.items()}

    def stop(self, seed: int, reason: str) -> None:
        """End the training of a seed here, as done; the other seeds go on. A seed that has ended is left alone.

        Args:
            seed: the seed.
            reason: why, for its outcome; not empty.
        """
        i = self.seeds.index(seed)
        if self.outcomes[i].status != "running":
            return
        self._stopped.keep(i, self._networks(), self.frame)
        self.outcomes[i].status, self.outcomes[i].frame, self.outcomes[i].reason = "done", self.frame, reason

    def checkpoint(self) -> Checkpoint:
        """Return everything that it takes to go on, to the byte."""
        states = [environment.state() for environment in self.actors.environments]
        arrays = {f"state.{name}": np.asarray(leaf) for name, leaf in flatten(self._state).items()}
        if self.data is not None:  # it is kept beside the checkpoints
            arrays = {name: array for name, array in arrays.items() if name not in _REPLAY}
        else:
            for name in _REPLAY:
                arrays[name] = filled(arrays[name], len(self.slots.head), self.slots.head)
            arrays |= {f"slots.{name}": array.copy() for name, array in self.slots.arrays().items()}
            arrays |= {"actions": np.asarray(self._actions), "current": self._rows.current.copy()}
        if self.actors.kept is not None:
            arrays |= {f"kept.{name}": array for name, array in self.actors.kept.arrays().items()}
        if self._priorities is not None:
            arrays |= {f"priorities.{name}": array for name, array in self._priorities.arrays().items()}
        arrays |= {f"records.{name}": array for name, array in self.records.arrays().items()}
        arrays |= {f"best.{name}": array for name, array in self.best.arrays().items()}
        arrays |= {f"stopped.{name}": array for name, array in self._stopped.arrays().items()}
        arrays |= {"returns": self.actors.returns.copy(), "lengths": self.actors.lengths.copy()}
        arrays |= {f"environment.{i}.actions": state["actions"] for i, state in enumerate(states)}
        data = {
            "seeds": self.seeds,
            "settings": [setting.model_dump() for setting in self.settings],
            "products": self.program.products,
            "episodes": [state["episode"] for state in states],
            "outcomes": [vars(outcome) for outcome in self.outcomes],
        }
        if not self._as_before:  # a run of an earlier version stays one
            data["network"] = self.program.architecture.network
        return Checkpoint(self.frame, arrays, data)

    def close(self) -> None:
        """Close the environments."""
        self.actors.close()
        if self._greedy is not None:
            self._greedy.close()

    def _begin(self, seeds: list[int]) -> None:
        """Draw the initial networks, reset the environments, and choose the first actions."""
        generators = [network_generator(seed) for seed in seeds]
        net, kind = self.program.architecture, self.program.optimiser_kind
        q = initial_parameters(net, generators)
        state = {
            "q": q,
            "target": jax.tree.map(jnp.copy, q),
            "q_moments": initial_moments(kind, q),
            "counts": jnp.zeros((self.lanes, len(COUNTS)), jnp.float32),
            "replay": jax.tree.map(jnp.asarray, self._first_replay()),
        }
        if self.program.priority_exponent:
            state["delta"] = jnp.zeros((self.lanes, self.settings[0].batch), jnp.float32)
        if self.program.learns_policy:
            policy = initial_parameters(self.program.policy_architecture, generators)
            state |= {"policy": policy, "policy_moments": initial_moments(kind, policy)}
            state |= first_estimates(self.program, policy)
        if self.data is not None:
            self._state = state
            return
        rows = self._rows
        self.actors.reset(self.program.form, rows)
        rows.pad(len(self.seeds), self._each)
        self._fill_rows(0)
        self._state, self._actions = compiled_start(self.program)(state, self._numbers, rows)

    def _first_replay(self) -> dict[str, NDArray[Any]]:
        """The replay at the beginning: an empty one, or the data set."""
        if self.data is not None:
            return self.data.replay(self.program.form)
        return empty(len(self.slots.head), self.slots.size, self.program.form)

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Go on where a checkpoint was written."""
        arrays, data, actors = checkpoint.arrays, checkpoint.data, self.actors
        if data["seeds"] != self.seeds:
            raise InputError(f"the checkpoint is of seeds {data['seeds']}, not of {self.seeds}")
        self.frame = checkpoint.frame
        if self._priorities is not None:
            self._priorities.restore(under("priorities.", arrays))
        if self.data is not None:
            arrays = {**arrays, **{f"state.replay.{name}": array for name, array in self._first_replay().items()}}
        else:
            self.slots.restore(under("slots.", arrays))
            self._actions = arrays["actions"]
            self._rows.current[:] = arrays["current"]
            for name in _REPLAY:
                arrays = {**arrays, name: refilled(arrays[name], len(self.slots.head), self.slots.size)}
        if actors.kept is not None:
            actors.kept.restore(under("kept.", arrays))
        # As copies of JAX's: a state is donated, and written to.
        self._state = nested({name: jnp.array(leaf, copy=True) for name, leaf in under("state.", arrays).items()})
        actors.records = Records.from_arrays(under("records.", arrays))
        self.best = Kept.from_arrays(len(self.seeds), under("best.", arrays))
        self._stopped = Kept.from_arrays(len(self.seeds), under("stopped.", arrays))
        actors.returns, actors.lengths = np.array(arrays["returns"]), np.array(arrays["lengths"])
        actors.outcomes = [Outcome(**outcome) for outcome in data["outcomes"]]
        states = [
            {"episode": data["episodes"][i], "actions": arrays[f"environment.{i}.actions"]}
            for i in range(len(actors.environments))
        ]
        actors.restore(states, self.frame, self.frames, self.program.form, self._rows.current)

    def _evaluate(self, greedy: Greedy) -> None:
        """Play greedy episodes with every seed in training, and keep the networks of those that did best."""
        sound = np.array([all_sound(counts) for counts in np.asarray(self._state["counts"])[: len(self.seeds)]])
        which = [i for i, outcome in enumerate(self.outcomes) if outcome.status == "running" and sound[i]]
        for i, played in greedy.play(self._state["q"], self.frame, which).items():
            mean = self.records.evaluation(self.seeds[i], self.frame, played.returns, played.lengths)
            self.best.keep_better(i, self._networks(), self.frame, mean)
            if played.failure:
                where = f"seed {self.seeds[i]}, the evaluation after frame {self.frame}"
                self.notes.append(f"{where}: {played.failure}; it has no mean, and the training goes on")

    def _record_progress(self) -> None:
        """Read what the program has counted since the last time, and let it count from zero again."""
        counts = np.asarray(self._state["counts"], np.float64)
        self._state["counts"] = jnp.zeros_like(self._state["counts"])
        before, then = self._clock
        self._clock = (self.frame, time.perf_counter())
        speed = (self.frame - before) / max(self._clock[1] - then, 1e-9)
        record_progress(self.actors, self._timetable, self.program, counts, self.frame, speed)
