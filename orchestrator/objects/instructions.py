"""Instructions of sm_70 and later, as far as resources are read off them.

Each has 16 bytes, with the opcode in the low 12 bits.
Encodings were measured with nvcc 13.0.88 and nvdisasm; the tests compare what follows from them with ptxas.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

SIZE = 16
STORE_LOCAL, LOAD_LOCAL = 0x387, 0x983
CALL_ABSOLUTE, CALL_RELATIVE = 0x943, 0x944
_PAIR = struct.Struct("<QQ")


def find(text: memoryview, *opcodes: int) -> Iterator[int]:
    """Offsets of the instructions with one of these opcodes."""
    low, high = bytes(text[0::SIZE]), bytes(text[1::SIZE])
    for opcode in opcodes:
        number = low.find(opcode & 0xFF)
        while 0 <= number < len(high):
            if high[number] & 0xF == opcode >> 8:
                yield number * SIZE
            number = low.find(opcode & 0xFF, number + 1)


def opcode(text: memoryview, at: int) -> int:
    """Of the instruction that holds a byte; 0 outside of the code."""
    start = at // SIZE * SIZE
    return text[start] | (text[start + 1] & 0xF) << 8 if start >= 0 and start + SIZE <= len(text) else 0


def call_target(text: memoryview, at: int) -> int:
    """Where a relative call leads: 56 bits, in units of four bytes from the next instruction on."""
    if at + SIZE > len(text):
        return -1
    low, high = _PAIR.unpack_from(text, at)
    raw = low >> 16 & 0xFF | (low >> 34 | (high & 0x3FFFF) << 30) << 8
    return int(at + SIZE + 4 * (raw - (1 << 56) if raw >> 55 else raw))
