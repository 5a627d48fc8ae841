"""``freshproof watch`` in real trees: what is built, in what order, and what is said of it."""

import json
import os
import subprocess
import sys
import time

import psutil
import pytest

pytestmark = pytest.mark.toolchain


def kinds(events):
    return [event["event"] for event in events]


# With the real nvcc


def test_a_saved_header_rebuilds_its_dependents_alone_and_the_bench_follows(real, watch):
    """The whole story in one run: change, build, machine code, verify, bench, command, in this order."""
    one = watch(
        real, "--verify", "--bench", "sleep", "--", "sh", "-c", "echo ran; readlink build/bin/k.cubin"
    )
    first = one.round()
    assert one.built(first) == {"k": "built", "other": "built"} and first[-1]["good"]
    (real / "inc" / "v.cuh").write_text("#define V 2\n")
    events = one.round()
    assert one.built(events) == {"k": "built"}
    order = [
        kind
        for kind in kinds(events)
        if kind in ("changed", "built", "code", "verified", "benched", "command")
    ]
    assert order == ["changed", "built", "code", "verified", "benched", "command"]
    told = {event["event"]: event for event in events}
    assert told["changed"]["files"] == [{"path": "inc/v.cuh", "how": "changed"}]
    assert told["changed"]["targets"] == ["k"]
    assert told["code"]["lines"] == ["k: code, with the same size and resources"]
    assert told["verified"]["admitted"] and [t["target"] for t in told["verified"]["targets"]] == ["k"]
    assert told["benched"]["state"] == "fresh" and told["benched"]["n"] == 4
    assert [against["which"] for against in told["benched"]["against"]] == ["last"]
    said = [event["line"] for event in events if event["event"] == "said" and event["step"] == "command"]
    assert said == ["ran", str((real / "build" / "bin" / "k.cubin").readlink())]
    # A comment makes other bytes of source and the same machine code.
    (real / "src" / "other.cu").write_text("// c\n" + (real / "src" / "other.cu").read_text())
    events = one.round()
    assert one.built(events) == {"other": "built"}
    assert [event["lines"] for event in events if event["event"] == "code"] == [["machine code identical"]]
    assert "benched" not in kinds(events), "the workload uses nothing that was built"
    assert "command" in kinds(events)


def test_what_cannot_be_built_is_told_whole_and_watched_for_what_it_lacks(real, watch):
    one = watch(real)
    one.round()
    source = (real / "src" / "k.cu").read_text()
    (real / "src" / "k.cu").write_text("nonsense\n")
    events = one.round(good=False)
    (failed,) = [event for event in events if event["event"] == "built"]
    assert failed["result"] == "failed" and "src/k.cu(1): error" in failed["message"]
    (real / "src" / "k.cu").write_text('#include "deep/new.cuh"\n' + source)
    (failed,) = [event for event in one.round(good=False) if event["event"] == "built"]
    assert "deep/new.cuh" in failed["message"]
    (real / "inc" / "deep").mkdir()
    one.until("changed")
    (real / "inc" / "deep" / "new.cuh").write_text("")
    assert one.built(one.round(good=True)) == {"k": "built"}
    (real / "src" / "k.cu").write_text(source)
    one.round(good=True)


def test_an_error_in_targets_toml_and_a_deleted_source_are_told_and_waited_out(real, watch):
    one = watch(real)
    one.round()
    targets = (real / "manifests" / "targets.toml").read_text()
    (real / "manifests" / "targets.toml").write_text(targets.replace('kind = "cubin"', 'kind = "cubism"', 1))
    error = one.until("error")[-1]
    assert "manifests/targets.toml:3" in error["error"] and "kind" in error["error"]
    one.round(good=False)
    (real / "manifests" / "targets.toml").write_text(targets)
    one.round(good=True)
    (real / "src" / "other.cu").rename(real / "src" / "away")
    assert "there is no file src/other.cu" in one.until("error")[-1]["error"]
    (real / "src" / "away").rename(real / "src" / "other.cu")
    one.round(good=True)
    more = '[target.new]\nkind = "ptx"\narch = "sm_90"\nsources = ["new/n.cu"]\n'
    (real / "manifests" / "targets.toml").write_text(targets + more)
    assert "there is no file new/n.cu" in one.until("error")[-1]["error"]
    one.round(good=False)
    (real / "new").mkdir()
    (real / "new" / "n.cu").write_text('extern "C" __global__ void n() {}\n')
    assert one.built(one.round(good=True)) == {"new": "built"}


