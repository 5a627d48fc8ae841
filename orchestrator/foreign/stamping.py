"""Puts stamps into the objects of a build while it runs.

Each nvcc that ends well tells the process that records and waits (observe.c), so that the object has its
stamp before anything else sees it. The stamp is appended in place: permissions, owner and name stay, and so
does the time of the file, by which build systems go. Whatever goes wrong leaves the object as nvcc wrote it,
and is told.

It costs 1 ms an object of 10 kB, 40 ms one of 2.6 MB for which nvcc takes 19 s, and once a build 0.15 s for
the toolkit's digests.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.digests import Digests, Unreadable, read_digest
from orchestrator.errors import FreshproofError, Missing
from orchestrator.foreign.compile_record import CompileRecorder
from orchestrator.foreign.events import Event, Torn, read_events
from orchestrator.foreign.outputs import PROBE, TICK_NS, Output
from orchestrator.foreign.stamps import Stamped, Stamps, source_name, step_digest
from orchestrator.foreign.steps import Step, Tool, read_steps
from orchestrator.objects.digests import normalised_digest
from orchestrator.objects.elf import is_elf
from orchestrator.objects.step_stamp import NO_OBJECT, Addition, Unstampable, addition, note
from orchestrator.objects.window import Malformed
from orchestrator.plan import WORK

CACHES = frozenset(
    {
        "ccache",
        "sccache",
        "cachepot",
        "buildcache",
        "distcc",
        "distccd",
        "icecc",
        "iceccd",
        "gomacc",
        "rewrapper",
    }
)
"""Programs that keep objects for other builds, or have them made elsewhere."""
_HEAD = struct.Struct("<4sI")
_LARGEST = 64 << 20
_PEER = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class Asked:
    """An nvcc that has ended and waits."""

    event: Event
    pid: int
    """As this process sees it."""
    waits: Callable[[], bool]
    """Whether it still does."""


@contextlib.contextmanager
def listening(path: str, answer: Callable[[Asked], None]) -> Iterator[None]:
    """While the block runs, call ``answer`` for each nvcc that ends well, one after the other.

    Raises `Missing` where TMPDIR is too long a name for a socket in it.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        try:
            door.bind(path)
        except OSError as error:
            raise Missing(f"{path}: no socket here: {error}", remedy="set TMPDIR to a short name") from None
        door.listen(128)
        thread = threading.Thread(target=_answer_all, args=(door, answer), daemon=True)
        thread.start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                door.shutdown(socket.SHUT_RDWR)
            thread.join()


def _answer_all(door: socket.socket, answer: Callable[[Asked], None]) -> None:
    while True:
        try:
            line, _address = door.accept()
        except OSError:
            return
        with line, contextlib.suppress(OSError, Torn):
            asked = _asked(line)
            if asked is not None:
                answer(asked)
                line.send(b"\1")


def _asked(line: socket.socket) -> Asked | None:
    """What is asked; `None` for what no nvcc of this user's build sends."""
    pid, user, _group = _PEER.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if user != os.geteuid():
        return None
    line.settimeout(5)
    head = _received(line, _HEAD.size)
    size = _HEAD.unpack(head)[1]
    if size > _LARGEST:
        return None
    events = read_events(head + _received(line, size))
    line.setblocking(False)
    return Asked(events[0], pid, lambda: _waits(line)) if events else None


def _received(line: socket.socket, size: int) -> bytes:
    """Raises `OSError` if fewer bytes come."""
    data = b""
    while len(data) < size:
        part = line.recv(min(size - len(data), 1 << 16))
        if not part:
            raise ConnectionError("the line was closed")
        data += part
    return data


def _waits(line: socket.socket) -> bool:
    try:
        return line.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@dataclass(slots=True)
