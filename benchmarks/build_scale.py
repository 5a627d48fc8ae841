"""How fast the build engine decides: 1,000 translation units, 10,000 headers, 44 MB of sources.

The compiler is a stand-in that lists what a real nvcc would have read and writes a few bytes, so that all
the time is the engine's. Times are medians of several runs beside what the same machine needs, in the same
minute, for SCons (if it is installed) to find the same tree up to date, and for hashing every byte.


    python benchmarks/build_scale.py [--units 1000] [--headers 10000] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

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


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--units", type=int, default=1000)
    arguments.add_argument("--headers", type=int, default=10000)
    arguments.add_argument("--runs", type=int, default=5)
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

    def freshproof(*words: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "orchestrator", *words],
            cwd=root,
            env=environ,
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
    scons = shutil.which("scons")
    if scons:
        scons_file(root, options.units)
        quietly = {"cwd": root, "check": True, "stdout": subprocess.DEVNULL}
        subprocess.run([scons, "-j2"], **quietly)
        rows["SCons, up to date"] = lambda: subprocess.run([scons], **quietly)
    for name, do in rows.items():
        print(f"{name:<21} {timed(options.runs, do):7.3f} s")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"peak memory           {peak:7.0f} MB")
    if not options.keep:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
