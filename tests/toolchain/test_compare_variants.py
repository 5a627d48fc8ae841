"""Variants compared and attributed: nvcc builds them, and a worker loads each in its target's place."""

import json

import pytest
from small_project import freshproof, lay_out

pytestmark = pytest.mark.toolchain

TARGETS = """schema = 1
[project]
name = "p"
[target.work]
kind = "shared-library"
sources = ["work.cu"]
[target.work.variants.longer]
defines = ["LONGER=1"]
[target.work.variants.unread]
defines = ["NOBODY_READS_THIS=1"]
[target.work.variants.both]
defines = ["BOTH=1"]
[workload.work]
command = ["python", "work.py"]
uses = ["work"]
warmups = 0
"""
SOURCE = """extern "C" long work() {
    long rounds = 2000000;
#ifdef LONGER
    rounds += 2000000;
#ifdef BOTH
    rounds += 2000000;
#endif
#endif
    return rounds;
}
"""
WORKER = """import ctypes, json, os, sys, time
from pathlib import Path
from orchestrator.loaded import check_library, running_sources
from types import SimpleNamespace

answers = os.fdopen(int(os.environ["FRESHPROOF_FD"]), "w", buffering=1)
fields = json.loads(os.environ["FRESHPROOF_ARTIFACTS"])["work"]
library = ctypes.CDLL(str(Path(fields["path"]).absolute()))
library.work.restype = ctypes.c_long
address = ctypes.cast(library.work, ctypes.c_void_p).value
found = check_library(SimpleNamespace(target="work", **fields), address)
loaded = [{"target": found.target, "digest": found.digest, "stamp": found.stamp, "how": found.how}]
sources = [{"path": s.path, "digest": s.digest} for s in running_sources(Path.cwd(), [])]
ready = {"event": "ready", "nonce": os.environ["FRESHPROOF_NONCE"], "loaded": loaded, "sources": sources,
         "versions": {}, "device": None, "work": {}}
print(json.dumps(ready), file=answers)
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "close":
        break
    start = time.monotonic_ns()
    rounds = library.work()
    # What was run decides the time that is told, so that a busy machine does not decide the test.
    end = start + rounds
    while time.monotonic_ns() < end:
        time.sleep(0.001)
    check = {"result": "pass", "by": "count", "seconds": 0.0}
    answer = {"event": "sample", "index": request["index"], "t0_ns": start, "t1_ns": end, "spans": [],
              "check": check}
    print(json.dumps(answer), file=answers)
"""


@pytest.fixture
def project(tmp_path):
    return lay_out(tmp_path, {"manifests/targets.toml": TARGETS, "work.cu": SOURCE, "work.py": WORKER})


def test_flags_are_attributed_to_what_was_really_run(project):
    """longer doubles 2 ms, both adds as much, but only beside longer; unread makes no code."""
    ran = freshproof(project, "attribute", "work", "work", "--blocks", "3", "--samples", "1", "--json")
    assert ran.returncode in (0, 3), ran.stderr  # 3: other programs were busy
    document = json.loads(ran.stdout)
    assert "work.unread makes the same code" in ran.stderr
    shares = {flag["flag"]: flag["share"]["value"] / 1e6 for flag in document["flags"]}
    assert shares == pytest.approx({"work.longer": 3, "work.both": 1})
    assert document["level"] == "loaded-proven"


def test_a_stale_variant_is_refused(project):
    assert freshproof(project, "build").returncode == 0
    (project / "work.cu").write_text(SOURCE.replace("2000000", "2000001", 1))
    ran = freshproof(project, "compare", "work", "--with", "work.longer", "--blocks", "6")
    assert ran.returncode == 5
    assert "work.cu: its content changed" in ran.stderr


def test_a_combination_is_built_and_kept_like_any_target(project):
    assert freshproof(project, "build", "work.longer+both").returncode == 0
    again = freshproof(project, "build", "work.longer+both")
    assert "1 fresh" in again.stdout
    assert "no longer defined" not in freshproof(project, "build").stdout
    assert freshproof(project, "verify", "work.longer+both").returncode == 0
    assert freshproof(project, "build", "work.longer+longer").returncode == 2
    assert freshproof(project, "build", "work.longer+nothing").returncode == 2
