"""The comparison of all rows of a module, checked against a comparison at each address of its code."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.arch import BY_NAME
from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.debugger.module_agreement import Difference, ModuleAgreement
from sframe_unwind.elf.constants import SHF_EXECINSTR
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Found, Module, Modules
from tests.samples.build import build

AMD64 = BY_NAME["amd64"]
NEVER = float("inf")


class File:
    """A file in the memory of a process, at the addresses for which it is linked."""

    def __init__(self, path: Path, with_cfi: bool = True) -> None:
        with elf.opened(path) as binary:
            parts = [part for part in binary.sections if part.address and part.has_contents]
            self._parts = {part.name: (part.address, binary.contents(part)) for part in parts}
            code = [(part.address, part.end) for part in parts if part.flags & SHF_EXECINSTR]
        address, data = self._parts[".sframe"]
        frames = SectionData(*self._parts[".eh_frame"]) if with_cfi and ".eh_frame" in self._parts else None
        cfi = CfiSection(frames, None, AMD64) if frames else None
        self.module = Module(path.name, code, lambda: Section(data, address), lambda: cfi)

    def read(self, address: int, size: int) -> bytes:
        """Return the bytes at an address; zeros between the sections."""
        found = bytearray(size)
        parts = [part for part in self._parts.values() if part[0] < address + size and address < part[0] + len(part[1])]
        for start, contents in parts:
            first, last = max(start, address), min(start + len(contents), address + size)
            found[first - address : last - address] = contents[first - start : last - start]
        if not parts:
            raise MemoryReadError(address, size)
        return bytes(found)

    def agreement(self) -> ModuleAgreement:
        """Return the result of the tested comparison."""
        return ModuleAgreement(self.module, AMD64, self.read)


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
