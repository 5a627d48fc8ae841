"""Every way in which editors and tools save ends in one right build; also storms, links and limits."""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain


def in_place(path: Path, text: str) -> None:
    """VS Code, nano, Python's open(path, "w"): cut to nothing, written, closed."""
    path.write_text(text)


def slowly(path: Path, text: str) -> None:
    """In pieces, with pauses, as over a slow connection."""
    with path.open("w") as file:
        for at in range(0, len(text), 5):
            file.write(text[at : at + 5])
            file.flush()
            time.sleep(0.05)


def emacs(path: Path, text: str) -> None:
    """The old file becomes the backup, a new one is written in its place and given the old one's mode."""
    mode = path.stat().st_mode & 0o777
    path.rename(f"{path}~")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(descriptor, text.encode())
    os.fsync(descriptor)
    os.close(descriptor)
    path.chmod(mode)


def jetbrains(path: Path, text: str) -> None:
    """Safe write: a new file beside it, the old one aside, the new one into place, the old one deleted."""
    new, old = Path(f"{path}___jb_tmp___"), Path(f"{path}___jb_old___")
    new.write_text(text)
    path.rename(old)
    new.rename(path)
    old.unlink()


def atomically(path: Path, text: str) -> None:
    """rsync, sed -i, gedit: a new file with another name in the same folder, moved over the old one."""
    other = path.with_name(f".{path.name}.Xy12Zz")
    other.write_text(text)
    other.rename(path)


def deleted_first(path: Path, text: str) -> None:
    path.unlink()
    time.sleep(0.1)
    path.write_text(text)


def hard_link(path: Path, text: str) -> None:
    """Versioning tools: the new name is linked, not written."""
    other = path.with_name("store")
    other.write_text(text)
    path.unlink()
    os.link(other, path)
    other.unlink()


def old_times(path: Path, text: str) -> None:
    """rsync -t, tar and cp -p: the content is new, and the times are old."""
    path.write_text(text)
    os.utime(path, (1_000_000_000, 1_000_000_000))


SAVES = (in_place, slowly, emacs, jetbrains, atomically, deleted_first, hard_link, old_times)


def test_each_way_to_save_is_built_once_and_right(tree, watch):
    it = tree(2, 2)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    for number, save in enumerate(SAVES):
        before = len(it.compiles())
        save(it.root / "inc" / "h0.cuh", f"// {save.__name__} {number}\n")
        events = one.round(good=True)
        assert one.built(events) == {"u0": "built"}, save.__name__
        assert it.artifacts() == it.clean_artifacts(), save.__name__
        one.rest(0.3)
        # The compile of the clean build counts, too.
        assert len(it.compiles()) == before + 1 + 2, f"{save.__name__}: built more than once"


@pytest.mark.needs("vim")
@pytest.mark.parametrize("backup", ["backupcopy=yes", "backupcopy=no", "nobackup nowritebackup"])
def test_vim(tree, watch, backup):
    it = tree(1, 1)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    header = it.root / "inc" / "h0.cuh"
    script = ["-c", f"set {backup}", "-c", "%s/0/5/", "-c", "wq"]
    subprocess.run(["vim", "-es", "-u", "NONE", "-N", *script, header], check=False, timeout=60)
    assert header.read_text() == "// 5\n"
    assert one.built(one.round(good=True)) == {"u0": "built"}
    assert it.artifacts() == it.clean_artifacts()


@pytest.mark.needs("sed")
def test_sed_over_many_files(tree, watch):
    it = tree(3, 30)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    headers = sorted((it.root / "inc").glob("h*.cuh"))
    subprocess.run(["sed", "-i", "s,^// ,// again ,", *headers], check=True)
    finish(it, one)


