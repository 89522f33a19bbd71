"""Checkpoints: exact round trips, and a valid one after kills, full disks, damage and company."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file

from ipe.base.sealed import decode, encode, sealed_bytes
from ipe.deep.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from ipe.deep.tensors import hash_file
from ipe.errors import InputError
from tests.tiers import examples

TYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
]


def small(frame: int) -> Checkpoint:
    """A checkpoint that says everywhere which frame it is of."""
    return Checkpoint(frame, {"a": np.full(3, frame), "b": np.full((2, 2), frame, np.float32)}, {"frame": frame})


def check(found: Checkpoint | None) -> int:
    """Its frame, if all of it is of one frame."""
    assert found is not None
    assert found.data["frame"] == found.frame
    assert all(np.all(array == found.frame) for array in found.arrays.values())
    return found.frame


def load(folder: Path) -> Checkpoint:
    found = load_checkpoint(folder, report=pytest.fail)
    assert found is not None
    return found


def identical(one: Any, other: Any) -> bool:
    """Equal with the same types, the sign of zero included, and NaN equal to NaN."""
    if isinstance(one, dict):
        return list(one) == list(other) and all(identical(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(identical, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(2**127, 2**128) | st.floats(width=64) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ARRAYS = st.dictionaries(
    st.text(st.characters(categories=("L", "N", "P")), max_size=8).filter(lambda name: name != "__metadata__"),
    st.sampled_from(TYPES).flatmap(
        lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    ),
    max_size=5,
)


@examples(60)
@given(st.integers(0, 10**12 - 1), ARRAYS, st.dictionaries(st.text(), JSON, max_size=4))
def test_round_trip(frame: int, arrays: dict[str, Any], data: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        manifest = save_checkpoint(Path(name), Checkpoint(frame, arrays, data))
        found = load(Path(name))
        other_tools = load_file(manifest.with_suffix(".safetensors"))
    assert found.frame == frame
    assert list(found.arrays) == list(arrays)
    assert identical(found.data, data)
    for key, array in arrays.items():
        for again in (found.arrays[key], other_tools[key]):
            assert (again.dtype, again.shape) == (array.dtype, array.shape)
            assert again.tobytes() == array.tobytes()
        assert found.arrays[key].flags.writeable


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::2, 1:],
        lambda a: a[:, ::-1],
        lambda a: np.broadcast_to(a[0], (3, 5)),
        lambda a: np.asfortranarray(a),
        lambda a: a[1:1],
        lambda a: a[2, 3],
        lambda a: np.swapaxes(np.stack([a, a[::-1]]), 0, 2),
    ],
)
@pytest.mark.parametrize("kind", ["bool", "uint8", "float64"])
def test_views_are_saved_as_what_they_show(tmp_path: Path, view: Callable[[Any], Any], kind: str) -> None:
    array = view((np.arange(20) % 3).reshape(4, 5).astype(kind))
    save_checkpoint(tmp_path, Checkpoint(1, {"before": np.zeros(1), "view": array, "z": np.ones(3, bool)}, {}))
    found = load(tmp_path).arrays
    assert (found["view"].dtype, found["view"].shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found["view"], array)
    np.testing.assert_array_equal(found["z"], np.ones(3, bool))


def test_generator_states_and_floats_come_back_exactly(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    data = {"generator": generator.bit_generator.state, "floats": [0.1 + 0.2, -0.0, 5e-324, float("inf")]}
    save_checkpoint(tmp_path, Checkpoint(0, {}, data))
    expected = generator.random(4)
    found = load(tmp_path).data
    again = np.random.default_rng()
    again.bit_generator.state = found["generator"]
    assert again.random(4).tobytes() == expected.tobytes()
    assert list(map(repr, found["floats"])) == ["0.30000000000000004", "-0.0", "5e-324", "inf"]


def test_a_large_array_is_not_copied(tmp_path: Path) -> None:
    large = np.ones(32 << 17)
    tracemalloc.start()
    save_checkpoint(tmp_path, Checkpoint(1, {"large": large}, {}))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < large.nbytes / 4
    np.testing.assert_array_equal(load(tmp_path).arrays["large"], large)


@pytest.mark.parametrize(
    ("checkpoint", "said"),
    [
        (Checkpoint(-1, {}, {}), "frame = -1"),
        (Checkpoint(10**12, {}, {}), "frame = 1000000000000"),
        (Checkpoint(1, {"q": np.zeros(1, complex)}, {}), "'q' is of type complex128"),
        (Checkpoint(1, {"q": np.zeros(1, ">f8")}, {}), "'q' is of type >f8"),
        (Checkpoint(1, {"q": np.array([None])}, {}), "'q' is of type object"),
        (Checkpoint(1, {"__metadata__": np.zeros(1)}, {}), "'__metadata__' cannot be the name"),
        (Checkpoint(1, {"a\ud800": np.zeros(1)}, {}), "cannot be the name"),
        (Checkpoint(1, {}, {"a": [0, {"b": np.int64(1)}]}), r"data\.a\[1\]\.b is a int64"),
        (Checkpoint(1, {}, {"a": {1: 2}}), r"data\.a has the key 1"),
        (Checkpoint(1, {}, {"a": {"__float__": 2}}), "data.a has the key '__float__'"),
        (Checkpoint(1, {}, {"a": 10**5000}), "data cannot be written as JSON"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, checkpoint: Checkpoint, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        save_checkpoint(tmp_path / "new", checkpoint)
    assert list(tmp_path.iterdir()) == []


def test_wrong_folders_and_counts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    for call in (lambda path: save_checkpoint(path, small(1)), load_checkpoint):
        with pytest.raises(InputError, match=r"cannot .* the folder .*file"):
            call(tmp_path / "file")
    with pytest.raises(InputError, match="keep = 0"):
        save_checkpoint(tmp_path, small(1), keep=0)


def test_none_where_there_is_none(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path) is None
    assert load_checkpoint(tmp_path / "missing") is None
    manifest = save_checkpoint(tmp_path, small(1))
    manifest.unlink()  # a first save that was killed before its end
    assert load_checkpoint(tmp_path) is None


def test_the_newest_is_loaded_and_the_rest_removed(tmp_path: Path) -> None:
    for frame in (5, 70, 300):
        save_checkpoint(tmp_path, small(frame))
        assert check(load(tmp_path)) == frame
    assert (
        sorted(path.name[:23] for path in tmp_path.iterdir())
        == ["checkpoint-000000000070"] * 2 + ["checkpoint-000000000300"] * 2
    )
    again = save_checkpoint(tmp_path, Checkpoint(300, {}, {"frame": 300, "again": True}), keep=1)
    assert load(tmp_path).data["again"]  # of one frame the last
    assert {path.stem for path in tmp_path.iterdir()} == {again.stem}
    earlier = save_checkpoint(tmp_path, small(10), keep=1)
    assert load(tmp_path).frame == 300
    assert {path.stem for path in tmp_path.iterdir()} == {again.stem, earlier.stem}


def test_leftovers_are_removed_and_strangers_are_not(tmp_path: Path) -> None:
    damaged = save_checkpoint(tmp_path, small(9))
    orphan = save_checkpoint(tmp_path, small(4), keep=9)
    for path in (damaged.with_suffix(".safetensors"), orphan):
        path.unlink()
    (tmp_path / f".{'ab' * 8}.part").write_bytes(b"half")
    strangers = ["notes.txt", "checkpoint-1.json", ".hidden.part"]
    for name in strangers:
        (tmp_path / name).write_text("mine")
    manifest = save_checkpoint(tmp_path, small(6))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {manifest.name, manifest.with_suffix(".safetensors").name, *strangers}


def test_a_damaged_one_does_not_count_among_those_kept(tmp_path: Path) -> None:
    one, two = save_checkpoint(tmp_path, small(1)), save_checkpoint(tmp_path, small(2))
    flip(two.with_suffix(".safetensors"), -1)
    three = save_checkpoint(tmp_path, small(3))
    assert {path.stem for path in tmp_path.iterdir()} == {one.stem, three.stem}


def test_each_file_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[tuple[str, int]] = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor: int) -> None:
        fsync(descriptor)
        target = os.readlink(f"/proc/self/fd/{descriptor}")
        events.append(("folder", 0) if os.path.isdir(target) else ("file", os.fstat(descriptor).st_size))

    def note_replace(source: Path, target: Path) -> None:
        events.append((Path(target).suffix, source.stat().st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    manifest = save_checkpoint(tmp_path, small(1))
    sizes = [path.stat().st_size for path in (manifest.with_suffix(".safetensors"), manifest)]
    tensors, text = (
        [("file", size), (suffix, size), ("folder", 0)]
        for suffix, size in zip([".safetensors", ".json"], sizes, strict=True)
    )
    assert events == tensors + text


def flip(path: Path, position: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """A folder with the checkpoints 1 and 2, and the manifest of 2."""
    save_checkpoint(tmp_path, small(1))
    return tmp_path, save_checkpoint(tmp_path, small(2))


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_any_flipped_bit_is_noticed(two: tuple[Path, Path], suffix: str) -> None:
    folder, manifest = two
    path = manifest.with_suffix(suffix)
    good = path.read_bytes()
    for position in range(len(good)):
        flip(path, position, position % 8)
        said: list[str] = []
        assert check(load_checkpoint(folder, said.append)) == 1
        assert len(said) == 1
        assert manifest.name in said[0]
        path.write_bytes(good)
    assert check(load(folder)) == 2


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_any_truncation_is_noticed(two: tuple[Path, Path], suffix: str) -> None:
    folder, manifest = two
    path = manifest.with_suffix(suffix)
    good = path.read_bytes()
    for content in [*(good[:length] for length in range(0, len(good), 13)), good[:-1], good + b"\0", good * 2]:
        path.write_bytes(content)
        assert check(load_checkpoint(folder)) == 1


def test_the_sentences_name_what_is_wrong(two: tuple[Path, Path]) -> None:
    folder, manifest = two
    tensors = manifest.with_suffix(".safetensors")
    good = tensors.read_bytes()

    def said() -> str:
        sentences: list[str] = []
        assert check(load_checkpoint(folder, sentences.append)) == 1
        return sentences[0].removeprefix(manifest.name)

    tensors.write_bytes(good[:-5])
    assert said() == f" has arrays in {len(good) - 5} bytes instead of {len(good)}"
    tensors.write_bytes(good[:-1] + b"\1")
    assert said() == " has damaged arrays: their sha256 is another"
    tensors.unlink()
    assert said() == " has arrays that cannot be read: No such file or directory"
    manifest.write_text("{}")
    assert said() == " is damaged: it is not what was written"


def test_a_manifest_under_another_name_is_refused(two: tuple[Path, Path]) -> None:
    folder, manifest = two
    for suffix in (".json", ".safetensors"):
        shutil.copy(manifest.with_suffix(suffix), folder / f"checkpoint-000000000009-{'0' * 24}{suffix}")
    assert check(load_checkpoint(folder)) == 2


def test_a_forged_manifest_is_refused_for_its_arrays(two: tuple[Path, Path]) -> None:
    folder, manifest = two
    content = json.loads(manifest.read_bytes())["content"]
    said: list[str] = []
    manifest.write_bytes(sealed_bytes(content | {"arrays": {"a": {"dtype": "int64", "shape": [3]}}}, "manifest"))
    assert check(load_checkpoint(folder, said.append)) == 1
    foreign = b"not safetensors"
    manifest.with_suffix(".safetensors").write_bytes(foreign)
    hashed = {"size": len(foreign), "sha256": hashlib.sha256(foreign).hexdigest()}
    manifest.write_bytes(sealed_bytes(content | hashed, "manifest"))
    assert check(load_checkpoint(folder, said.append)) == 1
    assert said[0] == f"{manifest.name} does not describe its arrays"
    assert said[1].startswith(f"{manifest.name} has arrays that cannot be read: ")


def test_a_writer_that_is_faster_than_the_reader(two: tuple[Path, Path]) -> None:
    folder, _ = two
    for path in folder.glob("*.safetensors"):
        flip(path, -1)

    def write_meanwhile(said: str) -> None:
        save_checkpoint(folder, small(9))

    assert check(load_checkpoint(folder, report=write_meanwhile)) == 9


def test_a_checkpoint_removed_while_it_is_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(path: Path) -> str:
        monkeypatch.undo()
        for frame in (2, 3):
            save_checkpoint(tmp_path, small(frame))
        assert not path.exists()
        return hash_file(path)

    save_checkpoint(tmp_path, small(1))
    monkeypatch.setattr("ipe.deep.checkpoints.hash_file", overtaken)
    assert check(load(tmp_path)) == 3


def test_a_manifest_goes_before_its_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill, or a reader, between the two finds arrays without a manifest rather than a broken checkpoint."""
    removed: list[str] = []
    unlink = Path.unlink

    def note(path: Path, missing_ok: bool = False) -> None:
        if path.name.startswith("checkpoint-"):
            removed.append(path.suffix)
        unlink(path, missing_ok)

    for frame in (1, 2, 3):
        save_checkpoint(tmp_path, small(frame), keep=3)
    monkeypatch.setattr(Path, "unlink", note)
    save_checkpoint(tmp_path, small(4), keep=1)
    assert removed == [".json"] * 3 + [".safetensors"] * 3


