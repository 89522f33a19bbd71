"""Reporting a study of deep learning: its claims judged, and its pages written, from the results in its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ipe.analysis import Claim, claims_records
from ipe.analysis.halving import Rungs, read_rungs, selections
from ipe.analysis.halving_panels import halving_panels
from ipe.analysis.panels import panels_by_environment
from ipe.analysis.provenance import run_cost, run_versions
from ipe.base.atomic import write_bytes
from ipe.experiments.halving import begun_rungs, is_halving
from ipe.experiments.results import Results, load_results
from ipe.figures.report import write_report
from ipe.figures.report.write import Picture
from ipe.figures.style import figure_bytes
from ipe.studies.learning.evidence import SEED
from ipe.studies.learning.lasting import read_lasting
from ipe.studies.learning.lasting_report import draw_lasting, lasting_claims, lasting_csv, lasting_words
from ipe.studies.learning.study import CHANGED, CONFIRM, CURVES, GRID, LASTING, SENSITIVITY, LearningStudy, joined

AT_BEST = "-at-best"
"""The end of the names of claims about the chosen settings of the whole grid, where the bold ones are judged too."""


@dataclass(frozen=True, eq=False)
class StudyFolder:
    """The results in a study's folder.

    Attributes:
        folder: the folder.
        have: the results of each part that has a run, by the part's name; of a grid by halving, its last rung.
        rungs: the rungs of a grid by halving.
        stores: the stores of each part.
    """

    folder: Path
    have: Mapping[str, Results]
    rungs: Rungs | None = None
    stores: Mapping[str, Sequence[Path]] = field(default_factory=dict)

    @property
    def main(self) -> list[str]:
        """The parts whose learning curves are judged: the bold settings, the whole grid, or both."""
        return [name for name in (CURVES, GRID) if name in self.have]

    @property
    def first(self) -> str:
        """The part whose page is the study's first."""
        return (self.main or self.singles)[0]

    @property
    def singles(self) -> list[str]:
        """The parts with cases that stand beside those of the main part."""
        asides = (GRID, CURVES, CONFIRM, SENSITIVITY, LASTING, CHANGED)
        return [name for name in self.have if name not in asides]

    @property
    def lasting(self) -> list[Results]:
        """The parts about how long runs last."""
        return [self.have[name] for name in (LASTING, CHANGED) if name in self.have]

    def joined(self, name: str, *, fresh: bool) -> Results:
        """The runs of a main part and those of single cases; with `fresh`, the fresh runs of the chosen settings."""
        first = self.have[CONFIRM] if fresh and self.confirmed(name) else self.have[name]
        return joined([first, *(self.have[single] for single in self.singles)])

    def confirmed(self, name: str) -> bool:
        """Whether there are fresh runs of the chosen settings of a main part."""
        keys = {setting.key for setting in self.have[name].sweep.settings}
        fresh = self.have.get(CONFIRM)
        last = name == self.main[-1]
        return fresh is not None and last and all(setting.key in keys for setting in fresh.sweep.settings)


def open_study(folder: str | os.PathLike[str]) -> StudyFolder:
    """Read the results in a study's folder; every byte that is read is verified."""
    place = Path(folder)
    stores = {path.name: [path] for path in sorted(place.iterdir()) if (path / "sweep.json").is_file()}
    have = {name: load_results(path) for name, (path,) in stores.items()}
    rungs = None
    if is_halving(place / GRID) and (begun := begun_rungs(place / GRID)):
        rungs = read_rungs(place / GRID)
        have[GRID], stores[GRID] = rungs.last, begun
    have = {name: results for name, results in have.items() if results.outcomes}
    return StudyFolder(place, have, rungs, stores)


def study_claims(study: LearningStudy, found: StudyFolder) -> dict[str, list[Claim]]:
    """The verdicts on a study's sentences, by the part that they are judged by.

    Where the bold settings and the whole grid were run, the sentences are judged by both: the claims about the grid's
    chosen settings have names that end with `-at-best`.
    """
    claims: dict[str, list[Claim]] = {}
    for name in found.main or found.singles[:1]:
        results = found.joined(name, fresh=True) if found.main else joined([found.have[one] for one in found.singles])
        judged = study.claims(results)
        if name == GRID and CURVES in found.have:
            judged = [
                replace(claim, name=claim.name + AT_BEST, figure=f"{claim.figure}, each at its best")
                for claim in judged
            ]
        claims[name] = judged
    if found.lasting:
        claims[LASTING] = lasting_claims(read_lasting(found.lasting))
    return claims


