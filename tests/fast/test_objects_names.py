"""Names from outside: what they stand for, and what of them reaches a terminal."""

from __future__ import annotations

import pytest

from orchestrator.objects.demangle import demangle, longest_text

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
THRUST = (
    "_ZN3cub17CUB_300001_SM_9006detail10merge_sort30DeviceMergeSortBlockSortKernelINS2_10policy_hubIN6thr"
    "ust23THRUST_300001_SM_900_NS12zip_iteratorIN4cuda3std3__45tupleIJNS6_6detail15normal_iteratorINS6_10"
    "device_ptrIiEEEENSD_INSE_IfEEEEEEEEEE9Policy600ESK_PNS0_8NullTypeESK_SO_j5less2NSB_IJifEEESN_EEvbT0_"
    "T1_T2_T3_T4_PT6_PT7_T5_NS1_7vsmem_tE"
)  # fmt: skip


def doubling(depth: int) -> str:
    """A template of pairs of pairs: each of `depth` arguments stands for two of the one before."""
    pairs = "".join(f"S{DIGITS[number + 1]}_E" for number in range(depth))
    return f"_Z2dtI1P{'IS0_' * depth}Iii" + "E" + pairs + "EvPiT_"


def test_a_name_that_doubles_a_few_times_is_read_and_bounded() -> None:
    for depth in range(1, 10):
        text = demangle(doubling(depth))
        assert text.startswith("void dt<P<P<")
        assert len(text) < longest_text(doubling(depth))


@pytest.mark.parametrize("depth", [13, 22, 30])
def test_a_name_that_stands_for_too_much_is_left_as_it_is(depth: int) -> None:
    assert demangle(doubling(depth)) == doubling(depth)


def test_a_name_of_ten_thousand_references_is_bounded_itself() -> None:
    name = "_Z1f" + "S_" * 10_000
    assert demangle(name) == name


def test_long_names_of_real_libraries_are_read() -> None:
    text = demangle(THRUST)
    assert "thrust::" in text
