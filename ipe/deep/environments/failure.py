"""The failure of an environment, which stops its seed and leaves the others."""

from __future__ import annotations

_LONGEST = 400


class EnvironmentFailure(Exception):  # noqa: N818  (not an error of the caller's)
    """An environment raised, or returned what nothing can learn from: NaN, an infinity, another shape.

    `message` is one sentence, with the episode and the step.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def one_line(error: BaseException) -> str:
    """Return the type and the text of an exception, without line breaks and not longer than a sentence should be."""
    if isinstance(error, EnvironmentFailure):
        return error.message
    text = " ".join(str(error).split())
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
