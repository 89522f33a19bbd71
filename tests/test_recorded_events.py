"""TensorBoard's event files: read as they were written, every checksum, and nothing of a damaged one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipe.analysis.recorded import read_events
from ipe.analysis.recorded.checksums import masked_crcs
from ipe.analysis.recorded.tags import hyperparameters
from ipe.errors import InputError
from tests.recorded_cases import SAMPLES, events, record, scalar_event, start_event
from tests.tiers import examples

TAG = "charts/episodic_return"


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, from its polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value that the polynomial is published with
    assert masked_crcs([b"123456789"]) == [masked(b"123456789")]


@examples(60)
@given(st.lists(st.binary(max_size=40), max_size=12))
def test_checksums_of_many_records_are_those_of_each(records: list[bytes]) -> None:
    assert masked_crcs(records) == [masked(one) for one in records]


def test_long_records_have_theirs_too() -> None:
    records = [bytes(range(256)) * 20, b"ab", bytes(5000), b""]
    assert masked_crcs(records) == [masked(one) for one in records]


def test_scalars_are_read_as_tensorboardx_writes_them(tmp_path: Path) -> None:
    writer = pytest.importorskip("tensorboardX").SummaryWriter(str(tmp_path))
    for step in range(5):
        writer.add_scalar(TAG, 0.5 * step, 10 * step)
        writer.add_scalar("losses/td_loss", float("nan"), 10 * step)
    writer.add_histogram("weights", np.arange(5.0), 3)
    writer.add_text("hyperparameters", "|param|value|\n|-|-|\n|seed|7|\n|exp_name|dqn|")
    writer.close()
    found = read_events(list(tmp_path.iterdir()))
    assert found.scalars[TAG].steps.tolist() == [0, 10, 20, 30, 40]
    assert found.scalars[TAG].values.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert np.isnan(found.scalars["losses/td_loss"].values).all()
    assert set(found.scalars) == {TAG, "losses/td_loss"}
    assert hyperparameters(found.texts) == {"seed": 7, "exp_name": "dqn"}
    assert found.problems == []


def test_scalars_that_are_tensors_are_read_too(tmp_path: Path) -> None:
    """As TensorFlow 2 writes them."""
    event = pytest.importorskip("tensorboardX.proto.event_pb2").Event
    shapes = {
        "a": {"dtype": 1, "float_val": [1.5]},
        "b": {"dtype": 2, "tensor_content": np.array(2.5).tobytes()},
        "c": {"dtype": 1, "float_val": [1.0, 2.0]},  # no scalar
    }
    made = event(wall_time=1.0, step=4, summary={"value": [{"tag": t, "tensor": s} for t, s in shapes.items()]})
    found = read_events([events(tmp_path / "x.tfevents", [made.SerializeToString()])])
    assert {tag: one.values.tolist() for tag, one in found.scalars.items()} == {"a": [1.5], "b": [2.5]}


def test_a_session_that_starts_again_takes_back_what_came_after(tmp_path: Path) -> None:
    first = [scalar_event(TAG, step, float(step)) for step in (10, 20, 30)]
    one = events(tmp_path / "1.tfevents", first)
    two = events(tmp_path / "2.tfevents", [start_event(20), scalar_event(TAG, 20, 9.0)])
    found = read_events([two, one]).scalars[TAG]
    assert (found.steps.tolist(), found.values.tolist()) == ([10, 20], [10.0, 9.0])


def test_a_second_file_that_goes_on_from_before_replaces_what_it_repeats(tmp_path: Path) -> None:
    one = events(tmp_path / "1.tfevents", [scalar_event(TAG, step, 1.0) for step in (10, 20, 30)])
    two = events(tmp_path / "2.tfevents", [scalar_event(TAG, step, 2.0) for step in (20, 40)])
    found = read_events([one, two])
    assert found.scalars[TAG].steps.tolist() == [10, 20, 40]
    assert "2.tfevents: it begins at step 20: it replaces 2 values of an earlier file" in found.problems[0]


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    paths = [events(tmp_path / f"{i}.tfevents", [scalar_event(TAG, step, 1.0) for step in (10, 20)]) for i in (1, 2)]
    with pytest.raises(InputError, match=r"2\.tfevents: the values begin at step 10 again: more than one run"):
        read_events(paths)
    back = events(tmp_path / "3.tfevents", [scalar_event(TAG, step, 1.0) for step in (10, 5)])
    with pytest.raises(InputError, match=r"3\.tfevents: the steps of charts/episodic_return go back, from 10 to 5"):
        read_events([back])


def test_every_flipped_byte_is_noticed_and_every_cut_is_said(tmp_path: Path) -> None:
    whole = b"".join(record(scalar_event(TAG, step, float(step))) for step in (1, 2, 3))
    path, size = tmp_path / "a.tfevents", len(whole) // 3
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 0x10]) + whole[i + 1 :])
        with pytest.raises(InputError, match=r"a\.tfevents: .*checksum"):
            read_events([path])
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        found = read_events([path])
        assert len(found.scalars[TAG].steps if found.scalars else []) == end // size
        assert bool(found.problems) == (end % size != 0)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tfevents"
    path.write_text("this is a text, and not events of TensorBoard")
    with pytest.raises(InputError, match=r"a\.tfevents: it is no event file of TensorBoard"):
        read_events([path])
    events(path, [b"\x0f\xff"])
    with pytest.raises(InputError, match=r"a\.tfevents: record 0 is no event"):
        read_events([path])


def test_cleanrls_own_files_are_read() -> None:
    folder = SAMPLES / "cleanrl"
    (run, *_) = sorted(folder.iterdir())
    found = read_events(sorted(run.iterdir()))
    assert TAG in found.scalars
    said = hyperparameters(found.texts)
    assert said["env_id"] == "CartPole-v1"
    assert said["exp_name"] == "dqn"
    lengths = found.scalars["charts/episodic_length"]
    values = found.scalars[TAG].values[: lengths.values.size]  # the sample ends between the two
    np.testing.assert_array_equal(values, lengths.values)  # CartPole: a reward of 1 for every step
