"""A worker for tests: speaks the protocol, and misbehaves in the one way that its first argument names.

Run as a program: ``python fake_worker.py SCENARIO``. A scenario may hold a number: ``crash@3`` ends before
sample 3; `lasts@13` takes samples of 13 ms; `flags` takes samples whose length depends on the variants that
the artifacts' digests name (see `EFFECTS_MS`).
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

EFFECTS_MS = {"slow": 4, "fast": -2, "nothing": 0}
"""What each variant adds to the 10 ms of a sample."""
TOGETHER_MS = {("slow", "fast"): 3}
"""What two variants add only if both are there."""


def main() -> None:
    """Announce, then answer each request."""
    name, _, at = sys.argv[1].partition("@")
    at_index = int(at or 1)
    answers = os.fdopen(int(os.environ["FRESHPROOF_FD"]), "wb", buffering=0)
    if name == "fails":
        send(
            answers,
            {"event": "error", "message": "the key is cut off", "remedy": "copy it again", "exit_code": 2},
        )
        sys.exit(2)
    if name == "unable":
        os.write(2, b"there is no CuPy\n")
        sys.exit(int(at))
    if name == "foreign":
        send(answers, {"hello": "world"})
    if name == "chatty":
        os.write(1, b"noise on standard output\n")
    send(answers, ready(name))
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "close":
            sys.exit(3 if name == "ends-badly" else 0)
        if name not in ("lasts", "flags") and request["index"] < at_index:
            send(answers, sample("honest", request["index"]))
        else:
            misbehave(answers, name, request["index"], at_index)


def ready(name: str) -> dict[str, object]:
    """The first message, with one lie for some scenarios."""
    artifacts = json.loads(os.environ["FRESHPROOF_ARTIFACTS"])
    loaded = [
        {"target": target, "digest": a["digest"], "stamp": a["stamp"], "how": "mapped-file"}
        for target, a in artifacts.items()
    ]
    if name == "wrong-digest":
        loaded[0]["digest"] = "sha256:" + "0" * 64
    if name == "wrong-stamp":
        loaded[0]["stamp"] = "sha256:" + "1" * 64
    if name == "loads-nothing":
        loaded = []
    if name == "loads-more":
        loaded.append(
            {"target": "stowaway", "digest": "sha256:" + "2" * 64, "stamp": "", "how": "mapped-file"}
        )
    digest = "sha256:" + hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    if name == "old-source":
        digest = "sha256:" + "3" * 64
    return {
        "event": "ready",
        "nonce": "00" if name == "wrong-nonce" else os.environ["FRESHPROOF_NONCE"],
        "loaded": loaded,
        "sources": [] if name == "no-sources" else [{"path": __file__, "digest": digest}],
        "versions": {"fake": "1.0"},
        "device": None,
        "work": {"circuit": "fake", "constraints": 3, "cache_prefix": sys.pycache_prefix or ""},
    }


def flagged_ms() -> int:
    """How long a sample takes with the variants that were handed over."""
    on = set()
    for artifact in json.loads(os.environ["FRESHPROOF_ARTIFACTS"]).values():
        on |= set(artifact["digest"].partition(".")[2].split("+"))
    alone = sum(EFFECTS_MS[flag] for flag in on & EFFECTS_MS.keys())
    return 10 + alone + sum(ms for both, ms in TOGETHER_MS.items() if set(both) <= on)


def sample(name: str, index: int, lasts_ms: int = 10) -> dict[str, object]:
    """One answer whose two phases leave a known millisecond unaccounted."""
    start = time.monotonic_ns()
    end = start + lasts_ms * 1_000_000
    time.sleep((lasts_ms + 1) / 1000)
    spans = [span("first", start, start + 4_000_000), span("second", start + 4_000_000, end - 1_000_000)]
    if name == "overlapping":
        spans[1] = span("second", start + 3_000_000, end - 1_000_000)
    if name == "span-outside":
        spans[1] = span("second", start + 4_000_000, end + 1)
    if name == "region-outside":
        start -= 1_000_000_000
    if name == "cuda":
        spans += [span("kernel", start + 1_000_000, start + 3_000_000, "cuda", "main")]
        spans += [span("kernel", start + 2_000_000, start + 4_000_000, "cuda", "side")]
    return {
        "event": "sample",
        "index": index + (name == "wrong-index"),
        "t0_ns": start,
        "t1_ns": end,
        "spans": spans,
        "check": {"result": "fail" if name == "bad-check" else "pass", "by": "fake 1.0", "seconds": 0.001},
    }


def span(
    name: str, start: int, end: int, clock: str = "host", stream: str | None = None
) -> dict[str, object]:
    """One phase."""
    return {"name": name, "clock": clock, "t0_ns": start, "t1_ns": end, "stream": stream}


def misbehave(answers, name: str, index: int, number: int) -> None:
    """Answer a request in the scenario's way."""
    if name in ("lasts", "flags"):
        send(answers, sample(name, index, number if name == "lasts" else flagged_ms()))
        return
    if name == "crash":
        os.write(2, b"about to fall\n")
        os._exit(77)
    if name == "killed":
        os.kill(os.getpid(), 9)
    if name == "silent":
        time.sleep(60)
    if name == "torn":
        answers.write(json.dumps(sample("honest", index)).encode()[:-7])
        os._exit(0)
    if name == "not-json":
        answers.write(b"all is well\n")
        return
    if name == "endless":
        while True:
            answers.write(b"x" * (1 << 20))
    if name == "edits-itself":
        edited = Path(os.environ["EDIT_THIS"])
        edited.write_bytes(edited.read_bytes() + b"\n")
    if name == "edited-and-stumbles":
        Path(__file__).write_bytes(Path(__file__).read_bytes() + b"\n")
        sys.exit(6)
    send(answers, sample(name, index))


def send(answers, message: dict[str, object]) -> None:
    """Write one line, in pieces: a reader must not depend on whole lines arriving at once."""
    line = json.dumps(message).encode() + b"\n"
    answers.write(line[:10])
    answers.write(line[10:])


if __name__ == "__main__":
    main()
