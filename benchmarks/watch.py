"""How soon a watch acts and what it costs: 10,000 headers, a stand-in for the compiler, all time the watch's.

Latency is from just after the close of a saved file to the first instruction of the compiler, as both read
them off one clock. Idle is the processor time of the whole process while nothing happens. Memory is what is
resident after each tenth of the events; one in fifty changes a file and builds, the rest only touch it.


    python benchmarks/watch.py [--headers 10000] [--saves 50] [--events 10000] [--poll] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import build_scale
import psutil

_CLOCK = r"""
#include <time.h>
static void told(int c, char **v) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  for (int i = 1; i < c; ++i) if (!strcmp(v[i], "--version") || !strcmp(v[i], "--dryrun")) return;
  FILE *log = fopen(TOP "/started", "a");
  fprintf(log, "%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
  fclose(log);
}
int main(int c, char **v) {
  told(c, v);
"""
_WAIT_SECONDS = 60.0


class Watch:
    """The command, with its events as they come."""

    def __init__(self, root: Path, environ: dict[str, str], *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "watch", "--json", *words],
            cwd=root,
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.events.put(json.loads(line))

    def until(self, *kinds: str) -> dict[str, Any]:
        """The next event of one of these kinds."""
        while True:
            event = self.events.get(timeout=_WAIT_SECONDS)
            if event["event"] in kinds:
                return event

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def in_place(path: Path, text: str) -> None:
    """Cut to nothing and written."""
    path.write_text(text)


def renamed(path: Path, text: str) -> None:
    """Written under another name, and moved into place."""
    other = path.with_name(f"{path.name}.new")
    other.write_text(text)
    other.rename(path)


def latency(root: Path, watch: Watch, save: Callable[[Path, str], None], saves: int) -> list[float]:
    """Milliseconds from each save to the start of the compiler."""
    log = root / "toolkit" / "started"
    headers = sorted((root / "inc").rglob("*.cuh"))
    found = []
    for _ in range(saves):
        path = random.choice(headers)
        text = path.read_text().split("// saved", 1)[0] + f"// saved {time.time_ns()}\n"
        log.write_text("")
        save(path, text)
        closed = time.time_ns()
        watch.until("round")
        found.append((int(log.read_text().split()[0]) - closed) / 1e6)
        time.sleep(0.05)
    return found


def idle(watch: Watch, seconds: float) -> float:
    """Share of one processor, in per cent."""
    process = psutil.Process(watch.process.pid)
    before = sum(process.cpu_times()[:2])
    time.sleep(seconds)
    return (sum(process.cpu_times()[:2]) - before) / seconds * 100


def memory(root: Path, watch: Watch, events: int) -> list[float]:
    """Resident MB after each tenth of the events."""
    process = psutil.Process(watch.process.pid)
    headers = sorted((root / "inc").rglob("*.cuh"))
    found = [process.memory_info().rss / 1e6]
    for number in range(events):
        path = random.choice(headers)
        if number % 50:
            path.touch()
        else:
            path.write_text(path.read_text().split("// saved", 1)[0] + f"// saved {time.time_ns()}\n")
            watch.until("round")
        if (number + 1) % (events // 10) == 0:
            found.append(process.memory_info().rss / 1e6)
    return found


def prepare(root: Path, units: int, headers: int) -> dict[str, str]:
    """The tree, built; returns the environment."""
    if not (root / "manifests").exists():
        build_scale.STAND_IN = build_scale.STAND_IN.replace("int main(int c, char **v) {", _CLOCK, 1)
        build_scale.generate(root, units, headers)
        build_scale.make_stand_in(root)
    environ = {**os.environ, "PATH": f"{root}/toolkit/bin:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "orchestrator", "build"]
    subprocess.run(command, cwd=root, env=environ, check=True, stdout=subprocess.DEVNULL)
    return environ


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--units", type=int, default=200)
    arguments.add_argument("--headers", type=int, default=10000)
    arguments.add_argument("--saves", type=int, default=50)
    arguments.add_argument("--events", type=int, default=10000)
    arguments.add_argument("--poll", action="store_true", help="Let it look at the files, without events.")
    arguments.add_argument("--keep", type=Path, help="Generate here, and leave it.")
    options = arguments.parse_args()
    random.seed(7)
    root = options.keep or Path(tempfile.mkdtemp(prefix="freshproof-watch-"))
    root.mkdir(parents=True, exist_ok=True)
    environ = prepare(root, options.units, options.headers)
    began = time.perf_counter()
    watch = Watch(root, environ, *(["--poll"] if options.poll else []))
    state = watch.until("watching")
    watch.until("round")
    print(f"{state['files']:,} files, {state['places']:,} names in {state['folders']:,} folders; ", end="")
    print(f"ready after {time.perf_counter() - began:.2f} s; load {os.getloadavg()[0]:.1f}")
    for save in (in_place, renamed):
        found = sorted(latency(root, watch, save, options.saves))
        worst = found[int(len(found) * 0.95)]
        print(f"close to compiler, {save.__name__:<9} median {statistics.median(found):6.1f} ms, ", end="")
        print(f"95 % {worst:6.1f} ms, {len(found)} saves")
    print(f"idle                         {idle(watch, 20.0):6.2f} % of one processor, over 20 s")
    if options.events:
        resident = memory(root, watch, options.events)
        shown = ", ".join(f"{one:.0f}" for one in resident)
        print(f"resident over {options.events:,} events: {shown} MB")
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    watch.end()
    if not options.keep:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
