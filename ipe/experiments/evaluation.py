r"""Evaluation: the returns of a trained run's policy, in episodes that training has not seen.

The unit of a statistic is the trained seed: the mean over seeds comes with the standard error over seeds. The standard
error of one seed's mean, over its episodes, says how well that seed is known, not how well the algorithm is.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ipe.base.html import table
from ipe.base.numbers import seed_number, whole_number
from ipe.deep.environments import EnvironmentFailure, make_environment
from ipe.deep.playing import Trained, agent, evaluation_seed, play
from ipe.deep.settings import TrainingSettings
from ipe.errors import InputError
from ipe.experiments.trained import read_trained


@dataclass(frozen=True, eq=False)
class SeedEvaluation:
    """The episodes of one trained seed."""

    seed: int
    """The trained seed."""
    returns: NDArray[np.float64]
    """The sum of rewards of each episode, not discounted."""
    lengths: NDArray[np.int64]
    """The number of frames of each episode."""

    @property
    def mean(self) -> float:
        """The mean of the returns."""
        return float(self.returns.mean())

    @property
    def standard_error(self) -> float:
        r"""The standard error of the mean, :math:`s / \sqrt{n}` over n episodes; NaN for one."""
        return _standard_error(self.returns)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What a run's policy is worth."""

    folder: Path
    """The folder of the run."""
    settings: TrainingSettings
    """The settings that the run was trained with."""
    policy: str
    """How the run acted here, in words."""
    episodes: int
    """The number of episodes per trained seed."""
    seed: int
    """The seed of the evaluation."""
    seeds: list[SeedEvaluation]
    """The episodes of each trained seed."""
    left_out: dict[int, str]
    """The trained seeds without an evaluation, and why: their training failed or diverged."""

    def __repr__(self) -> str:
        seeds = f"{len(self.seeds)} seed{'s' * (len(self.seeds) != 1)}, {self.episodes} episodes each"
        what = f"{self.environment}, {self.behaviour}: {self.policy}"
        return f"Evaluation({what}; mean return {self.mean:.2f} of {seeds})"

    def _repr_html_(self) -> str:
        head = ["seed", "mean return", "standard error", "least", "most"]
        rows = [
            [str(one.seed), *(f"{x:.2f}" for x in (one.mean, one.standard_error, one.returns.min(), one.returns.max()))]
            for one in self.seeds
        ]
        return table(repr(self), head, rows)

    @property
    def environment(self) -> str:
        """The id of the environment."""
        return self.settings.environment.id

    @property
    def behaviour(self) -> str:
        """The behaviour that the run was trained with."""
        return self.settings.behaviour

    @property
    def mean(self) -> float:
        """The mean of the seeds' mean returns."""
        return float(np.mean([seed.mean for seed in self.seeds]))

    @property
    def standard_error(self) -> float:
        r"""The standard error of the mean, :math:`s / \sqrt{n}` over n trained seeds; NaN for one."""
        return _standard_error(np.array([seed.mean for seed in self.seeds]))


