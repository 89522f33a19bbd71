"""`ipe watch`: a trained run's policy in its environment, as a GIF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipe.cli.next_steps import next_line, run_steps
from ipe.cli.options import argument, flag, option
from ipe.cli.outputs import OVERWRITE, check_out

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

    run: str = argument("RUN", "The folder of a training run, or of a sweep that keeps networks.")
    out: str = option("The GIF to write.", metavar="FILE")
    setting: str | None = option("The name of a setting, if RUN is a sweep of several.", None, metavar="NAME")
    seed_of_run: int | None = option("Which of the trained seeds to watch.", None, shown="the first")
    episodes: int = option("How many episodes to draw.", 1)
    fps: float = option("How many pictures to show per second, 1 to 50.", 30.0)
    seed: int = option("The seed of the episodes.", 0)
    behaviour: bool = flag("Act by the run's behaviour as when training ended or was stopped, instead of greedily.")
    best: bool = flag(
        "Watch the seed's best networks, those of its best evaluation while it trained (ipe train --evaluate-every), "
        "instead of its last ones."
    )
    frame_limit: int | None = option("Truncate episodes after this many frames.", None, shown="as in training")
    overwrite: bool = flag(OVERWRITE)


def run(arguments: Arguments) -> None:
    """Draw the episodes into the file."""
    check_out(arguments.out, arguments.overwrite, (".gif",))
    from ipe.deep import watch

    recording = watch(
        arguments.run,
        arguments.out,
        trained_seed=arguments.seed_of_run,
        episodes=arguments.episodes,
        fps=arguments.fps,
        seed=arguments.seed,
        behaviour=arguments.behaviour,
        setting=arguments.setting,
        frame_limit=arguments.frame_limit,
        which="best" if arguments.best else "last",
    )
    print(said(recording))
    print(next_line(*run_steps(arguments.run, arguments.setting, "evaluate", "audit")))


def said(recording: Recording) -> str:
    """A sentence about what was drawn."""
    episodes = [
        f"return {total:.2f} after {length} frames"
        for total, length in zip(recording.returns, recording.lengths, strict=True)
    ]
    thinned = "" if recording.every == 1 else f"; only every {recording.every}th frame is shown"
    shown = f"{recording.pictures} pictures{thinned.replace('2th', '2nd') if recording.every == 2 else thinned}"
    return f"wrote {recording.path}: seed {recording.seed}, {recording.policy}; {'; '.join(episodes)}; {shown}"
