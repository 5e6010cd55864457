"""A kernel of Debian for AMD64: `make test-kernel`."""

from __future__ import annotations

import pytest

from sframe_unwind.verify import Plan, verify
from tests.kernel.objtool import by_objtool, shown
from tools.debian_kernel import DebianKernel, debian_kernel


@pytest.fixture(scope="module")
def debian() -> DebianKernel:
    return debian_kernel()


def test_orc_of_modules_is_that_of_objtool(debian: DebianKernel) -> None:
    entries = 0
    for module in debian.modules:
        found = shown(module)
        assert found == by_objtool(debian.objtool, module), module
        entries += len(found)
    assert len(debian.modules) > 50
    assert entries > 100_000


def test_orc_of_the_kernel_is_that_of_its_cfi(debian: DebianKernel) -> None:
    """What differs is code in which the compiler knows nothing of what assembly in it pushes (docs/kernel.md)."""
    found = verify(debian.vmlinux, Plan(dwarf=False, orc=True)).orc
    assert found is not None
    assert found.both > 40_000
    assert found.addresses_compared > 300_000
    assert len(found.disagreements) < found.addresses_compared / 500
    assert {one.what for one in found.disagreements} == {"cfa"}
