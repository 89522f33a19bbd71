"""The numbers that behaviours and policy updates have, each declared once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ipe.entropy.arrays import AnyArray, check_range
from ipe.errors import InputError


@dataclass(frozen=True)
class Hyperparameter:
    """A number of a behaviour or of a policy update: its range, its default, and the sentence that help texts show."""

    name: str
    """The name by which users set the number."""
    sentence: str
    """What the number is, for help texts and the documentation."""
    default: float | None
    """The value if none is given. None: the function that reads the number works it out."""
    low: float = 0.0
    """The smallest value that is allowed."""
    high: float = np.inf
    """The largest value that is allowed."""
    above: bool = False
    """Whether the smallest value itself is left out."""
    scheduled: bool = False
    """Whether the deep agent takes the number from the schedule of epsilon in its settings, frame by frame."""
    step_size: bool = False
    """Whether the number is a step size: 0 means that nothing is learned."""
    switch: bool = False
    """Whether 0 leaves the number's term out of the compiled program."""

    @property
    def range(self) -> str:
        """The range in words, such as "> 0" or "0 to 1"."""
        if self.high == np.inf:
            return f"{'>' if self.above else '>='} {self.low:g}"
        return f"{'above ' * self.above}{self.low:g} to {self.high:g}"

    def check(self, values: AnyArray) -> None:
        """Refuse values that are not finite or not in the range; the error names the index and the value."""
        values = np.asarray(values)
        finite = np.isfinite(values)
        if not finite.all():
            at = int(np.argmin(np.atleast_1d(finite)))
            place = f"[{at}]" if values.ndim else ""
            raise InputError(f"{self.name}{place} = {np.atleast_1d(values)[at]:g} is not a finite number")
        check_range(values, self.name, self.low, self.high, strict=self.above)