def test_it_begins_with_a_broken_targets_toml_too(real, watch):
    targets = (real / "manifests" / "targets.toml").read_text()
    (real / "manifests" / "targets.toml").write_text("schema = 7\n")
    one = watch(real)
    one.until("error")
    (real / "manifests" / "targets.toml").write_text(targets)
    assert one.built(one.round(good=True)) == {"k": "built", "other": "built"}


# With a stand-in for the compiler, which can be slow


def test_an_edit_during_a_build_ends_it_and_starts_the_right_one(tree, watch):
    it = tree(2, 2)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    it.slow(60_000)
    (it.root / "inc" / "h0.cuh").write_text("// slow\n")
    one.until("building", target="u0")
    while len(it.compiles()) < 3:
        time.sleep(0.01)
    (slow,) = it.compiles()[2:]
    (it.root / "inc" / "h1.cuh").write_text("// newer\n")
    one.until("cut")
    it.slow(0)
    assert one.built(one.round()) == {"u0": "built", "u1": "built"}
    assert not psutil.pid_exists(slow) or psutil.Process(slow).status() == psutil.STATUS_ZOMBIE
    assert it.artifacts() == it.clean_artifacts()


def test_an_edit_during_the_very_first_build_ends_it_too(tree, watch):
    it = tree(1, 1)
    it.slow(60_000)
    one = watch(it.root, path=it.path)
    one.until("building")
    while not it.compiles():
        time.sleep(0.01)
    (it.root / "inc" / "h0.cuh").write_text("// newer\n")
    one.until("cut")
    it.slow(0)
    assert one.built(one.round(good=True)) == {"u0": "built"}
    assert it.artifacts() == it.clean_artifacts()


def test_an_edit_during_the_command_ends_it_with_its_children(tree, watch):
    it = tree(1, 1)
    script = "sleep 600 & setsid sleep 600 & echo $! began; wait"
    one = watch(it.root, "--", "sh", "-c", script, path=it.path)
    one.until("said")
    sleepers = []
    while len(sleepers) < 2:
        family = psutil.Process(one.process.pid).children(recursive=True)
        sleepers = [process for process in family if process.name() == "sleep"]
    (it.root / "inc" / "h0.cuh").write_text("// newer\n")
    assert "cut" in kinds(one.until("said"))
    gone, left = psutil.wait_procs(sleepers, timeout=30)
    assert not left and len(gone) == 2


def test_an_edit_is_noticed_while_the_command_says_very_much(tree, watch):
    it = tree(1, 1)
    one = watch(it.root, "--", "yes", path=it.path)
    one.until("said")
    (it.root / "inc" / "h0.cuh").write_text("// newer\n")
    one.until("cut", what="command")
    one.until("said")


def test_a_command_ends_with_its_own_code_and_is_not_repeated_without_a_reason(tree, watch):
    it = tree(1, 1)
    one = watch(it.root, "--", "sh", "-c", "echo ran; exit 3", path=it.path)
    events = one.round(good=False)
    assert [event["code"] for event in events if event["event"] == "command"] == [3]
    (it.root / "inc" / "h0.cuh").touch()
    one.until("touched")
    one.rest(0.3)
    assert [event["line"] for event in one.seen if event["event"] == "said"] == ["ran"]


def test_a_touch_builds_nothing_and_a_failed_target_is_tried_again(tree, watch):
    it = tree(1, 1)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    (it.root / "inc" / "h0.cuh").touch()
    assert one.until("touched")[-1]["files"] == ["inc/h0.cuh"]
    assert len(it.compiles()) == 1
    (it.root / "inc" / "h0.cuh").write_text("#error\n")
    one.round(good=False)
    (it.root / "inc" / "h0.cuh").touch()
    events = one.round(good=False)
    assert one.built(events) == {"u0": "failed"}


def test_a_header_that_appears_in_front_of_another_is_built_with(tree, watch):
    it = tree(2, 2)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    (it.root / "first").mkdir()
    (it.root / "first" / "h1.cuh").write_text("// in front\n")
    events = one.round()
    while not one.built(events):
        events = one.round()
    assert one.built(events) == {"u1": "built"}
    assert it.artifacts() == it.clean_artifacts()


