"""The symbol file with CFI for entry code, read by pyelftools."""

from __future__ import annotations

import io

from elftools.elf.elffile import ELFFile

from sframe_unwind.kernel.symbol_file import symbol_file
from tests.kernel.fake import ARCH, EXCEPTION, FORK, SWITCH, TO_KERNEL, USER, VECTORS, Memory, kernel

EM_AARCH64 = 183


def made() -> bytes:
    fake = kernel(Memory())
    return symbol_file(ARCH, EM_AARCH64, [place for _, _, place in fake.places], fake.saved_registers)


def test_pyelftools_reads_the_frames() -> None:
    elf = ELFFile(io.BytesIO(made()))
    assert elf.get_machine_arch() == "AArch64"
    assert elf.get_section_by_name(".text").data_size == 0
    cie, *fdes = elf.get_dwarf_info(relocate_dwarf_sections=False).CFI_entries()
    assert cie["augmentation"] == b"zS"
    tables = {fde["initial_location"]: fde.get_decoded().table[-1] for fde in fdes}
    assert sorted(tables) == [
        *(EXCEPTION, EXCEPTION + 8, USER, USER + 4, SWITCH + 4, FORK, FORK + 8),
        *(TO_KERNEL, VECTORS, VECTORS + 0x400),
    ]
    exception = tables[EXCEPTION + 8]
    assert (exception["cfa"].reg, exception["cfa"].offset) == (31, 336)
    assert {number: exception[number].arg for number in (0, 29, 30, 31, 32)} == {
        0: -336,
        29: 8 * 29 - 336,
        30: 8 * 30 - 336,
        31: 248 - 336,
        32: 256 - 336,
    }
    switch = tables[SWITCH + 4]
    assert (switch["cfa"].reg, switch["cfa"].offset, switch[29].arg, switch[32].arg) == (29, 16, -16, -8)
    assert {tables[place][32].type for place in (EXCEPTION, USER, FORK, FORK + 8, TO_KERNEL, VECTORS)} == {"UNDEFINED"}
