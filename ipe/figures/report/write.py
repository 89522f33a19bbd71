"""Writing the report: everything is computed first, then written file by file, the page last."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ipe.analysis import Claim, claims_markdown, claims_records
from ipe.analysis.findings import Findings, findings_of
from ipe.analysis.halving import CaseSelection
from ipe.analysis.panels import SensitivityPanel, sensitivity_panels
from ipe.analysis.provenance import RunCost, recorded_cost
from ipe.analysis.recorded import RecordedRuns, recorded_groups
from ipe.analysis.series import ComparedSetting, Failed, Group, read_groups
from ipe.base.atomic import check_folder, write_files
from ipe.deep.machine import versions
from ipe.experiments.results import Results
from ipe.figures.report.data import Step, cost_data, environment_data, selection_data, settings_data
from ipe.figures.report.drawing import (
    draw_all_curves,
    draw_curves,
    draw_evaluation,
    draw_exploration,
    draw_panels,
    draw_profiles,
)
from ipe.figures.report.methods import methods_text
from ipe.figures.report.tables import tables
from ipe.figures.style import figure_bytes
from ipe.pages import page_html

WEB = Path(__file__).with_name("web")
ENTRY = "figures/report/web/main.js"
GRID_POINTS = 250
"""Frames at which the page's curves are drawn: about as many as a screen tells apart."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure for the page.

    Attributes:
        name: the name of its file, without a suffix.
        title: the title of its section.
        caption: what it shows.
        figure: the figure.
    """

    name: str
    title: str
    caption: str
    figure: Figure


def write_report(
    results: Results,
    out: str | os.PathLike[str],
    *,
    title: str | None = None,
    claims: Sequence[Claim] = (),
    made_with: Mapping[str, Sequence[str]] | None = None,
    confirm: Results | None = None,
    panels: Mapping[str, Sequence[SensitivityPanel]] | None = None,
    selected: Sequence[CaseSelection] = (),
    pictures: Sequence[Picture] = (),
    cost: RunCost | None = None,
    links: Sequence[tuple[str, str]] = (),
    grid_points: int = GRID_POINTS,
    failed: Failed = "keep",
    seed: int = 0,
    overwrite: bool = False,
    step: Step | None = None,
) -> list[Path]:
    """Write the report of a sweep to a folder: `report.html`, figures (PNG, PDF) and tables (CSV).

    Settings are ranked by their mean area under the curve (AUC), over the frames that all settings of an environment
    have. Intervals are of the bootstrap over runs, of level 0.95. The same results and seed give the same bytes.

    Args:
        results: the results of the sweep (`ipe.experiments.results.load_results`).
        out: the folder for the files. It must be empty or not exist, unless `overwrite`.
        title: the title of the page; by default the sweep's name.
        claims: sentences with verdicts, which the page shows first.
        made_with: the versions that the runs were made with (`run_versions` of the store's folder).
        confirm: fresh runs of the chosen settings. Comparisons then rest on these runs: a setting that is reported on
            the same runs that chose it looks better than it is.
        panels: the sensitivity curves of another sweep, by environment, which the page shows in the place of the
            sweep's own.
        selected: how successive halving chose the settings of each case.
        pictures: more figures, which the page shows after the claims.
        cost: what the runs took (`ipe.analysis.provenance.run_cost` of the store's folder).
        links: other pages that the page names at its top, each with its title and its path from the page.
        grid_points: the number of frames at which the curves are drawn.
        failed: the score of a run that failed or diverged: "keep" its last mean to the end, or the "worst" of all runs.
        seed: the seed of the bootstrap.
        overwrite: whether files of the same names in the folder are replaced; nothing else in it is touched.
        step: a function that is called with what is done, how much of it is done and how much there is.

    Returns:
        The files written, the page first.

    Raises:
        InputError: if something does not fit, in one sentence; nothing is written then.
    """
    folder = Path(out)
    check_folder(folder, overwrite)
    groups = read_groups(results, confirm, grid_points=grid_points, failed=failed)
    shown = [_panels(results, group, panels) for group in groups]
    said = _Said(
        title=results.sweep.name if title is None else title,
        sweep=results.sweep.name,
        seeds=results.sweep.seeds,
        settings=results.sweep.settings,
        problems=[*results.problems, *(() if confirm is None else confirm.problems)],
        cost=cost,
        made_with=made_with,
        confirmed=confirm is not None,
        claims=claims,
        selected=selected,
        pictures=pictures,
        links=links,
    )
    return _write(folder, groups, shown, said, failed, seed, overwrite, step)


def write_recorded_report(
    recorded: RecordedRuns,
    out: str | os.PathLike[str],
    *,
    title: str = "Recorded runs",
    window: int | None = None,
    steps: int | None = None,
    links: Sequence[tuple[str, str]] = (),
    grid_points: int = GRID_POINTS,
    failed: Failed = "keep",
    seed: int = 0,
    overwrite: bool = False,
    step: Step | None = None,
) -> list[Path]:
    """Write the report of runs that other programs recorded, as `write_report` does of a sweep.

    Args:
        recorded: the runs (`ipe.analysis.recorded.read_recorded`).
        out: the folder for the files. It must be empty or not exist, unless `overwrite`.
        title: the title of the page.
        window: how many records a curve is the mean of, as for `ipe.analysis.recorded.recorded_groups`.
        steps: the number of steps over which runs are compared, as for `ipe.analysis.recorded.recorded_groups`.
        links: other pages, as for `write_report`.
        grid_points: the number of steps at which the curves are drawn.
        failed: the score of a run that ended early: "keep" its last mean to the end, or the "worst" of all runs.
        seed: the seed of the bootstrap.
        overwrite: whether files of the same names in the folder are replaced; nothing else in it is touched.
        step: a function that is called with what is done, how much of it is done and how much there is.

    Returns:
        The files written, the page first.

    Raises:
        InputError: if something does not fit, in one sentence; nothing is written then.
    """
    folder = Path(out)
    check_folder(folder, overwrite)
    groups = recorded_groups(recorded, grid_points=grid_points, window=window, steps=steps, failed=failed)
    said = _Said(
        title=title,
        sweep=title,
        settings=list({one.setting.key: one.setting for group in groups for one in group.series}.values()),
        problems=recorded.problems,
        cost=recorded_cost(recorded.runs),
        links=links,
    )
    shown = [sensitivity_panels(None, group) for group in groups]
    return _write(folder, groups, shown, said, failed, seed, overwrite, step)


@dataclass(frozen=True)
class _Said:
    """What a report says beside its statistics."""

    title: str
    sweep: str
    settings: Sequence[ComparedSetting]
    problems: Sequence[str]
    cost: RunCost | None
    seeds: Sequence[int] = ()
    made_with: Mapping[str, Sequence[str]] | None = None
    confirmed: bool = False
    claims: Sequence[Claim] = ()
    selected: Sequence[CaseSelection] = ()
    pictures: Sequence[Picture] = ()
    links: Sequence[tuple[str, str]] = ()


def _write(
    folder: Path,
    groups: Sequence[Group],
    panels: Sequence[Sequence[SensitivityPanel]],
    said: _Said,
    failed: Failed,
    seed: int,
    overwrite: bool,
    step: Step | None,
) -> list[Path]:
    """Compute everything, then write all files."""
    found: list[tuple[Findings, Sequence[SensitivityPanel]]] = []
    for i, (group, shown) in enumerate(zip(groups, panels, strict=True)):
        if step is not None:
            step("ranking", i, len(groups))
        found.append((findings_of(group, seed=seed), shown))
    written, made = tables(found), versions()
    methods = [
        methods_text(
            findings,
            failed=failed,
            seed=seed,
            cost=said.cost,
            made_with=said.made_with,
            version=made["ipe"],
            halving=bool(said.selected),
        )
        for findings, _ in found
    ]
    files = {**_figures(found, seed), **written, "methods.md": _methods(groups, methods)}
    files |= {f"{picture.name}.png": figure_bytes(picture.figure, ".png") for picture in said.pictures}
    if said.claims:
        files["claims.md"] = claims_markdown(said.claims).encode()
    environments = [environment_data(findings, shown, seed=seed, step=step) for findings, shown in found]
    for environment, text in zip(environments, methods, strict=True):
        environment["methods"] = text
    data = {
        "format": "ipe.report",
        "schema": 1,
        "title": said.title,
        "sweep": said.sweep,
        "pictures": [_picture(picture, files[f"{picture.name}.png"]) for picture in said.pictures],
        "cost": None if said.cost is None else cost_data(said.cost),
        "selection": [selection_data(one) for one in said.selected],
        "failedScore": failed,
        "confirmed": said.confirmed,
        "seeds": list(said.seeds),
        "environments": environments,
        "claims": claims_records(said.claims),
        "problems": list(said.problems),
        "settings": settings_data(said.settings),
        "versions": {"runs": dict(said.made_with) if said.made_with else None, "report": made},
        "tables": {name: content.decode() for name, content in written.items()},
        "links": [{"title": words, "address": address} for words, address in said.links],
        "files": sorted(files),
    }
    files["report.html"] = page_html(said.title, WEB, ENTRY, data, images=bool(said.pictures)).encode()
    check_folder(folder, overwrite)  # again: the computation took a while
    write_files(folder, files)
    return [folder / name for name in ["report.html", *sorted(name for name in files if name != "report.html")]]


def _methods(groups: Sequence[Group], texts: Sequence[str]) -> bytes:
    """The paragraphs on methods as Markdown, a section for each environment."""
    parts = [f"## {group.title}\n\n{text}\n" for group, text in zip(groups, texts, strict=True)]
    return "\n".join(["# Methods\n", *parts]).encode()


def _picture(picture: Picture, content: bytes) -> dict[str, str]:
    image = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return {"name": picture.name, "title": picture.title, "caption": picture.caption, "image": image}


def _panels(
    results: Results, group: Group, other: Mapping[str, Sequence[SensitivityPanel]] | None
) -> Sequence[SensitivityPanel]:
    return sensitivity_panels(results.sweep, group) if other is None else other.get(group.environment, ())


def _figures(found: Sequence[tuple[Findings, Sequence[SensitivityPanel]]], seed: int) -> dict[str, bytes]:
    together = draw_all_curves([findings for findings, _ in found], seed=seed)
    out = {} if together is None else _files("learning_curves", together)
    for findings, shown in found:
        prefix = "" if len(found) == 1 else f"{_file_name(findings.group.title)}-"
        drawn = {
            "learning_curves": draw_curves(findings, seed=seed),
            "evaluation": draw_evaluation(findings, seed=seed),
            "exploration": draw_exploration(findings),
            "profiles": draw_profiles(findings),
            "sensitivity": draw_panels(shown, findings.chosen),
        }
        for name, figure in drawn.items():
            if figure is not None:
                out |= _files(f"{prefix}{name}", figure)
    return out


def _files(name: str, figure: Figure) -> dict[str, bytes]:
    return {f"{name}{suffix}": figure_bytes(figure, suffix) for suffix in (".png", ".pdf")}


def _file_name(words: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", words).strip("._") or "environment"
