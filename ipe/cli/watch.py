"""`ipe watch`: a trained run's policy in its environment, as a GIF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from ipe.cli.outputs import check_out
from ipe.cli.parsing import Flag, Number, WholeNumber

if TYPE_CHECKING:
    from ipe.deep import Recording


@dataclass(frozen=True)
class Arguments:
    """Draw episodes of a trained run's policy into a GIF, with frame, return and epsilon under the picture.

    The policy is greedy on Q unless --behaviour is given. The episodes are those of `ipe evaluate` with the same
    --seed. Long episodes are shown in every second frame, every fourth, and so on.

    examples:
      ipe watch runs/LunarLander-v3-epsilon-ipe --out lander.gif
      ipe watch runs/LunarLander-v3-epsilon-ipe --out lander.gif --seed-of-run 3 --episodes 2 --behaviour
    """

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run's folder."""
    out: Annotated[str, arg(metavar="FILE")]
    """The GIF."""
    seed_of_run: Annotated[WholeNumber, arg(help_behavior_hint="(default: the first)")] = None
    """Which of the trained seeds."""
    episodes: Annotated[WholeNumber, arg(help_behavior_hint="(default: 1)")] = None
    """How many."""
    fps: Annotated[Number, arg(help_behavior_hint="(default: 30)")] = None
    """Pictures per second, 1 to 50."""
    seed: Annotated[WholeNumber, arg(help_behavior_hint="(default: 0)")] = None
    """The seed of the episodes."""
    behaviour: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Act by the run's behaviour as when training ended or was stopped, instead of greedily."""
    frame_limit: Annotated[WholeNumber, arg(help_behavior_hint="(default: as in training)")] = None
    """Truncate episodes after this many frames."""
    overwrite: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Replace the file at --out if there is one."""


def run(arguments: Arguments) -> None:
    """Draw the episodes into the file."""
    check_out(arguments.out, arguments.overwrite)
    from ipe.deep import watch

    recording = watch(
        arguments.run,
        arguments.out,
        trained_seed=arguments.seed_of_run,
        episodes=1 if arguments.episodes is None else arguments.episodes,
        fps=30.0 if arguments.fps is None else arguments.fps,
        seed=0 if arguments.seed is None else arguments.seed,
        behaviour=arguments.behaviour,
        frame_limit=arguments.frame_limit,
    )
    print(said(recording))


def said(recording: Recording) -> str:
    """What was drawn, in a sentence."""
    episodes = [
        f"return {total:.2f} after {length} frames"
        for total, length in zip(recording.returns, recording.lengths, strict=True)
    ]
    thinned = "" if recording.every == 1 else f"; only every {recording.every}th frame is shown"
    shown = f"{recording.pictures} pictures{thinned.replace('2th', '2nd') if recording.every == 2 else thinned}"
    return f"wrote {recording.path}: seed {recording.seed}, {recording.policy}; {'; '.join(episodes)}; {shown}"
