"""Single FDEs in memory, against the decoding of whole files, and in the forms that only run-time code has."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.dwarf.cfi import Expression, Row, decode, to_rule
from sframe_unwind.dwarf.fde_reader import FdeReader
from sframe_unwind.errors import FormatError, MemoryReadError, SFrameError
from sframe_unwind.image.eh_frame import EhFrame, SectionData
from sframe_unwind.memory import ReadMemory
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa
from tests.image.test_elf_image import libraries
from tests.samples.build import build

AT = 0x7F00_0000_1000
"""Where the records of the tests lie."""
START, END = 0x7F00_0010_0000, 0x7F00_0010_0040
"""The function that they describe."""


def memory(start: int, data: bytes) -> ReadMemory:
    """Return memory that holds some bytes and nothing else."""

    def read(address: int, size: int) -> bytes:
        if not start <= address <= address + size <= start + len(data):
            raise MemoryReadError(address, size)
        return data[address - start : address - start + size]

    return read


def files() -> list[tuple[Path, Arch]]:
    """Return files of several producers and byte orders."""
    library = next(Path(name) for name in libraries() if "libm" in name)
    samples = [("aarch64", "pac"), ("aarch64_be", "pac"), ("s390x", "O0")]
    return [
        (library, BY_NAME["amd64"]),
        (build("plt", version=1, variant="O0"), BY_NAME["amd64"]),
        *((build("free_walk", abi=abi, variant=variant), BY_NAME[abi]) for abi, variant in samples),
    ]


def test_each_fde_is_that_of_the_file() -> None:
    checked = 0
    for path, abi in files():
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            section = elf.get_section_by_name(".eh_frame")
            address, data = section["sh_addr"], section.data()
            eh_frame = EhFrame(SectionData(address, data), None, abi.byteorder)
            reader = FdeReader(memory(address, data), abi)
            entries = [entry for entry in elf.get_dwarf_info().EH_CFI_entries() if isinstance(entry, FDE)]
            for entry in entries[:1000]:
                start = entry["initial_location"]
                record = eh_frame.record(start)
                assert record is not None
                assert record == address + entry.offset
                function = reader.function_at_record(record)
                assert function == decode(entry, abi), f"{path.name}: {start:#x}"
                for row in function.rows:
                    if isinstance(row.cfa, RegisterRule):
                        assert reader.rule(row, start) == to_rule(entry.structs, abi, row, start)
                checked += 1
    assert checked > 800


def records(mark: str, encoding: int, location: bytes, extended: bool = False, augmentation: bytes = b"zR") -> bytes:
    """Return a CIE and an FDE of AMD64's rules: CFA rsp+8, from offset 1 on rsp+16 with rbp saved."""

    def record(body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)  # DW_CFA_nop
        length = struct.pack(mark + "IQ", 0xFFFFFFFF, len(body)) if extended else struct.pack(mark + "I", len(body))
        return length + body

    # version 1, augmentation, code alignment 1, data alignment -8, return address in 16, encoding
    common = b"\0\0\0\0\x01" + augmentation + b"\0" + b"\x01\x78\x10" + b"\x01" + bytes([encoding])
    cie = record(common + b"\x0c\x07\x08" + b"\x90\x01")  # def_cfa rsp+8; offset r16 at cfa-8
    distance = len(cie) + (12 if extended else 4)
    code = b"\x41\x0e\x10\x86\x02"  # advance 1; def_cfa_offset 16; offset rbp at cfa-16
    return cie + record(struct.pack(mark + "I", distance) + location + b"\0" + code)


def fde_address(data: bytes, extended: bool = False, mark: str = "<") -> int:
    """Return where the second of two records is."""
    if extended:
        return int(AT + 12 + struct.unpack_from(mark + "Q", data, 4)[0])
    return int(AT + 4 + struct.unpack_from(mark + "I", data)[0])


