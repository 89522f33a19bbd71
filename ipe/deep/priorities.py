r"""Prioritised replay: minibatches of transitions by their errors (Schaul et al., 2016, the proportional variant).

Transition i has the priority :math:`p_i = |\delta_i| + \varepsilon`, with :math:`\delta_i` the error of its last value
update, and is drawn with probability :math:`P(i)`; in both networks its part of the gradient is multiplied by
:math:`w_i`:

.. math:: P(i) = \frac{p_i^\alpha}{\sum_k p_k^\alpha}, \qquad
          w_i = \frac{(N P(i))^{-\beta}}{\max_j (N P(j))^{-\beta}}.

Where the paper leaves something open, this is what is done here:

- A new transition has the largest priority of all that there have been so far, 1 before the first update.
- The draws are stratified, as in the paper's appendix: the line of all :math:`p_k^\alpha` is cut into as many equal
  parts as the minibatch has transitions, and one point is drawn in each part.
- The largest weight, by which all are divided, is the largest of the minibatch.
- :math:`\beta` grows linearly from `priority.correction` to 1 within `priority.steps` frames after the warm-up, and not
  within the run's frames: a run that is given more frames equals one that had them from the start.

What is drawn is a function of the seed, the frame and the priorities alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.deep.frame import Frame
from ipe.deep.replay import Slots
from ipe.deep.settings import TrainingSettings
from ipe.deep.sum_tree import SumTrees


class Priorities:
    """The priorities of all transitions of a batch of seeds, and the minibatches that they lead to.

    Args:
        settings: the settings of each seed.
        slots: where the transitions lie.
    """

    def __init__(self, settings: Sequence[TrainingSettings], slots: Slots) -> None:
        self._slots = slots
        self._trees = SumTrees(len(settings), slots.environments * slots.capacity)
        self._largest = np.ones((len(settings), 1))  # of all priorities so far, to the power alpha
        self._oldest = slots.oldest
        self._firsts = np.tile(np.arange(slots.environments) * slots.capacity, (len(settings), 1))
        batch = settings[0].batch
        self._strata = np.arange(batch)
        chosen = [setting.priority for setting in settings]
        # In full: NumPy may take powers of arrays with strides in another way, to other bytes.
        self._alpha = np.array([[part.exponent] * batch for part in chosen])
        self._epsilon = np.array([[part.epsilon] for part in chosen])
        self._correction = np.array([[part.correction] * batch for part in chosen])
        self._steps = np.array([[float(part.steps)] for part in chosen])
        self._warm_up = np.array([[setting.warm_up] for setting in settings])
        self._drawn = np.zeros(self._alpha.shape, np.int64)

    def add(self) -> None:
        """Give the transitions that `Slots.push` just made room for their first priorities, and forget those that have
        lost their room."""
        slots, environments = self._slots, self._slots.environments
        leaves = self._firsts + (slots.count - 1) % slots.capacity
        self._trees.set(leaves, np.repeat(self._largest, environments, axis=1))
        if slots.oldest is self._oldest:
            return
        known = np.maximum(self._oldest, slots.count - slots.capacity)
        for ring in np.flatnonzero(slots.oldest > known):  # after many truncations
            seed, environment = divmod(int(ring), environments)
            lost = environment * slots.capacity + np.arange(known[ring], slots.oldest[ring]) % slots.capacity
            self._forget(seed, lost)
        self._oldest = slots.oldest

    def sample(self, draws: NDArray[np.float64], number: int, frame: Frame) -> None:
        """Draw a minibatch for each seed, and write its slots and its importance weights into the frame.

        Args:
            draws: uniform numbers in [0, 1), (seeds, batch).
            number: the frame's number, counted from 0.
            frame: receives the minibatch.
        """
        batch = draws.shape[1]
        totals = self._trees.totals[:, None]
        self._drawn = self._trees.find((self._strata + draws) * (totals / batch))
        self._slots.at(self._drawn, frame.minibatch)
        frame.weights[:] = self._weights(totals, number)

    def learn(self, errors: Any, updated: NDArray[np.bool_]) -> None:
        r"""Take over the errors :math:`\delta` of the minibatch that was drawn last, (seeds, batch), for the seeds that
        have done an update."""
        found = np.power(np.abs(np.asarray(errors, np.float64)) + self._epsilon, self._alpha)
        found = np.where(np.isfinite(found), found, self._largest)  # a run that diverges is stopped elsewhere
        largest = np.maximum(self._largest, found.max(axis=1, keepdims=True))
        self._largest = np.where(updated[:, None], largest, self._largest)
        self._trees.set(self._drawn, np.where(updated[:, None], found, self._trees.at(self._drawn)))

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The priorities to the power alpha, as far as there are transitions, for a checkpoint."""
        slots = self._slots
        values = self._trees.values.reshape(-1, slots.environments, slots.capacity)
        return {"values": values[:, :, : min(slots.count, slots.capacity)].copy(), "largest": self._largest.copy()}

    def restore(self, arrays: dict[str, NDArray[np.float64]]) -> None:
        """Take over the priorities of a checkpoint, whose slots are restored already."""
        values, slots = arrays["values"], self._slots
        whole = np.zeros((len(values), slots.environments, slots.capacity))
        whole[:, :, : values.shape[2]] = values
        self._trees.restore(whole.reshape(len(values), -1))
        self._largest, self._oldest = np.array(arrays["largest"]), slots.oldest

    def _weights(self, totals: NDArray[np.float64], number: int) -> NDArray[np.float64]:
        share = np.clip((number - self._warm_up) / self._steps, 0.0, 1.0)
        beta = self._correction + (1.0 - self._correction) * share
        probabilities = self._trees.at(self._drawn) / totals
        weights = np.power(self._slots.kept[:, None] * probabilities, -beta)
        return np.asarray(weights / weights.max(axis=1, keepdims=True))

    def _forget(self, seed: int, leaves: NDArray[np.int64]) -> None:
        # A tree is set together with all others, which keep what they have.
        every = np.tile(leaves, (len(self._largest), 1))
        values = self._trees.at(every)
        values[seed] = 0.0
        self._trees.set(every, values)