def test_beside_other_writers_unfinished_files_are_left_alone(tmp_path: Path) -> None:
    orphan = save_checkpoint(tmp_path, small(1)).with_suffix(".safetensors")
    orphan.with_suffix(".json").unlink()
    part = tmp_path / f".{'ab' * 8}.part"
    part.write_bytes(b"half")
    old, new = (save_checkpoint(tmp_path, small(frame), keep=1, alone=False) for frame in (2, 3))
    assert not old.exists()
    assert set(tmp_path.iterdir()) == {orphan, part, new, new.with_suffix(".safetensors")}
    last = save_checkpoint(tmp_path, small(4), keep=1)
    assert set(tmp_path.iterdir()) == {last, last.with_suffix(".safetensors")}


def test_the_manifests_of_earlier_versions_are_read(tmp_path: Path) -> None:
    manifest = save_checkpoint(tmp_path, small(4))
    manifest.write_bytes(manifest.read_bytes().replace(b'",\n"content"', b'", "content"'))
    assert check(load_checkpoint(tmp_path)) == 4


def test_some_arrays_can_be_loaded_alone(tmp_path: Path) -> None:
    arrays = {"records.a": np.arange(3), "records.b": np.ones(2), "replay": np.zeros(5)}
    save_checkpoint(tmp_path, Checkpoint(4, arrays, {}))
    found = load_checkpoint(tmp_path, only=("records.",))
    assert found is not None
    assert set(found.arrays) == {"records.a", "records.b"}


