"""Mutated sweep files: thousands of TOML texts from a seed, each a small sweep in which something is wrong, or may be.

`python -m tests.sweep_file_fuzzer COUNT` counts the exceptions that are not an `InputError`.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipe.errors import InputError
from ipe.experiments.grids import read_sweep

BASE = {"environment": "CartPole-v1", "width": 32, "optimiser": {"kind": "adam", "momentum": 0.9}}
TEMPLATES: list[dict[str, Any]] = [
    {"name": "a", "seeds": 2, "base": BASE, "grid": {"width": [8, 16], "gamma": [0.9]}},
    {"one_at_a_time": True, "base": BASE, "grid": {"optimiser.momentum": [0.5], "width": [8, 32]}},
    {"seeds": [1, 2], "base": BASE, "cases": {"x": {"behaviour": "epsilon-greedy", "grid": {"epsilon.final": [0.1]}}}},
    {"one_at_a_time": True, "base": {"environment": {"id": "A", "options": {"size": 3}}}, "cases": {"x": {"gamma": 0}}},
    {"base": BASE, "grid": {"epsilon": {"steps": [5]}, "environment": ["A", "B"]}, "cases": {"y": {"gamma": 0.5}}},
]  # fmt: skip
KEYS = (
    "base", "fields", "grid", "cases", "name", "seeds", "__class__", "__dict__", "model_config", "", " ", ".", "a.b",
    "optimiser", "optimiser.momenXtum", "optimiser.kind", "optimiser.kind.x", "environment", "environment.id",
    "environment.options", "environment.options.x.y", "epsilon", "epsilon.final", "width.x", "behaviour", "temperature",
    "frames", "x" * 300, ".".join("abcdefghij" * 200), "größe", "a\nb", "\u0000", "program", "numbers", "acts", "..",
    "optimiser.",
)  # fmt: skip
HUGE, HEX, DEEP, DEEPER = "HUGE", "HEX", "DEEP", "DEEPER"
LONG = {
    HUGE: "9" * 5000,
    HEX: f"0x{'f' * 5000}",
    DEEP: "[" * 100 + "]" * 100,
    DEEPER: "{a=" * 300 + "1" + "}" * 300,
}
VALUES: tuple[Any, ...] = (
    0, -1, 1, 3.5, 10**30, 1e308, float("inf"), float("nan"), True, "", "x", "adam", "32", "x" * 300, [], [[]], [8, 8],
    [8, "8"], [{}], [True, 1], {}, {"x": 1}, {"id": 3}, {"id": "A"}, {"a": {"b": {"c": [1]}}}, [{"id": "A"}],
    HUGE, HEX, DEEP, [HUGE], [HEX], [DEEP], DEEPER, [None],
    ["rmsprop"], [float("inf")], [10**400], 10**400, {"": 1}, {"__class__": [1]},
    [0.5, 0.25],
)  # fmt: skip
CHARACTERS = "=[]{}\".,'#\n 0_e\\\x00é9"


def mutants(count: int, seed: int = 0) -> Iterator[str]:
    """Yield `count` mutated files, the same for the same seed."""
    draw = random.Random(seed)
    for _ in range(count):
        content = json.loads(json.dumps(draw.choice(TEMPLATES)))
        for _ in range(draw.randint(1, 3)):
            _mutate(content, draw)
        text = "".join(f"{_text(key)} = {_text(value)}\n" for key, value in content.items())
        yield text if draw.random() < 0.8 else _scratched(text, draw)


def _mutate(content: dict[str, Any], draw: random.Random) -> None:
    """Rename, remove, replace or add a field of a table somewhere in the content."""
    table = content
    while (inner := [each for each in table.values() if isinstance(each, dict)]) and draw.random() < 0.7:
        table = draw.choice(inner)
    names = list(table)
    kind = draw.choice(("rename", "misspell", "remove", "replace", "replace", "add", "add"))
    if kind == "add" or not names:
        table[draw.choice(KEYS)] = copy.deepcopy(draw.choice(VALUES))
        return
    name = draw.choice(names)
    value = table.pop(name) if kind != "replace" else None
    if kind == "replace":
        table[name] = copy.deepcopy(draw.choice(VALUES))
    elif kind == "rename":
        table[draw.choice(KEYS)] = value
    elif kind == "misspell":
        at = draw.randint(0, len(name))
        table[name[:at] + draw.choice("Xx.e-") + name[at + draw.randint(0, 1) :]] = value


def _text(value: Any) -> str:
    """Return a value or a key as TOML."""
    long = {
        HUGE: "9" * 5000,
        HEX: f"0x{'f' * 5000}",
        DEEP: "[" * 100 + "]" * 100,
        DEEPER: "{a=" * 300 + "1" + "}" * 300,
    }
    if isinstance(value, str) and value in long:
        return long[value]
    if value is None:
        return "1979-05-27T07:32:00Z"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)} = {_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value)


def _scratched(text: str, draw: random.Random) -> str:
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(text) + 1)
        text = text[:at] + draw.choice(CHARACTERS) * draw.randint(0, 2) + text[at + draw.randint(0, 3) :]
    return text


def read_mutants(count: int, folder: Path, seed: int = 0) -> Counter[str]:
    """Read mutated files, and count how that ends: ok, InputError, or the name of another exception."""
    ends: Counter[str] = Counter()
    file = folder / "mutant.toml"
    for text in mutants(count, seed):
        file.write_text(text, encoding="utf-8")
        try:
            read_sweep(file)
            ends["read"] += 1
        except InputError as error:
            ends["refused in several lines" if "\n" in str(error) else "refused"] += 1
        except Exception as error:
            ends[type(error).__name__] += 1
    return ends


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(dict(read_mutants(int(sys.argv[1]), Path(temporary))))