@pytest.mark.needs("git")
def test_git_checkout_and_stash_of_hundreds_of_files(tree, watch):
    it = tree(4, 200)
    git = ["git", "-C", str(it.root), "-c", "user.name=n", "-c", "user.email=e"]

    def run(*words: str) -> None:
        subprocess.run([*git, *words], check=True, capture_output=True)

    (it.root / ".gitignore").write_text("build\n")
    run("init", "-b", "one")
    run("add", ".")
    run("commit", "-m", "one")
    run("checkout", "-b", "two")
    for path in (it.root / "inc").glob("h*.cuh"):
        path.write_text(f"{path.read_text()}// two\n")
    run("commit", "-am", "two")
    run("checkout", "one")
    one = watch(it.root, path=it.path)
    one.round(good=True)
    for words in (["checkout", "two"], ["checkout", "one"]):
        run(*words)
        finish(it, one)
    changed = [event for event in one.seen if event["event"] == "changed"]
    assert max(len(event["files"]) for event in changed) > 100, "hundreds of files are one burst"
    for path in (it.root / "inc").glob("h1*.cuh"):
        path.write_text("// uncommitted\n")
    finish(it, one)
    run("stash")
    finish(it, one)
    run("stash", "pop")
    finish(it, one)


def finish(it, one) -> None:
    """Once it says nothing more, everything is built from what lies there now."""
    one.round()
    one.rest(0.7)
    assert [event for event in one.seen if event["event"] == "round"][-1]["good"]
    assert it.artifacts() == it.clean_artifacts()


def test_a_link_that_is_pointed_elsewhere(tree, watch):
    """The way of releases: a new folder is filled, and one link replaced in one step."""
    it = tree(2, 2)
    shutil.move(it.root / "inc", it.root.parent / "headers-1")
    shutil.copytree(it.root.parent / "headers-1", it.root.parent / "headers-2")
    (it.root.parent / "headers-2" / "h0.cuh").write_text("// two\n")
    (it.root / "inc").symlink_to("../headers-1")
    one = watch(it.root, path=it.path)
    one.round(good=True)
    (it.root.parent / "next").symlink_to("headers-2")
    (it.root / "new").symlink_to("../headers-2")
    (it.root / "new").rename(it.root / "inc")
    assert one.built(one.round(good=True)) == {"u0": "built"}
    (it.root.parent / "headers-2" / "h1.cuh").write_text("// through the link\n")
    assert one.built(one.round(good=True)) == {"u1": "built"}
    (it.root.parent / "headers-1" / "h1.cuh").write_text("// no longer of interest\n")
    one.rest()
    assert it.artifacts() == it.clean_artifacts()


def test_a_folder_that_is_exchanged_for_another(tree, watch):
    it = tree(2, 2)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    shutil.copytree(it.root / "inc", it.root / "new")
    (it.root / "new" / "h1.cuh").write_text("// exchanged\n")
    (it.root / "inc").rename(it.root / "old")
    (it.root / "new").rename(it.root / "inc")
    finish(it, one)
    (it.root / "inc" / "h0.cuh").write_text("// in the new one\n")
    assert one.built(one.round(good=True)) == {"u0": "built"}
    (it.root / "old" / "h0.cuh").write_text("// in the old one\n")
    one.rest()
    assert it.artifacts() == it.clean_artifacts()


def test_half_a_save_is_not_built(tree, watch):
    """A file that is open and half written is not built until it is closed."""
    it = tree(1, 1)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    with (it.root / "inc" / "h0.cuh").open("w") as file:
        file.write("// half")
        file.flush()
        time.sleep(2.5)  # longer than any write without an event is waited for
        assert len(it.compiles()) == 1
        file.write(" and half\n")
    assert one.built(one.round(good=True)) == {"u0": "built"}
    assert it.artifacts() == it.clean_artifacts()


def test_by_looking_it_builds_the_same(tree, watch):
    it = tree(2, 2)
    one = watch(it.root, "--poll", path=it.path)
    assert one.until("watching")[-1]["polled"] > 0
    one.round(good=True)
    for save in (in_place, slowly, atomically):
        save(it.root / "inc" / "h0.cuh", f"// {save.__name__}\n")
        finish(it, one)
    (it.root / "first").mkdir()
    (it.root / "first" / "h1.cuh").write_text("// in front\n")
    finish(it, one)


def no_inotify(setting: str, value: int) -> tuple[str, ...]:
    """Runs a command in a user namespace with a limit of its own."""
    script = f'echo {value} > /proc/sys/user/{setting} && exec "$@"'
    return ("unshare", "--user", "--map-root-user", "sh", "-c", script, "sh")


