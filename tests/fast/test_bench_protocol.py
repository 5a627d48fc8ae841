"""Messages are read with no trust: each malformed one is named, none is accepted."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import BrokenRun
from orchestrator.model import Admitted, Kind
from orchestrator.protocol import Answer, Failure, Ready, artifacts_json, parse_message, request_sample

READY = {
    "event": "ready",
    "nonce": "n",
    "loaded": [{"target": "t", "digest": "d", "stamp": "s", "how": "mapped-file"}],
    "sources": [{"path": "p.py", "digest": "d"}],
    "versions": {"numpy": "2"},
    "device": None,
    "work": {"constraints": 3},
}
ANSWER = {
    "event": "sample",
    "index": 0,
    "t0_ns": 1,
    "t1_ns": 2,
    "spans": [{"name": "a", "clock": "host", "t0_ns": 1, "t1_ns": 2, "stream": None}],
    "check": {"result": "pass", "by": "x 1", "seconds": 0.5},
}
FAILURE = {"event": "error", "message": "m", "remedy": "r", "exit_code": 8}


def line(value) -> bytes:
    return json.dumps(value).encode() + b"\n"


def test_whole_messages_are_read():
    assert isinstance(parse_message(line(READY)), Ready)
    assert isinstance(parse_message(line(ANSWER)), Answer)
    assert parse_message(line(FAILURE)) == Failure("m", "r", 8)


def leaves(value, path=()):
    """Every key path in a message, nested ones included."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from leaves(inner, (*path, key))


OPTIONAL = {("device",), ("spans", 0, "stream")}
FREE = {("versions", "numpy"), ("work", "constraints"), ("loaded", 0), ("sources", 0), ("spans", 0)}


@pytest.mark.parametrize("message", [READY, ANSWER, FAILURE], ids=["ready", "sample", "error"])
def test_a_message_without_one_of_its_fields_is_refused(message):
    for path in leaves(message):
        if path in OPTIONAL | FREE:
            continue
        copy = json.loads(json.dumps(message))
        at = copy
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]
        with pytest.raises(BrokenRun):
            parse_message(line(copy))


@pytest.mark.parametrize("message", [READY, ANSWER, FAILURE], ids=["ready", "sample", "error"])
def test_a_field_of_another_type_is_refused(message):
    for path in leaves(message):
        if path == ("work", "constraints"):
            continue
        copy = json.loads(json.dumps(message))
        at = copy
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = True
        with pytest.raises(BrokenRun):
            parse_message(line(copy))


@pytest.mark.parametrize(
    "change",
    [
        {"check": {"result": "maybe", "by": "x", "seconds": 1}},
        {"check": {"result": "pass", "by": "x", "seconds": float("nan")}},
        {"check": {"result": "pass", "by": "x", "seconds": -1}},
        {"spans": [{"name": "a", "clock": "sundial", "t0_ns": 1, "t1_ns": 2}]},
        {"t0_ns": 1.5},
        {"event": ["sample"]},
    ],
)
def test_a_value_out_of_range_is_refused(change):
    with pytest.raises(BrokenRun):
        parse_message(line({**ANSWER, **change}))


@pytest.mark.parametrize("code", [0, -1, 256])
def test_a_failure_cannot_claim_success(code):
    with pytest.raises(BrokenRun, match="exit_code"):
        parse_message(line({**FAILURE, "exit_code": code}))


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_else(data):
    with pytest.raises(BrokenRun):
        parse_message(data)


def test_deep_nesting_is_refused():
    lifted = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # as where the tool runs; py_ecc lifts it in the process that imports it
    try:
        with pytest.raises(BrokenRun):
            parse_message(b"[" * 100_000 + b"\n")
    finally:
        sys.setrecursionlimit(lifted)


def test_requests_are_one_line_each():
    assert json.loads(request_sample(3, warmup=True)) == {"op": "sample", "index": 3, "warmup": True}
    assert request_sample(3, warmup=True).count(b"\n") == 1


def test_a_worker_is_told_what_was_admitted():
    artifact = Admitted("t", Kind.CUBIN, "build/x.cubin", "sha256:1", "stamp", "sha256:2", "sm_90")
    told = json.loads(artifacts_json([artifact]))
    assert told == {"t": {"path": "build/x.cubin", "digest": "sha256:1", "stamp": "stamp", "arch": "sm_90"}}
