"""Running a study: its parts one after the other into a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ipe.analysis import Claim, claims_markdown, claims_records
from ipe.base.atomic import check_folder, write_files
from ipe.base.parquet import parquet_bytes
from ipe.figures.style import figure_bytes
from ipe.studies.parts import Part, Progress, check_only


def choose_parts(parts: Sequence[Part], only: Sequence[str] | None) -> list[Part]:
    """The parts of these names, in the study's order; all of them by default."""
    names = check_only([part.name for part in parts], only)
    return [part for part in parts if part.name in names]


def run_study(
    title: str,
    parts: Sequence[Part],
    settings: BaseModel,
    out: Path,
    *,
    overwrite: bool = False,
    progress: Callable[[str, str, int, int], None] | None = None,
) -> list[Claim]:
    """Compute, draw and judge every part, and write it all to a folder.

    For each part its tables (`NAME.parquet`) and its figure (`NAME.png`, `NAME.pdf`); then `report.md` (figures and
    claims on one page), `settings.json`, `claims.md` and `claims.json`. Files are written when everything is computed:
    a study that is stopped leaves nothing.

    Args:
        title: the study's title, for the report.
        parts: the parts to run.
        settings: the numbers of the study.
        out: the folder for the files. It must be empty or not exist, unless `overwrite`.
        overwrite: whether files of the same names that are in the folder already are replaced.
        progress: a function that is called with the part, what is done in it, how much is done and how much there is.

    Returns:
        The claims with their verdicts.
    """
    check_folder(out, overwrite)
    files: dict[str, bytes] = {}
    claims: list[Claim] = []
    page = [f"# {title}\n"]
    for part in parts:
        found = _run_part(part, settings, files, _silent if progress is None else partial(progress, part.name))
        claims += found
        page += [f"## {part.title}" + (" (beyond the paper)" if part.addition else ""), ""]
        page += [f"![{part.title}]({part.name}.png)", "", claims_markdown(found)]
    files["report.md"] = "\n".join(page).encode()
    files["settings.json"] = f"{settings.model_dump_json(indent=1)}\n".encode()
    files["claims.md"] = claims_markdown(claims).encode()
    files["claims.json"] = f"{json.dumps(claims_records(claims), indent=1, ensure_ascii=False)}\n".encode()
    check_folder(out, overwrite)  # again: the computation took a while
    write_files(out, files)
    return claims


def _run_part(part: Part, settings: Any, files: dict[str, bytes], progress: Progress) -> Sequence[Claim]:
    tables = part.compute(settings, progress)
    progress("drawing", 1, 1)
    files.update({f"{name}.parquet": parquet_bytes(table) for name, table in tables.items()})
    figure = part.draw(settings, tables)
    files.update({f"{part.name}{suffix}": figure_bytes(figure, suffix) for suffix in (".png", ".pdf")})
    return part.judge(settings, tables)


def _silent(what: str, done: int, total: int) -> None:
    """Tell nobody how far a part is."""
