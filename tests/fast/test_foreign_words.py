"""Command lines as build systems write them, and the observer's log."""

import struct
from dataclasses import replace

import pytest

from orchestrator.foreign.events import Event, Torn, read_events
from orchestrator.foreign.lists import parse_rules
from orchestrator.foreign.sources import can_matter, is_product_name
from orchestrator.foreign.steps import Tool, read_moves, read_steps
from orchestrator.foreign.word_files import split_words
from orchestrator.foreign.words import (
    asking,
    read_ar,
    read_device_tool,
    read_host,
    read_ld,
    read_nvcc,
    read_rustc,
)


def words(text):
    return tuple(text.split())


def started(pid, parent, argv, program=None, ns=1000, folder="/p", ended=None, **settings):
    return Event(pid, parent, ns, folder, program or argv[0], argv, tuple(settings.items()), ended)


def framed(*fields):
    body = b"".join(str(field).encode() + b"\0" for field in fields)
    return b"FPX1" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    "text, sources, objects, outputs",
    [
        ("nvcc -arch sm_90 -c k.cu -o out/k.o", ("k.cu",), (), ("out/k.o",)),
        ("nvcc -dc a.cu b.cu", ("a.cu", "b.cu"), (), ("a.o", "b.o")),
        ("nvcc -dc a.cu -odir obj", ("a.cu",), (), ("obj/a.o",)),
        ("nvcc --cubin --output-file=x.cubin k.cu", ("k.cu",), (), ("x.cubin",)),
        ("nvcc -dlink a.o b.o -o d.o", (), ("a.o", "b.o"), ("d.o",)),
        ("nvcc -lib a.o -o libk.a", (), ("a.o",), ("libk.a",)),
        ("nvcc main.cu libk.a -Xcompiler -fPIC", ("main.cu",), ("libk.a",), ("a.out",)),
        ("nvcc -MD -MT k.o -MF k.o.d -x cu -c k.cu -o k.o", ("k.cu",), (), ("k.o",)),
        ("nvcc -include pre.cu -I inc.cu -c k.cu -o k.o", ("k.cu",), (), ("k.o",)),
    ],
)
def test_nvcc(text, sources, objects, outputs):
    command = read_nvcc(words(text))
    assert (command.sources, command.objects, command.outputs) == (sources, objects, outputs)


@pytest.mark.parametrize("text", ["nvcc --version", "nvcc -M k.cu", "nvcc --dryrun -c k.cu", "nvcc -E k.cu"])
def test_commands_of_nvcc_that_make_nothing(text):
    assert not read_nvcc(words(text)).mode


def test_what_a_compile_read_is_asked_with_its_own_words():
    argv = words("nvcc -arch sm_90 -std c++17 -MD -MF k.d -c k.cu a.o -o k.o -Iinc")
    assert asking(argv, "/t/list") == words("nvcc -arch sm_90 -std c++17 k.cu -Iinc -M -MF /t/list")


def test_host_compilers():
    assert read_host(words("g++ -MMD -c a.cpp -o o/a.o")).lists == "o/a.d"
    assert read_host(words("gcc -c a.c")).outputs == ("a.o",)
    assert not read_host(words("gcc -E a.c")).mode
    assert read_host(words("g++ a.o -o prog")).mode == "join"


def test_libraries_are_looked_up_as_the_linker_does():
    there = {"x/libk.a", "x/libk.so", "y/libk.a", "y/libz.a"}
    text = "ld -o prog -z now a.o -Lx -L y -lk -Bstatic -lk -lz -Bdynamic -lnone -rpath here b.o"
    command = read_ld(words(text), there.__contains__)
    assert command.objects == ("a.o", "x/libk.so", "x/libk.a", "y/libz.a", "b.o")
    assert command.outputs == ("prog",)
    assert command.unresolved == ("-lnone",)
    assert set(command.tried) == {"x/libz.a", "x/libnone.so", "x/libnone.a", "y/libnone.so", "y/libnone.a"}


@pytest.mark.parametrize("text", ["ar crs l.a a.o b.o", "ar -rcs l.a a.o b.o", "ar qc l.a a.o b.o"])
def test_archives(text):
    command = read_ar(words(text))
    assert (command.outputs, command.objects) == (("l.a",), ("a.o", "b.o"))


