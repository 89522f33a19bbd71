"""The documentation's tables of behaviours, policy updates and settings are those that the declarations give.

`python -m tests.test_tables` writes them into the pages, each between two comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ipe.base.nested import flatten
from ipe.behaviours import BEHAVIOURS, Behaviour, Hyperparameter
from ipe.cli.settings_options import plain
from ipe.deep.defaults import TUNED, default_settings
from ipe.deep.settings import LEAVES, behaviours_with, deep_behaviours, paper_settings
from ipe.updates import UPDATES, PolicyUpdate

DOCS = Path(__file__).parent.parent / "docs"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def numbers(hyperparameters: Iterable[Hyperparameter]) -> str:
    words = [
        f"`{each.name}`" + (f" ({each.default:g})" if each.default is not None else "") for each in hyperparameters
    ]
    return ", ".join(words)


def behaviours() -> str:
    rows = [
        (f"`{name}`", each.summary, numbers(each.hyperparameters), "yes" if each.deep else "")
        for name, each in BEHAVIOURS.items()
    ]
    return table(("behaviour", "the agent acts", "numbers (default)", "deep agent"), rows)


def updates() -> str:
    rows = [
        (f"`{name}`", each.summary, numbers(each.hyperparameters), _in_the_deep_agent(each))
        for name, each in UPDATES.items()
    ]
    return table(("update", "steps by", "numbers (default)", "deep agent"), rows)


def _in_the_deep_agent(update: PolicyUpdate) -> str:
    if update.gradient is None:
        return ""
    return "yes" + (f", with {numbers(update.network_numbers)}" if update.network_numbers else "")


def hyperparameters() -> str:
    owners: list[Behaviour | PolicyUpdate] = [*UPDATES.values(), *BEHAVIOURS.values()]
    rows = {(f"`{each.name}`", each.sentence, each.range) for owner in owners for each in owner.hyperparameters}
    return table(("number", "what it is", "range"), sorted(rows))


def settings() -> str:
    rows = []
    for leaf in LEAVES:
        default = leaf.field.get_default(call_default_factory=True)
        others = {
            "adam": ["`optimiser.kind` adam"],
            "priority": ["`priority.exponent` above 0"],
            "traces": ["`traces.kind` watkins or peng"],
        }
        some = behaviours_with(leaf.path)
        limits = [f"`{name}`" for name in some] if len(some) < len(deep_behaviours()) else []
        rows.append(
            (
                f"`{leaf.path}`",
                "" if leaf.field.is_required() or default in (None, {}) else f"{default}",
                plain(leaf.field.description or ""),
                ", ".join(limits + others.get(leaf.role.only_with, [])),
            )
        )
    return table(("setting", "default", "what it is", "only with"), rows)


def tuned() -> str:
    every = [flatten(default_settings(environment).model_dump()) for environment in TUNED]
    paper = flatten(paper_settings("Other-v0").model_dump())
    rows = [
        (f"`{path}`", *(_short(one[path]) for one in every), _short(paper[path]))
        for path in paper
        if path != "environment.id" and any(one[path] != paper[path] for one in every)
    ]
    return table(("setting", *TUNED, "the paper's, for LunarLander"), rows)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "behaviours": ("api/behaviours.md", behaviours),
    "updates": ("api/updates.md", updates),
    "numbers": ("api/tabular.md", hyperparameters),
    "settings": ("training.md", settings),
    "tuned settings": ("classic-control.md", tuned),
}


def between(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- table of {name} -->\n)(.*?)(?=\n<!-- end of the table -->)", re.S)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_the_declarations_give(name: str) -> None:
    page, make = TABLES[name]
    (found,) = between(name).findall((DOCS / page).read_text(encoding="utf-8"))
    assert found == make(), f"docs/{page} is out of date: run `python -m tests.test_tables`"


if __name__ == "__main__":
    for name, (page, make) in TABLES.items():
        text = (DOCS / page).read_text(encoding="utf-8")
        (old,) = between(name).findall(text)
        (DOCS / page).write_text(text.replace(old, make()), encoding="utf-8")