@pytest.mark.needs("unshare")
@pytest.mark.parametrize(
    ("limit", "value", "named"),
    [
        ("max_inotify_instances", 0, "fs.inotify.max_user_instances"),
        ("max_inotify_watches", 2, "fs.inotify.max_user_watches"),
    ],
)
def test_a_limit_of_the_system_is_named_and_it_goes_on_by_looking(tree, watch, limit, value, named):
    prefix = no_inotify(limit, value)
    if subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    it = tree(1, 1)
    one = watch(it.root, path=it.path, prefix=prefix)
    assert named in one.until("note")[-1]["text"]
    assert one.until("watching")[-1]["polled"] > 0
    one.round(good=True)
    (it.root / "inc" / "h0.cuh").write_text("// new\n")
    assert one.built(one.round(good=True)) == {"u0": "built"}


# Bursts


def test_bursts_with_the_real_compiler_end_with_what_a_clean_build_makes(real, watch):
    one = watch(real)
    one.round(good=True)
    for value in range(10, 12):
        in_place(real / "inc" / "v.cuh", f"#define V {value}\n")
        time.sleep(0.3)  # nvcc is at work
        atomically(
            real / "src" / "other.cu", f'extern "C" __global__ void other(int *p) {{ *p = {value}; }}\n'
        )
        emacs(real / "inc" / "v.cuh", f"#define V {value + 100}\n")
        one.round(good=True)
    one.rest()
    clean = real.parent / "clean"
    shutil.copytree(real, clean, ignore=shutil.ignore_patterns("build"))
    subprocess.run(
        [sys.executable, "-m", "orchestrator", "build"], cwd=clean, check=True, capture_output=True
    )
    for name in ("k.cubin", "other.cubin"):
        assert (real / "build" / "bin" / name).read_bytes() == (clean / "build" / "bin" / name).read_bytes()
    assert any(event["event"] == "cut" for event in one.seen)


BURSTS = int(os.environ.get("FRESHPROOF_BURSTS", "5"))
"""500 were run to accept the watch; fewer do in everyday tests."""


def test_random_bursts_of_saves_end_with_what_a_clean_build_makes(tree, watch):
    it = tree(5, 15)
    it.slow(30)
    one = watch(it.root, path=it.path)
    one.round(good=True)
    random.seed(BURSTS)
    for burst in range(BURSTS):
        for number in range(random.randint(1, 6)):
            act(it, f"{burst}.{number}")
            time.sleep(random.choice((0, 0, 0.002, 0.04, 0.15)))
        for path in (it.root / "inc").glob("h*.cuh"):  # nothing is left refused
            if "#error" in path.read_text():
                path.write_text(f"// mended {burst}\n")
        if burst % 5 == 4 or burst == BURSTS - 1:
            one.rest(2.0)
            gate = it.run("gate")
            assert gate.returncode == 0, f"burst {burst}: {gate.stdout}\n{one.seen[-20:]}"
            assert it.artifacts() == it.clean_artifacts(), burst
    cut = sum(event["event"] == "cut" for event in one.seen)
    assert cut, "no burst met a build"


def act(it, mark: str) -> None:
    """One random save, or another thing that happens to files."""
    header = it.root / "inc" / f"h{random.choice((*range(15), 'all'))}.cuh"
    what = random.random()
    if what < 0.7:
        save = random.choice((in_place, in_place, emacs, jetbrains, atomically, hard_link, old_times))
        save(header, random.choice((f"// {mark}\n", f"// {mark}\n", "// as ever\n", "#error\n")))
    elif what < 0.8:
        header.touch()
    elif what < 0.9:
        front = it.root / "first" / header.name
        if front.exists():
            front.unlink()
        else:
            front.parent.mkdir(exist_ok=True)
            front.write_text(f"// in front {mark}\n")
    else:
        source = it.root / "src" / f"u{random.randrange(5)}.cu"
        atomically(source, source.read_text().split("// now", 1)[0] + f"// now {mark}\n")