def report_study(study: LearningStudy, folder: str | os.PathLike[str]) -> tuple[list[Claim], list[Path]]:
    """Judge a study's claims by the results in its folder, and write its pages.

    Returns:
        The claims, and the pages that were written.
    """
    found = open_study(folder)
    claims = study_claims(study, found)
    titles = _titles(study, found)
    pages = [_main_page(found, name, claims[name], titles) for name in found.main or found.singles[:1]]
    if SENSITIVITY in found.have:
        pages.append(_page(found, [SENSITIVITY], found.have[SENSITIVITY], SENSITIVITY, titles))
    if found.lasting:
        pages.append(_lasting_page(found, claims[LASTING], titles))
    every = [claim for part in claims.values() for claim in part]
    text = f"{json.dumps(claims_records(every), indent=1, ensure_ascii=False)}\n".encode()
    write_bytes(found.folder / "claims.json", text)
    return every, pages


def _titles(study: LearningStudy, found: StudyFolder) -> dict[str, str]:
    """The titles of the pages that the study's folder has, by the parts that they are about."""
    titles = dict.fromkeys(found.main or found.singles[:1], study.title)
    if GRID in titles and CURVES in found.have:
        titles[GRID] = f"{study.title}, each at its best"
    if SENSITIVITY in found.have:
        titles[SENSITIVITY] = f"{study.title}: one hyperparameter at a time"
    if found.lasting:
        titles[LASTING] = f"{study.title}: does it last?"
    return titles


def _folder(found: StudyFolder, name: str) -> Path:
    """The folder of a page: the first part's is the report's own."""
    report = found.folder / "report"
    return report if [name] == (found.main or found.singles)[:1] else report / name


def _links(found: StudyFolder, name: str, titles: Mapping[str, str]) -> list[tuple[str, str]]:
    """The other pages of the study, each with its title and its path from this one."""
    here = _folder(found, name)
    return [
        (title, Path(os.path.relpath(_folder(found, other) / "report.html", here)).as_posix())
        for other, title in titles.items()
        if other != name
    ]


def _main_page(found: StudyFolder, name: str, claims: Sequence[Claim], titles: Mapping[str, str]) -> Path:
    more: dict[str, Any] = {}
    if name == GRID and found.rungs is not None:
        more = {"panels": halving_panels(found.rungs), "selected": selections(found.rungs, seed=SEED)}
    elif SENSITIVITY in found.have and name != GRID:
        more = {"panels": panels_by_environment(found.have[SENSITIVITY])}
    fresh = found.have[CONFIRM] if found.main and found.confirmed(name) else None
    results = found.joined(name, fresh=False) if found.main else joined([found.have[one] for one in found.singles])
    parts = [name, *found.singles]
    parts += [CONFIRM] * (fresh is not None) + [SENSITIVITY] * (SENSITIVITY in found.have and name != GRID)
    return _page(found, parts, results, name, titles, claims=claims, confirm=fresh, **more)


def _lasting_page(found: StudyFolder, claims: Sequence[Claim], titles: Mapping[str, str]) -> Path:
    lasting = read_lasting(found.lasting)
    figure = draw_lasting(lasting)
    parts = [name for name in (LASTING, CHANGED) if name in found.have]
    pictures = [] if figure is None else [Picture("survival", "Does it last?", lasting_words(lasting), figure)]
    page = _page(found, parts, joined(found.lasting), LASTING, titles, claims=claims, pictures=pictures)
    out = page.parent
    write_bytes(out / "lasting.csv", lasting_csv(lasting))
    if figure is not None:
        write_bytes(out / "survival.pdf", figure_bytes(figure, ".pdf"))
    return page


def _page(
    found: StudyFolder, parts: Sequence[str], results: Results, name: str, titles: Mapping[str, str], **more: Any
) -> Path:
    stores = [store for part in dict.fromkeys(parts) for store in found.stores[part]]
    files = write_report(
        results,
        _folder(found, name),
        title=titles[name],
        made_with=run_versions(*stores),
        cost=run_cost(*stores),
        links=_links(found, name, titles),
        overwrite=True,
        **more,
    )
    return files[0]
