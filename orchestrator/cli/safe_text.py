"""Text on a terminal: names of files and symbols may hold control codes, which must not act, and the user may
want none at all.
"""

from __future__ import annotations

import os


def is_plain() -> bool:
    """Whether the output is to hold text alone, without any codes for a terminal.

    NO_COLOR asks for that: it is set where a terminal's output is kept or read aloud, and bold is of no use
    there either. A dumb terminal knows no codes.
    """
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in ("dumb", "unknown")


def visible(text: str) -> str:
    """The text with everything that is not printed as a character written as an escape, such as ``\\x1b``.

    Line ends and tabs stay. Bytes of a file name that are no UTF-8 become ``\\udcff``.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else _escape(one) for one in text)


def one_line(text: str) -> str:
    """The same with line ends and tabs written as escapes too: a name with a line feed is no second line."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(one: str) -> str:
    code = ord(one)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
