"""Lines of text files that a run may still be writing: plain or compressed by gzip, the last line perhaps cut off."""

from __future__ import annotations

import gzip
import zlib
from typing import NamedTuple

from ipe.base.files import PathLike, read_bytes
from ipe.errors import InputError


class Lines(NamedTuple):
    """The lines of a file."""

    lines: list[str]
    """The whole lines, without their ends; line 1 is the first."""
    cut: bool
    """Whether the file ends within a line, which is left out: the run may still be going."""


def read_lines(path: PathLike) -> Lines:
    """The whole lines of a file of UTF-8 text, which gzip may have compressed.

    Raises:
        InputError: if the file is missing, or not such a text.
    """
    content = read_bytes(path)
    cut = False
    if content.startswith(b"\x1f\x8b"):
        content, cut = _unzipped(content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"line {line}: not UTF-8 text") from None
    if "\0" in text:
        raise InputError(f"line {text[: text.index(chr(0))].count(chr(10)) + 1}: not a text file")
    *lines, last = text.split("\n")
    return Lines([line.removesuffix("\r") for line in lines], cut or bool(last.strip()))


def last_is_whole(path: PathLike) -> Lines:
    """The lines of a file in which the last one counts also without an end, as editors leave it."""
    found = read_lines(path)
    if not found.cut:
        return found
    content = read_bytes(path)
    if content.startswith(b"\x1f\x8b"):
        return found
    last = content.decode("utf-8-sig").split("\n")[-1]
    return Lines([*found.lines, last.removesuffix("\r")], False)


def _unzipped(content: bytes) -> tuple[bytes, bool]:
    """The content of a gzip file, as far as it goes, and whether it ends too early."""
    try:
        return gzip.decompress(content), False
    except EOFError:
        return zlib.decompressobj(wbits=31).decompress(content), True
    except (OSError, zlib.error) as error:
        raise InputError(f"not a readable gzip file, or a damaged one ({error})") from None