def manual_build(it, *words):
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "orchestrator", "build", *words],
        cwd=it.root,
        env={**os.environ, "PATH": it.path},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_manual_build_waits_for_the_watch_and_finds_all_done(tree, watch):
    it = tree(1, 1)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    it.slow(60_000)
    (it.root / "inc" / "h0.cuh").write_text("// new\n")
    one.until("building")
    with manual_build(it) as manual:
        assert "another build is at work in this tree" in manual.stdout.readline()
        it.slow(0)
        assert "0 built, 1 fresh" in manual.communicate()[0]
    assert one.built(one.round()) == {"u0": "built"}
    assert len(it.compiles()) == 2


def test_the_watch_waits_for_a_manual_build_and_joins_in_its_result(tree, watch):
    it = tree(2, 2)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    it.slow(60_000)
    with manual_build(it, "--force") as manual:
        while len(it.compiles()) < 3:
            time.sleep(0.01)
        (it.root / "inc" / "h0.cuh").write_text("// new\n")
        assert "another build is at work" in one.until("note")[-1]["text"]
        (it.root / "inc" / "h1.cuh").write_text("// newer\n")
        one.until("changed")
        it.slow(0)
        manual.communicate()
        assert manual.returncode == 0
    one.round()
    one.rest()
    assert it.run("gate").returncode == 0
    assert it.artifacts() == it.clean_artifacts()


def test_what_a_manual_build_made_goes_through_the_steps_too(tree, watch):
    it = tree(1, 1)
    one = watch(it.root, "--", "echo", "ran", path=it.path)
    one.round(good=True)
    it.slow(60_000)
    with manual_build(it, "--force") as manual:
        while len(it.compiles()) < 2:
            time.sleep(0.01)
        (it.root / "inc" / "h0.cuh").write_text("// new\n")
        assert "another build is at work" in one.until("note")[-1]["text"]
        it.slow(0)
        manual.communicate()
        assert manual.returncode == 0
    events = one.round(good=True)
    assert one.built(events) == {}, "the manual build noticed the edit and compiled again"
    assert "command" in kinds(events)


def test_a_second_watch_says_so(tree, watch):
    it = tree(1, 1)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    second = it.run("watch")
    assert second.returncode == 3
    assert f"another watch is at work in {it.root} (process {one.process.pid})" in second.stderr
    one.interrupt()


def test_an_interruption_during_a_build_leaves_nothing_behind(tree, watch):
    it = tree(3, 3)
    it.slow(60_000)
    one = watch(it.root, path=it.path)
    one.until("building")
    while not it.compiles():
        time.sleep(0.01)
    one.interrupt()
    assert not any(psutil.pid_exists(pid) for pid in it.compiles())
    it.slow(0)
    assert it.run("build").returncode == 0


def test_an_unknown_name_is_a_mistake_at_once(tree, watch):
    it = tree(1, 1)
    assert it.run("watch", "nothing").returncode == 2
    assert it.run("watch", "--bench", "nothing").returncode == 2


def test_a_program_is_told_what_came_out(tree, watch):
    it = tree(1, 1)
    program = it.root / "notify"
    program.write_text('#!/bin/sh\necho "$@" >> told\n')
    program.chmod(0o755)
    one = watch(it.root, "--notify", f"{program} -x", path=it.path)
    one.round()
    (it.root / "inc" / "h0.cuh").write_text("#error\n")
    one.round(good=False)
    told = it.root / "told"
    while not told.exists() or len(told.read_text().splitlines()) < 2:
        time.sleep(0.01)
    assert told.read_text().splitlines() == ["-x freshproof: 1 built", "-x freshproof: failed: u0"]


