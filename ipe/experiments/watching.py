"""Watching a trained run: episodes of its policy as a GIF, with frame, return and epsilon under the picture."""

from __future__ import annotations

import base64
import math
import os
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ipe.base.atomic import write_atomic
from ipe.base.numbers import seed_number, whole_number
from ipe.deep.environments import Environment, EnvironmentFailure, make_environment
from ipe.deep.playing import Agent, Moment, agent, evaluation_seed, play
from ipe.errors import InputError
from ipe.experiments.evaluation import choose_seeds, policy_in_words
from ipe.experiments.trained import read_trained

MOST_PICTURES = 600
"""The most pictures of a GIF. Longer episodes are shown in every second frame, every fourth, and so on."""
_NARROWEST, _WIDEST = 240, 480
_CAPTION = 20
_LAST_SECONDS = 1.0


@dataclass(frozen=True)
class Recording:
    """What a GIF shows."""

    path: Path
    """The file of the GIF."""
    seed: int
    """The trained seed."""
    policy: str
    """How the seed acted, in words."""
    returns: list[float]
    """The return of each episode."""
    lengths: list[int]
    """The number of frames of each episode."""
    pictures: int
    """The number of pictures in the GIF."""
    every: int
    """Only every so many frames are shown, and the last of each episode."""

    def _repr_html_(self) -> str:
        """The film itself, for notebooks; in words if its file is gone."""
        text = escape(f"seed {self.seed}, {self.policy}: return {', '.join(f'{total:g}' for total in self.returns)}")
        try:
            film = base64.b64encode(self.path.read_bytes()).decode()
        except OSError:
            return f"<p>{text} (the file {escape(str(self.path))} is not there any more)</p>"
        return f'<img src="data:image/gif;base64,{film}" alt="{text}"><p>{text}</p>'


def watch(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    trained_seed: int | None = None,
    episodes: int = 1,
    fps: float = 30.0,
    seed: int = 0,
    behaviour: bool = False,
    setting: str | None = None,
    frame_limit: int | None = None,
    which: Literal["last", "best"] = "last",
) -> Recording:
    """Play episodes with the networks of a run, and draw them into a GIF, replacing what was there.

    The episodes are the first ones of `evaluate` with the same seed. The caption's epsilon is the one that the policy
    network asks for, also where the policy is greedy; or, with an epsilon-greedy behaviour, its own.

    Args:
        run, seed, behaviour, setting, frame_limit, which: as for `evaluate`.
        out: the file, a .gif.
        trained_seed: which of the run's seeds. Default: the first whose training neither failed nor diverged.
        episodes: how many episodes.
        fps: the pictures per second, 1 to 50; a GIF counts in hundredths of a second.

    Returns:
        What was drawn.

    Raises:
        InputError: naming the argument; also for an environment that cannot be drawn. Nothing is written then.
    """
    path = Path(out)
    if path.suffix.lower() != ".gif":
        raise InputError(f"{out}: the suffix must be .gif; found {path.suffix or 'none'}")
    whole_number(episodes, "episodes", 1)
    if not 1.0 <= fps <= 50.0:
        raise InputError(f"fps must lie between 1 and 50, found {fps:g}")
    seed_number(seed)
    _draw_without_a_display()
    trained = read_trained(run, frame_limit, setting, which)
    asked = None if trained_seed is None else [trained_seed]
    chosen = choose_seeds(trained, trained.unusable(), asked)[0]
    environment = make_environment(trained.environment, evaluation_seed(seed, chosen), "rgb_array")
    film = _Film()
    try:
        act = agent(trained, chosen, seed, behaviour)
        ends = [_film(environment, act, film) for _ in range(episodes)]
    except EnvironmentFailure as failure:
        raise InputError(f"seed {chosen}: {failure}") from None
    finally:
        environment.close()
    film.write(path, fps)
    returns, lengths = [end.total for end in ends], [end.frame for end in ends]
    pictures = len(film.shots)
    policy = policy_in_words(trained, behaviour, [chosen])
    return Recording(path, chosen, policy, returns, lengths, pictures, film.every)


def _film(environment: Environment, act: Agent, film: _Film) -> Moment:
    """Play an episode before the camera, and return its end."""
    for moment in play(environment, act):
        if film.wants(moment.over):
            film.add(picture(environment.render(), caption(moment)), moment.over)
        film.moments += 1
    return moment


class _Shot(NamedTuple):
    moment: int
    image: Any
    last: bool


class _Film:
    """Pictures, thinned out as they get too many."""

    def __init__(self) -> None:
        self.shots: list[_Shot] = []
        self.every = 1
        self.moments = 0

    def wants(self, last: bool) -> bool:
        return last or self.moments % self.every == 0

    def add(self, image: Any, last: bool) -> None:
        self.shots.append(_Shot(self.moments, image, last))
        while sum(not shot.last for shot in self.shots) > MOST_PICTURES:
            self.every *= 2
            self.shots = [shot for shot in self.shots if shot.last or shot.moment % self.every == 0]

    def write(self, path: Path, fps: float) -> None:
        duration = 10 * round(100.0 / fps)
        durations = [round(1000 * _LAST_SECONDS) if shot.last else duration for shot in self.shots]
        first, *others = [shot.image for shot in self.shots]

        def save(file: BinaryIO) -> None:
            first.save(file, format="GIF", save_all=True, append_images=others, duration=durations, loop=0)

        write_atomic(path, save)


def caption(moment: Moment) -> str:
    """The line under a picture.

    Example:
        >>> caption(Moment(frame=12, total=-3.25, epsilon=0.0421, over=False))
        'frame 12  return -3.2  epsilon 0.042'
    """
    epsilon = "" if math.isnan(moment.epsilon) else f"  epsilon {moment.epsilon:.3f}"
    return f"frame {moment.frame}  return {moment.total:.1f}{epsilon}"


def picture(pixels: NDArray[np.uint8], text: str) -> Any:
    """A picture of a convenient size, with a line of text below, in 256 colours. Pixels of shape (height, width, 3) are
    enlarged by a whole factor, or reduced."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(pixels)
    if image.width < _NARROWEST:
        factor = -(-_NARROWEST // image.width)
        image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    elif image.width > _WIDEST:
        image = image.resize((_WIDEST, max(1, image.height * _WIDEST // image.width)), Image.Resampling.BOX)
    whole = Image.new("RGB", (image.width, image.height + _CAPTION), (230, 230, 230))
    whole.paste(image, (0, 0))
    ImageDraw.Draw(whole).text((6, image.height + 4), text, fill="black", font=ImageFont.load_default(12))
    return whole.quantize(256, dither=Image.Dither.NONE)  # dithered, every picture would differ from the next all over


def _draw_without_a_display() -> None:
    """Pygame draws into memory; without a display it has to be told not to look for one."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
