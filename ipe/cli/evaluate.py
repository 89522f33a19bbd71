"""`ipe evaluate`: the returns of a trained run's policy, as a table or as JSON."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipe.base.columns import columns
from ipe.cli.display import Display
from ipe.cli.options import argument, flag, option
from ipe.cli.outputs import json_text
from ipe.cli.seeds import trained_seeds
from ipe.cli.wording import decimal

if TYPE_CHECKING:
    from ipe.deep import Evaluation


@dataclass(frozen=True)
class Arguments:
    """Play new episodes with the networks of a trained run, and print their returns.

    The policy is greedy on Q unless --behaviour is given. The episodes start from seeds that no training uses. The
    networks of a run that was stopped are those of the moment when it was stopped.

    examples:
      ipe evaluate runs/LunarLander-v3-epsilon-ipe
      ipe evaluate runs/LunarLander-v3-epsilon-ipe --behaviour --episodes 30 --seeds 0,3 --json
    """

    run: str = argument("RUN", "The folder of a training run, or of a sweep that keeps networks.")
    setting: str | None = option("The name of a setting, if RUN is a sweep of several.", None, metavar="NAME")
    episodes: int = option("How many episodes to play with each trained seed.", 100)
    behaviour: bool = flag("Act by the run's behaviour as when training ended or was stopped, instead of greedily.")
    seed: int = option("The seed of the episodes: the same seed gives the same numbers.", 0)
    seeds: str | None = option("Only these trained seeds, with commas: 0,3.", None, metavar="SEEDS", shown="all")
    frame_limit: int | None = option("Truncate episodes after this many frames.", None, shown="as in training")
    json: bool = flag("Print one JSON object instead of the table.")


def run(arguments: Arguments) -> None:
    """Evaluate and print."""
    seeds = None if arguments.seeds is None else trained_seeds(arguments.seeds)
    from ipe.deep import evaluate

    with Display("ipe evaluate", keep=False) as display:
        result = evaluate(
            arguments.run,
            episodes=arguments.episodes,
            behaviour=arguments.behaviour,
            seed=arguments.seed,
            seeds=seeds,
            setting=arguments.setting,
            frame_limit=arguments.frame_limit,
            progress=lambda seed, done: display.show([f"seed {seed}: episode {done} of {arguments.episodes}"]),
        )
    print(json_text(contents(result)) if arguments.json else "\n".join(_lines(result, arguments.setting)))


def contents(result: Evaluation) -> dict[str, Any]:
    """An evaluation as plain numbers, lists and strings: what `--json` prints."""
    names = ("environment", "behaviour", "policy", "episodes", "seed", "mean", "standard_error")
    of_seed = ("seed", "mean", "standard_error", "returns", "lengths")
    return {
        "run": str(result.folder),
        **_values(result, names),
        "seeds": [_values(seed, of_seed) for seed in result.seeds],
        "left_out": {str(seed): why for seed, why in result.left_out.items()},
    }


def _values(result: Any, names: Sequence[str]) -> dict[str, Any]:
    """Some attributes of a result; the standard error of a single number, which is NaN, is None."""
    values = {name: getattr(result, name) for name in names}
    return values | ({"standard_error": None} if math.isnan(values["standard_error"]) else {})


def _lines(result: Evaluation, setting: str | None) -> list[str]:
    rows = [["seed", "mean return", "standard error", "least", "most", "mean length"]]
    for one in result.seeds:
        ends = [decimal(float(one.returns.min())), decimal(float(one.returns.max()))]
        length = decimal(float(one.lengths.mean()), 1)
        rows.append([str(one.seed), decimal(one.mean), decimal(one.standard_error), *ends, length])
    lines = [
        f"{result.environment}, trained with {result.behaviour}: {result.folder}",
        f"policy: {result.policy}; {result.episodes} new episodes per trained seed (evaluation seed {result.seed})",
        "",
        *columns(rows),
        "",
    ]
    n = len(result.seeds)
    if n > 1:
        error = decimal(result.standard_error)
        lines.append(f"mean over {n} trained seeds {decimal(result.mean)}, standard error over seeds {error}")
    lines += [f"left out: seed {seed} {why}" for seed, why in result.left_out.items()]
    run = shlex.quote(str(result.folder)) + ("" if setting is None else f" --setting {shlex.quote(setting)}")
    return [*lines, f"next: ipe watch {run} --out run.gif; ipe audit {run}"]
