"""The settings that runs share, and the settings in which they differ: what a comparison must say beside its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ipe.base.columns import columns
from ipe.base.nested import flatten

_ABSENT = "(not set)"


def compare_settings(settings: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The fields that all settings share, and the fields in which some differ.

    Args:
        settings: nested dictionaries, such as `model_dump()` of training settings.

    Returns:
        The shared fields by their dotted path, with their value; and the other fields, with a value for each of the
        settings ("(not set)" where one of them does not have the field).

    Example:
        >>> compare_settings([{"width": 64, "epsilon": {"final": 0.1}}, {"width": 64, "epsilon": {"final": 0.2}}])
        ({'width': 64}, {'epsilon.final': [0.1, 0.2]})
    """
    flat = [flatten(one) for one in settings]
    values = {path: [one.get(path, _ABSENT) for one in flat] for path in dict.fromkeys(p for one in flat for p in one)}
    shared = {path: found[0] for path, found in values.items() if all(value == found[0] for value in found)}
    return shared, {path: found for path, found in values.items() if path not in shared}


def differences_text(settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The fields in which named settings differ, as aligned lines for a terminal; no line if there is none.

    Example:
        >>> print("\\n".join(differences_text({"ipe": {"width": 64}, "greedy": {"width": 256}})))
        settings that differ  ipe  greedy
          width                64     256
    """
    _, differing = compare_settings(list(settings.values()))
    if not differing:
        return []
    rows = [["settings that differ", *settings]]
    rows += [[f"  {path}", *map(_words, values)] for path, values in differing.items()]
    return columns(rows, left=[0])


def differences_sentence(settings: Mapping[str, Mapping[str, Any]], most: int = 4) -> str:
    """The fields in which named settings differ, as a sentence for a figure; empty if there is none.

    Args:
        settings: the settings by their names.
        most: how many fields are named.

    Example:
        >>> differences_sentence({"ipe": {"width": 64, "gamma": 0.9}, "greedy": {"width": 256, "gamma": 0.9}})
        'Settings that differ: width (64, 256).'
    """
    _, differing = compare_settings(list(settings.values()))
    if not differing:
        return ""
    named = [f"{path} ({', '.join(map(_words, values))})" for path, values in list(differing.items())[:most]]
    more = f", and {len(differing) - most} more" if len(differing) > most else ""
    return f"Settings that differ: {', '.join(named)}{more}."


def _words(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
