"""`ipe audit`: is this Q-function the value of any policy on this data, of which, and how far off is it?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.cli.display import Display
from ipe.cli.next_steps import next_line, run_steps
from ipe.cli.options import argument, flag, option
from ipe.cli.outputs import FIGURE, check_out, json_text
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.audit import Audit, Transitions


@dataclass(frozen=True)
class Arguments:
    """Audit a Q-function on a batch of transitions: how far it is from being the value of any policy, how much of its
    error is noise, estimation, or what no policy can remove; where it is worst; and how random its policy is.

    SOURCE is a run that `ipe train` made, or a DQN that Stable-Baselines3 saved (.zip; loading it unpickles: load only
    what you trust). The transitions are collected by SOURCE's behaviour, or given. Without SOURCE, --transitions (or
    --minari), --q and --gamma are needed.

    examples:
      ipe audit runs/LunarLander-v3-epsilon-ipe --figure audit.png
      ipe audit model.zip --env CartPole-v1 --json
      ipe audit --transitions batch.npz --q q.npz --gamma 0.99
      ipe audit --minari CartPole/random-v0 model.zip
    """

    source: str | None = argument("SOURCE", "A run's folder, or a model.zip of Stable-Baselines3.", None)
    transitions: str | None = option(
        "The batch, .npz: action, reward, terminated, and state and next_state (whole numbers) or observation and "
        "next_observation (arrays).",
        None,
        metavar="FILE",
    )
    minari: str | None = option("Take the transitions from this Minari data set on this machine.", None, metavar="NAME")
    q: str | None = option(
        "The values, .npz: q, a table of shape (states, actions), NaN where an action does not exist; or q and q_next "
        "of shape (transitions, actions), and policy_next, the evaluation policy's probabilities, if there is one.",
        None,
        metavar="FILE",
    )
    gamma: float | None = option("The discount.", None, shown="SOURCE's")
    env: str | None = option(
        "The environment in which a model.zip collects transitions. A model that was trained under VecNormalize is "
        "audited from Python (docs/audit.md): its statistics are not in the file.",
        None,
        metavar="ID",
    )
    seed: int | None = option("Which trained seed of a run to audit.", None, shown="the first")
    setting: str | None = option("The name of a setting, if SOURCE is a sweep of several.", None, metavar="NAME")
    frames: int | None = option(
        "How many transitions to collect, or to take of a Minari data set. A run that learned from a data set is "
        "audited on that data set, if this is not given.",
        None,
        shown="5000; of --minari, all",
    )
    draws: int = option("The seed of the episodes, and of a policy that is fitted.", 0, least=0)
    deterministic: bool | None = option(
        "Whether a state and an action always have the same reward and successor. By default the batch decides it for "
        "numbered states; for other observations it is not known.",
        None,
        choices=("yes", "no"),
        read=lambda word: word == "yes",
    )
    refit: bool = flag(
        "Fit an evaluation policy to part of the batch, even if there is a policy network. Not for numbered states, "
        "whose evaluation policy is computed exactly."
    )
    worst: int = option("How many of the worst states to list, or of the transitions that no policy explains.", 10)
    tolerance: float | None = option(
        "The residual, relative to the values, that counts as none.", None, shown="1e-9; without numbered states 1e-5"
    )
    json: bool = flag("Print one JSON object instead of the table.")
    out: str | None = option("Write that JSON to a file.", None, metavar="FILE")
    figure: str | None = option("Draw the audit: .svg, .png or .pdf.", None, metavar="FILE")
    overwrite: bool = flag("Replace the files at --out and --figure if they are there.")


def run(arguments: Arguments) -> None:
    """Audit, write what is asked for, and print."""
    _check(arguments)
    from ipe.audit import audit_contents
    from ipe.base.atomic import write_atomic

    with Display("ipe audit", keep=False) as display:
        display.begin("collecting the transitions and auditing them")
        result = _audit(arguments)
    content = json_text({"source": arguments.source, **audit_contents(result)})
    if arguments.figure is not None:
        from ipe.audit import draw_audit
        from ipe.figures.style import save_figure

        drawn = draw_audit(result)
    _check_files(arguments)  # again: the audit may have taken minutes
    if arguments.out is not None:
        write_atomic(arguments.out, lambda file: file.write(f"{content}\n".encode()))
    if arguments.figure is not None:
        save_figure(drawn, arguments.figure)
    print(content if arguments.json else str(result))
    if not arguments.json:
        for path in (arguments.out, arguments.figure):
            if path is not None:
                print(f"\nwrote {path}")
        print(f"\n{next_line(*_steps(arguments))}")


def _steps(arguments: Arguments) -> list[str]:
    more = [] if arguments.figure is not None else ["the same command with --figure audit.png draws it"]
    if arguments.source is None or _is_model(arguments.source):
        return [*more, "docs/audit.md explains the numbers"]
    return [*more, *run_steps(arguments.source, arguments.setting, "evaluate", "watch --out run.gif")]


def _check(arguments: Arguments) -> None:
    """Refuse what can be refused before anything is imported or read."""
    given = arguments.transitions is not None or arguments.minari is not None
    if arguments.transitions is not None and arguments.minari is not None:
        raise InputError("give --transitions or --minari, not both")
    if arguments.source is None:
        needed = {"--transitions (or --minari)": given, "--q": arguments.q, "--gamma": arguments.gamma is not None}
        missing = [name for name, there in needed.items() if not there]
        if missing:
            raise InputError(f"without SOURCE, {', '.join(missing)} is missing; see `ipe audit --help`")
        _refuse(arguments, ("env", "seed", "setting"), "goes with SOURCE")
        if arguments.refit:
            raise InputError("--refit goes with SOURCE; leave policy_next out of --q for a policy that is fitted")
    else:
        _refuse(arguments, ("q", "gamma"), f"comes with {arguments.source}; leave it out")
        if _is_model(arguments.source):
            _refuse(arguments, ("seed", "setting"), "chooses among runs; a saved model has one seed")
            if (arguments.env is None) == (not given):
                raise InputError("a saved model needs --env, --transitions or --minari, and one of them only")
        else:
            _refuse(arguments, ("env",), "goes with a model.zip; a run names its environment")
    if arguments.transitions is not None:
        _refuse(arguments, ("frames",), "says how many transitions to collect, or to take from --minari")
    if arguments.out is not None and arguments.out == arguments.figure:
        raise InputError("--out and --figure are the same file")
    _check_files(arguments)


def _check_files(arguments: Arguments) -> None:
    if arguments.out is not None:
        check_out(arguments.out, arguments.overwrite, (".json",))
    if arguments.figure is not None:
        check_out(arguments.figure, arguments.overwrite, FIGURE, "--figure")


def _refuse(arguments: Arguments, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name} {why}")


def _is_model(source: str) -> bool:
    return source.lower().endswith(".zip") or Path(source).is_file()


def _audit(arguments: Arguments) -> Audit:
    from ipe.audit import Fit, audit, audit_run, audit_sb3

    batch = _batch(arguments)
    options: dict[str, Any] = {
        "deterministic": arguments.deterministic,
        "tolerance": arguments.tolerance,
        "worst": arguments.worst,
    }
    fit = Fit(seed=arguments.draws)
    if arguments.source is None:
        if batch is None or arguments.gamma is None:  # `_check` has refused that
            raise InputError("--transitions and --gamma are missing")
        return audit(batch, gamma=arguments.gamma, fit=fit, **_values(str(arguments.q)), **options)
    options |= {"transitions": batch, "fit": fit, "refit": arguments.refit, "draws": arguments.draws}
    if arguments.frames is not None and batch is None:
        options["frames"] = arguments.frames
    if _is_model(arguments.source):
        return audit_sb3(arguments.source, env=arguments.env, **options)
    return audit_run(arguments.source, seed=arguments.seed, setting=arguments.setting, **options)


def _batch(arguments: Arguments) -> Transitions | None:
    from ipe.audit import load_transitions, minari_transitions

    if arguments.transitions is not None:
        return load_transitions(arguments.transitions)
    return None if arguments.minari is None else minari_transitions(arguments.minari, arguments.frames)


def _values(path: str) -> dict[str, Any]:
    """The arrays of --q, by the names of `ipe.audit.audit`'s arguments."""
    from ipe.base.files import check_keys, naming, read_npz, suffix_of

    with naming(f"--q {path}"):
        suffix_of(path, (".npz",))
        arrays = read_npz(path)
        check_keys(arrays, ("q",), ("q_next", "policy", "policy_next"))
    return dict(arrays)
