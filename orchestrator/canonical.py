"""One text for one value: the encoding under every digest.

JSON with sorted keys, no spaces, ASCII only, no floats in digested documents. Lists keep their order, so that
two argument vectors never run together into one text. Names that are not UTF-8 travel as lone surrogates
(PEP 383), which JSON escapes and gives back.
"""

from __future__ import annotations

import hashlib
import json
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
