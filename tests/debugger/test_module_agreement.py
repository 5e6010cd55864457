"""The comparison of all rows of a module, checked against a comparison at each address of its code."""

from __future__ import annotations

import time

import pytest

from sframe_unwind.arch import BY_NAME
from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.debugger.module_agreement import Difference, ModuleAgreement
from sframe_unwind.errors import SFrameError
from sframe_unwind.unwind.modules import Found, Modules
from tests.debugger.module_file import NEVER, File
from tests.samples.build import build

AMD64 = BY_NAME["amd64"]


def by_address(file: File) -> Difference:
    """Return the largest difference, found at each address of the code."""
    modules = Modules(AMD64, [file.module], read=file.read)
    largest = Difference.NONE
    for start, end in file.module.ranges:
        for pc in range(start, end):
            found = modules.results[pc]
            if not isinstance(found, Found):
                continue
            try:
                cfi = modules.cfi_match(pc)
            except SFrameError:
                cfi = None
            if cfi is None:
                largest = Difference.NO_CFI
            elif not agrees(found.rule, cfi.rule, AMD64):
                largest = max(largest, Difference.RULES)
    return largest


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("name", ["leaf", "plt", "plt_ibt", "recursion", "signals", "sframe_only", "tail_inline"])
def test_what_is_found_at_once_is_what_is_found_at_each_address(name: str, version: int) -> None:
    file = File(build(name, version=version))
    expected = by_address(file)
    assert file.agreement().advance(NEVER) is expected
    assert (expected is Difference.NO_CFI) == (name == "sframe_only")


def test_a_module_without_cfi_differs() -> None:
    assert File(build("leaf"), with_cfi=False).agreement().advance(NEVER) is Difference.NO_CFI


def test_it_is_done_in_parts() -> None:
    whole = File(build("recursion")).agreement()
    parts = 0
    while whole.advance(time.perf_counter() - 1) is None:
        assert whole.difference is None
        parts += 1
    assert whole.difference is Difference.NONE
    assert parts


def test_the_stubs_of_a_plt_are_read_once() -> None:
    """In LLDB, each read of a process is a request to its debug server."""
    file = File(build("plt"))
    starts: list[int] = []

    def read(address: int, size: int) -> bytes:
        starts.append(address)
        return file.read(address, size)

    assert ModuleAgreement(file.module, AMD64, read).advance(NEVER) is file.agreement().advance(NEVER)
    assert 0 < len(starts) <= 4
