"""`ipe solve`: the evaluation policy of a value function, from files to a table, JSON or a file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ipe.cli.display import QUIET_SECONDS, Display
from ipe.cli.inputs import MDP, read_mdp, read_values, read_weights
from ipe.cli.interrupt import answering
from ipe.cli.next_steps import mdp_steps, next_line
from ipe.cli.options import argument, flag, option
from ipe.cli.outputs import OVERWRITE, check_out, json_text
from ipe.cli.wording import time_left
from ipe.errors import InputError, NotSolvedError, SolveInterrupted

if TYPE_CHECKING:
    from ipe.inverse import EvaluationPolicy

_JSON_KEYS = (
    "form", "norm", "achievable", "distance_bounds", "residual", "residual_lower_bound", "sup_residual", "objective",
    "gap", "converged", "stopped", "unique", "method", "iterations", "policy", "v", "values", "inverse_temperatures",
)  # fmt: skip
_BAR = 20


@dataclass(frozen=True)
class Arguments:
    """The evaluation policy of a value function: the policy whose Bellman equation the values satisfy best.

    Prints that policy, the values promised and the policy's true values, the residual with its proof, and whether the
    values are those of any policy.

    examples:
      ipe solve switch-stay --values 18,-6
      ipe solve switch-stay --values "16.3,17; 20,15.3" --json
      ipe solve garnet:n_states=1000,seed=3 --values q.npy --norm l1 --out policy.npz
      ipe solve my-mdp.json --values v.csv --weights d.csv
    """

    mdp: str = argument("MDP", f"The MDP: {MDP}")
    values: str = option(
        "The values, per state or per state and action: a file (.npy, .npz, .json, .csv, .txt); numbers, 18,-6 or with "
        'a row per state "16.3,17; 20,15.3"; or - for standard input.',
        metavar="VALUES",
    )
    norm: Literal["l2", "l1", "linf"] = option("The norm of the residual that is minimised.", "l2")
    weights: str | None = option(
        "The weights of the norm, in the shape of the values: a file, numbers or -, as for --values.",
        None,
        metavar="WEIGHTS",
        shown="equal",
    )
    method: Literal["auto", "closed-form", "projected-cg", "highs", "interior-point", "pdhg"] = option(
        "The method that solves the problem.", "auto"
    )
    rtol: float | None = option("The relative gap to reach.", None, shown="1e-8; interior-point 1e-6, pdhg 1e-4")
    atol: float | None = option("The absolute gap to reach.", None, shown="what rounding allows")
    tolerance: float = option("The largest residual, relative to the values, that counts as achievable.", 1e-9)
    on_miss: Literal["raise", "flag"] = option(
        "What to do when the gap is not reached: end with exit code 3, or print the result, flagged as not converged.",
        "raise",
    )
    time_limit: float | None = option(
        "How many seconds the solve may take; then the best policy so far is printed, flagged as not converged.",
        None,
        metavar="SECONDS",
        shown="none",
    )
    json: bool = flag('Print one JSON object instead of the table; infinite numbers are the strings "inf" and "-inf".')
    out: str | None = option(
        "Write the policy to a file as well: .npz (arrays) or .json (what --json prints).", None, metavar="FILE"
    )
    overwrite: bool = flag(OVERWRITE)


def run(arguments: Arguments) -> None:
    """Solve, write the file if one is asked for, and print.

    Ctrl-C prints the best policy so far; a second one ends the command.
    """
    from ipe.inverse import evaluation_policy

    if arguments.out is not None:
        check_out(arguments.out, arguments.overwrite, (".npz", ".json"))
    if arguments.values == arguments.weights == "-":
        raise InputError("--values and --weights cannot both be standard input")
    mdp = read_mdp(arguments.mdp)
    form, values = read_values(arguments.values, mdp)
    weights = None if arguments.weights is None else read_weights(arguments.weights, mdp, form)
    try:
        with answering(), Display("ipe solve", keep=False) as display:
            display.begin(f"solving {arguments.mdp}: {mdp!r}")
            result = evaluation_policy(
                mdp,
                v=values if form == "v" else None,
                q=values if form == "q" else None,
                norm=arguments.norm,
                weights=weights,
                method=arguments.method,
                rtol=arguments.rtol,
                atol=arguments.atol,
                tolerance=arguments.tolerance,
                on_miss=arguments.on_miss,
                time_limit=arguments.time_limit,
                progress=GapDisplay(display),
            )
    except NotSolvedError as error:
        raise NotSolvedError(_missed(error), error.result) from None
    except SolveInterrupted as stopped:
        _print(stopped.result, arguments)
        raise KeyboardInterrupt from None
    _print(result, arguments)


def _print(result: EvaluationPolicy, arguments: Arguments) -> None:
    """Print a result, and write it to a file if one is asked for."""
    as_json = json_text(contents(result, arguments.mdp)) if arguments.json or _is_json(arguments.out) else ""
    if arguments.out is not None:
        _write(result, as_json, arguments.out, arguments.overwrite)
    print(as_json if arguments.json else "\n".join(_lines(result, arguments)))


def _lines(result: EvaluationPolicy, arguments: Arguments) -> list[str]:
    """The table, the file that was written, and what to do next."""
    steps = mdp_steps(arguments.mdp, result.mdp, "solve")
    if arguments.out is None:
        return [str(result), "", next_line("the same command with --out policy.npz keeps the policy", *steps)]
    return [str(result), "", f"wrote {arguments.out}", next_line(*steps)]


def contents(result: EvaluationPolicy, source: str) -> dict[str, Any]:
    """A result as plain numbers, lists and strings: what `--json` prints."""
    mdp = result.mdp
    names = {"state_names": list(mdp.state_names) or None, "action_names": list(mdp.action_names) or None}
    return {"mdp": source, "gamma": mdp.gamma, **names, **{key: getattr(result, key) for key in _JSON_KEYS}}


def _is_json(path: str | None) -> bool:
    return path is not None and path.lower().endswith(".json")


def _write(result: EvaluationPolicy, as_json: str, path: str, overwrite: bool) -> None:
    import numpy as np

    from ipe.base.atomic import write_atomic

    check_out(path, overwrite)  # again: the solve may have taken hours
    arrays = {name: getattr(result, name) for name in ("policy", "v", "values", "inverse_temperatures")}
    write_atomic(path, lambda file: file.write(f"{as_json}\n".encode()) if _is_json(path) else np.savez(file, **arrays))


def _missed(error: NotSolvedError) -> str:
    """The same sentence in the words of the command line."""
    result = error.result
    if result is None:
        return str(error)
    return (
        f"{result.method} stopped after {result.iterations} iterations with a gap of {result.gap:.3g} for an "
        f"objective of {result.objective:.6g}; ask for less (--rtol, --atol), or take what there is (--on-miss flag)"
    )


class GapDisplay:
    """A callback for solvers that shows the progress they tell.

    The gap of these solvers falls by about the same factor in every second. So the bar is drawn, and the time left is
    reckoned, on the logarithm of the gap: from the first gap of a method to the target.

    Args:
        display: where it is shown. Without a terminal, only solves of more than half a minute are.
    """

    def __init__(self, display: Display) -> None:
        self._display = display
        self._first: dict[str, tuple[float, float]] = {}

    def __call__(self, progress: Any) -> None:
        """Show how far the solve is; an infinite gap means that none is proven yet."""
        line = self.line(progress)
        self._display.show([line], line if progress.seconds >= QUIET_SECONDS else None)

    def line(self, progress: Any) -> str:
        """The progress in one line."""
        said = f"{progress.method}, {progress.iterations} iterations"
        if not 0.0 < progress.gap < math.inf or progress.target <= 0.0:
            return f"{said}: {time_left(None)}"
        begin, start = self._first.setdefault(progress.method, (progress.gap, progress.seconds))
        way = math.log(begin / progress.target)
        share = min(1.0, max(0.0, math.log(begin / progress.gap) / way)) if way > 0.0 else 1.0
        left = (progress.seconds - start) * (1.0 / share - 1.0) if share >= 0.05 else None
        bar = "#" * round(_BAR * share) + "." * (_BAR - round(_BAR * share))
        return f"{said} [{bar}] gap {progress.gap:.1e} of {progress.target:.1e}; {time_left(left)}"
