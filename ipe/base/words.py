"""Names that were meant, for names that were mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: the most similar of the names, upper and lower case alike.

    Example:
        >>> did_you_mean("minatar/freeway", ["minatar/Freeway", "minatar/Asterix"])
        ' (did you mean minatar/Freeway?)'
        >>> did_you_mean("chess", ["minatar/Freeway"])
        ''
    """
    lowered = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1)
    return f" (did you mean {lowered[close[0]]}?)" if close else ""
