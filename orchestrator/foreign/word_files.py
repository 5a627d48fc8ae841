"""Files of further words on a command line: ``@file`` of most tools, ``--options-file`` of nvcc. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

_OPTIONS = ("-optf", "--options-file")


def in_place(program: str, argv: Sequence[str], texts: Mapping[int, str]) -> tuple[str, ...]:
    """``argv`` with the words of files in the place of their names. ``texts`` are the files' contents by the
    number of the word that names each.
    """
    words: list[str] = []
    for number, word in enumerate(argv):
        if number not in texts or word.startswith("@") == (program == "nvcc"):  # nvcc takes no @file itself
            words.append(word)
            continue
        if words and words[-1] in _OPTIONS:
            words.pop()
        text = texts[number]
        quotes = '"' if program == "nvcc" else "'\""
        words += text.splitlines() if program == "rustc" else split_words(text, quotes)
    return tuple(words)


def split_words(text: str, quotes: str) -> Iterator[str]:
    """The words of such a file: ``quotes`` are the characters that group; a backslash takes the next one as
    it is, within quotes too. GNU tools know quotes of both kinds, nvcc 13.0 double ones alone.
    """
    word: list[str] | None = None
    quote, escaped = "", False
    for one in text:
        if word is None and one.isspace():
            continue
        word = [] if word is None else word
        if escaped:
            word.append(one)
            escaped = False
        elif one == "\\":
            escaped = True
        elif one == quote:
            quote = ""
        elif one in quotes and not quote:
            quote = one
        elif one.isspace() and not quote:
            yield "".join(word)
            word = None
        else:
            word.append(one)
    if word is not None:
        yield "".join(word)
