"""Stamps of steps: what they are made of, how they stand in a file, and what is kept of them."""

import contextlib
import errno
import io
import os
import socket
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from orchestrator.foreign import stamping
from orchestrator.foreign.events import Event
from orchestrator.foreign.made import Build
from orchestrator.foreign.stamping import Asked, Stamper, listening
from orchestrator.foreign.stamps import (
    Stamped,
    Stamps,
    read_stamps,
    source_name,
    stamps_bytes,
    step_digest,
    with_build,
)
from orchestrator.foreign.steps import read_steps
from orchestrator.model import Component, Tools
from orchestrator.objects.compare import compare, hold
from orchestrator.objects.contents import walk
from orchestrator.objects.digests import normalised_digest
from orchestrator.objects.elf import read_elf
from orchestrator.objects.step_stamp import (
    KIND,
    NO_OBJECT,
    SECTION,
    StepStamp,
    Unstampable,
    note,
    read_step_stamps,
    stamped,
)
from orchestrator.objects.window import Malformed

OBJECTS = Path(__file__).parents[1] / "data" / "objects"
OBJECT = (OBJECTS / "rdc.o").read_bytes()
STAMP = "sha256:" + "ab" * 32
TOOLS = Tools(
    "sha256:t", (Component("ptxas", "/cuda/bin/ptxas", "sha256:p"), Component("host 0", "/g++", "h"))
)


def test_a_stamped_object_is_the_object_with_one_note_more():
    data = stamped(OBJECT, note(STAMP, ["cuda/k.cu", "l.cu"]))
    before, after = ELFFile(io.BytesIO(OBJECT)), ELFFile(io.BytesIO(data))
    assert after.num_sections() == before.num_sections() + 1
    for old, new in zip(before.iter_sections(), after.iter_sections(), strict=False):
        assert (old.name, old["sh_type"]) == (new.name, new["sh_type"])
        assert old.name == ".shstrtab" or old.data() == new.data()
    (found,) = after.get_section_by_name(SECTION).iter_notes()
    assert (found["n_name"], found["n_type"]) == ("Freshproof", KIND)
    assert after.get_section_by_name(SECTION)["sh_flags"] == 0, "it would be loaded"
    assert read_step_stamps(read_elf(data)) == (StepStamp(STAMP, ("cuda/k.cu", "l.cu")),)
    assert data[64 : len(OBJECT)] == OBJECT[64:]


def test_a_stamp_changes_no_digest_of_code():
    assert normalised_digest(stamped(OBJECT, note(STAMP, ["k.cu"]))) == normalised_digest(OBJECT)


def test_diff_tells_stamps_beside_equal_code():
    other = STAMP.replace("ab", "cd")
    old, new = (hold(stamped(OBJECT, note(digest, ["k.cu"]))) for digest in (STAMP, other))
    found = compare(old, new)
    assert found.same and found.stamps == (("compile of k.cu", STAMP, other),)


def test_what_is_cut_off_while_it_is_stamped_is_the_object_still():
    """The header comes last; until then what is appended means nothing."""
    whole = stamped(OBJECT, note(STAMP, ["k.cu"]))
    for size in range(len(OBJECT), len(whole), 97):
        data = OBJECT[:64] + whole[64:size]
        assert normalised_digest(data) == normalised_digest(OBJECT)
        assert read_step_stamps(read_elf(data)) == ()


def test_an_object_takes_one_stamp_and_other_files_none():
    once = stamped(OBJECT, note(STAMP, ["k.cu"]))
    with pytest.raises(Unstampable, match="has a stamp already"):
        stamped(once, note(STAMP, ["k.cu"]))
    cubin = next(bytes(p.data) for p in walk(OBJECT) if p.form == "cubin")
    with pytest.raises(Unstampable, match=NO_OBJECT):
        stamped(cubin, note(STAMP, ["k.cu"]))
    with pytest.raises(Malformed):
        stamped(OBJECT[:-1], note(STAMP, ["k.cu"]))


def test_notes_that_are_none_of_ours_are_passed_over_and_torn_ones_told():
    mine = note(STAMP, ["k.cu"])
    other = struct.pack("<III", 4, 4, 3) + b"GNU\0" + b"\0\0\0\0"
    wrong_kind = mine[:8] + struct.pack("<I", KIND + 1) + mine[12:]
    no_digest = mine.replace(b"freshproof:ab", b"freshproof:xy")
    data = stamped(OBJECT, other + mine + wrong_kind + no_digest + mine)
    assert read_step_stamps(read_elf(data)) == (StepStamp(STAMP, ("k.cu",)),)
    torn = mine[:4] + struct.pack("<I", 1 << 30) + mine[8:]
    with pytest.raises(Malformed):
        read_step_stamps(read_elf(stamped(OBJECT, torn)))