@pytest.mark.parametrize(
    "text, inputs, output",
    [
        ("ptxas -arch=sm_90 -O3 k.ptx -o k.cubin", ("k.ptx",), "k.cubin"),
        ("ptxas --gpu-name sm_90 --output-file=k.cubin k.ptx", ("k.ptx",), "k.cubin"),
        ("nvlink -arch=sm_90 a.cubin libk.a -o all.cubin", ("a.cubin", "libk.a"), "all.cubin"),
        (
            "fatbinary --create=k.fatbin --image3=kind=elf,sm=90,file=k.cubin --image=profile=ptx,file=k.ptx",
            ("k.cubin", "k.ptx"),
            "k.fatbin",
        ),
    ],
)
def test_tools_that_make_device_code_of_device_code(text, inputs, output):
    command = read_device_tool(words(text))
    assert (command.objects, command.outputs) == (inputs, (output,))


@pytest.mark.parametrize("text", ["ar t l.a", "ar s l.a", "ar d l.a a.o", "ar"])
def test_commands_of_ar_that_put_nothing_in(text):
    assert not read_ar(words(text)).mode


def test_rustc():
    text = (
        "rustc --crate-name zk --edition=2021 src/lib.rs --crate-type lib --emit=dep-info,metadata,link "
        "-C extra-filename=-0123456789abcdef --out-dir t/deps -L native=t/out -l static=k "
        "--extern d=t/d.rmeta"
    )
    command = read_rustc(words(text), {"t/out/libk.a"}.__contains__)
    assert command.outputs == ("t/deps/libzk-0123456789abcdef.rlib",)
    assert command.lists == "t/deps/zk-0123456789abcdef.d"
    assert set(command.objects) == {"t/out/libk.a", "t/d.rlib"}
    assert not read_rustc(words("rustc - --crate-name ___ --print=file-names"), lambda _: True).mode


def test_what_a_driver_starts_belongs_to_its_step():
    events = (
        started(1, 0, ("make",)),
        started(2, 1, ("sh", "-c", "nvcc -c k.cu -o k.o"), "/bin/dash"),
        started(3, 2, ("/bin/sh", "/usr/local/bin/nvcc", "-c", "k.cu", "-o", "k.o"), "/bin/dash", ns=10),
        started(3, 2, ("nvcc", "-c", "k.cu", "-o", "k.o"), "/cuda/bin/nvcc", ns=20, ended=90),
        started(4, 3, ("gcc", "-E", "k.cu"), "/usr/bin/x86_64-linux-gnu-gcc-12", ns=30),
        started(5, 4, ("cc1plus",), "/usr/lib/cc1plus", ns=40),
        started(6, 1, ("ar", "crs", "l.a", "k.o"), "/usr/bin/x86_64-linux-gnu-ar", ns=100),
    )
    first, second = read_steps(events, lambda _: True)
    assert (first.tool, first.wrapper, first.reads_ns) == (Tool.NVCC, "/usr/local/bin/nvcc", 40)
    assert first.outputs == ("/p/k.o",)
    assert (second.tool, second.objects, second.outputs) == (Tool.ARCHIVER, ("/p/k.o",), ("/p/l.a",))


def test_a_process_number_used_again_is_another_process():
    events = (
        started(9, 1, ("nvcc", "-c", "a.cu"), "/cuda/bin/nvcc", ended=5),
        started(9, 1, ("ar", "crs", "l.a", "a.o"), "/usr/bin/ar", ns=7),
    )
    assert [step.tool for step in read_steps(events, lambda _: True)] == [Tool.NVCC, Tool.ARCHIVER]


def test_moves():
    events = (
        started(1, 0, ("mv", "-f", "k.tmp", "k.o"), "/bin/mv"),
        started(2, 0, ("cp", "a", "b", "d"), "/bin/cp"),
        started(3, 0, ("cmake", "-E", "rename", "e", "f"), "/usr/bin/cmake"),
        started(4, 0, ("cmake", "--build", "g", "h"), "/usr/bin/cmake"),
    )
    moves = [(m.source, m.to) for m in read_moves(events, lambda path: path == "/p/d")]
    assert moves == [("/p/k.tmp", "/p/k.o"), ("/p/a", "/p/d/a"), ("/p/b", "/p/d/b"), ("/p/e", "/p/f")]


def test_the_log_is_read_back():
    log = framed(7, 1, 100, "/p", "/bin/x", 2, "x", "-y", "PATH=/bin") + framed(7, 200)
    (event,) = read_events(log)
    assert (event.pid, event.argv, event.environment) == (7, ("x", "-y"), {"PATH": "/bin"})
    assert event.ended_ns == 200


