"""A page's modules as one script: each in a function of its own, after the modules that it imports."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
"""The folder below which all modules of pages lie."""

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:function|const|class) (\w+))", re.MULTILINE)


def bundle(entry: str) -> str:
    """A script that does what the module `entry` does, without imports.

    Args:
        entry: the module's path below the package `ipe`. Modules import with `import { a, b } from "./other.js";`
            and export functions and constants where they are declared.

    Example:
        >>> "export " in bundle("explorer/web/math/values.js") or "import " in bundle("explorer/web/math/values.js")
        False
    """
    modules: dict[str, str] = {}
    _add(PurePosixPath(entry), modules, ())
    return '"use strict";\n' + "\n".join(modules.values())


def _add(path: PurePosixPath, modules: dict[str, str], within: tuple[PurePosixPath, ...]) -> None:
    """Add the modules that this one imports, then this one."""
    if path in within:
        raise RuntimeError(f"modules import each other in a circle: {' -> '.join(map(str, (*within, path)))}")
    if str(path) in modules:
        return
    source = (ROOT / path).read_text(encoding="utf-8")
    heads = []
    for names, other in _IMPORT.findall(source):
        needed = _resolved(path.parent / other)
        _add(needed, modules, (*within, path))
        heads.append(f"const {{ {', '.join(name.strip() for name in names.split(',') if name.strip())} }} = "
                     f"{_variable(needed)};")  # fmt: skip
    body = _EXPORT.sub("", _IMPORT.sub("", source))
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise RuntimeError(f"{path} imports or exports in a form that the bundle does not know")
    exported = ", ".join(_EXPORT.findall(source))
    head = "\n".join(heads)
    modules[str(path)] = f"const {_variable(path)} = (() => {{\n{head}\n{body}\nreturn {{ {exported} }};\n}})();"


def _resolved(path: PurePosixPath) -> PurePosixPath:
    """The path without `.` and `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return PurePosixPath(*parts)


def _variable(path: PurePosixPath) -> str:
    return "$" + re.sub(r"\W", "_", str(path.with_suffix("")))
