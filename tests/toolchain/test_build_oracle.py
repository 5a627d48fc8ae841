"""The names that a compile looked for and did not find, against what the kernel saw it ask for."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.build import build
from orchestrator.recorded import read_manifest
from orchestrator.situation import survey
from orchestrator.tidy import tidy
from orchestrator.workspace import Workspace

pytestmark = [
    pytest.mark.toolchain,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
SOURCE = """\
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>
#include <vector>
#include "near.cuh"
#define NAME "computed.cuh"
#include NAME
#if __has_include("maybe.cuh") || __has_include(<never/there.h>)
#endif
extern "C" __global__ void k(int *p) { *p = 1; }
"""
_EXECUTED = re.compile(r'^(\d+) +execve\("([^"]+)".*= 0$')
_NOT_FOUND = re.compile(r'^(\d+) +open(?:at)?\((?:AT_FDCWD, )?"([^"]+)".*ENOENT')


def asked_for_in_vain(log: Path) -> set[str]:
    """Headers that the preprocessor tried to open and that were not there."""
    program: dict[str, str] = {}
    names = set()
    for line in log.read_text(errors="replace").splitlines():
        if executed := _EXECUTED.match(line):
            program[executed[1]] = executed[2]
        missed = _NOT_FOUND.match(line)
        if missed and program.get(missed[1], "").endswith("cc1plus"):
            names.add(missed[2])
    noise = re.compile(r"\.gch$|\.so|^/proc|/locale/")
    return {name for name in names if not noise.search(name)}


def test_every_name_that_a_compile_missed_is_recorded(tmp_path):
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "targets.toml").write_text(
        'schema = 1\n[target.k]\nkind = "ptx"\narch = "sm_90"\nsources = ["src/k.cu"]\n'
        'include = ["first", "not-there", "inc"]\n'
    )
    for name, text in {
        "src/k.cu": SOURCE,
        "src/near.cuh": "",
        "inc/computed.cuh": "",
        "first/x.h": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    workspace = Workspace(tmp_path)
    environ = {"PATH": f"{Path(NVCC).parent}:/usr/bin:/bin"}
    (outcome,) = build(workspace, [], environ).outcomes
    assert outcome.message == ""
    manifest, _ = read_manifest(workspace, "k")
    closure = manifest.closure
    assert closure.unknown == ()
    recorded = {
        f"{folder}/{name}" if folder else name
        for folder, names in (*closure.absent, *closure.common.absent)
        for name in names
    }
    (action,) = survey(workspace, [], environ).actions
    for folder in ("keep", "tmp"):
        (tmp_path / "build" / "work" / "k" / folder).mkdir(parents=True)
    log = tmp_path / "strace.log"
    command = ["strace", "-f", "-e", "trace=open,openat,execve", "-o", log, *action.argv]
    subprocess.run(command, cwd=tmp_path, env=dict(action.environment), check=True, capture_output=True)
    asked = asked_for_in_vain(log)
    assert len(asked) > 500
    missed = {
        name
        for name in asked
        if name not in recorded
        and os.path.normpath(name).removeprefix(f"{tmp_path}/") not in recorded
        and tidy(name) not in recorded
    }
    assert missed == set()
    assert {"first/maybe.cuh", "src/maybe.cuh", "not-there/maybe.cuh"} <= recorded
    assert {"first/computed.cuh", "src/computed.cuh", "not-there/computed.cuh"} <= recorded