def test_many_or_strange_names_leave_a_note_small_and_readable():
    data = stamped(OBJECT, note(STAMP, [f"{'x' * 90}{n}.cu" for n in range(50)]))
    (found,) = read_step_stamps(read_elf(data))
    assert 1 < len(found.sources) < 6 and len(data) < len(OBJECT) + 4000
    strange = stamped(OBJECT, note(STAMP, ["a\udcffb.cu"]))
    assert read_step_stamps(read_elf(strange))[0].digest == STAMP


def step(folder="/p", argv=("nvcc", "-c", "k.cu", "-o", "k.o"), **environment):
    event = Event(1, 1, 0, folder, "/cuda/bin/nvcc", argv, tuple(environment.items()))
    return read_steps([event], lambda _name: False)[0]


def digest(one, root="/p", sources=(("k.cu", "s"),), tools=TOOLS, code="c"):
    return step_digest(one, root, sources, tools, code)


def test_a_stamp_is_the_same_wherever_the_project_lies_and_the_step_writes():
    first = digest(step(argv=("nvcc", "-I/p/include", "-c", "/p/k.cu", "-o", "/p/out/k.o")))
    elsewhere = ("/cuda/bin/nvcc", "-I/q/include", "-c", "/q/k.cu", "-MD", "-MF", "k.d", "-o", "other.o")
    assert digest(step(argv=elsewhere, folder="/q"), root="/q") != first, "-MD is an option that it has more"
    quiet = ("/cuda/bin/nvcc", "-I/q/include", "-c", "/q/k.cu", "-o", "other.o")
    assert digest(step(argv=quiet, folder="/q/build", HOME="/home/x"), root="/q") == first


@pytest.mark.parametrize(
    "other",
    [
        lambda: digest(step(argv=("nvcc", "-O1", "-c", "k.cu", "-o", "k.o"))),
        lambda: digest(step(NVCC_APPEND_FLAGS="-G")),
        lambda: digest(step(), sources=(("k.cu", "other"),)),
        lambda: digest(step(), code="other"),
        lambda: digest(step(), tools=Tools("t", (Component("ptxas", "/cuda/bin/ptxas", "sha256:q"),))),
    ],
)
def test_what_makes_another_stamp(other):
    assert other() != digest(step())


def test_sources_are_named_below_the_project_or_without_their_folder():
    assert source_name("/p/cuda/k.cu", "/p") == "cuda/k.cu"
    assert source_name("/home/someone/k.cu", "/p") == "k.cu"


def given(stamp, path, at=0):
    return Stamped(stamp, ("k.cu",), path, ("nvcc", "-c", "k.cu"), "/p", at)


def test_what_is_kept_comes_back_and_is_bounded():
    stamps = Stamps((given("s1", "/p/a.o"), given("s1", "/p/b.o")), {"/p/c.o": "no room"})
    assert read_stamps(stamps_bytes(stamps)) == stamps
    kept = Stamps()
    for number in range(30):
        kept = with_build(kept, Stamps((given(f"s{number}", "/p/a.o", number),)), Build("/p"))
    assert [one.stamp for one in kept.given] == [f"s{n}" for n in range(10, 30)]
    again = with_build(kept, Stamps((given("s15", "/p/a.o", 99),)), Build("/p"))
    assert len(again.given) == 20 and again.given[-1].made_ns == 99


@pytest.mark.parametrize("damage", [lambda d: d[:-9], lambda d: d.replace(b"a.o", b"b.o"), lambda d: b""])
def test_a_damaged_list_of_stamps_is_refused(damage):
    with pytest.raises(ValueError):
        read_stamps(damage(stamps_bytes(Stamps((given("s", "/p/a.o"),)))))


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """An nvcc, this process, that has just written k.o from k.cu."""
    monkeypatch.setattr(stamping.CompileRecorder, "tools", lambda _self, _step: TOOLS)
    (tmp_path / "k.cu").write_text("source")
    (tmp_path / "k.o").write_bytes(OBJECT)
    folder = os.path.realpath(tmp_path)
    event = Event(1, 1, 0, folder, "/cuda/bin/nvcc", ("nvcc", "-c", "k.cu", "-o", "k.o"), ())
    return Asked(event, os.getpid(), lambda: True)


