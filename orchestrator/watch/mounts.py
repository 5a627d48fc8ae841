"""On which file systems events cannot be relied on: changes from elsewhere tell nobody here. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SHARED = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "drvfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs",
        "nfs3", "nfs4", "orangefs", "panfs", "pvfs2", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs",
        "vmhgfs", "wslfs",
    }
)  # fmt: skip
"""Network file systems, and those that hand a folder of the host to a virtual machine or a container."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of /proc/self/mountinfo: where, and which file system."""

    point: str
    kind: str


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """Read mountinfo (proc(5)); later mounts hide earlier ones at the same point. Lines of another form are
    passed over.
    """
    found = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if separator and len(fields) >= 6 and after:
            point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
            found.append(Mount(point, after.split(" ", 1)[0]))
    return tuple(found)


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount on which a full, real path lies."""
    best = None
    for mount in mounts:
        prefix = mount.point.rstrip("/") + "/"
        if (path + "/").startswith(prefix) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def is_silent(kind: str) -> bool:
    """Whether changes on such a file system may come from elsewhere, without events.

    Every FUSE file system counts: behind most of them is another machine or the host of a container.
    """
    return kind in _SHARED or kind == "fuse" or kind.startswith("fuse.")
