"""The stable name of an artifact leads to it, or the gate says so."""

from types import SimpleNamespace

import pytest

from orchestrator.digests import Digests
from orchestrator.reach import observe_link


@pytest.fixture
def check(tmp_path):
    """A look at the artifact `k`, beside which lies another build of it; gives the observations."""
    for name in ("one", "two"):
        (tmp_path / "build/artifacts" / name).mkdir(parents=True)
        (tmp_path / "build/artifacts" / name / "k.cubin").write_text(name)
    (tmp_path / "build/bin").mkdir()
    digests = Digests(tmp_path)
    product = SimpleNamespace(
        path="build/artifacts/one/k.cubin", digest=digests.get("build/artifacts/one/k.cubin")
    )
    manifest, action = SimpleNamespace(product=product), SimpleNamespace(product_name="k.cubin")
    return lambda: observe_link(manifest, action, Digests(tmp_path))


def test_a_link_to_the_artifact_matches(check, tmp_path):
    (tmp_path / "build/bin/k.cubin").symlink_to("../artifacts/one/k.cubin")
    (found,) = check()
    assert found.recorded == found.observed


def test_a_link_to_another_artifact_is_stale_and_both_are_named(check, tmp_path):
    (tmp_path / "build/bin/k.cubin").symlink_to("../artifacts/two/k.cubin")
    (found,) = check()
    assert found.observed is not None
    assert found.recorded != found.observed
    assert "artifacts/two" in found.note
    assert "artifacts/one" in found.note


def test_a_link_to_nothing_is_unproven(check, tmp_path):
    (tmp_path / "build/bin/k.cubin").symlink_to("../artifacts/three/k.cubin")
    (found,) = check()
    assert found.observed is None


def test_a_copy_with_the_same_bytes_will_do_and_so_does_no_link(check, tmp_path):
    assert check() == ()
    (tmp_path / "build/bin/k.cubin").write_text("one")
    (found,) = check()
    assert found.recorded == found.observed
