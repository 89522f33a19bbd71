"""As much of Protocol Buffers' wire format as TensorBoard's events need: the fields of a message, by number."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

from ipe.errors import InputError

Field: TypeAlias = "tuple[int, int | float | bytes]"
"""The number of a field, and its value: a whole number, a float (of 4 or 8 bytes), or bytes."""

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a message in their order; strings and messages inside are bytes.

    Raises:
        InputError: if the bytes are no message.

    Example:
        >>> list(fields(b"\\x08\\x96\\x01" + b"\\x12\\x03tag"))
        [(1, 150), (2, b'tag')]
    """
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield number, value
        elif wire == 2:
            size, at = _varint(message, at)
            if at + size > end:
                raise InputError("a field is longer than its message")
            yield number, message[at : at + size]
            at += size
        elif wire in (1, 5):
            form = _DOUBLE if wire == 1 else _FLOAT
            if at + form.size > end:
                raise InputError("a number is cut off")
            yield number, form.unpack_from(message, at)[0]
            at += form.size
        else:
            raise InputError(f"a field has the unknown kind {wire}")


def signed(value: int) -> int:
    """A whole number of 64 bits as the signed number that it stands for.

    Example:
        >>> signed(2**64 - 1), signed(5)
        (-1, 5)
    """
    return value - (1 << 64) if value >= 1 << 63 else value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise InputError("a whole number is cut off")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
