"""The versions of GDB whose own unwinder cannot find every return address although there is CFI."""

from __future__ import annotations

from tests.abis.debuggers import newest
from tests.gdb.driver import call


def test_versions_that_need_the_plugin_on_s390x() -> None:
    versions = ["13.1", "16.3", "16.3.0.20250420-git", "18.1", "19.0.50.20261126-git"]
    answers = call(newest("amd64"), "tests.abis.inside.versions.collect", versions=versions)
    assert answers == [["s390x"]] * 3 + [[]] * 2
