"""CRC-32C, the checksum of TensorBoard's record files, of many records at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, its bits reversed
_LONG = 4096
"""Records up to this length are computed side by side, longer ones one by one."""
_BLOCK = 1 << 22  # bytes that are computed side by side at a time


def _table() -> NDArray[np.uint32]:
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> 1) ^ np.uint32(_POLYNOMIAL), crc >> 1)
    return crc.astype(np.uint32)


_TABLE = _table()
_LIST = [int(entry) for entry in _TABLE]


def masked_crcs(records: Sequence[bytes]) -> list[int]:
    r"""The masked CRC-32C of each record, as TensorBoard's files hold it.

    With :math:`c` the CRC-32C (Castagnoli) of the bytes, the masked value is
    :math:`(c \gg 15 \mid c \ll 17) + \mathtt{a282ead8} \bmod 2^{32}`.

    Example:
        >>> [hex(value) for value in masked_crcs([b"123456789", b""])]
        ['0xc78ab0e5', '0xa282ead8']
    """
    out = [0] * len(records)
    order = sorted(range(len(records)), key=lambda i: len(records[i]))
    start = 0
    while start < len(order):
        longest = len(records[order[start]])
        end = start + 1
        while end < len(order) and len(records[order[end]]) <= _LONG:
            longest = len(records[order[end]])
            if (end + 1 - start) * longest > _BLOCK:
                break
            end += 1
        part = order[start:end]
        found = _long(records[part[0]]) if len(records[part[0]]) > _LONG else _together([records[i] for i in part])
        for i, crc in zip(part, found, strict=True):
            out[i] = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
        start = end
    return out


def _together(records: Sequence[bytes]) -> list[int]:
    """The CRCs of short records: a table with a row for each, filled with zeros from the left.

    Zeros before the first byte do not change a register that begins at 0. The register's true beginning, all ones, is
    the same as the first four bytes inverted; of records shorter than that, byte by byte.
    """
    short = [i for i, record in enumerate(records) if len(record) < 4]
    width = max(4, *(len(record) for record in records))
    rows = np.zeros((len(records), width), dtype=np.uint8)
    for row, record in zip(rows, records, strict=True):
        if len(record) >= 4:
            row[width - len(record) :] = np.frombuffer(record, dtype=np.uint8)
            row[width - len(record) : width - len(record) + 4] ^= 0xFF
    crc = np.zeros(len(records), dtype=np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = _TABLE[(crc ^ column) & 0xFF] ^ (crc >> np.uint32(8))
    out = [int(value) ^ 0xFFFFFFFF for value in crc]
    for i in short:
        (out[i],) = _long(records[i])
    return out


def _long(record: bytes) -> list[int]:
    crc = 0xFFFFFFFF
    for byte in record:
        crc = _LIST[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return [crc ^ 0xFFFFFFFF]
