"""Dividing a region: phases, overlap and the unaccounted always add up to the total."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.protocol import Span
from orchestrator.spans import covered_ns, divide

intervals = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted).map(tuple)


@given(st.lists(intervals, max_size=12))
def test_the_cover_is_the_number_of_covered_points(pairs):
    assert covered_ns(pairs) == len({point for start, stop in pairs for point in range(start, stop)})


@given(st.lists(st.tuples(intervals, st.sampled_from("abc")), max_size=12))
def test_host_rows_add_up_to_the_total(entries):
    spans = [Span(name, "host", start, stop, None) for (start, stop), name in entries]
    division = divide(0, 50, spans)
    assert sum(p.ns for p in division.phases) - division.overlap_ns + division.unaccounted_ns == 50
    assert division.gpu_busy_ns is None


def test_phases_of_one_name_are_added_in_order_of_appearance():
    spans = [Span("b", "host", 4, 6, None), Span("a", "host", 0, 3, None), Span("b", "host", 7, 9, None)]
    assert [(p.name, p.ns) for p in divide(0, 10, spans).phases] == [("a", 3), ("b", 4)]


def test_cuda_spans_account_for_the_time_only_without_host_phases():
    cuda = [Span("k", "cuda", 2, 8, "s0")]
    assert divide(0, 10, cuda).unaccounted_ns == 4
    both = divide(0, 10, [*cuda, Span("all", "host", 0, 10, None)])
    assert (both.unaccounted_ns, both.overlap_ns, both.gpu_busy_ns) == (0, 0, 6)


def test_a_cuda_span_that_leaks_out_of_the_region_accounts_only_inside():
    assert divide(0, 10, [Span("k", "cuda", -1, 12, "s0")]).unaccounted_ns == 0