def test_a_later_schema_is_refused_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipe.deep.checkpoints.SCHEMA", 4)
    save_checkpoint(tmp_path, small(1))
    monkeypatch.undo()
    with pytest.raises(InputError, match="is of schema 4; this version of ipe reads 1 to 3"):
        load_checkpoint(tmp_path)


def test_none_valid_is_an_error(two: tuple[Path, Path]) -> None:
    folder, manifest = two
    for path in folder.glob("*.safetensors"):
        flip(path, -1)
    said: list[str] = []
    with pytest.raises(InputError, match=f"none of the 2 checkpoints is valid: {manifest.name} has damaged arrays"):
        load_checkpoint(folder, said.append)
    assert len(said) == 2


PREFIX = """
import itertools, resource, sys
from pathlib import Path
import numpy as np
from ipe.deep.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from ipe.errors import InputError
folder = Path(sys.argv[1])
def big(frame, side=500):
    arrays = {name: np.full((side, side), frame, kind) for name, kind in [("a", np.float64), ("b", np.int32)]}
    return Checkpoint(frame, arrays, {"frame": frame})
"""


def start(script: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PREFIX + script, str(folder), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_valid_checkpoint_after_every_kill(tmp_path: Path) -> None:
    script = """
found = load_checkpoint(folder)
print("ready", flush=True)
for frame in itertools.count(found.frame + 1 if found else 1):
    save_checkpoint(folder, big(frame))
    print(frame, flush=True)
"""
    delays = random.Random(4)
    last, leftovers = 0, 0
    for kills in range(1, 41):
        with start(script, tmp_path) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            end = time.monotonic() + delays.uniform(0.0, 0.25)
            while time.monotonic() < end:  # reading beside a writer at work
                found = load_checkpoint(tmp_path, report=pytest.fail)
                assert found is None or check(found) >= last
            writer.kill()
            done = [int(line) for line in writer.stdout.read().split()]
        leftovers += sum(path.suffix == ".part" for path in tmp_path.iterdir())
        found = load_checkpoint(tmp_path, report=pytest.fail)
        if done or last:
            assert check(found) >= max([last, *done])  # what was saved is there
            last = check(found)
        if kills >= 10 and leftovers and last:
            break
    assert last > 0
    assert leftovers > 0, "no kill hit a save in the middle"
    save_checkpoint(tmp_path, small(last + 1))
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json"] * 2 + [".safetensors"] * 2


@pytest.mark.parametrize(("arrays", "data"), [(2_000_000, 0), (0, 2_000_000), (150_000, 2_000_000)])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, arrays: int, data: int) -> None:
    script = """
save_checkpoint(folder, big(1, 100))
before = sorted(folder.iterdir())
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
arrays, data = map(int, sys.argv[2:])
try:
    save_checkpoint(folder, Checkpoint(2, {"a": np.zeros(arrays, np.uint8)}, {"text": "x" * data}))
except InputError as error:
    print(error)
assert sorted(folder.iterdir()) == before
"""
    with start(script, tmp_path, str(arrays), str(data)) as writer:
        said, _ = writer.communicate()
    assert writer.returncode == 0
    assert said.startswith("cannot write")
    assert said.endswith("File too large\n")
    assert check(load(tmp_path)) == 1