class Stamper:
    """Gives stamps to what the nvccs of one build make."""

    root: str
    """Of the project."""
    given: dict[str, Stamped] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    _compiles: CompileRecorder = field(init=False)

    def __post_init__(self) -> None:
        self._compiles = CompileRecorder(Digests(Path("/")))

    def of_build(self, outputs: Iterable[Output]) -> Stamps:
        """What was stamped and is there still, and of all that the build's nvccs made the rest, with why."""
        made = [o for o in outputs if makes_objects(o.step)]
        moved = {o.step.outputs[0]: o.path for o in made if len(o.step.outputs) == 1}
        given = {moved.get(path, path): one for path, one in self.given.items()}
        left = {moved.get(path, path): why for path, why in self.left.items()}
        silent = "nvcc was not seen to end well, or could not ask"
        left = {**{o.path: silent for o in made if o.path not in given}, **left}
        return Stamps(
            tuple(replace(one, path=path) for path, one in given.items() if os.path.exists(path)),
            {path: why for path, why in left.items() if os.path.exists(path)},
        )

    def answer(self, asked: Asked) -> None:
        """Stamp what an nvcc made, or say why not. Raises nothing."""
        for step in read_steps([asked.event], os.path.exists):
            for path in step.outputs if makes_objects(step) else ():
                if PROBE.search(path):
                    continue
                self.left.pop(path, None)
                self.given.pop(path, None)
                try:
                    self._stamp(step, path, asked)
                except (Unstampable, Malformed, Unreadable) as error:
                    self.left[path] = str(error)
                except FreshproofError as error:
                    self.left[path] = error.what
                except OSError as error:
                    self.left[path] = error.strerror or str(error)
                except Exception as error:  # a fault of ours must not fail the build
                    self.left[path] = f"a fault: {error!r}"

    def _stamp(self, step: Step, path: str, asked: Asked) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "r+b", buffering=0) as file:
            status = os.fstat(descriptor)
            _check_is_own(status, path, step, asked.pid)
            if step.mode == "join" and step.sources:
                raise Unstampable("compiled and linked in one step")
            data = file.read()
            if not is_elf(data):
                raise Unstampable(NO_OBJECT)
            sources = tuple(_sources(step, path, self.root))
            stamp = step_digest(step, self.root, sources, self._compiles.tools(step), normalised_digest(data))
            names = tuple(name for name, _digest in sources)
            added = addition(data, note(stamp, names))
            if not asked.waits():
                raise Unstampable("it took too long, and the build went on")
            _append(descriptor, added, status)
        event = step.event
        self.given[path] = Stamped(stamp, names, path, event.argv, event.folder, status.st_mtime_ns)


def makes_objects(step: Step) -> bool:
    """Whether a step is one of nvcc that makes something of its own; what joins objects has their stamps."""
    links_device_code = not {"-dlink", "--device-link"}.isdisjoint(step.event.argv)
    return step.tool is Tool.NVCC and (bool(step.sources) or links_device_code)


def _check_is_own(status: os.stat_result, path: str, step: Step, pid: int) -> None:
    """Raises `Unstampable` unless the file is what the step made, and nobody else's as well."""
    if step.event.environment.get("TMPDIR", "").startswith(f"{WORK}/"):
        raise Unstampable("it is a target, which has a stamp of its own")
    if not stat.S_ISREG(status.st_mode):
        raise Unstampable("no regular file")
    there = os.stat(f"/proc/{pid}/root{path}")
    if (there.st_dev, there.st_ino) != (status.st_dev, status.st_ino):
        raise Unstampable("nvcc ran where this path is another file")
    if status.st_mtime_ns + TICK_NS < step.event.started_ns:
        raise Unstampable("nvcc did not write it")
    if status.st_nlink > 1:
        raise Unstampable("it has another name, which a cache of objects may have given it")
    keeper = _ancestor(pid, CACHES)
    if keeper:
        raise Unstampable(f"{keeper} ran nvcc, and would keep the stamped object for other builds")


def _ancestor(pid: int, names: frozenset[str]) -> str:
    """The name of the nearest process above ``pid`` that is one of ``names``; empty if there is none."""
    while pid > 1:
        try:
            name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            return ""
        if name in names:
            return name
    return ""


def _sources(step: Step, output: str, root: str) -> Iterator[tuple[str, str]]:
    """The sources of ``output`` with their digests; of a device link the objects by name alone: their bytes
    differ from run to run.
    """
    one_each = len(step.sources) == len(step.outputs)
    for name in (step.sources[step.outputs.index(output)],) if one_each else step.sources:
        path = os.path.normpath(os.path.join(step.event.folder, name))
        found = read_digest(path)
        if found is None:
            raise Unstampable(f"{path} is gone")
        yield source_name(path, root), found[0]
    if not step.sources:
        yield from ((source_name(path, root), "") for path in step.objects)


def _append(descriptor: int, added: Addition, status: os.stat_result) -> None:
    """Make it a stamped object: the header last, so that it is a whole object at every moment."""
    size = status.st_size
    try:
        _write(descriptor, added.tail, size)
        _write(descriptor, added.header, 0)
    except OSError:
        os.ftruncate(descriptor, size)
        raise
    finally:
        os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))


def _write(descriptor: int, data: bytes, at: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, at)
        data, at = data[written:], at + written
