"""`.nv.info` sections: what ptxas says about a function, as a list of tagged values.

Each item is ``format u8, attribute u8, value u16``; format 4 means that ``value`` bytes of payload follow.
NVIDIA documents neither the layout nor the codes; those here were measured with nvcc 13.0.88 and are tested
against cuobjdump and against what ptxas prints.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.objects.window import Bytes, Malformed

REQUIRED_THREADS = 0x10
MAX_THREADS = 0x05
PARAMETER_BANK = 0x0A
EXTERNS = 0x0F
FRAME_SIZE = 0x11
MIN_STACK_SIZE = 0x12
PARAMETER = 0x17
MAX_STACK_SIZE = 0x23
PARAMETER_BYTES = 0x19
MAX_REGISTERS = 0x1B
REGISTERS = 0x2F
TOOLKIT_VERSION = 0x37
CLUSTER = 0x3D
MAX_CLUSTER = 0x3F
BARRIERS = 0x4C
ANNOTATIONS = 0x55
"""Pairs (kind u32, code offset u32); kind 1 marks each instruction that spills a register or fills it
again.
"""

_HEAD = struct.Struct("<BBH")
_PAYLOAD_FOLLOWS = 4
_PAIR = struct.Struct("<II")
_NOTHING = memoryview(b"")


class Item(NamedTuple):
    """One item: ``value`` is the 16-bit field (0 with a payload), ``offset`` where the item begins."""

    attribute: int
    value: int
    payload: memoryview
    offset: int

    def pair(self) -> tuple[int, int]:
        """The payload as two 32-bit numbers, such as (symbol index, registers)."""
        if len(self.payload) < _PAIR.size:
            raise Malformed(
                f"attribute 0x{self.attribute:02x} holds {len(self.payload)} bytes of 8", self.offset
            )
        first, second = _PAIR.unpack_from(self.payload)
        return first, second

    def words(self) -> tuple[int, ...]:
        """The payload as 32-bit numbers."""
        count = len(self.payload) // 4
        return struct.unpack_from(f"<{count}I", self.payload)


def read_items(body: Bytes, wanted: frozenset[int] | None = None) -> Iterator[Item]:
    """The items of one `.nv.info` section, or those of the ``wanted`` attributes.

    `Malformed` when an item ends outside of the section.
    """
    at = 0
    end = len(body)
    view = memoryview(body)
    while at + _HEAD.size <= end:
        form, attribute, value = _HEAD.unpack_from(view, at)
        start = at
        at += _HEAD.size + (value if form == _PAYLOAD_FOLLOWS else 0)
        if at > end:
            raise Malformed(f"attribute 0x{attribute:02x} of {value} bytes does not fit into {end}", start)
        if wanted is None or attribute in wanted:
            if form == _PAYLOAD_FOLLOWS:
                yield Item(attribute, 0, view[start + _HEAD.size : at], start)
            else:
                yield Item(attribute, value, _NOTHING, start)