def evaluate(
    run: str | os.PathLike[str],
    *,
    episodes: int = 100,
    behaviour: bool | str = False,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    setting: str | None = None,
    frame_limit: int | None = None,
    which: Literal["last", "best"] = "last",
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    r"""Play new episodes with the networks of a run, as they were when its training last ended or was stopped.

    By default the policy is greedy, :math:`\arg\max_a Q(s,a)`, ties broken at random. With `behaviour` it is the run's
    behaviour as of that moment; epsilon-greedy has the epsilon that its schedule has at the seed's last frame.

    Training starts its episodes from seeds below 2^63, evaluation from seeds of 2^63 and above, which depend on `seed`
    and the trained seed alone: greedy and behaviour, or two evaluations of the same seed, start from the same states.

    Args:
        run: the folder of a training run, or of a sweep that keeps networks.
        episodes: the number of episodes per trained seed.
        behaviour: act by the run's behaviour (True), or by the behaviour of this name, instead of greedily: its numbers
            are the run's where the run has them, and else their defaults.
        seed: the seed of the evaluation; the same one gives the same numbers.
        seeds: which trained seeds. Default: all whose training neither failed nor diverged.
        setting: the name of a setting, for a sweep of several.
        frame_limit: frames after which an episode is truncated. Default: as in training.
        which: the last networks of each seed, or the best: those of its best evaluation while it trained
            (`evaluate_every`). These episodes are others than those that chose it, whose mean is too high for that.
        progress: called with a trained seed and the number of its episodes that are over.

    Returns:
        Returns and lengths per trained seed.

    Raises:
        InputError: naming the argument, or the file of the run that is missing, damaged or does not fit.
    """
    whole_number(episodes, "episodes", 1)
    seed_number(seed)
    trained = read_trained(run, frame_limit, setting, which)
    left_out = trained.unusable()
    chosen = choose_seeds(trained, left_out, seeds)
    return Evaluation(
        folder=trained.folder,
        settings=trained.settings,
        policy=policy_in_words(trained, behaviour, chosen),
        episodes=episodes,
        seed=seed,
        seeds=[_evaluate(trained, each, episodes, behaviour, seed, progress) for each in chosen],
        left_out={} if seeds is not None else left_out,
    )


def choose_seeds(trained: Trained, unusable: dict[int, str], seeds: Sequence[int] | None) -> list[int]:
    """Return the trained seeds asked for, or all that can be used; `unusable` says why others cannot."""
    known = trained.seeds
    chosen = [seed for seed in known if seed not in unusable] if seeds is None else list(seeds)
    if not chosen:
        why = "".join(f"; seed {seed} {reason}" for seed, reason in unusable.items())
        raise InputError(f"{trained.folder}: there is no seed to evaluate{why}")
    for i, seed in enumerate(chosen):
        if seed not in known:
            raise InputError(f"the run has no seed {seed}; it has {', '.join(map(str, known))}")
        if seed in chosen[:i]:
            raise InputError(f"seed {seed} is there twice")
        if seed in unusable:
            raise InputError(f"seed {seed} cannot be evaluated: it {unusable[seed]}")
    return chosen


def policy_in_words(trained: Trained, behaviour: bool | str, seeds: Sequence[int]) -> str:
    """Describe how these seeds act."""
    acts = trained.acting(behaviour)
    if trained.which == "best":
        frames = sorted({outcome.frame for outcome in trained.outcomes if outcome.seed in seeds})
        at = f"frame {frames[0]}" if len(frames) == 1 else f"frames {frames[0]} to {frames[-1]}"
        return f"{policy_in_words(replace(trained, which='last'), behaviour, seeds)}, the best networks, of {at}"
    if acts.name == "greedy":
        return "greedy on Q"
    if acts.needs_policy:
        return f"{acts.name}, from the policy network"
    seen = [trained.numbers(seed, behaviour) for seed in seeds]
    ranges = [f"{name} = {_span(sorted({f'{each[name]:g}' for each in seen}, key=float))}" for name in seen[0]]
    return f"{acts.name} on Q" + (f" with {', '.join(ranges)}" if ranges else "")


def _span(values: Sequence[str]) -> str:
    return values[0] + (f" to {values[-1]}" if len(values) > 1 else "")


def _evaluate(
    trained: Trained,
    trained_seed: int,
    episodes: int,
    behaviour: bool | str,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> SeedEvaluation:
    environment = make_environment(trained.environment, evaluation_seed(seed, trained_seed))
    act = agent(trained, trained_seed, seed, behaviour)
    returns, lengths = np.zeros(episodes), np.zeros(episodes, np.int64)
    try:
        for i in range(episodes):
            for moment in play(environment, act):
                if moment.over:
                    returns[i], lengths[i] = moment.total, moment.frame
            if progress is not None:
                progress(trained_seed, i + 1)
    except EnvironmentFailure as failure:
        raise InputError(f"seed {trained_seed}: the environment failed {failure}") from None
    finally:
        environment.close()
    return SeedEvaluation(trained_seed, returns, lengths)


def _standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else math.nan
