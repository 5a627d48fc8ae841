"""Scalars between bytes and Python integers: 32 little-endian bytes each, standard form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prover.params import SCALAR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from numpy.typing import NDArray


def decode_scalars(words: NDArray[np.uint8]) -> list[int]:
    """Shape (n, 32) -> n integers."""
    data = words.tobytes()
    return [int.from_bytes(data[i : i + SCALAR_BYTES], "little") for i in range(0, len(data), SCALAR_BYTES)]


def encode_scalars(values: Iterable[int]) -> NDArray[np.uint8]:
    """n integers below 2^256 -> shape (n, 32)."""
    data = b"".join([value.to_bytes(SCALAR_BYTES, "little") for value in values])
    return np.frombuffer(data, np.uint8).reshape(-1, SCALAR_BYTES)


def take(rows: NDArray[np.uint8], which: NDArray[Any]) -> NDArray[np.uint8]:
    """``rows[which]`` for rows of bytes without gaps, each moved as one: many times sooner than by bytes."""
    whole = rows.view(f"V{rows.shape[1]}").reshape(-1)
    return np.take(whole, which).view(np.uint8).reshape(-1, rows.shape[1])
