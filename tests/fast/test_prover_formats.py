"""Readers of foreign bytes: a malformed file is a clear error, never a crash, a hang or accepted."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from orchestrator.errors import ConfigurationError, Missing
from prover.formats.container import MalformedFile
from prover.formats.points import decode_g1, decode_g2, encode_g1, encode_g2
from prover.formats.r1cs import read_r1cs, write_r1cs
from prover.formats.snarkjs import (
    read_verification_key,
)
from prover.formats.wtns import read_wtns, require_match, write_wtns
from prover.formats.zkey import COEF, read_zkey
from prover.params import BLS12_381, BN254, CURVES, Curve
from prover.reference import g1, g2

DATA = Path(__file__).parents[1] / "data"
both_curves = pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)


class File:
    """A container taken apart, for mutation."""

    def __init__(self, data: bytes) -> None:
        self.magic, self.version, count = struct.unpack_from("<4sII", data)
        self.sections: list[list] = []
        position = 12
        for _ in range(count):
            kind, length = struct.unpack_from("<IQ", data, position)
            position += 12
            self.sections.append([kind, bytearray(data[position : position + length])])
            position += length

    def __getitem__(self, kind: int) -> bytearray:
        return next(data for k, data in self.sections if k == kind)

    def put(self, kind: int, offset: int, value: int, size: int = 4) -> None:
        self[kind][offset : offset + size] = value.to_bytes(size, "little")

    def bytes(self, count: int | None = None) -> bytes:
        count = len(self.sections) if count is None else count
        head = struct.pack("<4sII", self.magic, self.version, count)
        return head + b"".join(struct.pack("<IQ", k, len(d)) + bytes(d) for k, d in self.sections)


def load(curve: Curve, name: str) -> File:
    return File((DATA / curve.file_name / name).read_bytes())


def refused(tmp_path: Path, reader, data: bytes, *words: str) -> MalformedFile:
    path = tmp_path / "hostile"
    path.write_bytes(data)
    with pytest.raises(MalformedFile) as caught:
        reader(path)
    text = str(caught.value)
    assert str(path) in text and caught.value.remedy
    assert all(word in text for word in words), text
    return caught.value


# --- the real files -----------------------------------------------------------------------------------------


@both_curves
def test_real_key_is_read_with_its_facts(curve: Curve) -> None:
    key = read_zkey(DATA / curve.file_name / "pow5.zkey")
    assert (key.curve, key.n_vars, key.n_public, key.domain_size) == (curve, 903, 2, 1024)
    assert (key.n_constraints, key.log_domain) == (900, 10)
    assert key.b_g2_query.shape == (903, curve.g2_bytes)
    assert key.l_query.shape == (900, curve.g1_bytes)
    assert not key.a_query.flags.writeable and not key.a_query.flags.owndata, "a view of the file"
    vk = read_verification_key(DATA / curve.file_name / "pow5_vk.json")
    assert key.verification_key() == vk


@both_curves
def test_real_circuit_and_witness_are_read_and_written_back_the_same(curve: Curve, tmp_path: Path) -> None:
    folder = DATA / curve.file_name
    witness = read_wtns(folder / "pow5.wtns")
    write_wtns(tmp_path / "w", curve, witness.words)
    assert (tmp_path / "w").read_bytes() == (folder / "pow5.wtns").read_bytes()
    system = read_r1cs(folder / "pow5.r1cs")
    assert (system.n_constraints, system.n_wires, system.n_public) == (900, 903, 2)
    write_r1cs(tmp_path / "c", system)
    ours, theirs = File((tmp_path / "c").read_bytes()), load(curve, "pow5.r1cs")
    assert ours[2] == theirs[2], "the constraints, byte for byte"


@both_curves
def test_points_survive_encoding(curve: Curve) -> None:
    for point in (None, curve.generator_g1, g1(curve).multiply(12345, curve.generator_g1)):
        assert decode_g1(curve, encode_g1(curve, point)) == point
    for point2 in (None, curve.generator_g2, g2(curve).multiply(12345, curve.generator_g2)):
        assert decode_g2(curve, encode_g2(curve, point2)) == point2
    with pytest.raises(ValueError, match="not below q"):
        decode_g1(curve, curve.q.to_bytes(curve.q_bytes, "little") * 2)


# --- the container ------------------------------------------------------------------------------------------


@both_curves
def test_container_that_ends_early_is_refused_at_every_length(curve: Curve, tmp_path: Path) -> None:
    data = (DATA / curve.file_name / "mul.wtns").read_bytes()
    for length in range(len(data)):
        refused(tmp_path, read_wtns, data[:length])


def test_container_faults_name_the_byte(tmp_path: Path) -> None:
    key = load(BN254, "mul.zkey").bytes()
    refused(tmp_path, read_zkey, b"", "byte 0", "too short")
    refused(tmp_path, read_zkey, b"zkex" + key[4:], "byte 0", "zkex")
    refused(tmp_path, read_zkey, key[:4] + b"\2" + key[5:], "byte 4", "version 2")
    refused(tmp_path, read_zkey, key + b"garbage!", f"byte {len(key)}", "8 bytes follow")
    refused(tmp_path, read_zkey, key[:8] + b"\xff" * 4 + key[12:], "4294967295")
    refused(tmp_path, read_zkey, key[:16] + struct.pack("<Q", 1 << 63) + key[24:], "byte 16", str(1 << 63))
    refused(tmp_path, read_zkey, key[:16] + struct.pack("<Q", (1 << 64) - 24) + key[24:], "byte 16")
    refused(tmp_path, read_zkey, key[:12] + struct.pack("<I", 77) + key[16:], "byte 12", "77")


def test_sections_must_be_there_once(tmp_path: Path) -> None:
    file = load(BN254, "mul.zkey")
    file.sections.append([5, file[5]])
    refused(tmp_path, read_zkey, file.bytes(), "5 (A points)", "twice")
    for kind in range(1, 10):
        file = load(BN254, "mul.zkey")
        file.sections = [s for s in file.sections if s[0] != kind]
        refused(tmp_path, read_zkey, file.bytes(), f"no section {kind}")


def test_sections_may_come_in_any_order(tmp_path: Path) -> None:
    file = load(BLS12_381, "mul.zkey")
    file.sections.reverse()
    (tmp_path / "k").write_bytes(file.bytes())
    assert read_zkey(tmp_path / "k").n_vars == 4


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="no such file"):
        read_zkey(tmp_path / "nothing")
    with pytest.raises(ConfigurationError, match="regular file"):
        read_zkey(tmp_path)
    with pytest.raises(ConfigurationError, match="regular file"):
        read_zkey(Path("/dev/zero"))


# --- the proving key ----------------------------------------------------------------------------------------

HEADER_FAULTS = {
    "n_vars inflated": (0, 100_000, "100000"),
    "n_vars shrunk": (0, 3, "5 (A points)"),
    "n_public above n_vars": (4, 1000, "nPublic = 1000"),
    "n_public equal to n_vars": (4, 4, "nPublic = 4"),
    "domain 0": (8, 0, "power of two"),
    "domain 3": (8, 3, "power of two"),
    "domain 2^27": (8, 1 << 27, "9 (H points)"),
    "domain 2^31": (8, 1 << 31, "8 bytes|more than|9 (H points)"),
    "domain smaller than the rows": (8, 2, "9 (H points)"),
}


@both_curves
@pytest.mark.parametrize("name", HEADER_FAULTS)
def test_header_that_does_not_fit_is_refused(curve: Curve, name: str, tmp_path: Path) -> None:
    offset, value, words = HEADER_FAULTS[name]
    file = load(curve, "mul.zkey")
    file.put(2, 4 + curve.q_bytes + 4 + 32 + offset, value)
    error = refused(tmp_path, read_zkey, file.bytes())
    assert any(word in str(error) for word in words.split("|"))


def test_domain_with_no_double_is_refused(tmp_path: Path) -> None:
    file = load(BN254, "mul.zkey")
    file.put(2, 4 + 32 + 4 + 32 + 8, 1 << 28)
    refused(tmp_path, read_zkey, file.bytes(), "more than bn254 allows")


@both_curves
def test_domain_too_small_for_the_rows_is_refused(curve: Curve, tmp_path: Path) -> None:
    file = load(curve, "mul.zkey")
    file.put(2, 4 + curve.q_bytes + 4 + 32 + 8, 2)
    del file[9][2 * curve.g1_bytes :]
    refused(tmp_path, read_zkey, file.bytes(), "row 2 is not below domainSize = 2")


@both_curves
def test_unknown_curve_or_protocol_is_refused(curve: Curve, tmp_path: Path) -> None:
    for offset in (4, 4 + curve.q_bytes + 4):
        file = load(curve, "mul.zkey")
        file[2][offset] ^= 2
        refused(tmp_path, read_zkey, file.bytes(), "no known curve")
    for n8_offset in (0, 4 + curve.q_bytes):
        for n8 in (0, 31, 64, 0xFFFFFFFF):
            file = load(curve, "mul.zkey")
            file.put(2, n8_offset, n8)
            refused(tmp_path, read_zkey, file.bytes())
    for protocol in (0, 2, 10):
        file = load(curve, "mul.zkey")
        file.put(1, 0, protocol)
        refused(tmp_path, read_zkey, file.bytes(), f"protocol {protocol} is not Groth16")


@both_curves
@pytest.mark.parametrize("kind", [2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("change", [-1, 1, 64])
def test_sections_have_exactly_their_size(curve: Curve, kind: int, change: int, tmp_path: Path) -> None:
    file = load(curve, "mul.zkey")
    data = file[kind]
    if change < 0:
        del data[change:]
    else:
        data.extend(bytes(change))
    refused(tmp_path, read_zkey, file.bytes(), f"section {kind} (")


@both_curves
def test_entries_are_bounded(curve: Curve, tmp_path: Path) -> None:
    for offset, value, words in (
        (0, 2, "matrix 2"),
        (4, 0x7FFFFFFF, "row 2147483647"),
        (4, 4, "row 4 is not below domainSize = 4"),
        (8, 0x7FFFFFFF, "wire 2147483647"),
        (8, 4, "wire 4 is not below nVars = 4"),
    ):
        file = load(curve, "mul.zkey")
        last = (len(file[4]) - 4) // COEF.itemsize - 1
        file.put(4, 4 + last * COEF.itemsize + offset, value)
        refused(tmp_path, read_zkey, file.bytes(), f"entry {last}", words)
    file = load(curve, "mul.zkey")
    file.put(4, 4 + 12, curve.r, 32)
    refused(tmp_path, read_zkey, file.bytes(), "entry 0", "not below r")
    file.put(4, 0, 1 << 30)
    refused(tmp_path, read_zkey, file.bytes(), "4 (matrix entries)")


@both_curves
@pytest.mark.parametrize("kind", [3, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("value", ["q", "all ones"])
def test_coordinates_are_below_q(curve: Curve, kind: int, value: str, tmp_path: Path) -> None:
    file = load(curve, "mul.zkey")
    number = curve.q if value == "q" else (1 << 8 * curve.q_bytes) - 1
    file.put(kind, len(file[kind]) - curve.q_bytes, number, curve.q_bytes)
    error = refused(tmp_path, read_zkey, file.bytes(), f"section {kind} (", "not below q")
    assert error.offset is not None and file.bytes()[error.offset :].startswith(
        number.to_bytes(curve.q_bytes, "little")
    )


@both_curves
def test_header_coordinates_are_below_q(curve: Curve, tmp_path: Path) -> None:
    file = load(curve, "mul.zkey")
    file.put(2, len(file[2]) - curve.q_bytes, curve.q, curve.q_bytes)
    refused(tmp_path, read_zkey, file.bytes(), "delta_g2", "not below q")


HEADER_POINTS = ("alpha_g1", "beta_g1", "beta_g2", "gamma_g2", "delta_g1", "delta_g2")


def place_of(curve: Curve, name: str) -> tuple[int, int]:
    """Where a point of the header begins in section 2, and its length."""
    sizes = [curve.g1_bytes if point.endswith("g1") else curve.g2_bytes for point in HEADER_POINTS]
    index = HEADER_POINTS.index(name)
    return 4 + curve.q_bytes + 4 + 32 + 12 + sum(sizes[:index]), sizes[index]


@both_curves
@pytest.mark.parametrize("name", HEADER_POINTS)
def test_header_points_are_on_their_curves_and_not_the_identity(
    curve: Curve, name: str, tmp_path: Path
) -> None:
    at, size = place_of(curve, name)
    for mask, words in ((bytes([1, *bytes(size - 1)]), "is not on the curve"), (None, "is the identity")):
        file = load(curve, "mul.zkey")
        old = file[2][at : at + size]
        file[2][at : at + size] = bytes(a ^ b for a, b in zip(old, mask or old, strict=True))
        error = refused(tmp_path, read_zkey, file.bytes(), "section 2 (header)", f"{name} {words}")
        assert error.offset == 12 + 12 + 4 + 12 + at, "where the point begins"


@both_curves
@pytest.mark.parametrize("index", [0, 1])
def test_points_for_public_signals_are_on_their_curve(curve: Curve, index: int, tmp_path: Path) -> None:
    file = load(curve, "mul.zkey")
    file[3][index * curve.g1_bytes] ^= 1
    refused(tmp_path, read_zkey, file.bytes(), "section 3 (IC points)", f"point {index} is not on the curve")


# --- witness and circuit ------------------------------------------------------------------------------------


@both_curves
def test_witness_values_are_canonical_and_wire_0_is_one(curve: Curve, tmp_path: Path) -> None:
    for value in (curve.r, (1 << 256) - 1):
        file = load(curve, "mul.wtns")
        file.put(2, 64, value, 32)
        refused(tmp_path, read_wtns, file.bytes(), "wire 2 is not below r")
    for value in (0, 2):
        file = load(curve, "mul.wtns")
        file.put(2, 0, value, 32)
        refused(tmp_path, read_wtns, file.bytes(), "wire 0 must be the constant 1")
    file = load(curve, "mul.wtns")
    file.put(1, 36, 0)
    del file[2][:]
    refused(tmp_path, read_wtns, file.bytes(), "wire 0")


@both_curves
def test_witness_header_must_fit(curve: Curve, tmp_path: Path) -> None:
    for kind, offset, value in ((1, 0, 48), (1, 4, 7), (1, 36, 5), (1, 36, 100_000)):
        file = load(curve, "mul.wtns")
        file.put(kind, offset, value)
        refused(tmp_path, read_wtns, file.bytes())
    file = load(curve, "mul.wtns")
    del file[2][64:]
    refused(tmp_path, read_wtns, file.bytes(), "holds 64 bytes")


def test_witness_of_another_circuit_or_curve_is_refused() -> None:
    witness = read_wtns(DATA / "bn128" / "mul.wtns")
    with pytest.raises(MalformedFile, match="has 4 wires"):
        require_match(witness, BN254, 903, Path("key"))
    with pytest.raises(MalformedFile, match="is for bn254"):
        require_match(witness, BLS12_381, 4, Path("key"))


@both_curves
def test_circuit_faults_are_refused(curve: Curve, tmp_path: Path) -> None:
    for kind, offset, value, words in (
        (1, 0, 48, "48 bytes"),
        (1, 4, 7, "no known curve"),
        (1, 36, 1, "too few"),
        (1, 60, 1 << 30, "too short"),
        (1, 60, 2, "constraint 1|too short"),
        (2, 0, 1 << 30, "claims"),
        (2, 4, 99, "wire 99"),
    ):
        file = load(curve, "mul.r1cs")
        file.put(kind, offset, value)
        error = refused(tmp_path, read_r1cs, file.bytes())
        assert any(word in str(error) for word in words.split("|")), str(error)
    file = load(curve, "mul.r1cs")
    file.put(2, 8, curve.r, 32)
    refused(tmp_path, read_r1cs, file.bytes(), "not below r")
    file = load(curve, "mul.r1cs")
    file[2].extend(b"\0")
    refused(tmp_path, read_r1cs, file.bytes(), "1 bytes follow")
    file = load(curve, "mul.r1cs")
    file.sections.append([4, bytearray(b"\1\0\0\0")])
    refused(tmp_path, read_r1cs, file.bytes(), "custom gates")
