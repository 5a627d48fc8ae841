"""Events of the kernel about the folders of a watch, by one inotify instance for all of them.

watchdog's own observers start a thread a folder and hold moves back for half a second to pair them; its layer
below them, `InotifyFD`, does neither.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from orchestrator.watch.gathering import ANYWHERE, Notice, Place, Sort

_C = InotifyConstants
_ITSELF = _C.IN_DELETE_SELF | _C.IN_MOVE_SELF
_CONTENTS = (
    _C.IN_CREATE | _C.IN_MODIFY | _C.IN_CLOSE_WRITE | _C.IN_MOVED_FROM | _C.IN_MOVED_TO | _C.IN_DELETE
    | _C.IN_ATTRIB
)  # fmt: skip
_FLAGS = _C.IN_ONLYDIR | _C.IN_MASK_ADD
_LIMITS = Path("/proc/sys/fs/inotify")

Sink = Callable[[Notice], None]
Wanted = Callable[[Place], bool]
"""Whether a place matters; asked in watchdog's thread."""


class _Watch(NamedTuple):
    number: WatchDescriptor
    identity: CallbackId
    contents: bool


class LimitReached(Exception):
    """The system gives no more watches or instances; the text names the setting and its value."""


class Inotify:
    """Watches folders, not what lies below them."""

    def __init__(self, sink: Sink, wanted: Wanted) -> None:
        """Raises `LimitReached` if there is no instance to be had."""
        self._sink, self._wanted = sink, wanted
        logging.getLogger("watchdog").addHandler(logging.NullHandler())
        try:
            self._descriptor = InotifyFD()
        except OSError as error:
            raise _limit(error) from None
        self._descriptor.start()
        self._identities = itertools.count()
        # Changed by watchdog's thread too, when a folder is gone.
        self._watches: dict[str, _Watch] = {}

    def close(self) -> None:
        """Stop watching."""
        self._descriptor.stop()
        self._descriptor.join()

    def __contains__(self, folder: str) -> bool:
        return folder in self._watches

    def watch(self, folder: str, *, contents: bool) -> bool:
        """Watch a folder, for what happens in it or only to itself. Whether it is newly watched so; one that
        is gone, or may not be looked into, is not.

        Raises `LimitReached`.
        """
        before = self._watches.get(folder)
        if before is not None and (before.contents or not contents):
            return False
        mask = Mask(_FLAGS | _ITSELF | (_CONTENTS if contents else 0))
        callback = _Folder(folder, self._sink, self._wanted, self._lost)
        if before is not None:
            self.forget(folder)
        try:
            if not os.access(folder, os.R_OK):
                return False
            # One folder may have several paths, and then has one watch with several callbacks.
            identity = cast("CallbackId", next(self._identities))
            number = self._descriptor.add_callback(os.fsencode(folder), mask, callback, identity)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENOMEM):
                raise _limit(error) from None
            return False
        if number < 0:
            return False
        self._watches[folder] = _Watch(number, identity, contents)
        return True

    def forget(self, folder: str) -> None:
        """Watch a folder no longer."""
        watch = self._watches.pop(folder, None)
        if watch is not None:
            self._descriptor.remove_callbacks([(watch.number, watch.identity)])

    def below(self, folder: str) -> list[str]:
        """The watched folders at or below one."""
        return [name for name in self.folders if name == folder or name.startswith(folder + "/")]

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders under watch."""
        return tuple(self._watches)

    def _lost(self, folder: str) -> None:
        self._watches.pop(folder, None)


class _Folder:
    """What watchdog calls for one folder, in its own thread."""

    def __init__(self, folder: str, sink: Sink, wanted: Wanted, lost: Callable[[str], None]) -> None:
        self._folder, self._sink, self._wanted, self._lost = folder, sink, wanted, lost

    def on_event(self, event: InotifyEvent) -> None:
        """Something happened to a name in the folder, or to the folder itself."""
        if event.is_delete_self or event.is_move_self:
            self._sink(Notice((self._folder, ""), Sort.GONE))
            return
        place = (self._folder, os.fsdecode(event.name))
        if self._wanted(place):
            self._sink(Notice(place, self._sort(event)))

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """The folder is no more, or its file system was unmounted."""
        self._lost(self._folder)
        self._sink(Notice((self._folder, ""), Sort.GONE))

    def on_queue_overflow(self) -> None:
        """Events came faster than they were read."""
        self._sink(Notice(ANYWHERE, Sort.LOST))

    def _sort(self, event: InotifyEvent) -> Sort:
        if event.is_moved_from or event.is_delete:
            return Sort.GONE
        if event.is_modify:
            return Sort.WRITING
        if event.is_attrib:
            return Sort.TOUCHED
        if event.is_create and not event.is_directory:
            # A link, hard or symbolic, is whole at once; a new file is closed after its first write.
            try:
                status = os.lstat(os.path.join(self._folder, os.fsdecode(event.name)))
            except OSError:
                return Sort.GONE
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                return Sort.WRITING
        return Sort.WRITTEN


def _limit(error: OSError) -> LimitReached:
    """The limit that was met, its value, and how to raise it."""
    name = "max_user_watches" if error.errno == errno.ENOSPC else "max_user_instances"
    try:
        value = f" (now {(_LIMITS / name).read_text().strip()})"
    except OSError:
        value = ""
    return LimitReached(
        f"{error.strerror}: fs.inotify.{name}{value}; raise it with `sysctl -w fs.inotify.{name}=N`"
    )
