"""How fast the build engine decides: 1,000 translation units, 10,000 headers, 44 MB of sources.

The compiler is a stand-in that lists what a real nvcc would have read and writes a few bytes, so that all
the time is the engine's. Times are medians of several runs beside what the same machine needs, in the same
minute, for SCons (if it is installed) to find the same tree up to date, and for hashing every byte.

The gate's parts are timed in processes of their own, apart from their start: every source by content, and the
whole toolchain of the nvcc that is installed. With ``--real N``, N kernels are compiled by that nvcc, first
plainly, by the same commands, and then by the engine; what it adds is told in seconds and in processor time.

    python benchmarks/build_scale.py [--units 1000] [--headers 10000] [--real 100] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

STAND_IN = r"""
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
/* Answers as nvcc does, as far as the engine asks; "compiles" by copying the quoted includes to the list. */
static const char *after(int c, char **v, const char *name) {
  for (int i = 1; i + 1 < c; ++i) if (!strcmp(v[i], name)) return v[i + 1];
  return 0;
}
int main(int c, char **v) {
  const char *list = after(c, v, "-MF"), *out = after(c, v, "-o"), *source = v[c - 1];
  for (int i = 1; i < c; ++i) {
    if (!strcmp(v[i], "--version")) return puts("Cuda compilation tools, release 13.0, V13.0.88"), 0;
    if (!strcmp(v[i], "--dryrun")) {
      printf("#$ _HERE_=%s/bin\n#$ TOP=%s\n#$ INCLUDES=\n", TOP, TOP);
      printf("#$ gcc -D__CUDA_ARCH_LIST__=900 -E -x c++ -I\"inc\" \"%s\" -o \"x\"\n", source);
      printf("#$ gcc -D__CUDA_ARCH_LIST__=900 -c -x c++ \"x\" -o \"y\"\n");
      return 0;
    }
  }
  FILE *d = fopen(list, "w"), *s = fopen(source, "r"), *o = fopen(out, "w");
  FILE *system = fopen(TOP "/system", "r");
  char line[4096];
  if (!d || !s || !o || !system) return 1;
  fprintf(d, "%s : %s", out, source);
  while (fgets(line, sizeof line, s)) {
    char *end = strrchr(line, '"');
    if (strncmp(line, "#include \"", 10) || !end) continue;
    *end = 0;
    fprintf(d, " \\\n    inc/%s", line + 10);
  }
  while (fgets(line, sizeof line, system)) line[strcspn(line, "\n")] = 0, fprintf(d, " \\\n    %s", line);
  fprintf(d, "\n");
  fprintf(o, ".version 9.0\n.target sm_90\n.address_size 64\n// %s\n", source);
  fprintf(o, ".visible .entry k()\n{\nret;\n}\n");
  return fclose(d) | fclose(o);
}
"""


def generate(root: Path, units: int, headers: int) -> None:
    """The tree: each unit reads its own headers, and the headers that every C++ file reads."""
    random.seed(1)
    words = [f"value_{n}" for n in range(500)]
    for n in range(headers):
        folder = root / "inc" / f"d{n // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        body = "".join(f"// {' '.join(random.choices(words, k=7))}\n" for _ in range(64))
        (folder / f"h{n}.cuh").write_text(f"#pragma once\n#define H{n} {n}\n{body}")
    (root / "src").mkdir()
    per_unit = headers // units
    targets = ["schema = 1\n[project]\nsource-roots = ['src', 'inc']\n"]
    for n in range(units):
        own = range(n * per_unit, (n + 1) * per_unit)
        lines = [f'#include "d{h // 100}/h{h}.cuh"\n' for h in own]
        (root / "src" / f"u{n}.cu").write_text("".join(lines) + "#include <vector>\n")
        targets.append(
            f'[target.u{n}]\nkind = "ptx"\narch = "sm_90"\nsources = ["src/u{n}.cu"]\ninclude = ["inc"]\n'
        )
    (root / "manifests").mkdir()
    (root / "manifests" / "targets.toml").write_text("".join(targets))


def make_stand_in(root: Path) -> Path:
    """The compiler; returns the folder to put in front of the PATH."""
    top = root / "toolkit"
    (top / "bin").mkdir(parents=True)
    said = subprocess.run(
        ["g++", "-x", "c++", "-M", "-include", "vector", "-include", "algorithm", "/dev/null"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = [n for n in said.replace("\\\n", " ").split()[1:] if n.startswith("/usr")]
    (top / "system").write_text("\n".join(names) + "\n")
    source = top / "nvcc.c"
    source.write_text(STAND_IN)
    subprocess.run(["gcc", "-O2", f'-DTOP="{top}"', "-o", top / "bin" / "nvcc", source], check=True)
    (top / "nvvm" / "bin").mkdir(parents=True)
    (top / "nvvm" / "bin" / "cicc").write_text("")
    return top / "bin"


def timed(runs: int, do: Callable[[], object]) -> float:
    """Median seconds."""
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        do()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def show(rows: Mapping[str, Callable[[], object]], runs: int) -> None:
    """Print the median seconds of each."""
    for name, do in rows.items():
        print(f"{name:<21} {timed(runs, do):7.3f} s")


def scons_file(root: Path, units: int) -> None:
    """The same work for SCons: one command a unit, its headers scanned."""
    (root / "SConstruct").write_text(
        "import os\n"
        "env = Environment(ENV=os.environ, CPPPATH=['inc'])\n"
        "SourceFileScanner.add_scanner('.cu', CScanner)\n"
        "SourceFileScanner.add_scanner('.cuh', CScanner)\n"
        f"for n in range({units}):\n"
        "    env.Command(f'out/u{n}.ptx', f'src/u{n}.cu', 'cp $SOURCE $TARGET')\n"
    )


def hash_everything(root: Path) -> None:
    for folder in ("src", "inc"):
        for path in (root / folder).rglob("*.cu*"):
            hashlib.sha256(path.read_bytes()).digest()


SOURCES_BY_CONTENT = """
import os, sys, time
from pathlib import Path
from orchestrator.digests import Digests
from orchestrator.evidence import Observer, paths_of
from orchestrator.freshness import judge
from orchestrator.recorded import Records
from orchestrator.situation import survey
from orchestrator.workspace import Workspace
workspace = Workspace(Path.cwd().resolve())
situation = survey(workspace, [], os.environ)
began = time.perf_counter()
records, digests = Records(workspace), Digests(workspace.root)
manifests = {a.target.name: records.read(a.target.name)[0] for a in situation.actions}
digests.load(paths_of(manifests))
observer = Observer(workspace.root, digests, None)
assert all(o.recorded == o.observed for m in manifests.values() for o in observer.inputs(m))
print(time.perf_counter() - began)
"""
TOOLCHAIN_BY_CONTENT = """
import os, time
from pathlib import Path
from orchestrator.digests import Digests
from orchestrator.evidence import digest_tools
from orchestrator.toolchain import discover, find_nvcc, honoured, search_path
began = time.perf_counter()
found = discover(find_nvcc(os.environ, Path()), search_path(os.environ)[0], honoured(os.environ))
asked = time.perf_counter() - began
tools = digest_tools(found.components, Digests(Path("/")))
assert all(c.digest for c in tools.components)
size = sum(os.path.getsize(c.path) for c in tools.components)
print(time.perf_counter() - began, asked, size / 1e6, len(tools.components))
"""


ENGINE = """
import resource, sys, time
from orchestrator.cli import main
sys.argv = ["freshproof", "build", "-j", sys.argv[1]]
try:
    main()
