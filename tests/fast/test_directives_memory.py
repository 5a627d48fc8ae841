"""What files ask the preprocessor for is kept by content: not for other content, scanners or damage."""

import pytest

from orchestrator import directives_memory as module
from orchestrator.canonical import digest_bytes
from orchestrator.directives_memory import DirectivesMemory
from orchestrator.lookup import read_directives

SOURCE = b"""#include "a.cuh"
#include <b.h>
#include_next <c.h>
#if __has_include(<d.h>) && __has_include(NAME)
#define NAME "e\xff.h"
#include NAME
#endif
asm(".incbin \\"f.bin\\"");
const char* t = __TIMESTAMP__;
"""
DIGEST = digest_bytes(SOURCE)


@pytest.fixture
def kept(tmp_path):
    """A memory that was saved, and the file that it knows."""
    (tmp_path / "cache").mkdir()
    source, file = tmp_path / "k.cu", tmp_path / "cache/directives.json"
    source.write_bytes(SOURCE)
    memory = DirectivesMemory(file)
    memory.of(source, DIGEST)
    memory.save()
    return source, file


def test_what_was_kept_is_what_was_scanned(kept):
    source, file = kept
    source.unlink()
    found = DirectivesMemory(file).of(source, DIGEST)
    assert found == read_directives(SOURCE)
    assert all(getattr(found, name) for name in ("quoted", "nexts", "computed", "macros", "dated", "incbins"))


def test_other_content_is_scanned_anew(kept):
    source, file = kept
    source.write_bytes(b'#include "other.h"\n')
    assert DirectivesMemory(file).of(source, "sha256:2").quoted == {"other.h"}


def test_content_that_changed_since_its_digest_was_taken_is_not_kept(kept, tmp_path):
    _source, file = kept
    changing, then = tmp_path / "changing.cu", b'#include "then.h"\n'
    changing.write_bytes(b'#include "now.h"\n')
    memory = DirectivesMemory(file)
    assert memory.of(changing, digest_bytes(then)).quoted == {"now.h"}
    memory.save()
    changing.write_bytes(then)
    for one in (memory, DirectivesMemory(file)):
        assert one.of(changing, digest_bytes(then)).quoted == {"then.h"}


def test_another_scanner_starts_anew(kept, monkeypatch):
    source, file = kept
    source.unlink()
    monkeypatch.setattr(module, "_scanner", lambda: "sha256:of another release")
    with pytest.raises(OSError):
        DirectivesMemory(file).of(source, DIGEST)


def test_damage_is_noticed_at_every_byte(kept):
    source, file = kept
    data = file.read_bytes()
    source.write_bytes(b'#include "now.h"\n')
    for at in range(0, len(data), 7):
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert DirectivesMemory(file).of(source, DIGEST).quoted == {"now.h"}
        file.write_bytes(data[:at])
        assert DirectivesMemory(file).of(source, DIGEST).quoted == {"now.h"}


def test_what_is_not_asked_for_again_is_not_forgotten(kept, tmp_path):
    source, file = kept
    other = tmp_path / "l.cu"
    other.write_bytes(b'#include "l.h"\n')
    memory = DirectivesMemory(file)
    memory.of(other, "sha256:2")
    memory.save()
    source.unlink()
    assert DirectivesMemory(file).of(source, DIGEST) == read_directives(SOURCE)
