"""The C library's products: exact on whole numbers, else equal to XLA's but for rounding; and how it is come by."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipe.deep import networks
from ipe.deep.loop import Loop
from ipe.deep.native import calls, library
from ipe.deep.networks import Architecture, initial_parameters, split
from ipe.deep.optimisers import initial_moments, step
from ipe.errors import InputError
from tests.deep_helpers import DRIFT, advance, run, small
from tests.tiers import examples, tiered

gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
slow = pytest.mark.slow
intel = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="not a processor with AVX2")
bfloat16 = pytest.mark.skipif(
    shutil.which("gcc") is None or library.registered() != "" or not library.has_bfloat16(),
    reason="there is no gcc, or the processor has no products of bfloat16",
)
IMAGE = "tests.deep_environments:Pixels-v0"
ARCHITECTURES = [
    Architecture((8,), 128, 16, 4),
    Architecture((4,), 48, 16, 2),  # an odd number of vectors
    Architecture((3,), 16, 16, 1),
    Architecture((20,), 64, 16, 18),
    Architecture((10, 10, 7), 64, 16, 3),
    Architecture((3, 5, 2), 16, 32, 6),
    Architecture((5,), 96, 16, 4, dueling=True),
    Architecture((4, 5, 2), 32, 16, 2, dueling=True),
]
THREE_LAYERS = [net for net in ARCHITECTURES if not net.dueling]
"""The networks that are written out by hand below; those with two streams are compared with XLA's above."""
QUICK = (ARCHITECTURES[1], ARCHITECTURES[5], ARCHITECTURES[7])
NETS_AND_BATCHES = [
    pytest.param(net, batch, marks=() if net in QUICK else slow)
    for net, batch in zip(ARCHITECTURES, [32, 7, 1, 50, 32, 7, 33, 7], strict=True)
]


@pytest.fixture(autouse=True)
def registered() -> None:
    if shutil.which("gcc") is not None:
        assert library.registered() == ""


def observations_of(net: Architecture, seeds: int, batch: int) -> Any:
    draws = np.random.default_rng(batch).normal(size=(seeds, batch, *net.inputs))
    return np.where(draws > 0.5, draws, 0.0).astype(np.float32) if net.image else draws.astype(np.float32)


def parameters_of(net: Architecture, seeds: int) -> Any:
    return initial_parameters(net, [np.random.default_rng(seed) for seed in range(seeds)])


@partial(jax.jit, static_argnums=(0, 1))
def step_of(native: bool, net: Architecture, parameters: Any, observations: Any, error: Any, moments: Any) -> Any:
    """Outputs, gradient, and a step of RMSprop."""
    functions: Any = calls if native else networks
    seeds = len(observations)
    output, seen = functions.forward(net, parameters, functions.features(net, observations))
    gradient = functions.backward(net, parameters, seen, error)
    numbers = {"optimiser_decay": jnp.linspace(0.9, 0.99, seeds), "optimiser_epsilon": jnp.full(seeds, 1e-6)}
    size = jnp.linspace(0.01, 0.02, seeds)
    if native:
        return output, gradient, calls.rmsprop(net, parameters, seen, error, moments, size, numbers)
    return output, gradient, step("rmsprop", parameters, gradient, moments, size, numbers, jnp.zeros(seeds))


@gcc
@pytest.mark.parametrize(("net", "batch"), NETS_AND_BATCHES, ids=str)
def test_they_are_those_of_xla_but_for_rounding(net: Architecture, batch: int) -> None:
    parameters, observations = parameters_of(net, 2), observations_of(net, 2, batch)
    error = np.random.default_rng(9).normal(size=(2, batch, net.actions)).astype(np.float32)
    moments = jax.tree.map(lambda array: array + 0.1, initial_moments("rmsprop", parameters))
    found, expected = (step_of(native, net, parameters, observations, error, moments) for native in (True, False))
    assert str(jax.tree.structure(found)) == str(jax.tree.structure(expected))
    for mine, others in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, others, rtol=0, atol=2e-6 * max(1e-3, abs(np.asarray(others)).max()))


def whole(draw: np.random.Generator, shape: tuple[int, ...], most: int) -> Any:
    return draw.integers(-most, most + 1, shape).astype(np.float32)


