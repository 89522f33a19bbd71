"""Folders of results: refused before the work if they cannot hold it, and written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipe.base.atomic import check_folder, write_files
from ipe.errors import InputError


def test_a_place_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "file" / "far" / "below"):
        with pytest.raises(InputError, match="file is a file, not a folder"):
            check_folder(place, overwrite=True)
    check_folder(tmp_path / "new" / "deep", overwrite=False)


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not empty; give --overwrite to replace files of the same names"):
        check_folder(tmp_path, overwrite=False)
    check_folder(tmp_path, overwrite=True)


def test_what_cannot_all_be_written_is_not_written_in_part(tmp_path: Path) -> None:
    (tmp_path / "kept" / "b").mkdir(parents=True)  # a folder where a file is to go
    with pytest.raises(InputError, match="it is a folder"):
        write_files(tmp_path / "kept", {"a": b"1", "b": b"2"})
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["b"]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="out: cannot make the folder"):
        write_files(tmp_path / "file" / "below", {"a": b"1"})
    write_files(tmp_path / "new" / "deep", {"a": b"1"})
    assert (tmp_path / "new" / "deep" / "a").read_bytes() == b"1"
