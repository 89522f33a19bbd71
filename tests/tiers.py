"""What `make test` tries of a test's cases; `make test-all` tries all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def share(number: int) -> int:
    """How many random cases this session tries where `make test-all` tries `number`: `make test` takes a quarter."""
    return max(1, number * settings().max_examples // settings.get_profile("default").max_examples)


def examples(number: int) -> settings:
    """The settings of a property test that tries this many examples in `make test-all`."""
    return settings(max_examples=share(number))


def tiered(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Values for `pytest.mark.parametrize`, all of them slow but those that are named as quick."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


def tiered_rows(rows: Iterable[tuple[Any, ...]], *quick: tuple[Any, ...]) -> list[Any]:
    """Rows of several values each for `pytest.mark.parametrize`, all of them slow but those that are named as quick."""
    return [row if row in quick else pytest.param(*row, marks=pytest.mark.slow) for row in rows]