def test_an_object_is_stamped_in_its_place(asked):
    path = Path(asked.event.folder, "k.o")
    path.chmod(0o640)
    os.utime(path, ns=(5_000_000_000, 7_000_000_000))
    before = path.stat()
    stamper = Stamper(asked.event.folder)
    stamper.answer(asked)
    assert stamper.left == {} and list(stamper.given) == [str(path)]
    assert read_step_stamps(read_elf(path.read_bytes()))[0].sources == ("k.cu",)
    for kept in ("st_ino", "st_mode", "st_uid", "st_mtime_ns"):
        assert getattr(path.stat(), kept) == getattr(before, kept)


def refusals():
    def no_room(_path, patch):
        real, calls = os.pwrite, []

        def pwrite(descriptor, data, at):
            calls.append(at)
            if len(calls) > 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, data[:100], at)

        patch.setattr(os, "pwrite", pwrite)

    yield "No space left on device", no_room
    yield "another name", lambda path, _patch: os.link(path, path.with_name("kept"))
    yield NO_OBJECT, lambda path, _patch: path.write_bytes(b"// ptx")
    yield "symbolic links", lambda path, _patch: path.symlink_to(path.rename(path.with_name("real.o")))
    yield "is gone", lambda path, _patch: path.with_name("k.cu").unlink()
    yield "a fault", lambda _path, patch: patch.setattr(stamping, "addition", lambda *_: 1 // 0)
    yield "ccache ran nvcc", lambda _path, patch: patch.setattr(stamping, "_ancestor", lambda *_: "ccache")
    yield (
        "target",
        lambda _path, patch: patch.setattr(Event, "environment", {"TMPDIR": "build/work/k/tmp"}),
    )
    yield "No such file", lambda path, _patch: path.unlink()


@pytest.mark.parametrize("why, spoil", [pytest.param(*r, id=r[0]) for r in refusals()])
def test_whatever_goes_wrong_leaves_the_object_as_it_is_and_is_told(asked, monkeypatch, why, spoil):
    path = Path(asked.event.folder, "k.o")
    spoil(path, monkeypatch)
    before = (path.read_bytes(), path.stat().st_mtime_ns) if path.exists() else None
    stamper = Stamper(asked.event.folder)
    stamper.answer(asked)
    assert why in stamper.left[str(path)] and not stamper.given
    assert before == ((path.read_bytes(), path.stat().st_mtime_ns) if path.exists() else None)


def test_an_nvcc_that_waits_no_longer_gets_no_stamp(asked):
    stamper = Stamper(asked.event.folder)
    stamper.answer(Asked(asked.event, asked.pid, lambda: False))
    assert "took too long" in stamper.left[f"{asked.event.folder}/k.o"]
    assert Path(asked.event.folder, "k.o").read_bytes() == OBJECT


def test_an_old_object_that_nvcc_did_not_write_is_left_alone(asked):
    path = Path(asked.event.folder, "k.o")
    os.utime(path, (1, 1))
    stamper = Stamper(asked.event.folder)
    late = Event(1, 1, 10**18, asked.event.folder, "/cuda/bin/nvcc", asked.event.argv, ())
    stamper.answer(Asked(late, asked.pid, lambda: True))
    assert stamper.left == {str(path): "nvcc did not write it"} and path.read_bytes() == OBJECT


def test_nonsense_on_the_line_stops_nothing(tmp_path):
    """Lines that are cut off or hold no record are closed, and the next one is answered."""
    heard: list[Asked] = []
    place = str(tmp_path / "stamps")
    fields = ("7", "1", "5", "/p", "/cuda/bin/nvcc", "2", "nvcc", "-c")
    body = b"".join(field.encode() + b"\0" for field in fields)
    record = struct.pack("<4sI", b"FPX1", len(body)) + body
    with listening(place, heard.append):
        for data in (b"", b"FPX", b"FPX1" + b"\xff" * 4, record[:-3], b"x" * len(record), record):
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(place)
                line.sendall(data)
                line.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionResetError):
                    answer = line.recv(1)
                    assert answer == (b"\1" if data == record else b"")
    assert [one.event.argv for one in heard] == [("nvcc", "-c")]
    assert heard[0].pid == os.getpid()
