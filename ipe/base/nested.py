"""Nested dictionaries and the dotted paths of their fields: `{"epsilon": {"final": 0.1}}` has `epsilon.final`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields of a nested dictionary by dotted path.

    Example:
        >>> flatten({"width": 64, "epsilon": {"final": 0.1}})
        {'width': 64, 'epsilon.final': 0.1}
    """
    out: dict[str, Any] = {}
    for name, value in values.items():
        out |= flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return out


def nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The nested dictionary of fields with dotted names; a field may itself hold such fields.

    Example:
        >>> nested({"width": 64, "epsilon.final": 0.1, "epsilon": {"first": 1.0}})
        {'width': 64, 'epsilon': {'final': 0.1, 'first': 1.0}}
    """
    out: dict[str, Any] = {}
    for name, value in fields.items():
        inner = nested(value) if isinstance(value, Mapping) else value
        for part in reversed(name.split(".")):
            inner = {part: inner}
        out = merged(out, inner)
    return out


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a nested dictionary with some fields changed; a table within is changed field by field.

    Example:
        >>> merged({"width": 64, "epsilon": {"first": 1.0, "final": 0.1}}, {"epsilon": {"final": 0.2}})
        {'width': 64, 'epsilon': {'first': 1.0, 'final': 0.2}}
    """
    out = dict(values)
    for name, change in changes.items():
        inner = out.get(name)
        both = isinstance(inner, Mapping) and isinstance(change, Mapping)
        out[name] = merged(inner, change) if both else change  # type: ignore[arg-type]
    return out


def at_path(values: Any, path: str) -> Any:
    """The field of a nested dictionary with a dotted path.

    Example:
        >>> at_path({"epsilon": {"final": 0.1}}, "epsilon.final")
        0.1
    """
    for part in path.split("."):
        values = values[part]
    return values