def test_files_of_further_words_stand_for_what_they_hold():
    head, tail = (7, 1, 100, "/p"), ("@2=a.o '-l k'\n", "PATH=/bin")
    (event,) = read_events(framed(*head, "/bin/gcc", 5, "gcc", "-o", "@files", "prog", "@gone", *tail))
    assert event.argv == ("gcc", "-o", "a.o", "-l k", "prog", "@gone")
    assert event.environment == {"PATH": "/bin"}
    (event,) = read_events(framed(*head, "/bin/nvcc", 3, "nvcc", "--options-file", "o", "@2=-c k.cu"))
    assert event.argv == ("nvcc", "-c", "k.cu")
    (event,) = read_events(framed(*head, "/bin/nvcc", 2, "nvcc", "-optf=o", "@1=-I'a' \"b c\""))
    assert event.argv == ("nvcc", "-I'a'", "b c")
    (event,) = read_events(framed(*head, "/bin/rustc", 2, "rustc", "@f", "@1=a b\nc\n"))
    assert event.argv == ("rustc", "a b", "c")


@pytest.mark.parametrize(
    "text, found",
    [
        ("a  b\n\tc", ["a", "b", "c"]),
        (r"a\ b 'c \' d' \"e\"", ["a b", "c ' d", '"e"']),
        ('"" \'x\'"y"z', ["", "xyz"]),
        ("'not ended", ["not ended"]),
        ("", []),
    ],
)
def test_words_of_a_file(text, found):
    assert list(split_words(text, "'\"")) == found


def test_how_a_step_ended():
    ends = ({"ended": 50}, {"ended": 50, "code": 0}, {"ended": 50, "code": 1}, {})
    said = []
    for end in ends:
        event = replace(started(1, 0, ("nvcc", "-c", "a.cu"), "/cuda/bin/nvcc"), code=end.pop("code", None))
        event = replace(event, ended_ns=end.get("ended"))
        (step,) = read_steps((event,), lambda _: True)
        said.append(step.ended_badly)
    assert said == ["", "", "ended with exit code 1", "was not seen to end"]
    (event,) = read_events(framed(7, 1, 100, "/p", "/bin/x", 1, "x") + framed(7, 200, 3))
    assert (event.ended_ns, event.code) == (200, 3)


def test_a_words_file_that_was_not_seen_is_a_doubt():
    event = started(1, 0, ("ar", "crs", "l.a", "@gone"), "/usr/bin/ar", ended=5)
    (step,) = read_steps((event,), lambda _: True)
    assert step.unresolved == ("@gone",)


def test_what_a_host_compile_read_is_known_if_all_of_its_compilers_told():
    driver = started(1, 0, ("g++", "-c", "a.cpp", "-o", "a.o"), "/usr/bin/g++", ended=9)
    told = replace(started(2, 1, ("cc1plus", "a.cpp"), "/lib/cc1plus"), read=("/usr/include/stdio.h", "h.h"))
    silent = replace(told, read=None)
    assert read_steps((driver, told), bool)[0].read == ("a.cpp", "/usr/include/stdio.h", "h.h")
    assert read_steps((driver, silent), bool)[0].read is None
    assert read_steps((driver, told), bool)[0].programs == ("/usr/bin/g++", "/lib/cc1plus")


@pytest.mark.parametrize("cut", [1, 4, 9, 20])
def test_a_log_that_ends_early_is_noticed(cut):
    with pytest.raises(Torn):
        read_events(framed(7, 1, 100, "/p", "/bin/x", 1, "x")[:-cut])


@pytest.mark.parametrize(
    "log",
    [b"JUNKJUNK", framed("x", 1, 100, "/p", "/bin/x", 1, "x"), framed(7, 1, 100, "/p", "/bin/x", 9, "x")],
)
def test_a_damaged_log_is_noticed(log):
    with pytest.raises(Torn):
        read_events(log)


def test_lists_of_host_compilers():
    assert parse_rules(b"a.o: a.c \\\n my\\ file.h x$$y.h a.c\n\na.c:\n") == ("a.c", "my file.h", "x$y.h")
    assert parse_rules(b"a.o: a.c\n\nb.o: b.c a.h\n\na.h:\n") == ("a.c", "b.c", "a.h")
    with pytest.raises(ValueError):
        parse_rules(b"\n")


@pytest.mark.parametrize(
    "path, listed, matters",
    [
        ("/p/Makefile", True, True),
        ("/p/CMakeLists.txt", True, True),
        ("/p/build.rs", True, True),
        ("/p/other.cu", True, False),
        ("/p/other.cu", False, True),
        ("/p/README.md", True, False),
        ("/p/README.md", False, False),
        ("/p/data.json", True, True),
    ],
)
def test_which_files_can_matter(path, listed, matters):
    assert can_matter(path, listed) is matters


def test_names_of_products():
    assert all(map(is_product_name, ("a.o", "x/libk.so.1.2", "b/.ninja_log")))
    assert not any(map(is_product_name, ("a.cu", "Makefile", "notes.txt", "a.py")))
