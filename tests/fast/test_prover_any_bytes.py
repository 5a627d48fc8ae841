"""Readers of foreign bytes, given any bytes: they accept or refuse, and never crash or hang."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import FreshproofError
from prover.formats.container import first_not_below
from prover.formats.r1cs import read_r1cs
from prover.formats.snarkjs import (
    read_proof,
    read_public,
    read_verification_key,
)
from prover.formats.wtns import read_wtns
from prover.formats.zkey import read_zkey
from prover.params import BLS12_381, BN254, CURVES

DATA = Path(__file__).parents[1] / "data"
both_curves = pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)


ANY_FILE = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
READERS = {"mul.zkey": read_zkey, "mul.wtns": read_wtns, "mul.r1cs": read_r1cs}


def read_whatever(tmp_path: Path, reader, data: bytes) -> None:
    """Accepting is fine (the change may be harmless); anything but a typed error is not."""
    path = tmp_path / "any"
    path.write_bytes(data)
    try:
        reader(path)
    except FreshproofError as error:
        assert str(path) in error.what and error.remedy


@pytest.mark.parametrize("name", READERS)
@ANY_FILE
@given(data=st.data())
def test_mutated_files_are_read_or_refused(name: str, tmp_path: Path, data: st.DataObject) -> None:
    original = bytearray((DATA / "bn128" / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(original) - 1))
        original[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
        if not original:
            break
    read_whatever(tmp_path, READERS[name], bytes(original))


@pytest.mark.parametrize("name", READERS)
@ANY_FILE
@given(tail=st.binary(max_size=200), count=st.integers(0, 2**32 - 1), kind=st.integers(0, 12))
def test_arbitrary_sections_are_refused(
    name: str, tmp_path: Path, tail: bytes, count: int, kind: int
) -> None:
    head = (DATA / "bn128" / name).read_bytes()[:8]
    entry = struct.pack("<IIQ", count, kind, len(tail))
    read_whatever(tmp_path, READERS[name], head + entry + tail)


@given(
    rows=st.lists(st.integers(0, 2**256 - 1), max_size=20),
    width=st.sampled_from([32, 48]),
    near=st.booleans(),
)
def test_range_check_agrees_with_integers(rows: list[int], width: int, near: bool) -> None:
    modulus = BN254.q if width == 32 else BLS12_381.q
    values = [(modulus - 2 + v % 4) if near else v for v in rows]
    words = np.frombuffer(b"".join(v.to_bytes(width, "little") for v in values), np.uint8).reshape(-1, width)
    expected = next((i for i, v in enumerate(values) if v >= modulus), None)
    assert first_not_below(words, modulus) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("1"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["pi_a", "IC"]), inner),
    max_leaves=8,
)


@ANY_FILE
@given(value=JSON, name=st.sampled_from(["pi_a", "pi_b", "curve", "protocol"]), whole=st.booleans())
def test_any_json_is_read_or_refused(tmp_path: Path, value: object, name: str, whole: bool) -> None:
    proof = json.loads((DATA / "bn128" / "mul_proof.json").read_text())
    text = json.dumps(value if whole else {**proof, name: value}).encode()
    for reader in (read_proof, read_public, read_verification_key):
        read_whatever(tmp_path, reader, text)
