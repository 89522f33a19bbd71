"""`ipe evaluate`: the returns of trained runs' policies, as a table or as JSON."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ipe.base.columns import columns
from ipe.cli.display import Display
from ipe.cli.naming import named_apart
from ipe.cli.next_steps import next_line
from ipe.cli.options import argument, flag, option
from ipe.cli.outputs import json_text
from ipe.cli.seeds import trained_seeds
from ipe.cli.wording import decimal
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.deep import Evaluation


@dataclass(frozen=True)
class Arguments:
    """Play new episodes with the networks of a trained run, and print their returns.

    Several runs are printed side by side, with the settings in which they differ. The policy is greedy on Q unless
    --behaviour or --act-as is given. The episodes start from seeds that no training uses. The networks of a run that
    was stopped are those of the moment when it was stopped.

    examples:
      ipe evaluate runs/LunarLander-v3-epsilon-ipe
      ipe evaluate runs/LunarLander-v3-epsilon-ipe --behaviour --episodes 30 --seeds 0,3 --json
      ipe evaluate runs/LunarLander-v3-epsilon-ipe --act-as tau-ipe
      ipe evaluate runs/LunarLander-v3-epsilon-ipe --best
      ipe evaluate runs/CartPole-v1-epsilon-ipe runs/CartPole-v1-epsilon-greedy
    """

    runs: tuple[str, ...] = argument("RUN", "The folder of a training run, or of a sweep that keeps networks.")
    setting: str | None = option("The name of a setting, if RUN is a sweep of several.", None, metavar="NAME")
    episodes: int = option("How many episodes to play with each trained seed.", 100)
    behaviour: bool = flag("Act by the run's behaviour as when training ended or was stopped, instead of greedily.")
    act_as: str | None = option(
        "Act by this behaviour instead: greedy, ipe, epsilon-ipe, tau-ipe or another one that the run's networks are "
        "enough for. Its numbers are the run's where the run has them, and else their defaults.",
        None,
        metavar="NAME",
    )
    seed: int = option("The seed of the episodes: the same seed gives the same numbers.", 0)
    seeds: str | None = option("Only these trained seeds, with commas: 0,3.", None, metavar="SEEDS", shown="all")
    best: bool = flag(
        "Play with each seed's best networks, those of its best evaluation while it trained (ipe train "
        "--evaluate-every), instead of its last ones."
    )
    frame_limit: int | None = option("Truncate episodes after this many frames.", None, shown="as in training")
    json: bool = flag("Print one JSON object instead of the table.")


def run(arguments: Arguments) -> None:
    """Evaluate and print."""
    seeds = None if arguments.seeds is None else trained_seeds(arguments.seeds)
    if arguments.behaviour and arguments.act_as is not None:
        raise InputError("give --behaviour, the run's own, or --act-as NAME, not both")
    from ipe.deep import evaluate

    with Display("ipe evaluate", keep=False) as display:
        results = [
            evaluate(
                run,
                episodes=arguments.episodes,
                behaviour=arguments.behaviour if arguments.act_as is None else arguments.act_as,
                seed=arguments.seed,
                seeds=seeds,
                setting=arguments.setting,
                frame_limit=arguments.frame_limit,
                which="best" if arguments.best else "last",
                progress=partial(_show, display, run, arguments.episodes),
            )
            for run in dict.fromkeys(arguments.runs)
        ]
    if arguments.json:
        print(json_text(contents(results[0]) if len(results) == 1 else {"runs": [contents(one) for one in results]}))
    else:
        print("\n".join(_lines(results[0], arguments.setting) if len(results) == 1 else _side_by_side(results)))


def _show(display: Display, run: str, episodes: int, seed: int, done: int) -> None:
    display.show([f"{run}, seed {seed}: episode {done} of {episodes}"])


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


def _side_by_side(results: Sequence[Evaluation]) -> list[str]:
    """Several runs: a row each, then the settings in which they differ."""
    from ipe.analysis.differences import differences_text

    named = named_apart(results)
    rows = [["run", "seeds", "mean return", "standard error", "worst seed", "best seed"]]
    for name, result in named.items():
        means = [seed.mean for seed in result.seeds]
        ends = [decimal(min(means)), decimal(max(means))]
        rows.append([name, str(len(means)), decimal(result.mean), decimal(result.standard_error), *ends])
    first = results[0]
    environments = ", ".join(dict.fromkeys(result.environment for result in results))
    how = "; ".join(dict.fromkeys(result.policy for result in results))
    settings = {name: one.settings.model_dump(exclude={"behaviour"}) for name, one in named.items()}
    return [
        f"{environments}: {how}; {first.episodes} new episodes per trained seed (evaluation seed {first.seed})",
        "",
        *columns(rows, left=[0]),
        "",
        *differences_text(settings),
        *(
            f"left out of {name}: seed {seed} {why}"
            for name, one in named.items()
            for seed, why in one.left_out.items()
        ),
        next_line(f"ipe curves {shlex.join(str(result.folder) for result in results)} --out curves.png"),
    ]