SIZE = END - START
FORMS = {
    "absolute": (0x00, struct.pack("<QQ", START, SIZE)),
    "absolute of 8 bytes": (0x04, struct.pack("<QQ", START, SIZE)),
    "relative to data": (0x3B, struct.pack("<iI", 0x10_0000, SIZE)),
    "relative to data, 8 bytes": (0x3C, struct.pack("<qQ", 0x10_0000, SIZE)),
}
DATA_BASE = START - 0x10_0000


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_ways_to_write_an_address(form: str, extended: bool) -> None:
    data = records("<", *FORMS[form], extended)
    reader = FdeReader(memory(AT, data), BY_NAME["amd64"], DATA_BASE)
    function = reader.function_at_record(fde_address(data, extended))
    assert (function.start, function.end, function.starts) == (START, END, (START, START + 1))
    assert reader.rule(function.row_at(START), START) == UnwindRule(RegisterRule(7, 8, False), saved_at_cfa(-8), None)
    inside = reader.rule(function.row_at(START + 1), START + 1)
    assert inside == UnwindRule(RegisterRule(7, 16, False), saved_at_cfa(-8), saved_at_cfa(-16))


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_address_relative_to_its_own_place(byteorder: str, extended: bool) -> None:
    mark = "<" if byteorder == "little" else ">"
    place = len(records(mark, 0x1B, bytes(8), extended)) - 8 - len(b"\0\x41\x0e\x10\x86\x02") - 2  # 2: padding
    data = records(mark, 0x1B, struct.pack(mark + "iI", START - AT - place, SIZE), extended)
    reader = FdeReader(memory(AT, data), BY_NAME["amd64"]._replace(byteorder=byteorder))
    function = reader.function_at_record(fde_address(data, extended, mark))
    assert (function.start, function.end) == (START, END)


def test_what_is_no_fde_is_an_error() -> None:
    data = records("<", *FORMS["absolute"])
    fde = fde_address(data)
    reader = FdeReader(memory(AT, data), BY_NAME["amd64"])
    with pytest.raises(FormatError, match=f"expected an FDE at {AT:#x}, found a CIE"):
        reader.function_at_record(AT)
    with pytest.raises(MemoryReadError):
        reader.function_at_record(AT + len(data))
    long = data[: fde - AT] + b"\xff\xff\xff\x7f" + data[fde - AT + 4 :]
    with pytest.raises(FormatError, match=f"at {fde:#x}, found a record of 2147483647 bytes"):
        FdeReader(memory(AT, long), BY_NAME["amd64"]).function_at_record(fde)
    for encoding in (0x2B, 0x50, 0x9B, 0xFF):
        data = records("<", encoding, FORMS["absolute"][1])
        with pytest.raises(FormatError, match=f"CIE at {AT:#x}: pointer encoding {encoding:#x}"):
            FdeReader(memory(AT, data), BY_NAME["amd64"]).function_at_record(fde)
    data = records("<", 0, FORMS["absolute"][1], augmentation=b"eh")
    with pytest.raises(FormatError, match="does not say how"):
        FdeReader(memory(AT, data), BY_NAME["amd64"]).function_at_record(fde)


def test_any_damage_is_an_error_or_an_answer() -> None:
    data = records("<", *FORMS["relative to data"])
    fde = fde_address(data)
    errors = 0
    for at in range(len(data)):
        for value in (0, 0x7F, 0x80, 0xFF):
            damaged = data[:at] + bytes([value]) + data[at + 1 :]
            try:
                FdeReader(memory(AT, damaged), BY_NAME["amd64"]).function_at_record(fde)
            except SFrameError:
                errors += 1
    assert errors > 50


def test_expression_that_is_none_is_an_error() -> None:
    reader = FdeReader(memory(AT, b""), BY_NAME["amd64"])
    for code in ((0xFF,), (0x12,), (0x03, 0x00)):  # unknown; dup, which has no place in a rule; a truncated operand
        with pytest.raises(FormatError, match=f"DWARF rule at {START:#x}"):
            reader.rule(Row(Expression(code, False), None, None, False), START)
