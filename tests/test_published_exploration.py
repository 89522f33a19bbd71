"""The published runs of the study of exploration: whole, judged as they were, and told on the page as they are.

`python -m tests.test_published_exploration` writes the tables into the page, each between two comments.
"""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from ipe.analysis import claims_markdown, claims_records
from ipe.errors import InputError
from ipe.experiments.store import open_store
from ipe.studies.exploration import (
    CONTENDERS,
    TABULAR,
    TASKS,
    TabularSettings,
    chosen_groups,
    read_tabular,
    settled_groups,
    tasks_of,
)
from ipe.studies.exploration.claims import judged
from ipe.studies.exploration.deep import choosing_sweep
from ipe.studies.exploration.deep_report import DEEP, findings_of_groups
from ipe.studies.exploration.deep_run import fresh_folder
from ipe.studies.exploration.findings import Findings, findings_of
from ipe.studies.exploration.scores import Scores, scores_of
from ipe.studies.exploration.simulating import declaration
from ipe.studies.exploration.tables import family_table, tuned_table, untuned_table

ROOT = Path(__file__).parent.parent
PUBLISHED = ROOT / "results" / "exploration"
PAGE = ROOT / "docs" / "exploration.md"
SETTINGS = TabularSettings()


@cache
def scores() -> Scores:
    return scores_of(read_tabular(PUBLISHED), CONTENDERS, TASKS, SETTINGS)


@cache
def findings() -> Findings:
    return findings_of(scores())


@cache
def deep_findings() -> Findings:
    return findings_of_groups(settled_groups(PUBLISHED), PUBLISHED).findings


def blocks() -> dict[str, str]:
    """What stands on the page between its comments."""
    return {
        "untuned": untuned_table(findings()),
        "tuned": tuned_table(findings()),
        "families": family_table(findings()),
        "claims": claims_markdown(judged(findings(), TABULAR)),
        "deep-untuned": untuned_table(deep_findings()),
        "deep-tuned": tuned_table(deep_findings()),
        "deep-tasks": family_table(deep_findings(), by_task=True),
        "deep-claims": claims_markdown(judged(deep_findings(), DEEP)),
    }


def between(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- exploration: {name} -->\n)(.*?)(<!-- end -->)", re.S)


def test_every_contender_is_published_as_it_is_declared() -> None:
    runs = read_tabular(PUBLISHED)
    assert set(runs) == {"uniform", *(contender.name for contender in CONTENDERS)}
    task = TASKS[0]
    for contender in CONTENDERS:
        found = runs[contender.name]
        assert found.manifest["tasks"][0]["declared"] == declaration(contender, task, SETTINGS)
        assert [each["declared"]["task"]["name"] for each in found.manifest["tasks"]] == [each.name for each in TASKS]
        assert found.table.num_rows == found.manifest["rows"] == len(TASKS) * 5 * 2 * SETTINGS.runs


def test_every_deep_task_is_published_as_it_is_declared() -> None:
    for task in tasks_of(chosen_groups(PUBLISHED)):
        stored, declared = open_store(PUBLISHED / task.name).sweep, choosing_sweep(task)
        assert [setting.key for setting in stored.settings] == [setting.key for setting in declared.settings]
        assert stored.seeds == declared.seeds
        fresh = fresh_folder(PUBLISHED, task.name)
        if fresh.is_dir():  # nobody has solved the others
            assert not set(open_store(fresh).sweep.seeds) & set(declared.seeds)
            assert {each.key for each in open_store(fresh).sweep.settings} <= set(declared.by_key)


def test_a_flipped_byte_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(PUBLISHED / "tabular", tmp_path / "tabular")
    path = tmp_path / "tabular" / "epsilon-ipe.parquet"
    data = bytearray(path.read_bytes())
    data[1000] ^= 8
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"epsilon-ipe.parquet: it is damaged"):
        read_tabular(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", [TABULAR, DEEP])
def test_the_verdicts_are_those_of_the_runs(part: str) -> None:
    file, found = ("claims.json", findings) if part == TABULAR else (f"claims-{part}.json", deep_findings)
    published = json.loads((PUBLISHED / "report" / file).read_text(encoding="utf-8"))
    again = claims_records(judged(found(), part))
    assert [(claim["name"], claim["verdict"]) for claim in again] == [(c["name"], c["verdict"]) for c in published]
    for claim, before in zip(again, published, strict=True):
        assert claim["numbers"] == pytest.approx(before["numbers"], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "report"),
    [
        *((name, "report.md") for name in ("untuned", "tuned", "families", "claims")),
        *((name, f"{DEEP}.md") for name in ("deep-untuned", "deep-tuned", "deep-tasks", "deep-claims")),
    ],
)
def test_the_page_has_the_tables_of_the_report(name: str, report: str) -> None:
    found = between(name).search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[2] in (PUBLISHED / "report" / report).read_text(encoding="utf-8")
    assert found[2].count("\n") > 8


@pytest.mark.slow
def test_the_page_tells_what_the_runs_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, expected in blocks().items():
        found = between(name).search(text)
        assert found is not None, f"docs/exploration.md has no place for {name}"
        assert found[2] == expected, f"{name}: python -m tests.test_published_exploration writes it anew"


if __name__ == "__main__":
    words = PAGE.read_text(encoding="utf-8")
    for name, block in blocks().items():
        words = between(name).sub(lambda match, block=block: match[1] + block + match[3], words)  # type: ignore[misc]
    PAGE.write_text(words, encoding="utf-8")
