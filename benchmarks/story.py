"""The story that this tool was made for, told by running it: a `.cu` in a Rust crate, real cargo, real nvcc.

Prints each command as it is typed, and what is answered. Works in a folder of its own, which it removes.
With --compare it prints instead, case by case, what each build system and ccache did about an edit, and the
verdicts; with --rebuild, how often 50 untouched rebuilds by each were called anything but fresh.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compare import compare, rebuild

SOURCES = Path(__file__).parents[1] / "tests" / "data" / "story"
KERNEL = "groth16-cuda/cuda/groth16_cuda.cu"
HEADER = "groth16-cuda/include/params.cuh"
PROGRAM = "./target/release/prove-bench"
BUILD = "cargo build --release --offline"


class Story:
    """A terminal in the story's workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.failed: list[str] = []

    def say(self, text: str) -> None:
        print(f"\n# {text}", flush=True)

    def type(self, command: str, expected: int = 0) -> None:
        """Run a command line; another exit code than the expected ends up in the summary."""
        print(f"$ {command}", flush=True)
        tool = f"{sys.executable} -m orchestrator"
        words = command.replace("freshproof ", f"{tool} ")
        code = subprocess.call(["bash", "-o", "pipefail", "-c", words], cwd=self.root)
        if code:
            print(f"[exit code {code}]", flush=True)
        if code != expected:
            self.failed.append(f"{command}: exit code {code}, not {expected}")

    def edit(self, name: str, old: str, new: str, *, unseen: bool = False) -> None:
        path = self.root / name
        status = path.stat()
        path.write_text(path.read_text().replace(old, new))
        print(f"$ $EDITOR {name}      # {old!r} becomes {new!r}", flush=True)
        if unseen:
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def tell(story: Story) -> None:
    story.say("A first build, with one command in front of it. Its output is cut off, as in the story.")
    story.type(f"freshproof run -- {BUILD} 2>&1 | tail -15")
    story.type(f"freshproof gate -- {PROGRAM}")

    story.say("A call is removed from the host part of the .cu, and a stale folder is removed by hand:")
    story.say("the pattern matches nothing, so nothing happens. Was the kernel compiled again?")
    story.edit(KERNEL, "return 88", "return 83")
    story.type("rm -rf target/release/build/supraseal-c2-*")
    story.type(f"freshproof gate -- {PROGRAM}", expected=125)
    story.type(f"freshproof run -- {BUILD} 2>&1 | tail -15")
    story.type(f"freshproof gate -- {PROGRAM}")

    story.say("A header is edited that build.rs does not name. cargo finds nothing to do:")
    story.edit(HEADER, "WINDOW 4", "WINDOW 5")
    story.type(f"freshproof run -- {BUILD}")
    story.type(f"freshproof gate -- {PROGRAM}", expected=125)
    story.edit(HEADER, "WINDOW 5", "WINDOW 4")

    story.say("An edit that leaves size and time of the file as they were, as some tools do:")
    story.edit(KERNEL, "return 83", "return 88", unseen=True)
    story.type(f"freshproof run -- {BUILD}")
    story.type(f"freshproof gate -- {PROGRAM}", expected=125)

    story.say("Half of the edits are Rust, not CUDA:")
    story.type(f"touch {KERNEL} && freshproof run --quiet -- {BUILD}")
    story.type(f"freshproof gate -- {PROGRAM}")
    story.edit("prove-bench/src/main.rs", "proof in", "a proof in")
    story.type(f"freshproof gate -- {PROGRAM}", expected=125)
    story.edit("prove-bench/src/main.rs", "a proof in", "proof in")

    story.say("Two profiles, two hash folders with an archive of the same name. Which one is linked?")
    story.type(f"freshproof run --quiet -- {BUILD} && freshproof run -- cargo build --offline")
    story.edit(KERNEL, "return 88", "return 82")
    story.type(f"freshproof run -- {BUILD}")
    story.type("freshproof gate -- ./target/debug/prove-bench", expected=125)
    story.type(f"freshproof gate -- {PROGRAM}")


def main(words: list[str]) -> int:
    if words not in ([], ["--compare"], ["--rebuild"]):
        print(f"usage: {sys.argv[0]} [--compare | --rebuild]", file=sys.stderr)
        return 2
    missing = [name for name in ("cargo", "nvcc", "git") if shutil.which(name) is None]
    if missing:
        print(f"the story needs {', '.join(missing)}", file=sys.stderr)
        return 8
    if words:
        return compare() if words == ["--compare"] else rebuild(50)
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        root = Path(os.path.realpath(folder)) / "zk"
        shutil.copytree(SOURCES, root)
        (root / ".gitignore").write_text("/target\n")
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        subprocess.run(["git", "add", "-A"], cwd=root, check=True)
        story = Story(root)
        tell(story)
    for line in story.failed:
        print(f"not as told: {line}", file=sys.stderr)
    return 1 if story.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