@pytest.mark.slow
@gcc
@examples(10)
@given(net=st.sampled_from(THREE_LAYERS), batch=st.sampled_from([1, 5, 32, 33]), seed=st.integers(0, 2**32 - 1))
def test_whole_numbers_come_out_exactly(net: Architecture, batch: int, seed: int) -> None:
    check_whole_numbers(net, batch, seed)


@pytest.mark.slow
@bfloat16
@examples(10)
@given(net=st.sampled_from(THREE_LAYERS), batch=st.sampled_from([1, 5, 32, 33]), seed=st.integers(0, 2**32 - 1))
def test_whole_numbers_that_bfloat16_has_come_out_exactly(net: Architecture, batch: int, seed: int) -> None:
    check_whole_numbers(net._replace(precision="bfloat16"), batch, seed)  # no factor is above 2^8


def check_whole_numbers(net: Architecture, batch: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    # Small enough that every sum is below 2^24, where float32 has all whole numbers.
    parameters = {name: whole(draw, array.shape, 1) for name, array in parameters_of(net, 2).items()}
    observations, error = whole(draw, (2, batch, *net.inputs), 1), whole(draw, (2, batch, net.actions), 1)
    output, seen = calls.forward(net, parameters, calls.features(net, observations))
    gradient = split(net, calls.backward(net, parameters, seen, error))
    for i in range(2):
        layers = [(np.asarray(w[i], np.int64), np.asarray(b[i], np.int64)) for w, b in split(net, parameters)]
        x = np.asarray(networks.features(net, jnp.asarray(observations)))[i].astype(np.int64)
        hidden = np.maximum(x.reshape(-1, x.shape[-1]) @ layers[0][0] + layers[0][1], 0).reshape(batch, -1)
        last = np.maximum(hidden @ layers[1][0] + layers[1][1], 0)
        np.testing.assert_array_equal(output[i], last @ layers[2][0] + layers[2][1])
        of_output = error[i].astype(np.int64)
        of_last = (of_output @ layers[2][0].T) * (last > 0)
        of_hidden = (of_last @ layers[1][0].T) * (hidden > 0)
        of_first = of_hidden.reshape(-1, layers[0][0].shape[1])
        expected = [(x.reshape(-1, x.shape[-1]), of_first), (hidden, of_last), (last, of_output)]
        for (weights, bias), (into, out) in zip(gradient, expected, strict=True):
            np.testing.assert_array_equal(weights[i], into.T @ out)
            np.testing.assert_array_equal(bias[i], out.sum(0))


def rounded(x: Any) -> Any:
    return np.asarray(jnp.asarray(x, jnp.float32).astype(jnp.bfloat16), np.float64)


@bfloat16
@pytest.mark.parametrize(("net", "batch"), NETS_AND_BATCHES[: len(THREE_LAYERS)], ids=str)
def test_the_factors_of_the_middle_layer_are_rounded_to_bfloat16_and_nothing_else(
    net: Architecture, batch: int
) -> None:
    net = net._replace(precision="bfloat16")
    parameters, observations = parameters_of(net, 2), observations_of(net, 2, batch)
    error = np.random.default_rng(9).normal(size=(2, batch, net.actions)).astype(np.float32)
    output, seen = calls.forward(net, parameters, calls.features(net, observations))
    gradient = split(net, calls.backward(net, parameters, seen, error))
    for i in range(2):
        (w0, b0), (w1, b1), (w2, b2) = [
            (np.asarray(w[i], np.float64), np.asarray(b[i], np.float64)) for w, b in split(net, parameters)
        ]
        x = np.asarray(networks.features(net, jnp.asarray(observations)), np.float64)[i]
        hidden = np.maximum(x.reshape(-1, x.shape[-1]) @ w0 + b0, 0).reshape(batch, -1)
        last = np.maximum(rounded(hidden) @ rounded(w1) + b1, 0)
        of_last = (error[i] @ w2.T) * (last > 0)
        of_hidden = (rounded(of_last) @ rounded(w1).T) * (hidden > 0)
        expected = [
            (output[i], last @ w2 + b2),
            (gradient[1][0][i], rounded(hidden).T @ rounded(of_last)),
            (gradient[1][1][i], of_last.sum(0)),
            (gradient[0][0][i], x.reshape(-1, x.shape[-1]).T @ of_hidden.reshape(-1, w0.shape[1])),
        ]
        for mine, other in expected:
            np.testing.assert_allclose(mine, other, rtol=0, atol=3e-6 * max(1e-3, abs(other).max()))


@gcc
@pytest.mark.parametrize("net", tiered(ARCHITECTURES, *QUICK), ids=str)
def test_a_result_depends_neither_on_the_batch_nor_on_the_seeds(net: Architecture) -> None:
    parameters, observations = parameters_of(net, 3), calls.features(net, observations_of(net, 3, 33))
    output, _ = calls.forward(net, parameters, observations)
    np.testing.assert_array_equal(calls.act(net, parameters, observations), output)
    alone = {name: array[1:2] for name, array in parameters.items()}
    np.testing.assert_array_equal(calls.forward(net, alone, observations[1:2, 5:6])[0][0, 0], output[1, 5])


@bfloat16
@pytest.mark.parametrize("net", tiered(ARCHITECTURES, *QUICK), ids=str)
def test_nor_does_a_rounded_result(net: Architecture) -> None:
    net = net._replace(precision="bfloat16")
    parameters, observations = parameters_of(net, 3), calls.features(net, observations_of(net, 3, 33))
    output, _ = calls.forward(net, parameters, observations)
    alone = {name: array[1:2] for name, array in parameters.items()}
    np.testing.assert_array_equal(calls.forward(net, alone, observations[1:2, 5:6])[0][0, 0], output[1, 5])
    exact = net._replace(precision="float32")  # to act, nothing is rounded
    np.testing.assert_array_equal(calls.act(net, parameters, observations), calls.act(exact, parameters, observations))


@gcc
@pytest.mark.parametrize("net", [net for net in ARCHITECTURES if net.image], ids=str)
def test_bits_are_as_good_as_numbers(net: Architecture) -> None:
    numbers = observations_of(net, 2, 32) > 0.0
    bits = np.packbits(numbers.reshape(2, 32, -1), axis=-1, bitorder="little")
    bits[..., -1] |= np.uint8(256 - (1 << (numbers[0, 0].size - 1) % 8 + 1))  # beyond the image: not looked at
    parameters = parameters_of(net, 2)
    expected, seen = calls.forward(net, parameters, calls.features(net, numbers.astype(np.float32)))
    found, seen_in_bits = calls.forward(net, parameters, bits)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(calls.act(net, parameters, bits), expected)
    gradients = [calls.backward(net, parameters, own, expected) for own in (seen, seen_in_bits)]
    np.testing.assert_array_equal(gradients[0]["rest"], gradients[1]["rest"])


@pytest.mark.slow
@gcc
@pytest.mark.parametrize("machine", ["-march=native", pytest.param("-mavx2", marks=[intel, slow])])
def test_it_compiles_without_a_warning(tmp_path: Path, machine: str) -> None:
    source = Path(library.__file__).with_name("network.c")
    flags = [machine if flag == "-march=native" else flag for flag in library._FLAGS]
    # Vectors wider than the machine's own are passed between functions of this file alone.
    words = ["gcc", *flags, "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-I", jax.ffi.include_dir(), "-o"]
    done = subprocess.run([*words, str(tmp_path / "network.so"), str(source), "-lm"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@gcc
@pytest.mark.parametrize("precision", ["float32", pytest.param("bfloat16", marks=bfloat16)])
@pytest.mark.parametrize("net", [ARCHITECTURES[0], ARCHITECTURES[4]], ids=str)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_seen(net: Architecture, bad: float, precision: str) -> None:
    net = net._replace(precision=precision)
    parameters, observations = parameters_of(net, 2), calls.features(net, observations_of(net, 2, 32))
    broken = {**parameters, "matrix": parameters["matrix"].at[1, 3, 5].set(bad)}
    output, seen = calls.forward(net, broken, observations)
    assert np.isfinite(output[0]).all()
    assert not np.isfinite(output[1]).all()
    assert not np.isfinite(calls.act(net, broken, observations)[1]).all()
    error = jnp.ones_like(output)
    assert not np.isfinite(calls.backward(net, broken, seen, error)["rest"][1]).all()


BYTES = """
import hashlib, sys
import numpy as np
import jax
from ipe.deep.native import library
library._FLAGS = tuple(flag for flag in library._FLAGS if flag != "-march=native") + tuple(sys.argv[1:])
from tests.test_deep_native import ARCHITECTURES, initial_moments, observations_of, parameters_of, step_of
assert library.registered() == "", library.registered()
digest = hashlib.sha256()
for net in ARCHITECTURES:
    parameters, observations = parameters_of(net, 2), observations_of(net, 2, 32)
    error = np.random.default_rng(9).normal(size=(2, 32, net.actions)).astype(np.float32)
    moments = initial_moments("rmsprop", parameters)
    for leaf in jax.tree.leaves(step_of(True, net, parameters, observations, error, moments)):
        digest.update(np.asarray(leaf).tobytes())
print(digest.hexdigest())
"""


@gcc
@slow
def test_the_machines_registers_do_not_change_the_bytes(tmp_path: Path) -> None:
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").is_file() else ""
    if not {"avx2", "fma"} <= set(flags.split()):
        pytest.skip("the processor has no AVX2")
    every = [["-mavx2", "-mfma"], ["-march=native"]]
    found = set()
    for own in every:
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", BYTES, *own], cwd=Path(__file__).parent.parent, env=environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.add(done.stdout.split()[-1])
    assert len(found) == 1


@pytest.mark.slow
@gcc
@pytest.mark.parametrize(
    ("environment", "products", "precision"),
    [
        (DRIFT, "native", "float32"),
        pytest.param(IMAGE, "native", "float32", marks=slow),
        pytest.param(DRIFT, "xla", "float32", marks=slow),
        pytest.param(DRIFT, "native", "bfloat16", marks=[bfloat16, slow]),
        pytest.param(IMAGE, "native", "bfloat16", marks=[bfloat16, slow]),
    ],
)
def test_training_with_either_is_the_same_but_for_rounding_and_resumes_to_the_byte(
    environment: str, products: str, precision: Literal["float32", "bfloat16"], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = small(environment, channels=16, precision=precision)
    seeds = [3] if environment == IMAGE else [3, 4, 5]
    monkeypatch.setenv(library.VARIABLE, products)
    whole_run = run(own, seeds, 60)
    assert whole_run.program.products == products
    first = run(own, seeds, 25).checkpoint()
    monkeypatch.setenv(library.VARIABLE, "xla" if products == "native" else "native")
    resumed = Loop([own] * len(seeds), seeds, first)  # as it was begun, whatever is wanted now
    assert resumed.program.products == products
    advance(resumed, 35)
    for name, array in whole_run.networks().items():
        np.testing.assert_array_equal(resumed.networks()[name], array)
    other = run(own, seeds, 60)
    assert other.program.products != products
    for name, array in whole_run.networks().items():
        # Where a gradient's terms cancel, RMSprop makes a step of what rounding has left.
        assert np.median(abs(other.networks()[name] - array)) < (1e-4 if precision == "float32" else 1e-2)


@gcc
@pytest.mark.slow
def test_a_run_begun_with_them_is_not_resumed_without(monkeypatch: pytest.MonkeyPatch) -> None:
    own = small(DRIFT)
    begun = run(own, [0], 5).checkpoint()
    assert begun.data["products"] == "native"
    monkeypatch.setattr(library, "registered", lambda: "there is no C compiler gcc")
    with pytest.raises(InputError, match="begun with native products, which cannot be used here: there is no C comp"):
        Loop([own], [0], begun)
    assert run(own, [0], 5).program.products == "xla"


@pytest.fixture
def anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As in a new process, with a cache of its own; what this process has told XLA stays told, and remembered."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(library.VARIABLE, raising=False)
    monkeypatch.setattr(library, "registered", library.registered.__wrapped__)
    return tmp_path / "cache" / "ipe" / "native"


@gcc
def test_it_is_compiled_once_for_the_user_alone(anew: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library.loaded()
    (file,) = anew.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(anew.stat().st_mode) == 0o700
    monkeypatch.setattr(library, "_built", lambda *_: pytest.fail("compiled twice"))
    library.loaded()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]


def put(file: Path, data: bytes) -> Path:
    """Write a file under another name and rename it: this process has mapped the library, which must not change."""
    beside = file.with_suffix(".new")
    beside.write_bytes(data)
    return beside.replace(file)


@gcc
def test_a_damaged_library_is_never_loaded_and_compiled_anew(anew: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library.loaded()
    (file,) = anew.iterdir()
    sound = file.read_bytes()
    loads = []

    def load(path: str) -> str:
        """Stand in for the linker: to load a damaged library may end the process."""
        assert Path(path).read_bytes() == sound
        loads.append(path)
        return "loaded"

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(library, "_built", lambda *_: pytest.fail("compiled although the library is sound"))
    library.loaded()
    monkeypatch.setattr(library, "_built", lambda *_: put(file, sound))
    places = range(0, len(sound), len(sound) // 200)
    for wrong in [*(flipped(sound, at) for at in places), sound[:-1], sound + b"\0", b""]:
        put(file, wrong)
        library.loaded()
        assert file.read_bytes() == sound
    assert len(loads) > 200
    monkeypatch.setattr(library, "_built", lambda *_: put(file, sound[:-1]))  # the disk is full
    put(file, b"")
    with pytest.raises(library.UnavailableError, match="is not what was compiled"):
        library.loaded()


LOAD = "from ipe.deep.native import library; print(library.loaded().ipe_has_bfloat16() in (0, 1))"


@gcc
@pytest.mark.slow
def test_several_processes_that_find_a_damaged_library_all_load_a_sound_one(anew: Path) -> None:
    library.loaded()
    (file,) = anew.iterdir()
    sound = file.read_bytes()
    put(file, flipped(sound, len(sound) // 2))
    words = [sys.executable, "-c", LOAD]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent) for _ in range(3)]
    assert [process.communicate(timeout=120)[0] for process in processes] == [b"True\n"] * 3
    assert file.read_bytes() == sound
    assert list(anew.iterdir()) == [file]


@pytest.mark.slow
@gcc
def test_without_a_folder_it_is_compiled_for_this_process(anew: Path) -> None:
    anew.mkdir(parents=True)
    anew.chmod(0o777)
    library.loaded()
    assert list(anew.iterdir()) == []


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize(
    ("compiler", "sentence"),
    [
        ("no-such-compiler", "there is no C compiler no-such-compiler"),
        ("false", "false cannot compile them"),
        ('gcc "', "CC cannot be read as a command: No closing quotation"),
    ],
)
def test_without_a_compiler_the_products_are_xlas(
    compiler: str, sentence: str, monkeypatch: pytest.MonkeyPatch, anew: Path
) -> None:
    monkeypatch.setenv("CC", compiler)
    assert sentence in library.reason(ARCHITECTURES[0])
    assert library.choose(ARCHITECTURES[0]) == "xla"
    assert not anew.exists() or list(anew.iterdir()) == []  # nothing half-made is left
    monkeypatch.setenv(library.VARIABLE, "native")
    with pytest.raises(InputError, match=f"IPE_PRODUCTS: native products cannot be used: {sentence}"):
        library.choose(ARCHITECTURES[0])


@pytest.mark.parametrize(
    ("net", "sentence"),
    [
        (Architecture((8,), 100, 16, 4), "width must be a multiple of 16, found 100"),
        (Architecture((9, 9, 1), 32, 4, 4), "channels must be a multiple of 16, found 4"),
        (
            Architecture((8,), 48, 16, 4, dueling=True),
            "width must be a multiple of 32 for two streams, found 48",
        ),
        (Architecture((8,), 32, 16, 4, "bfloat16"), "this processor has no products of bfloat16"),
    ],
)
def test_what_they_cannot_do_is_xlas(net: Architecture, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("gcc") is None and net.width % 16 == 0:
        pytest.skip("there is no gcc")
    monkeypatch.setattr(library, "has_bfloat16", lambda: False)
    assert library.reason(net) == sentence
    assert library.choose(net) == "xla"


def test_channels_do_not_matter_where_there_is_no_convolution() -> None:
    assert "channels" not in library.reason(Architecture((8,), 32, 4, 4))


@pytest.mark.parametrize("wanted", ["Native", "c", "yes"])
def test_a_wrong_choice_is_refused(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.VARIABLE, wanted)
    with pytest.raises(InputError, match=f"IPE_PRODUCTS: must be native or xla, found '{wanted}'"):
        library.choose(ARCHITECTURES[0])
