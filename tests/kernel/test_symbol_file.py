"""The symbol file with CFI for entry code, read by pyelftools."""

from __future__ import annotations

import io

from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from sframe_unwind.kernel.orc_places import orc_places
from sframe_unwind.kernel.symbol_file import symbol_file
from tests.kernel import fake_amd64 as amd64
from tests.kernel.fake import ARCH, EXCEPTION, FORK, SWITCH, TO_KERNEL, USER, VECTORS, Memory, kernel

EM_AARCH64, EM_X86_64 = 183, 62


def made() -> bytes:
    fake = kernel(Memory())
    return symbol_file(ARCH, EM_AARCH64, [place for _, _, place in fake.places], fake.saved_registers)


def test_pyelftools_reads_the_frames() -> None:
    elf = ELFFile(io.BytesIO(made()))
    assert elf.get_machine_arch() == "AArch64"
    assert elf.get_section_by_name(".text").data_size == 0
    entries = elf.get_dwarf_info(relocate_dwarf_sections=False).CFI_entries()
    fdes = [one for one in entries if isinstance(one, FDE)]
    assert {fde.cie["augmentation"] for fde in fdes} == {b"zS"}
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


def test_what_orc_says_of_entry_code() -> None:
    """A stack switch is left out: functions with one have CFI, which debuggers prefer."""
    kernel = amd64.kernel(Memory())
    places = orc_places(amd64.table(), kernel.is_entry_code)
    made = symbol_file(amd64.ARCH, EM_X86_64, places, kernel.saved_registers)
    entries = ELFFile(io.BytesIO(made)).get_dwarf_info(relocate_dwarf_sections=False).CFI_entries()
    fdes = [one for one in entries if isinstance(one, FDE)]
    signals = [fde["initial_location"] for fde in fdes if fde.cie["augmentation"] == b"zS"]
    assert set(signals) == {fde["initial_location"] for fde in fdes} - {amd64.ERROR_ENTRY}
    tables = {fde["initial_location"]: fde.get_decoded().table[-1] for fde in fdes}
    exceptions = (amd64.SAVED + 1, amd64.INTERRUPT, amd64.INTERRUPT + 0x20, amd64.WITH_BP)
    assert sorted(tables) == [amd64.START, amd64.SYSCALL, *exceptions, amd64.ERROR_ENTRY]
    whole, partial = tables[amd64.SAVED + 1], tables[amd64.INTERRUPT]
    assert (whole["cfa"].reg, whole["cfa"].offset) == (7, 168)
    assert {number: 168 + whole[number].arg for number in (16, 7, 3)} == {16: 128, 7: 152, 3: 40}
    # For the frame at SP + 8, pc is the first word and SP the fourth.
    assert {number: partial["cfa"].offset + partial[number].arg for number in (16, 7)} == {16: 8, 7: 32}
    assert 3 not in partial
    with_bp = tables[amd64.WITH_BP]
    assert {number: with_bp["cfa"].offset + with_bp[number].arg for number in (16, 7, 6)} == {16: 16, 7: 40, 6: 8}
    function = tables[amd64.ERROR_ENTRY]
    assert (function["cfa"].reg, function["cfa"].offset, function[16].arg) == (7, 16, -8)
    assert {tables[place][16].type for place in (amd64.START, amd64.SYSCALL)} == {"UNDEFINED"}