finally:
    ran = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(time.process_time(), ran.ru_utime + ran.ru_stime, file=sys.stderr)
"""


def told(code: str, runs: int, **where: Any) -> list[float]:
    """What a program in a process of its own prints, as medians of several runs."""
    rows = []
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, **where
        )
        rows.append([float(word) for word in done.stdout.split()])
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def generate_kernels(root: Path, count: int) -> None:
    """A project of small kernels for a real nvcc."""
    (root / "manifests").mkdir(parents=True)
    targets = ["schema = 1\n"]
    for n in range(count):
        body = (
            f'#include "common.cuh"\nextern "C" __global__ void k(int *p) {{ p[threadIdx.x] *= {n} + C; }}\n'
        )
        (root / f"k{n}.cu").write_text(body)
        targets.append(f'[target.k{n}]\nkind = "cubin"\narch = "sm_90"\nsources = ["k{n}.cu"]\n')
    (root / "common.cuh").write_text("#pragma once\n#define C 1\n")
    (root / "manifests" / "targets.toml").write_text("".join(targets))


def measure_overhead(root: Path, count: int, jobs: int) -> None:
    """The engine's part of a full build with a real nvcc: beside the same commands run plainly, by turns."""
    generate_kernels(root, count)
    question = [sys.executable, "-m", "orchestrator", "build", "--plan", "--json"]
    plan = subprocess.run(question, cwd=root, check=True, capture_output=True)
    actions = json.loads(plan.stdout)["actions"]

    def plainly(action: dict[str, Any]) -> None:
        work = root / "build" / "work" / action["target"]
        for folder in ("keep", "tmp"):
            (work / folder).mkdir(parents=True)
        (work / "stamp.h").touch()
        subprocess.run(action["argv"], cwd=root, env=action["environment"], check=True)

    seconds: dict[str, float] = {}
    processor: dict[str, float] = {}
    for name in ("plain", "engine"):
        shutil.rmtree(root / "build", ignore_errors=True)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        if name == "plain":
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(plainly, actions))
        else:
            done = subprocess.run(
                [sys.executable, "-c", ENGINE, str(jobs)], cwd=root, check=True, capture_output=True
            )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds[name] = time.perf_counter() - began
        processor[name] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for unit, found in (("elapsed", seconds), ("processor", processor)):
        more = found["engine"] / found["plain"] - 1
        print(
            f"{count} kernels, -j{jobs}, {unit}: nvcc alone {found['plain']:.2f} s, "
            f"build {found['engine']:.2f} s: {more:+.1%}"
        )
    own, ran = map(float, done.stderr.split()[-2:])
    print(
        f"{count} kernels, processor: the engine itself {own:.2f} s, what it ran {ran:.2f} s: {own / ran:.1%}"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--units", type=int, default=1000)
    arguments.add_argument("--headers", type=int, default=10000)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--real", type=int, default=0, help="Kernels to compile with the installed nvcc.")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments.add_argument("--keep", type=Path, help="Generate here, and leave it.")
    options = arguments.parse_args()
    root = options.keep or Path(tempfile.mkdtemp(prefix="freshproof-scale-"))
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "manifests").exists():
        generate(root, options.units, options.headers)
        make_stand_in(root)
    size = sum(p.stat().st_size for f in ("src", "inc") for p in (root / f).rglob("*.cu*"))
    print(f"{options.units} units, {options.headers} headers, {size / 1e6:.0f} MB in {root}")
    environ = {**os.environ, "PATH": f"{root}/toolkit/bin:{os.environ['PATH']}"}

    def freshproof(*words: str, cwd: Path = root) -> None:
        subprocess.run(
            [sys.executable, "-m", "orchestrator", *words],
            cwd=cwd,
            env=environ if cwd == root else os.environ,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    print(f"first build           {timed(1, lambda: freshproof('build')):7.3f} s")
    rows = {
        "no-op build": lambda: freshproof("build"),
        "gate, every byte": lambda: freshproof("gate"),
        "--help": lambda: freshproof("--help"),
        "sha256 in one thread": lambda: hash_everything(root),
    }
    print(f"load average {os.getloadavg()[0]:.1f}")
    show(rows, options.runs)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"peak memory           {peak:7.0f} MB")
    (sources,) = told(SOURCES_BY_CONTENT, options.runs, cwd=root, env=environ)
    print(f"gate: sources alone   {sources:7.3f} s")
    whole, asked, size, count = told(TOOLCHAIN_BY_CONTENT, options.runs)
    print(
        f"gate: toolchain alone {whole:7.3f} s, {count:.0f} files, {size:.0f} MB; {asked:.3f} s to find them"
    )
    small = root / "small"
    if not small.exists():
        generate_kernels(small, 2)
        freshproof("build", cwd=small)
    show({"small no-op": lambda: freshproof("build", cwd=small)}, options.runs)
    scons = shutil.which("scons")
    if scons:
        scons_file(root, options.units)
        quietly = {"cwd": root, "check": True, "stdout": subprocess.DEVNULL}
        subprocess.run([scons, "-j2"], **quietly)
        show({"SCons, up to date": lambda: subprocess.run([scons], **quietly)}, options.runs)
    if options.real:
        measure_overhead(root / "real", options.real, options.jobs)
    if not options.keep:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