def test_options_files_and_headers_outside_the_tree_are_watched(tree, watch):
    it = tree(2, 2)
    outside = it.root.parent / "options"
    outside.write_text("-DA=1\n")
    targets = it.root / "manifests" / "targets.toml"
    targets.write_text(
        targets.read_text().replace("[target.u1]", f'flags = ["-optf", "{outside}"]\n[target.u1]')
    )
    headers = it.root.parent / "headers"
    headers.mkdir()
    (headers / "h1.cuh").write_text("// outside\n")
    (it.root / "inc" / "h1.cuh").unlink()
    (it.root / "inc" / "h1.cuh").symlink_to(headers / "h1.cuh")
    one = watch(it.root, path=it.path)
    one.round(good=True)
    outside.write_text("-DA=2\n")
    assert one.built(one.round(good=True)) == {"u0": "built"}
    (headers / "h1.cuh").write_text("// changed outside\n")
    assert one.built(one.round(good=True)) == {"u1": "built"}


def test_a_tool_that_appears_where_the_host_compiler_looks_is_built_with(real, watch):
    text = (real / "manifests" / "targets.toml").read_text()
    flags = 'include = ["inc"]\nflags = ["-Xcompiler", "-Btools/"]\n'
    (real / "manifests" / "targets.toml").write_text(text.replace('include = ["inc"]\n', flags))
    (real / "tools").mkdir()
    one = watch(real)
    one.round(good=True)
    own = real / "tools" / "cc1plus"
    compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True)
    own.write_text(f'#!/bin/sh\nexec {compiler.stdout.strip()} "$@"\n')
    own.chmod(0o755)
    assert one.built(one.round(good=True)) == {"other": "built"}


def test_only_the_targets_named_and_those_of_the_workload_are_watched(tree, watch):
    it = tree(3, 3)
    targets = it.root / "manifests" / "targets.toml"
    workload = '[workload.w]\ncommand = ["true"]\nuses = ["u2"]\nworker = false\n'
    targets.write_text(targets.read_text() + workload)
    one = watch(it.root, "u0", "--bench", "w", path=it.path)
    assert one.built(one.round()) == {"u0": "built", "u2": "built"}
    (it.root / "inc" / "h1.cuh").write_text("// of u1\n")
    (it.root / "inc" / "h2.cuh").write_text("// of u2\n")
    events = one.round()
    assert one.built(events) == {"u2": "built"} and "benched" in kinds(events)


def test_an_edit_during_the_bench_ends_it_and_its_record_says_so(real, watch):
    targets = real / "manifests" / "targets.toml"
    asleep = "import os; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    targets.write_text(targets.read_text().replace("time.sleep(0.02)", asleep))
    one = watch(real, "--bench", "sleep")
    one.until("step", step="bench")
    pid = real / "pid"
    while not pid.exists() or not pid.read_text():
        time.sleep(0.01)
    sleeper = psutil.Process(int(pid.read_text()))
    targets.write_text(targets.read_text().replace("time.sleep(600)", "pass"))
    (real / "inc" / "v.cuh").write_text("#define V 3\n")
    events = one.round(good=True)
    assert "cut" in kinds(events) and "benched" in kinds(events)
    assert not psutil.wait_procs([sleeper], timeout=30)[1]
    states = [
        json.loads(path.read_text().splitlines()[-1])["state"]
        for path in sorted((real / "build" / "records").glob("*.jsonl"))
    ]
    assert states == ["interrupted", "fresh"]


def test_a_bench_that_is_refused_or_breaks_says_why_and_the_watch_goes_on(real, watch):
    targets = real / "manifests" / "targets.toml"
    targets.write_text(targets.read_text().replace("time.sleep(0.02)", "raise SystemExit(4)"))
    one = watch(real, "--bench", "sleep", "--", "echo", "never")
    events = one.round(good=False)
    (benched,) = [event for event in events if event["event"] == "benched"]
    assert benched["state"] == "broken" and "exit code 4" in benched["why"]
    assert "command" not in kinds(events)
    (real / "inc" / "v.cuh").write_text("#define V 4\n")
    assert one.built(one.round(good=False)) == {"k": "built"}


def test_a_header_deleted_while_it_is_compiled_with_leaves_nothing_unproven(tree, watch):
    """Both attempts of a build name it, and it is gone: only another build shows that it is not needed."""
    it = tree(1, 1)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    (it.toolkit / "GHOSTS").write_text("2\n")
    (it.root / "inc" / "hall.cuh").write_text("// new\n")
    events = one.round(good=True)
    assert [event["result"] for event in events if event["event"] == "built"] == ["unproven", "built"]
    assert it.run("gate").returncode == 0
    assert it.artifacts() == it.clean_artifacts()
