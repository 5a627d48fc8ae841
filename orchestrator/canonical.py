"""One text for one value: the encoding under every digest.

JSON with sorted keys, no spaces, ASCII only, no floats in digested documents. Lists keep their order, so that
two argument vectors never run together into one text. Names that are not UTF-8 travel as lone surrogates
(PEP 383), which JSON escapes and gives back.

What the tool keeps for itself is *sealed*: the first member is the digest of all bytes behind it, so that a
file that was cut off, damaged or edited is never taken for what was written.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from typing import Any

from orchestrator.model import Digest


def encode(document: Any) -> bytes:
    """The canonical bytes of a document of dicts (string keys), lists, strings, integers, booleans, None."""
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode("ascii")


def digest_bytes(data: bytes | bytearray | memoryview) -> Digest:
    """``sha256:<hex>`` of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_document(document: Any) -> Digest:
    """``sha256:<hex>`` of a document's canonical bytes."""
    return digest_bytes(encode(document))


_HEAD = b'{"self_digest":"'
_DIGEST_LENGTH = len("sha256:") + 64


def seal(document: Mapping[str, Any]) -> bytes:
    """The canonical bytes of a document that is not empty, begun by their digest and ended by a line feed."""
    rest = encode(document)[1:] + b"\n"
    return _HEAD + digest_bytes(rest).encode("ascii") + b'",' + rest


def unseal(data: bytes) -> dict[str, Any]:
    """The document that `seal` wrote, with its digest. Raises `ValueError` in plain words for other bytes."""
    if not data:
        raise ValueError("it is empty")
    if not data.startswith(_HEAD):
        raise ValueError("it does not begin as this release of freshproof writes it")
    start = len(_HEAD) + _DIGEST_LENGTH
    digest, rest = data[len(_HEAD) : start], data[start + 2 :]
    if data[start : start + 2] != b'",' or digest_bytes(rest).encode("ascii") != digest:
        raise ValueError("its bytes are not those that were written: it was cut off, damaged or edited")
    document: dict[str, Any] = parse_json(data)
    return document


_DEEPEST = 200
"""Python's reader goes as deep as the interpreter's limit allows, and some libraries raise that beyond what
the stack holds: then it does not fail, it crashes.
"""
_STEPS = bytes.maketrans(b"[{]}", b"\1\1\0\0")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


def _depth(data: bytes) -> int:
    """The deepest nesting of brackets, those in texts counted too."""
    steps = data.translate(_STEPS, _NO_BRACKETS)
    if len(steps) <= _DEEPEST:
        return len(steps)
    return max(itertools.accumulate(1 if step else -1 for step in steps))


def parse_json(data: bytes) -> Any:
    """Any JSON document. Raises `ValueError` in plain words, with the place."""
    if _depth(data) > _DEEPEST:
        raise ValueError("it is nested too deeply")
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: not JSON from here on") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        raise ValueError("it holds a number that is too long") from None