def test_two_writers_leave_each_other_whole(tmp_path: Path) -> None:
    script = """
for frame in range(int(sys.argv[2]), 60, 2):
    manifest = save_checkpoint(folder, big(frame, 100), alone=False)
    found = load_checkpoint(folder, report=lambda said: sys.exit(said))
    assert found.frame >= frame and all((array == found.frame).all() for array in found.arrays.values())
"""
    with start(script, tmp_path, "0") as one, start(script, tmp_path, "1") as other:
        assert (one.wait(), other.wait()) == (0, 0)
    assert check(load(tmp_path)) == 59
    names = [path.name for path in tmp_path.iterdir()]
    assert sum(name.endswith(".json") for name in names) <= 3  # two, and the last of the slower one
    assert len(names) == 2 * sum(name.endswith(".json") for name in names)


def test_the_manifest_is_strict_json(tmp_path: Path) -> None:
    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    manifest = save_checkpoint(
        tmp_path, Checkpoint(3, {"q": np.zeros((2, 0))}, {"best": float("-inf"), "nan": [np.nan]})
    )
    content = json.loads(manifest.read_bytes(), parse_constant=refuse)["content"]
    assert content["arrays"] == {"q": {"dtype": "float64", "shape": [2, 0]}}
    assert (content["frame"], content["size"]) == (3, manifest.with_suffix(".safetensors").stat().st_size)


@given(JSON)
def test_encoded_data_is_decoded_to_the_same(value: Any) -> None:
    assert identical(decode(json.loads(json.dumps(encode(value, "data"), allow_nan=False))), value)
