"""`ipe evaluate`: the returns of a trained run's policy, as a table or as JSON."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from ipe.cli.outputs import json_text
from ipe.cli.parsing import Flag, Text, WholeNumber
from ipe.cli.seeds import trained_seeds
from ipe.cli.tables import columns, number

if TYPE_CHECKING:
    from ipe.deep import Evaluation


@dataclass(frozen=True)
class Arguments:
    """Play new episodes with the networks of a trained run, and print their returns.

    The policy is greedy on Q unless --behaviour is given. The episodes start from seeds that no training uses. A run
    that was stopped is evaluated as of the moment when it was.

    examples:
      ipe evaluate runs/LunarLander-v3-epsilon-ipe
      ipe evaluate runs/LunarLander-v3-epsilon-ipe --behaviour --episodes 30 --seeds 0,3 --json
    """

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run's folder."""
    episodes: Annotated[WholeNumber, arg(help_behavior_hint="(default: 100)")] = None
    """Per trained seed."""
    behaviour: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Act by the run's behaviour as when training ended or was stopped, instead of greedily."""
    seed: Annotated[WholeNumber, arg(help_behavior_hint="(default: 0)")] = None
    """The seed of the episodes: the same one gives the same numbers."""
    seeds: Annotated[Text, arg(metavar="SEEDS", help_behavior_hint="(default: all)")] = None
    """Some of the trained seeds, with commas: 0,3."""
    frame_limit: Annotated[WholeNumber, arg(help_behavior_hint="(default: as in training)")] = None
    """Truncate episodes after this many frames."""
    json: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Print one JSON object instead of the table."""


def run(arguments: Arguments) -> None:
    """Evaluate and print."""
    seeds = None if arguments.seeds is None else trained_seeds(arguments.seeds)
    from ipe.deep import evaluate

    live = sys.stderr is not None and sys.stderr.isatty()
    episodes = 100 if arguments.episodes is None else arguments.episodes

    def show(seed: int, done: int) -> None:
        print(f"\r\033[Kseed {seed}: episode {done} of {episodes}", end="", file=sys.stderr, flush=True)

    try:
        result = evaluate(
            arguments.run,
            episodes=episodes,
            behaviour=arguments.behaviour,
            seed=0 if arguments.seed is None else arguments.seed,
            seeds=seeds,
            frame_limit=arguments.frame_limit,
            progress=show if live else None,
        )
    finally:
        if live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    print(json_text(contents(result)) if arguments.json else "\n".join(_lines(result)))


def contents(result: Evaluation) -> dict[str, Any]:
    """An evaluation as plain numbers, lists and strings: what `--json` prints."""
    return {
        "run": str(result.folder),
        "environment": result.environment,
        "behaviour": result.behaviour,
        "policy": result.policy,
        "episodes": result.episodes,
        "seed": result.seed,
        "mean": result.mean,
        "standard_error": _or_none(result.standard_error),
        "seeds": [
            {
                "seed": own.seed,
                "mean": own.mean,
                "standard_error": _or_none(own.standard_error),
                "returns": own.returns.tolist(),
                "lengths": own.lengths.tolist(),
            }
            for own in result.seeds
        ],
        "left_out": {str(seed): why for seed, why in result.left_out.items()},
    }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _lines(result: Evaluation) -> list[str]:
    rows = [["seed", "mean return", "standard error", "least", "most", "mean length"]]
    for own in result.seeds:
        ends = [number(float(own.returns.min())), number(float(own.returns.max()))]
        length = number(float(own.lengths.mean()), 1)
        rows.append([str(own.seed), number(own.mean), number(own.standard_error), *ends, length])
    lines = [
        f"{result.environment}, trained with {result.behaviour}: {result.folder}",
        f"policy: {result.policy}; {result.episodes} new episodes per trained seed (evaluation seed {result.seed})",
        "",
        *columns(rows),
        "",
    ]
    n = len(result.seeds)
    if n > 1:
        error = number(result.standard_error)
        lines.append(f"mean over {n} trained seeds {number(result.mean)}, standard error over seeds {error}")
    lines += [f"left out: seed {seed} {why}" for seed, why in result.left_out.items()]
    return lines if lines[-1] else lines[:-1]
