"""Dependency lists as nvcc and ld write them. Neither follows make's escaping.

nvcc 13 (``-MD``): one name a line; a space is ``\\ ``; ``$``, ``#``, ``:`` stand for themselves; a backslash
in a name has become ``/``, so that such a file is not found afterwards and makes the target unproven.
ld (``--dependency-file``): one name a line, nothing escaped; a second paragraph repeats each as a target.

Pure: bytes in, names out. Names that are not UTF-8 carry surrogates (PEP 383), as `os.fsdecode` gives them.
"""

from __future__ import annotations


def parse_nvcc(data: bytes) -> tuple[str, ...]:
    """Names in the order given, without repeats. Raises `ValueError` for a list that is empty or torn."""
    lines = _continued(data)
    head, separator, first = lines[0].partition(b" : ")
    if not separator or not head:
        raise ValueError("the first line names no target")
    names = [first, *lines[1:]]
    return _unique(name.strip(b" ").replace(b"\\ ", b" ") for name in names)


def parse_ld(data: bytes) -> tuple[str, ...]:
    """Names in the order given, without repeats. Raises `ValueError` for a list that is empty or torn."""
    lines = _continued(data.partition(b"\n\n")[0] + b"\n")
    if not lines[0].endswith(b":"):
        raise ValueError("the first line names no target")
    return _unique(line.strip(b" ") for line in lines[1:])


def _continued(data: bytes) -> list[bytes]:
    """The lines of one rule, each without its `` \\`` at the end."""
    if not data.strip():
        raise ValueError("it is empty")
    if not data.endswith(b"\n"):
        raise ValueError("it ends in the middle of a line")
    lines = data[:-1].split(b"\n")
    if any(not line.endswith(b" \\") for line in lines[:-1]) or lines[-1].endswith(b" \\"):
        raise ValueError("a line is not continued as it should be")
    return [line.removesuffix(b"\\").rstrip(b" ") if line.endswith(b" \\") else line for line in lines]


def _unique(names: object) -> tuple[str, ...]:
    seen: dict[str, None] = {}
    for name in names:  # type: ignore[attr-defined]
        if name:
            seen.setdefault(name.decode("utf-8", "surrogateescape"))
    return tuple(seen)
