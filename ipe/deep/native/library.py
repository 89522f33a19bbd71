"""Compiling and loading the C library: once per machine, into a folder of the user's own.

A library in the cache bears the checksum of its content in its name, and is compared with it before it is loaded: a
flipped byte can end the process, or change results in silence. A damaged library is compiled anew. The checksum stands
in the name and not in a second file so that any number of processes can write and read the cache at once: a rename puts
both in place, and all who write to a name write the same bytes.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path

from ipe.deep.compilation import cache_folder
from ipe.deep.networks import Architecture
from ipe.errors import InputError

VARIABLE = "IPE_PRODUCTS"
"""The environment variable that chooses: native, or xla."""
TARGETS = ("ipe_forward", "ipe_act", "ipe_backward", "ipe_rmsprop")
LANES = 16
"""The numbers in a vector, whatever the machine: the sizes of layers are multiples of this."""

_SOURCES = ("vectors.h", "bfloat16.h", "layers.h", "convolution.h", "priorities.h", "network.c")
_FLAGS = ("-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-shared", "-fPIC")
_PATIENCE = 120.0


class UnavailableError(Exception):
    """The library cannot be had on this machine; the message says why, in half a sentence."""


class DamagedError(UnavailableError):
    """The library is not what was compiled."""


def choose(architecture: Architecture) -> str:
    """Return which products a new run uses: "native" or "xla". An environment variable that asks for products that this
    machine or this network cannot have is refused."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "native", "xla"):
        raise InputError(f"{VARIABLE}: must be native or xla, found {wanted!r}")
    if wanted == "xla":
        return "xla"
    why = reason(architecture)
    if why and wanted == "native":
        raise InputError(f"{VARIABLE}: native products cannot be used: {why}")
    return "xla" if why else "native"


def reason(architecture: Architecture) -> str:
    """Return why a network's products cannot be native ones; an empty text if they can."""
    if architecture.atari:
        return "the network atari has XLA's convolutions"
    for name, size in (("width", architecture.width), ("channels", architecture.channels)):
        if size % LANES and (name == "width" or architecture.image):
            return f"{name} must be a multiple of {LANES}, found {size}"
    if architecture.dueling and architecture.width % (2 * LANES):
        return f"width must be a multiple of {2 * LANES} for two streams, found {architecture.width}"
    why = registered()
    if architecture.precision == "bfloat16" and not why and not has_bfloat16():
        return "this processor has no products of bfloat16"
    return why


@cache
def has_bfloat16() -> bool:
    """Whether the library, which this machine can load, has products of bfloat16 here."""
    return bool(loaded().ipe_has_bfloat16())


@cache
def registered() -> str:
    """Compile the library if need be, load it, and tell XLA its functions; returns why that is not possible, if so."""
    import jax

    try:
        library = loaded()
    except UnavailableError as error:
        return str(error)
    for name in TARGETS:
        handler = jax.ffi.pycapsule(getattr(library, name))  # type: ignore[no-untyped-call]
        jax.ffi.register_ffi_target(name, handler, platform="cpu")
    return ""


def loaded() -> ctypes.CDLL:
    """Load the library, after compiling it if this machine has not done so yet; an `UnavailableError` says why not."""
    compiler = _compiler()
    folder = cache_folder(os.environ, "native")
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="ipe-") as temporary:
            return _load(_built(compiler, Path(temporary), "network"))
    stem = f"network-{_fingerprint(compiler)}"
    for path in sorted(folder.glob(f"{stem}-*.so")):
        with contextlib.suppress(DamagedError):
            return _load(path)
    return _load(_built(compiler, folder, stem))


def _compiler() -> list[str]:
    try:
        words = shlex.split(os.environ.get("CC", "")) or ["gcc"]
    except ValueError as error:
        raise UnavailableError(f"CC cannot be read as a command: {error}") from None
    found = shutil.which(words[0])
    if found is None:
        raise UnavailableError(f"there is no C compiler {words[0]}")
    return [found, *words[1:]]


def _fingerprint(compiler: list[str]) -> str:
    """Return a digest of all that the library depends on: the sources, the compiler, the processor, XLA's headers."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        digest.update((Path(__file__).parent / name).read_bytes())
    said = _run([*compiler, "--version"]).stdout
    for part in (said, repr((compiler, _FLAGS)), platform.machine(), _processor(), metadata.version("jaxlib")):
        digest.update(part.encode())
    return digest.hexdigest()[:24]


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))


def _built(compiler: list[str], folder: Path, stem: str) -> Path:
    """Compile the library into a folder; its name is the stem and the checksum of its content."""
    import jax

    here = Path(__file__).parent
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=stem, suffix=".tmp", delete=False) as file:
            made = Path(file.name)
    except OSError as error:
        raise UnavailableError(f"there is no place for the compiled library: {error.strerror or error}") from None
    try:
        words = [*compiler, *_FLAGS, "-I", jax.ffi.include_dir(), "-o", str(made), str(here / "network.c"), "-lm"]
        done = _run(words)
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), "it does not say why")
            raise UnavailableError(f"{Path(compiler[0]).name} cannot compile them: {first.strip()}")
        made.chmod(0o600)
        return made.replace(folder / f"{stem}-{_checksum(made)}.so")
    except OSError as error:
        raise UnavailableError(f"the compiled library cannot be kept: {error.strerror or error}") from None
    finally:
        made.unlink(missing_ok=True)


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"the compiler cannot be run: {error}") from None


def _load(path: Path) -> ctypes.CDLL:
    """Load a library whose content has the checksum in its name."""
    try:
        if not path.stem.endswith(f"-{_checksum(path)}"):
            raise DamagedError("the compiled library in the cache is not what was compiled")
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise UnavailableError(f"the compiled library cannot be loaded: {error}") from None
